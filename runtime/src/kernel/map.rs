//! Elementwise kernels: construction and launches.

mod apply;
mod by_name;
mod operands;

pub use by_name::MapCall;
pub use operands::{
    InPlace, MapInput, MapInputs, MapKind, MapOperands, MapOutputs, MapResult, MapResults,
};

use super::Map;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::report::LaunchReport;
pub(super) use apply::apply;
use gemm_dsl::ir::Elem;
use gemm_dsl::spec::{Along, EpilogueArg, MapSpec};
use std::marker::PhantomData;

/// Operands and results of an elementwise kernel, as [`Map`] lists them.
pub struct Maps<E, R>(PhantomData<fn() -> (E, R)>);

impl<E, R> Map<E, R> {
    /// Builds the kernel of a spec. It equals the kernel that the macro builds from the same spec.
    ///
    /// ```
    /// use gemm_runtime::{MN, Map};
    ///
    /// let relu = <Map<(MN,)>>::new("|x[m, n]| relu(x)".parse()?)?;
    /// assert!(relu.source().contains("__global__"));
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::Spec`] with all faults of the spec.
    /// * [`Error::KernelType`] if `E` and `R` are not the operands and results of the spec. The
    ///   error names the right kernel type.
    pub fn new(spec: MapSpec) -> Result<Self>
    where
        E: MapOperands,
        R: MapResults,
    {
        let kernel = Self::checked(&spec)?;
        check::<E, R>(&spec)?;
        Ok(kernel)
    }

    /// Computes the results on the device.
    ///
    /// `operands` is a tuple with a value for each operand, in the order of the expression: a
    /// reference to a matrix or a vector, a number, or [`InPlace`]. A single operand needs no
    /// tuple. `results` is a mutable reference to an array, or a tuple of them.
    ///
    /// The arrays of `[m, n]` operands and of results are either all matrices of one shape, with
    /// any strides, or all vectors of one length, which count as a row. A vector `[n]` or `[m]`, or
    /// a vector for a result `[m]`, may have more elements than needed. On a GPU the call returns
    /// before the work is complete; later work of the device is ordered after it.
    ///
    /// ```
    /// use gemm_runtime::{Device, M, MN, Map, N, map_kernel};
    ///
    /// const NORM: Map<(MN, M, M, N)> = map_kernel!(
    ///     |x[m, n], mean[m], rstd[m], gamma[n]| (x - mean) * rstd * gamma
    /// );
    ///
    /// let device = Device::simulator();
    /// let x = device.upload_matrix(&[1.0, 2.0, 3.0, 4.0], 2, 2)?;
    /// let (mean, rstd) = (device.upload(&[1.0, 2.0])?, device.upload(&[2.0, 0.5])?);
    /// let gamma = device.upload(&[1.0, 10.0])?;
    /// let mut y = device.alloc_matrix(2, 2)?;
    /// NORM.launch(&device, (&x, &mean, &rstd, &gamma), &mut y)?;
    /// assert_eq!(device.download(&y)?, [0.0, 20.0, 0.5, 10.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::WrongDevice`] if an array belongs to another device.
    /// * [`Error::Extents`] if two arrays disagree in an extent.
    /// * [`Error::WrongExtent`] if a vector `[n]` or `[m]`, or one for a result `[m]`, is too
    ///   short.
    /// * [`Error::WrongOperand`] for a vector beside matrices, a batch, or [`InPlace`] without such
    ///   a result.
    /// * [`Error::List`] for a list of matrices.
    /// * [`Error::Overlap`] if a result shares memory with another array, unless the array is an
    ///   `[m, n]` operand of the same elements and the same layout.
    /// * [`Error::Unmet`] if arguments violate the kernel's contract.
    /// * The errors of compiling and loading the kernel, in the first launch.
    /// * [`Error::Simulator`] in the simulator.
    pub fn launch<I, O>(&self, device: &Device, operands: I, mut results: O) -> Result<LaunchReport>
    where
        I: MapInputs<E>,
        O: MapOutputs<R>,
    {
        let program = self.prepare(device)?;
        apply(device, &program, &operands.all(), &mut results.arrays())
    }
}

/// Checks that the type of a kernel lists the operands and results of its spec.
fn check<E: MapOperands, R: MapResults>(spec: &MapSpec) -> Result<()> {
    let (operands, results) = (spec.operands(), spec.results());
    let needed: Vec<(Along, Elem)> =
        operands.iter().map(|operand| (operand.arg.along, operand.elem)).collect();
    let computed: Vec<(Along, Elem)> =
        results.iter().map(|result| (result.along, result.elem)).collect();
    if needed == E::KINDS && computed == R::KINDS {
        return Ok(());
    }
    let inputs = operands.iter().map(|operand| format!("{}: {}", operand.arg, operand.elem));
    let results = results.iter().map(|result| match result.along {
        Along::M => format!("{}[m]: {}", result.name, result.elem),
        _ => format!("{}: {}", result.name, result.elem),
    });
    Err(Error::KernelType {
        line: spec.to_string(),
        operands: inputs.chain(results).collect(),
        needed: type_of(&needed, &computed),
        found: type_of(E::KINDS, R::KINDS),
        by_name: "Kernel<MapSpec, ByName>",
    })
}

/// Kernel type for these operands and results, in the user's notation.
fn type_of(operands: &[(Along, Elem)], results: &[(Along, Elem)]) -> String {
    if operands.len() > EpilogueArg::MOST_LISTED {
        return "Kernel<MapSpec, ByName>".to_owned();
    }
    let kind = |(along, elem): &(Along, Elem)| match (along, elem) {
        (Along::Nothing, elem) => elem.to_string(),
        (along, Elem::F32) => along.kind().to_owned(),
        (along, elem) => format!("{}<{elem}>", along.kind()),
    };
    let operands: Vec<String> = operands.iter().map(kind).collect();
    let results: Vec<String> = results.iter().map(kind).collect();
    let operands = match operands.as_slice() {
        [one] => format!("({one},)"),
        several => format!("({})", several.join(", ")),
    };
    match results.as_slice() {
        [one] if one == Along::Mn.kind() => format!("Map<{operands}>"),
        [one] => format!("Map<{operands}, {one}>"),
        several => format!("Map<{operands}, ({})>", several.join(", ")),
    }
}
