//! Reductions.

use super::Text;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::launch::{Bound, Launched, launch};
use crate::operand::{Input, Output};
use gemm_dsl::spec::ReduceSpec;
use std::fmt;

/// A reduction of an array of `f32` to one value, made by
/// [`reduce_kernel!`](crate::reduce_kernel) or from a [`ReduceSpec`].
///
/// The elements are combined in an order that the spec and the length fix, so that the result is
/// the same bits on every run and device. An empty array gives the operator's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReduceKernel(Text);

impl ReduceKernel {
    #[doc(hidden)]
    pub const fn __from_macro(line: &'static str, source: &'static str) -> Self {
        Self(Text::from_macro(line, source))
    }

    /// The kernel of a spec: the same as the macro makes of the same line.
    ///
    /// # Errors
    /// [`Error::Spec`] with all faults of the spec.
    pub fn new(spec: ReduceSpec) -> Result<Self> {
        Text::new(&spec).map(Self)
    }

    /// The CUDA C translation unit of the preferred access variant.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// The spec as a line of the DSL, in canonical order and without defaults.
    pub fn spec_line(&self) -> &str {
        &self.0.line
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
    /// [`Error::WrongDevice`]; [`Error::WrongExtent`] where `output` is empty; [`Error::TooLarge`]
    /// beyond 2^31 − 1 blocks; [`Error::Padded`] for a matrix with padding; what compiling and
    /// loading the kernel and allocating scratch memory fail with, in the first launch; and in the
    /// simulator [`Error::Simulator`].
    pub fn launch<I, O>(&self, device: &Device, input: &I, output: &mut O) -> Result<Launched>
    where
        I: Input + ?Sized,
        O: Output + ?Sized,
    {
        let program = self.0.prepare::<ReduceSpec>(device)?;
        let input = input.operand().resolve(device, "input")?;
        let output = output.operand_mut().resolve(device, "output")?;
        if output.len < 1 {
            return Err(Error::WrongExtent {
                argument: "output",
                has: output.len,
                need: "the value needs 1".to_owned(),
            });
        }
        let (input, length) = match input.shape {
            Some(s) if s.rows > 1 && s.pitch != s.cols => {
                return Err(Error::Padded { argument: "input", cols: s.cols, pitch: s.pitch });
            }
            shape => {
                let length = shape.map_or(input.len, |s| s.rows * s.cols);
                (Bound::vector("input", input.place.clone(), input.len, length), length)
            }
        };
        let output = Bound::vector("output", output.place.clone(), output.len, 1);
        launch(device, &program, &[input], &[output], &[length])
    }
}

/// The spec line.
impl fmt::Display for ReduceKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec_line())
    }
}
