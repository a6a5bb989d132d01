//! Reductions.

use super::{Call, ReduceKernel};
use crate::device::{Device, dispatch};
use crate::error::{Error, Result};
use crate::launch::{Bound, launch};
use crate::launched::Launched;
use crate::operand::{self, Input, Output};
use gemm_dsl::spec::ReduceSpec;

impl ReduceKernel {
    /// The kernel of a spec: the same as the macro makes of the same line.
    ///
    /// # Errors
    /// [`Error::Spec`] with all faults of the spec.
    pub fn new(spec: ReduceSpec) -> Result<Self> {
        Self::checked(&spec)
    }

    /// Reduces elements of the host: uploads, launches, downloads.
    ///
    /// # Errors
    /// Those of [`Device::upload`], [`ReduceKernel::launch`] and [`Device::download`].
    pub fn run(&self, device: &Device, input: &[f32]) -> Result<f32> {
        let input = device.upload(input)?;
        let mut output = device.alloc(1)?;
        self.launch(device, &input, &mut output)?;
        let value = device.download(&output)?;
        value.first().copied().ok_or_else(|| Error::Internal("one element became none".to_owned()))
    }

    /// Reduces an array on the device into the first element of `output`. On a GPU the call returns
    /// before the work is done; later work of the device comes after it.
    ///
    /// # Errors
    /// [`Error::WrongDevice`]; [`Error::WrongExtent`] where `output` is empty; [`Error::Padded`] for a
    /// matrix with padding; [`Error::List`] for a list of matrices; [`Error::Overlap`]; [`Error::Unmet`] beyond 2^31 − 1 blocks; what compiling
    /// and loading the kernel and allocating scratch memory fail with, in the first launch; and in
    /// the simulator [`Error::Simulator`].
    pub fn launch<I, O>(&self, device: &Device, input: &I, output: &mut O) -> Result<Launched>
    where
        I: Input + ?Sized,
        O: Output + ?Sized,
    {
        let program = self.prepare(device)?;
        dispatch!(device, on => {
            let input = operand::read(on, input, "input")?;
            let output = operand::write(on, output, "output")?;
            // Of an empty part nothing may be written, though the array that it is part of goes on.
            let (_, room) = output.array("output")?;
            let has = output.shape.map_or(room, |shape| shape.count() as u64);
            if has < 1 {
                return Err(Error::WrongExtent {
                    argument: "output".to_owned(),
                    has,
                    need: "the value needs 1".to_owned(),
                });
            }
            let (_, given) = input.array("input")?;
            let length = match input.shape {
                None => given,
                Some(shape) if shape.is_packed() => shape.count() as u64,
                Some(shape) => {
                    let [cols, row_stride, col_stride] =
                        [shape.cols, shape.row_stride, shape.col_stride].map(|n| n as u64);
                    let argument = "input".to_owned();
                    return Err(Error::Padded { argument, cols, row_stride, col_stride });
                }
            };
            let input = Bound::vector("input", input.place.clone(), length);
            let output = Bound::vector("output", output.place.clone(), 1);
            launch(on, &program, &[input], &[output], &[length])
        })
    }
}

impl Call<'_, ReduceSpec> {
    /// As [`ReduceKernel::launch`].
    ///
    /// # Errors
    /// Those of [`ReduceKernel::launch`].
    pub fn launch<I, O>(&self, input: &I, output: &mut O) -> Result<Launched>
    where
        I: Input + ?Sized,
        O: Output + ?Sized,
    {
        self.kernel.launch(self.device, input, output)
    }
}
