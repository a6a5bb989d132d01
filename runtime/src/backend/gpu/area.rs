//! Copies of rectangles of GPU memory.

use super::Gpu;
use super::memory::bytes;
use crate::backend::driver::failed;
use crate::backend::{Area, Backend};
use crate::error::{Error, Result};
use crate::kernel_arg::Address;
use cudarc::driver::sys::{self, CUDA_MEMCPY2D, CUmemorytype};
use cudarc::driver::{CudaStream, result};
use gemm_dsl::target::element::Element;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// Address of the first row on one side of a copy.
enum Side {
    Gpu(u64),
    HostToRead(*const c_void),
    HostToWrite(*mut c_void),
}

/// One side of a copy: its first row, and the row stride in elements.
struct PitchedRows {
    side: Side,
    pitch: usize,
}

impl PitchedRows {
    fn of_area(area: &Area<Gpu>) -> Self {
        Self { side: Side::Gpu(area.first.at), pitch: area.pitch }
    }
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
        if (from.rows, from.cols) != (to.rows, to.cols) {
            return Err(Error::Internal("a copy between areas of unequal extents".to_owned()));
        }
        if from.is_packed() && to.is_packed() {
            let bytes = usize::try_from(bytes(from.first.elem, from.len() as u64));
            let bytes = bytes.map_err(|_| self.too_large(from.first.elem, from.len() as u64))?;
            if bytes == 0 {
                return Ok(());
            }
            self.bind()?;
            // SAFETY: the owners of both areas keep their memory until the stream has executed the
            // copy.
            let copied = unsafe {
                result::memcpy_dtod_async(to.first.at, from.first.at, bytes, stream.cu_stream())
            };
            return copied.map_err(failed(format!("copying {bytes} bytes")));
        }
        // SAFETY: the owners of both areas keep their memory until the stream has executed the
        // copy.
        unsafe { self.copy_rows(stream, to, PitchedRows::of_area(from), PitchedRows::of_area(to)) }
    }

    /// Copies an area to the host, after all work on the stream.
    pub(super) fn area_out<T: Element>(&self, from: &Area<Self>) -> Result<Vec<T>> {
        if from.is_packed() {
            return self.copy_out(&from.first, from.len() as u64);
        }
        let mut elements = vec![T::default(); from.len()];
        let side = Side::HostToWrite(elements.as_mut_ptr().cast());
        let host = PitchedRows { side, pitch: from.cols };
        // SAFETY: the host buffer has the capacity for the elements, whose type has no invalid
        // bits. It outlives the wait for the stream.
        let copied =
            unsafe { self.copy_rows(&self.stream, from, PitchedRows::of_area(from), host) };
        let waited = self.synchronize();
        copied?;
        waited?;
        Ok(elements)
    }

    /// Copies elements from the host and waits for the copy.
    pub(super) fn area_in<T: Element>(&self, to: &Area<Self>, elements: &[T]) -> Result<()> {
        if elements.len() != to.len() || T::ELEM.size() != to.first.elem().size() {
            return Err(Error::Internal("an area and its elements differ in number".to_owned()));
        }
        if to.is_packed() {
            return self.copy_in(&to.first, elements);
        }
        let host = PitchedRows { side: Side::HostToRead(elements.as_ptr().cast()), pitch: to.cols };
        // SAFETY: the host's elements have no padding, and stay borrowed until the wait for the
        // stream ends.
        let copied = unsafe { self.copy_rows(&self.stream, to, host, PitchedRows::of_area(to)) };
        let waited = self.synchronize();
        copied?;
        waited
    }

    /// Copies rows; `area` has their number and length.
    ///
    /// # Safety
    /// The memory of both sides must contain these rows until the stream has executed the copy.
    unsafe fn copy_rows(
        &self,
        stream: &CudaStream,
        area: &Area<Self>,
        source: PitchedRows,
        target: PitchedRows,
    ) -> Result<()> {
        if area.len() == 0 {
            return Ok(());
        }
        let elem = area.first.elem();
        let in_bytes = |elements: usize| {
            let bytes = usize::try_from(bytes(elem, elements as u64));
            bytes.map_err(|_| self.too_large(elem, elements as u64))
        };
        // The driver requires a row stride of at least the row length, even for a single row.
        let pitch = |pitch: usize| if area.rows == 1 { area.cols } else { pitch };
        let mut copy = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            srcHost: null(),
            srcDevice: 0,
            srcArray: null_mut(),
            srcPitch: in_bytes(pitch(source.pitch))?,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            dstHost: null_mut(),
            dstDevice: 0,
            dstArray: null_mut(),
            dstPitch: in_bytes(pitch(target.pitch))?,
            WidthInBytes: in_bytes(area.cols)?,
            Height: area.rows,
        };
        match source.side {
            Side::Gpu(at) => copy.srcDevice = at,
            Side::HostToRead(at) => {
                copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                copy.srcHost = at;
            }
            Side::HostToWrite(_) => {
                return Err(Error::Internal("the source is a target".to_owned()));
            }
        }
        match target.side {
            Side::Gpu(at) => copy.dstDevice = at,
            Side::HostToWrite(at) => {
                copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                copy.dstHost = at;
            }
            Side::HostToRead(_) => {
                return Err(Error::Internal("the target is a source".to_owned()));
            }
        }
        self.bind()?;
        // SAFETY: the caller ensures that both sides contain the described rows. The driver reads
        // the description during this call only.
        let copied = unsafe { sys::cuMemcpy2DAsync_v2(&copy, stream.cu_stream()) };
        copied.result().map_err(failed(format!("copying {}x{} elements", area.rows, area.cols)))
    }
}
