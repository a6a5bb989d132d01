//! Copies between arrays of GPU memory, and between GPU and host memory.

use super::memory::bytes;
use super::{Gpu, GpuAddress};
use crate::backend::driver::failed;
use crate::backend::pinned::Pinned;
use crate::backend::transfer::Transfer;
use crate::backend::{Area, Backend};
use crate::blocks::Blocks;
use crate::error::{Error, Result};
use crate::kernel_arg::Address;
use cudarc::driver::CudaStream;
use cudarc::driver::sys::{self, CUDA_MEMCPY2D, CUmemorytype, CUresult, CUstream};
use gemm_dsl::ir::Elem;
use gemm_dsl::target::element::Element;
use std::borrow::Cow;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// First element of a side of a copy.
#[derive(Clone, Copy)]
enum Source {
    Gpu(u64),
    Host(*const c_void),
}

/// First element of a side of a copy.
#[derive(Clone, Copy)]
enum Target {
    Gpu(u64),
    Host(*mut c_void),
}

#[allow(unsafe_code, reason = "the driver copies between addresses")]
impl Gpu {
    /// Copies an area to another of the same extents, in the order of a stream of this context.
    /// Either area may be in the memory of a peer GPU.
    pub fn copy_area_on(
        &self,
        stream: &CudaStream,
        from: &Area<Self>,
        to: &Area<Self>,
    ) -> Result<()> {
        self.copy_blocks(stream, &to.first, &from.first, &from.blocks_to(to)?)
    }

    /// Copies elements between arrays, in the order of a stream of this context.
    pub(super) fn copy_blocks(
        &self,
        stream: &CudaStream,
        to: &GpuAddress,
        from: &GpuAddress,
        blocks: &Blocks,
    ) -> Result<()> {
        let (to, elem, from) = (Target::Gpu(to.at), to.elem(), Source::Gpu(from.at));
        // SAFETY: the owners of both arrays keep their memory until the stream has executed the
        // copies. The caller has checked that the arrays contain the blocks.
        unsafe { self.enqueue_copies(stream.cu_stream(), to, from, elem, blocks) }
    }

    /// Copies elements from the host and waits for the copies.
    pub(super) fn write_blocks<T: Element>(
        &self,
        to: &GpuAddress,
        elements: &[T],
        blocks: &Blocks,
    ) -> Result<()> {
        check_host(elements.len(), blocks.source_reach(), T::ELEM, to.elem())?;
        if blocks.is_empty() {
            return Ok(());
        }
        self.refuse_capture("copying from host memory")?;
        let (target, from) = (Target::Gpu(to.at), Source::Host(elements.as_ptr().cast()));
        // SAFETY: the caller's array contains the blocks; the slice contains them, as checked
        // above. It stays borrowed until the wait for the stream ends. Elements have no padding.
        let copied = unsafe {
            self.enqueue_copies(self.stream.cu_stream(), target, from, to.elem(), blocks)
        };
        let waited = self.synchronize();
        copied?;
        waited
    }

    /// Copies elements to the host, after all work on the stream.
    pub(super) fn read_blocks<T: Element>(
        &self,
        elements: &mut [T],
        from: &GpuAddress,
        blocks: &Blocks,
    ) -> Result<()> {
        check_host(elements.len(), blocks.target_reach(), T::ELEM, from.elem())?;
        if blocks.is_empty() {
            return Ok(());
        }
        self.refuse_capture("copying to host memory")?;
        let (to, source) = (Target::Host(elements.as_mut_ptr().cast()), Source::Gpu(from.at));
        // SAFETY: the caller's array contains the blocks; the slice contains them, as checked
        // above. It stays borrowed until the wait for the stream ends. Elements have no invalid
        // bits.
        let copied = unsafe {
            self.enqueue_copies(self.stream.cu_stream(), to, source, from.elem(), blocks)
        };
        let waited = self.synchronize();
        copied?;
        waited
    }

    /// Starts copies from pinned memory.
    pub(super) fn begin_write<T: Element>(
        &self,
        to: &GpuAddress,
        elements: Pinned<T>,
        blocks: &Blocks,
    ) -> Result<Transfer<T>> {
        check_host(elements.len(), blocks.source_reach(), T::ELEM, to.elem())?;
        self.refuse_capture("copying from host memory")?;
        let (target, from) = (Target::Gpu(to.at), Source::Host(elements.as_ptr().cast()));
        // SAFETY: the caller's array contains the blocks, and its owner keeps it until the stream
        // has executed the copies; the host's memory contains the blocks, as checked above. The
        // transfer owns this memory until the copies are done.
        let started = unsafe {
            self.enqueue_copies(self.stream.cu_stream(), target, from, to.elem(), blocks)
        };
        self.transfer(elements, started)
    }

    /// Starts copies to pinned memory.
    pub(super) fn begin_read<T: Element>(
        &self,
        mut elements: Pinned<T>,
        from: &GpuAddress,
        blocks: &Blocks,
    ) -> Result<Transfer<T>> {
        check_host(elements.len(), blocks.target_reach(), T::ELEM, from.elem())?;
        self.refuse_capture("copying to host memory")?;
        let (to, source) = (Target::Host(elements.as_mut_ptr().cast()), Source::Gpu(from.at));
        // SAFETY: as for `begin_write`. Elements have no invalid bits.
        let started = unsafe {
            self.enqueue_copies(self.stream.cu_stream(), to, source, from.elem(), blocks)
        };
        self.transfer(elements, started)
    }

