//! Reductions whose spec is known only at run time.

use super::super::operands::ByName;
use super::super::{Call, Callee, Kernel};
use super::fold::{ReduceArrays, fold};
use super::number::FoldNumber;
use crate::device::Device;
use crate::dyn_array::{AnyInput, AnyOutput, Readable, Writable};
use crate::error::{Error, Result};
use crate::operand::{Input, Output};
use crate::report::LaunchReport;
use crate::segments::{Cut, Offset, Segments};
use gemm_dsl::ir::Elem;
use gemm_dsl::ir::program::LaunchProgram;
use gemm_dsl::spec::{Over, ReduceSpec};
use std::fmt;
use std::sync::Arc;

/// Arrays that a call of a reduction has passed by name so far.
#[derive(Default)]
pub struct NamedArrays<'a> {
    inputs: Vec<(String, Box<dyn Readable + 'a>)>,
    numbers: Vec<(String, (Elem, u64))>,
    outputs: Vec<(String, Box<dyn Writable + 'a>)>,
    segments: Vec<Cut<'a>>,
}

impl fmt::Debug for NamedArrays<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrays")
            .field("inputs", &names(&self.inputs))
            .field("numbers", &names(&self.numbers))
            .field("outputs", &names(&self.outputs))
            .field("segments", &self.segments.len())
            .finish()
    }
}

/// Reduction whose spec is known only at run time. A call passes arrays of any element type by
/// name, in any order, and its launch checks them.
///
/// ```
/// use gemm_runtime::generic::Kernel;
/// use gemm_runtime::{ByName, Device, MatrixRef, ReduceSpec};
///
/// let line = "op: mean_var, type: f64, over: columns, map: |x, y| x - y";
/// let kernel = Kernel::<ReduceSpec, ByName>::new(line.parse()?)?;
///
/// let device = Device::simulator();
/// let x = device.upload_of(&[1.0_f64, 2.0, 3.0, 6.0])?;
/// let y = device.upload_of(&[0.0_f64; 4])?;
/// let (mut mean, mut var) = (device.alloc_of::<f64>(2)?, device.alloc_of::<f64>(2)?);
/// kernel
///     .call(&device)
///     .input("x", &MatrixRef::new(&x, 2, 2)?)
///     .input("y", &MatrixRef::new(&y, 2, 2)?)
///     .output("mean", &mut mean)
///     .output("var", &mut var)
///     .launch()?;
/// assert_eq!(device.download(&mean)?, [2.0, 4.0]);
/// assert_eq!(device.download(&var)?, [1.0, 4.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
impl Kernel<ReduceSpec, ByName> {
    /// Builds the kernel of a spec. Calls pass its arrays by name.
    ///
    /// # Errors
    /// [`Error::Spec`] with all faults of the spec.
    pub fn new(spec: ReduceSpec) -> Result<Self> {
        Self::checked(&spec)
    }

    /// Starts a call on a device. Pass the arrays with the methods of the call, then launch it.
    pub fn call<'a>(&'a self, device: &'a Device) -> Call<'a, ReduceSpec, ByName, NamedArrays<'a>> {
        Call::new(Callee::Kernel(&self.source), device, NamedArrays::default())
    }
}

