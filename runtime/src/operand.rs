//! What a launch accepts as an input or an output.

use crate::buffer::{Buffer, BufferView, BufferViewMut};
use crate::device::{Backend, Device};
use crate::error::{Error, Owner, Result};
use crate::matrix::Matrix;
use cudarc::driver::{CudaSlice, CudaView, CudaViewMut, SyncOnDrop};
use gemm_dsl::sim;

/// An array in device memory that a kernel reads: [`Buffer`], [`Matrix`], a view of a buffer, or a
/// `CudaSlice<f32>` or `CudaView<f32>` of the `cudarc` context that the [`Device`] was made from.
pub trait Input: sealed::Input {}
impl<T: sealed::Input + ?Sized> Input for T {}

/// An array in device memory that a kernel writes: as [`Input`], exclusively borrowed.
pub trait Output: sealed::Output {}
impl<T: sealed::Output + ?Sized> Output for T {}

pub(crate) mod sealed {
    use super::Operand;

    pub trait Input {
        fn operand(&self) -> Operand<'_>;
    }

    pub trait Output {
        fn operand_mut(&mut self) -> Operand<'_>;
    }
}

/// A borrowed operand, before it is known to belong to the device of the call.
pub struct Operand<'a> {
    storage: Storage<'a>,
    shape: Option<Shape>,
}

enum Storage<'a> {
    /// Elements of a buffer, from `start` on.
    Buffer {
        buffer: &'a Buffer,
        start: usize,
        len: usize,
    },
    View(CudaView<'a, f32>),
    ViewMut(CudaViewMut<'a, f32>),
}

/// The rows and columns of a matrix, with the distance between two rows, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) rows: u64,
    pub(crate) cols: u64,
    pub(crate) pitch: u64,
}

/// Where the first element of an operand lies.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// An address in GPU memory.
    Gpu(u64),
    /// Simulated memory.
    Simulated {
        /// The elements.
        buffer: sim::Buffer,
        /// The distance of the first from the start of its allocation, in elements.
        offset: u64,
    },
}

impl Place {
    /// The address, or the distance from the start of an allocation that is aligned to 256 bytes.
    pub(crate) fn address(&self) -> u64 {
        match self {
            Place::Gpu(address) => *address,
            Place::Simulated { offset, .. } => offset * size_of::<f32>() as u64,
        }
    }
}

/// An operand that belongs to the device of the call.
pub(crate) struct Resolved<'a> {
    pub(crate) place: Place,
    /// Elements from the place on.
    pub(crate) len: u64,
    pub(crate) shape: Option<Shape>,
    /// Records, when dropped after the launch, that the slice was used on the device's stream, for
    /// `cudarc` to order work on other streams after it.
    _used: Option<SyncOnDrop<'a>>,
}

impl<'a> Operand<'a> {
    pub(crate) fn of_buffer(buffer: &'a Buffer, start: usize, len: usize) -> Self {
        Self { storage: Storage::Buffer { buffer, start, len }, shape: None }
    }

    pub(crate) fn shaped(self, shape: Shape) -> Self {
        Self { shape: Some(shape), ..self }
    }

    /// Checks that the operand lives on the device, and has the device's stream wait for work on
    /// it that `cudarc` knows of.
    pub(crate) fn resolve(
        self,
        device: &'a Device,
        argument: &'static str,
    ) -> Result<Resolved<'a>> {
        let wrong = |belongs: Owner| Error::WrongDevice {
            argument,
            device: device.name().to_owned(),
            belongs,
        };
        let shape = self.shape;
        let (place, len, used) = match (self.storage, device.backend()) {
            (Storage::Buffer { buffer, start, len }, _) => {
                if !buffer.device().is_same(device) {
                    let owner = buffer.device();
                    return Err(wrong(Owner::Device {
                        name: owner.name().to_owned(),
                        is_simulator: owner.is_simulator(),
                    }));
                }
                (buffer.place(start, len)?, len, None)
            }
            (Storage::View(view), Backend::Gpu(gpu)) if gpu.owns(&view) => {
                let len = view.len();
                let (address, used) = gpu.pass(|stream| view.view_ptr(stream))?;
                (Place::Gpu(address), len, used)
            }
            (Storage::ViewMut(view), Backend::Gpu(gpu)) if gpu.owns(&view) => {
                let len = view.len();
                let (address, used) = gpu.pass(|stream| view.view_ptr_mut(stream))?;
                (Place::Gpu(address), len, used)
            }
            (Storage::View(_) | Storage::ViewMut(_), _) => {
                return Err(wrong(Owner::Context));
            }
        };
        Ok(Resolved { place, len: len as u64, shape, _used: used })
    }
}

impl sealed::Input for Buffer {
    fn operand(&self) -> Operand<'_> {
        Operand::of_buffer(self, 0, self.len())
    }
}

impl sealed::Output for Buffer {
    fn operand_mut(&mut self) -> Operand<'_> {
        Operand::of_buffer(self, 0, self.len())
    }
}

impl sealed::Input for BufferView<'_> {
    fn operand(&self) -> Operand<'_> {
        let (buffer, start, len) = self.parts();
        Operand::of_buffer(buffer, start, len)
    }
}

impl sealed::Input for BufferViewMut<'_> {
    fn operand(&self) -> Operand<'_> {
        let (buffer, start, len) = self.parts();
        Operand::of_buffer(buffer, start, len)
    }
}

impl sealed::Output for BufferViewMut<'_> {
    fn operand_mut(&mut self) -> Operand<'_> {
        let (buffer, start, len) = self.parts();
        Operand::of_buffer(buffer, start, len)
    }
}

impl sealed::Input for Matrix {
    fn operand(&self) -> Operand<'_> {
        let buffer = self.buffer();
        Operand::of_buffer(buffer, 0, buffer.len()).shaped(self.shape())
    }
}

impl sealed::Output for Matrix {
    fn operand_mut(&mut self) -> Operand<'_> {
        sealed::Input::operand(self)
    }
}

impl<'a> From<CudaView<'a, f32>> for Operand<'a> {
    fn from(view: CudaView<'a, f32>) -> Self {
        Self { storage: Storage::View(view), shape: None }
    }
}

impl<'a> From<CudaViewMut<'a, f32>> for Operand<'a> {
    fn from(view: CudaViewMut<'a, f32>) -> Self {
        Self { storage: Storage::ViewMut(view), shape: None }
    }
}

impl sealed::Input for CudaSlice<f32> {
    fn operand(&self) -> Operand<'_> {
        self.as_view().into()
    }
}

impl sealed::Output for CudaSlice<f32> {
    fn operand_mut(&mut self) -> Operand<'_> {
        self.as_view_mut().into()
    }
}

impl sealed::Input for CudaView<'_, f32> {
    fn operand(&self) -> Operand<'_> {
        self.slice(..).into()
    }
}

impl sealed::Input for CudaViewMut<'_, f32> {
    fn operand(&self) -> Operand<'_> {
        self.as_view().into()
    }
}

impl sealed::Output for CudaViewMut<'_, f32> {
    fn operand_mut(&mut self) -> Operand<'_> {
        self.slice_mut(..).into()
    }
}
