//! Elementwise kernels whose spec is known only at run time.

use super::super::Kernel;
use super::super::operands::ByName;
use super::super::reduce::{names, places};
use super::apply::apply;
use super::operands::sealed::Pass;
use crate::device::Device;
use crate::dyn_array::{AnyOutput, Writable};
use crate::error::Result;
use crate::operand::Output;
use crate::report::LaunchReport;
use gemm_dsl::spec::MapSpec;
use std::fmt;

/// Elementwise kernel whose spec is known only at run time. A call passes operands of any element
/// type by name, in any order, and its launch checks them.
///
/// ```
/// use gemm_runtime::generic::Kernel;
/// use gemm_runtime::{ByName, Device, MapSpec};
///
/// let line = "|x[m, n], scale| -> (f32, f64) (x * scale, f64(x))";
/// let kernel = Kernel::<MapSpec, ByName>::new(line.parse()?)?;
///
/// let device = Device::simulator();
/// let x = device.upload_matrix(&[1.0, 2.0], 1, 2)?;
/// let (mut y, mut z) = (device.alloc_matrix(1, 2)?, device.alloc_matrix_of::<f64>(1, 2)?);
/// kernel
///     .call(&device)
///     .operand("scale", 10.0_f32)
///     .operand("x", &x)
///     .result("output_0", &mut y)
///     .result("output_1", &mut z)
///     .launch()?;
/// assert_eq!(device.download(&y)?, [10.0, 20.0]);
/// assert_eq!(device.download(&z)?, [1.0, 2.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
impl Kernel<MapSpec, ByName> {
    /// Builds the kernel of a spec. Calls pass its operands and results by name.
    ///
    /// # Errors
    /// [`Error::Spec`](crate::Error::Spec) with all faults of the spec.
    pub fn new(spec: MapSpec) -> Result<Self> {
        Self::checked(&spec)
    }

    /// Starts a call on a device. Pass operands and results with the methods of the call, then
    /// launch it.
    pub fn call<'a>(&'a self, device: &'a Device) -> MapCall<'a> {
        MapCall { kernel: self, device, operands: Vec::new(), results: Vec::new() }
    }
}

/// Call of an elementwise kernel whose operands and results are passed by name.
#[must_use = "nothing is computed before `launch`"]
pub struct MapCall<'a> {
    kernel: &'a Kernel<MapSpec, ByName>,
    device: &'a Device,
    operands: Vec<(String, Box<dyn Pass + 'a>)>,
    results: Vec<(String, Box<dyn Writable + 'a>)>,
}

impl fmt::Debug for MapCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapCall")
            .field("line", &self.kernel.spec_line())
            .field("operands", &names(&self.operands))
            .field("results", &names(&self.results))
            .finish_non_exhaustive()
    }
}

impl<'a> MapCall<'a> {
    /// Passes an operand by its name in the expression: a reference to an array on the device, a
    /// number, or [`InPlace`](crate::InPlace).
    pub fn operand(mut self, name: &str, operand: impl Pass + 'a) -> Self {
        self.operands.push((name.to_owned(), Box::new(operand)));
        self
    }

    /// Passes the array for a result. Its name is `output`, or `output_0`, `output_1` and so on.
    pub fn result<O: Output + ?Sized>(mut self, name: &str, result: &'a mut O) -> Self {
        self.results.push((name.to_owned(), Box::new(result)));
        self
    }

    /// Computes the results on the device, as [`Map::launch`](crate::Map::launch) does.
    ///
    /// # Errors
    /// * [`Error::MissingOperand`](crate::Error::MissingOperand),
    ///   [`Error::UnknownOperand`](crate::Error::UnknownOperand) or
    ///   [`Error::RepeatedOperand`](crate::Error::RepeatedOperand) unless the call passes each name
    ///   of the kernel exactly once.
    /// * [`Error::Unmet`](crate::Error::Unmet) for an array of another element type.
    /// * [`Error::WrongOperand`](crate::Error::WrongOperand) for a number in place of an array, an
    ///   array in place of a number, or a number of another type.
    /// * The errors of [`Map::launch`](crate::Map::launch).
    pub fn launch(self) -> Result<LaunchReport> {
        let Self { kernel, device, operands, mut results } = self;
        let program = kernel.prepare(device)?;
        let takes: Vec<&str> = program.operands().iter().map(|operand| &*operand.name).collect();
        let gives: Vec<&str> = program.program().outputs.iter().map(|array| &*array.name).collect();
        let needed = "an operand of the expression";
        let places_of = places(&takes, &names(&operands), needed, "operand")?;
        let operands: Vec<_> = places_of.into_iter().map(|n| operands[n].1.pass()).collect();
        places(&gives, &names(&results), "an array for results", "result")?;
        results.sort_by_key(|(name, _)| gives.iter().position(|gives| gives == name));
        let mut outputs: Vec<AnyOutput<'_>> = Vec::with_capacity(results.len());
        for (_, result) in &mut results {
            outputs.push(AnyOutput(&mut **result));
        }
        apply(device, &program, &operands, &mut outputs)
    }
}