impl<'a> Call<'a, ReduceSpec, ByName, NamedArrays<'a>> {
    /// Passes an input under its name in `map`, or as `input` for a spec without `map`.
    pub fn input<I: Input + ?Sized>(mut self, name: &str, input: &'a I) -> Self {
        self.given.inputs.push((name.to_owned(), Box::new(input)));
        self
    }

    /// Passes a number under its name in `map` or `finish`.
    pub fn number<N: FoldNumber>(mut self, name: &str, number: N) -> Self {
        let number = (N::ELEM, number.into_bits());
        self.given.numbers.push((name.to_owned(), number));
        self
    }

    /// Passes the array for a result. Its name is `output`, or `mean` and `var` for `op: mean_var`,
    /// or `value` and `index` for an `argmax` or `argmin` under `with_value`.
    pub fn output<O: Output + ?Sized>(mut self, name: &str, output: &'a mut O) -> Self {
        self.given.outputs.push((name.to_owned(), Box::new(output)));
        self
    }

    /// Passes the segments of an `over: segments` kernel.
    pub fn segments<J: Offset>(mut self, segments: &'a Segments<J>) -> Self {
        self.given.segments.push(segments.cut());
        self
    }

    /// Folds the arrays on the device, as [`ReduceKernel::launch`](crate::ReduceKernel::launch)
    /// does.
    ///
    /// # Errors
    /// * [`Error::MissingOperand`], [`Error::UnknownOperand`] or [`Error::RepeatedOperand`] unless
    ///   the call passes each name of the kernel exactly once.
    /// * [`Error::Unmet`] for an array of another element type.
    /// * [`Error::WrongOperand`] for a number of another type.
    /// * The errors of [`ReduceKernel::launch`](crate::ReduceKernel::launch) and
    ///   [`ReduceKernel::launch_segments`](crate::ReduceKernel::launch_segments).
    pub fn launch(self) -> Result<LaunchReport> {
        let program = match self.what {
            Callee::Kernel(kernel) => kernel.program::<ReduceSpec>(self.device)?,
            Callee::Program(program) => Arc::clone(program),
            Callee::Table(_) => {
                unreachable!("`call` starts only calls of a kernel, not of a table")
            }
        };
        let NamedArrays { inputs, numbers, mut outputs, segments } = self.given;
        if segments.len() > 1 {
            return Err(Error::RepeatedOperand { operand: "segments".to_owned() });
        }
        let LaunchProgram { inputs: takes, outputs: gives, arguments, .. } = program.program();
        let arguments: Vec<&str> = arguments.iter().map(|argument| &*argument.name).collect();
        // The offsets of segments are the last input.
        let folded = takes.len() - usize::from(program.over() == Over::Segments);
        let takes: Vec<&str> = takes.iter().take(folded).map(|array| &*array.name).collect();
        let gives: Vec<&str> = gives.iter().map(|array| &*array.name).collect();
        let places = places(&takes, &names(&inputs), "an array to fold", "input")?;
        let read: Vec<AnyInput<'_>> = places.into_iter().map(|n| AnyInput(&*inputs[n].1)).collect();
        let places_of = self::places(&arguments, &names(&numbers), "a number", "number")?;
        let numbers: Vec<(Elem, u64)> = places_of.into_iter().map(|n| numbers[n].1).collect();
        self::places(&gives, &names(&outputs), "an array for results", "output")?;
        outputs.sort_by_key(|(name, _)| gives.iter().position(|gives| gives == name));
        let mut written: Vec<AnyOutput<'_>> = Vec::with_capacity(outputs.len());
        for (_, output) in &mut outputs {
            written.push(AnyOutput(&mut **output));
        }
        let segments = segments.first();
        let given =
            ReduceArrays { inputs: &read, numbers: &numbers, segments, outputs: &mut written };
        fold(self.device, &program, given)
    }
}

pub(in crate::kernel) fn names<A>(given: &[(String, A)]) -> Vec<&str> {
    given.iter().map(|(name, _)| &**name).collect()
}

/// For each array of the kernel, the index of the array that the call passes for it.
pub(in crate::kernel) fn places(
    has: &[&str],
    given: &[&str],
    needed: &'static str,
    method: &'static str,
) -> Result<Vec<usize>> {
    for (n, name) in given.iter().enumerate() {
        if !has.contains(name) {
            let takes = has.iter().map(|name| (*name).to_owned()).collect();
            return Err(Error::UnknownOperand { operand: (*name).to_owned(), takes });
        }
        if given[..n].contains(name) {
            return Err(Error::RepeatedOperand { operand: (*name).to_owned() });
        }
    }
    let place = |name: &&str| {
        let place = given.iter().position(|given| given == name);
        let operand = || (*name).to_owned();
        place.ok_or_else(|| Error::MissingOperand { operand: operand(), needed, method })
    };
    has.iter().map(place).collect()
}
