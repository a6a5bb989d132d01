//! Filling of GPU memory with a value.

use super::{Gpu, GpuAddress};
use crate::backend::driver::failed;
use crate::blocks::Blocks;
use crate::error::Result;
use cudarc::driver::sys::{self, CUresult};
use gemm_dsl::ir::Elem;
use gemm_dsl::target::element::Element;

#[allow(unsafe_code, reason = "the driver writes to addresses")]
impl Gpu {
    /// Sets elements to a value, in the order of the stream.
    pub(super) fn fill_blocks<T: Element>(
        &self,
        to: &GpuAddress,
        value: T,
        blocks: &Blocks,
    ) -> Result<()> {
        let bits = value.into_bits();
        let size = T::ELEM.size();
        if size < 8 {
            return self.set_blocks(to.at, size, bits as u32, blocks);
        }
        // The driver sets at most 4 bytes at once.
        let halves = [bits as u32, (bits >> 32) as u32];
        if halves[0] == halves[1] {
            return self.set_blocks(to.at, 4, halves[0], &blocks.in_halves());
        }
        for (at, half) in [to.at, to.at + 4].into_iter().zip(halves) {
            self.set_blocks(at, 4, half, &blocks.first_halves())?;
        }
        Ok(())
    }

    /// Sets elements of 1, 2 or 4 bytes.
    fn set_blocks(&self, at: u64, size: u32, bits: u32, blocks: &Blocks) -> Result<()> {
        let elem = match size {
            1 => Elem::U8,
            2 => Elem::U16,
            _ => Elem::U32,
        };
        let blocks = &*self.within_pitch(elem, blocks)?;
        let Blocks { rows, cols, to_pitch, .. } = *blocks;
        self.bind()?;
        let stream = self.stream.cu_stream();
        for (start, _) in blocks.starts() {
            let (at, pitch) = (at + self.size(elem, start)? as u64, self.size(elem, to_pitch)?);
            // SAFETY: the caller's array contains the blocks, and its owner keeps the memory until
            // the stream has executed the call.
            let status: CUresult = unsafe {
                match (size, rows) {
                    (1, 1) => sys::cuMemsetD8Async(at, bits as u8, cols, stream),
                    (1, _) => sys::cuMemsetD2D8Async(at, pitch, bits as u8, cols, rows, stream),
                    (2, 1) => sys::cuMemsetD16Async(at, bits as u16, cols, stream),
                    (2, _) => sys::cuMemsetD2D16Async(at, pitch, bits as u16, cols, rows, stream),
                    (_, 1) => sys::cuMemsetD32Async(at, bits, cols, stream),
                    (_, _) => sys::cuMemsetD2D32Async(at, pitch, bits, cols, rows, stream),
                }
            };
            status.result().map_err(failed(format!("filling {rows}x{cols} elements")))?;
        }
        Ok(())
    }
}