    /// Transfer of copies that were put on the stream.
    fn transfer<T: Element>(
        &self,
        elements: Pinned<T>,
        started: Result<()>,
    ) -> Result<Transfer<T>> {
        match started.and_then(|()| self.record()) {
            Ok(event) => Ok(Transfer::new(elements, event)),
            Err(error) => {
                // Some copies may be on the stream.
                if self.synchronize().is_err() {
                    std::mem::forget(elements);
                }
                Err(error)
            }
        }
    }

    /// Puts copies on a stream.
    ///
    /// # Safety
    /// The memory of both sides must contain the blocks until the stream has executed the copies.
    unsafe fn enqueue_copies(
        &self,
        stream: CUstream,
        to: Target,
        from: Source,
        elem: Elem,
        blocks: &Blocks,
    ) -> Result<()> {
        self.bind()?;
        let blocks = &*self.within_pitch(elem, blocks)?;
        for (to_start, from_start) in blocks.starts() {
            let (to_start, from_start) = (self.size(elem, to_start)?, self.size(elem, from_start)?);
            let to = match to {
                Target::Gpu(at) => Target::Gpu(at + to_start as u64),
                Target::Host(at) => Target::Host(at.wrapping_byte_add(to_start)),
            };
            let from = match from {
                Source::Gpu(at) => Source::Gpu(at + from_start as u64),
                Source::Host(at) => Source::Host(at.wrapping_byte_add(from_start)),
            };
            // SAFETY: the caller ensures that both sides contain the block.
            unsafe { self.enqueue_block(stream, to, from, elem, blocks) }?;
        }
        Ok(())
    }

    /// Puts the copy of one block on a stream.
    ///
    /// # Safety
    /// The memory of both sides must contain the block until the stream has executed the copy.
    unsafe fn enqueue_block(
        &self,
        stream: CUstream,
        to: Target,
        from: Source,
        elem: Elem,
        blocks: &Blocks,
    ) -> Result<()> {
        let Blocks { rows, cols, to_pitch, from_pitch, .. } = *blocks;
        let width = self.size(elem, cols)?;
        if rows == 1 {
            // SAFETY: the caller ensures that both sides contain the row.
            let copied = unsafe { enqueue_row(stream, to, from, width) };
            return copied.result().map_err(failed(format!("copying {width} bytes")));
        }
        let mut copy = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            srcHost: null(),
            srcDevice: 0,
            srcArray: null_mut(),
            srcPitch: self.size(elem, from_pitch)?,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            dstHost: null_mut(),
            dstDevice: 0,
            dstArray: null_mut(),
            dstPitch: self.size(elem, to_pitch)?,
            WidthInBytes: width,
            Height: rows,
        };
        match from {
            Source::Gpu(at) => copy.srcDevice = at,
            Source::Host(at) => {
                copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                copy.srcHost = at;
            }
        }
        match to {
            Target::Gpu(at) => copy.dstDevice = at,
            Target::Host(at) => {
                copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                copy.dstHost = at;
            }
        }
        // SAFETY: the caller ensures that both sides contain the block. The driver reads the
        // description during this call only.
        let copied = unsafe { sys::cuMemcpy2DAsync_v2(&copy, stream) };
        copied.result().map_err(failed(format!("copying {rows}x{cols} elements")))
    }

    /// Blocks whose row strides the driver accepts: less than 2^31 bytes.
    pub(super) fn within_pitch<'b>(
        &self,
        elem: Elem,
        blocks: &'b Blocks,
    ) -> Result<Cow<'b, Blocks>> {
        let pitch = self.size(elem, blocks.to_pitch.max(blocks.from_pitch))?;
        Ok(match blocks.rows > 1 && pitch > i32::MAX as usize {
            true => Cow::Owned(blocks.row_by_row()),
            false => Cow::Borrowed(blocks),
        })
    }

    /// Size of elements in bytes.
    pub(super) fn size(&self, elem: Elem, len: usize) -> Result<usize> {
        let size = usize::try_from(bytes(elem, len as u64));
        size.map_err(|_| self.too_large(elem, len as u64))
    }
}

/// Puts the copy of consecutive bytes on a stream.
///
/// # Safety
/// The memory of both sides must contain the bytes until the stream has executed the copy.
#[allow(unsafe_code, reason = "the driver copies between addresses")]
unsafe fn enqueue_row(stream: CUstream, to: Target, from: Source, width: usize) -> CUresult {
    // SAFETY: the caller's.
    unsafe {
        match (to, from) {
            (Target::Gpu(to), Source::Gpu(from)) => {
                sys::cuMemcpyDtoDAsync_v2(to, from, width, stream)
            }
            (Target::Gpu(to), Source::Host(from)) => {
                sys::cuMemcpyHtoDAsync_v2(to, from, width, stream)
            }
            (Target::Host(to), Source::Gpu(from)) => {
                sys::cuMemcpyDtoHAsync_v2(to, from, width, stream)
            }
            (Target::Host(to), Source::Host(from)) => {
                std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), width);
                CUresult::CUDA_SUCCESS
            }
        }
    }
}

/// Checks that a slice of the host reaches as far as a copy does, and has elements of the same
/// size.
fn check_host(len: usize, reach: usize, elem: Elem, on_gpu: Elem) -> Result<()> {
    if reach > len || elem.size() != on_gpu.size() {
        return Err(Error::Internal("a copy reaches beyond its host memory".to_owned()));
    }
    Ok(())
}
