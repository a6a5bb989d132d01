//! Programs of reductions on the simulator, and whatever else may run them.

use super::Case;
use super::lying::{Image, Images, Lying, poison};
use gemm_dsl::Plan;
use gemm_dsl::ir::contract::{
    Arguments, ArrayAxis, ArrayPlace, BoundArray, ContractError, Parameter, Region,
};
use gemm_dsl::ir::program::{Launch, ProgramValues, Slot, TempFill};
use gemm_dsl::ir::{HostError, Variant, VerifiedProgram};
use gemm_dsl::spec::ReduceSpec;
use gemm_sim::{Buffer, SimError};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// What runs a reduction: reads the inputs and overwrites the outputs.
pub trait Machine {
    /// Launches what a spec makes, and gives the access variant of each kernel that ran.
    ///
    /// # Errors
    /// Why there is no result.
    fn launch(&self, case: &Case, images: &mut Images) -> Result<Vec<Variant>, String>;
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The bits of each output.
    pub results: Vec<Vec<u64>>,
    /// The access variants of the launches.
    pub variants: Vec<Variant>,
}

/// Runs a case on a machine and judges it: its results, and that nothing is written beside them or to what
/// is only read.
///
/// # Errors
/// What is wrong.
pub fn run(machine: &impl Machine, case: &Case, lying: &Lying) -> Result<Ran, String> {
    let mut images = case.images(lying);
    let before = images.inputs.clone();
    let text = |what: String| format!("`{}` {:?}, {lying:?}: {what}", case.spec, case.shape);
    let variants = machine.launch(case, &mut images).map_err(text)?;
    if images.inputs != before {
        return Err(text("an input is written".to_owned()));
    }
    let results = images.results().map_err(text)?;
    case.judge(&results).map_err(|wrong| format!("{wrong}; {lying:?}"))?;
    Ok(Ran { results, variants })
}

/// The simulator, with the program that it ran last: many cases of a spec come one after the other.
#[derive(Default)]
pub struct Simulator(RefCell<Option<(ReduceSpec, Rc<VerifiedProgram>)>>);

impl Machine for Simulator {
    fn launch(&self, case: &Case, images: &mut Images) -> Result<Vec<Variant>, String> {
        let held = self.0.borrow().as_ref().filter(|(spec, _)| *spec == case.spec).cloned();
        let program = match held {
            Some((_, program)) => program,
            None => Rc::new(
                case.spec
                    .plan()
                    .and_then(|plan| plan.program())
                    .map_err(|error| error.to_string())?,
            ),
        };
        self.0.replace(Some((case.spec.clone(), Rc::clone(&program))));
        simulate(&program, images).map_err(|error| error.to_string())
    }
}

/// Why a program has no result.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The arguments meet the contract of none of the kernels.
    Unmet(Box<ContractError>),
    /// An expression of the program has no value.
    Host(HostError),
    /// What the simulator finds.
    Sim(SimError),
    /// A temporary that is to be left as it was found is not: its name, and an element that is not 0.
    NotKept(&'static str, usize),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unmet(unmet) => unmet.fmt(f),
            Failure::Host(error) => error.fmt(f),
            Failure::Sim(error) => error.fmt(f),
            Failure::NotKept(name, at) => write!(f, "`{name}` is not zero again at {at}"),
        }
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        Failure::Host(error)
    }
}

/// An array on the simulator.
struct Bound<'a> {
    name: &'a str,
    whole: Buffer,
    view: Buffer,
    axes: Vec<ArrayAxis>,
}

impl<'a> Bound<'a> {
    fn of(name: &'a str, image: &Image) -> Self {
        let whole = Buffer::from_bits(image.elem, image.memory.iter().copied());
        let view = whole.view(image.start, image.len);
        let view = view.unwrap_or_else(|| unreachable!("an image has room for its elements"));
        Self { name, whole, view, axes: image.axes.clone() }
    }

    fn array(&self) -> BoundArray<'_> {
        let (address, len) = (self.view.byte_offset(), self.view.len() as u64);
        let place = ArrayPlace::One(Region { address, len });
        BoundArray { name: self.name, elem: self.view.elem(), place, axes: Some(&self.axes) }
    }
}

/// Follows a program as a launch does, and leaves its results in the images.
///
/// # Errors
/// What it does wrong.
pub fn simulate(program: &VerifiedProgram, images: &mut Images) -> Result<Vec<Variant>, Failure> {
    let problem: Vec<u64> = program.extents.iter().map(|extent| images.extent(*extent)).collect();
    let known = program.known(&problem)?;
    let bound = |images: &[Image]| -> Vec<Bound<'_>> {
        images.iter().map(|image| Bound::of("array", image)).collect()
    };
    let (inputs, outputs) = (bound(&images.inputs), bound(&images.outputs));
    let mut temps = Vec::new();
    for temp in &program.temps {
        let (mut axes, mut len) = (Vec::new(), 1);
        for dim in temp.dims.iter().rev() {
            let extent = program.eval(dim, &known)?;
            axes.insert(0, ArrayAxis { extent, stride: len });
            len *= extent;
        }
        // Memory that others have used: what is read before it is written shows.
        let bits = if temp.fill == TempFill::Uninitialised { poison(temp.elem) } else { 0 };
        let whole = Buffer::from_bits(temp.elem, vec![bits; len as usize].into_iter());
        temps.push(Bound { name: temp.name, view: whole.clone(), whole, axes });
    }
    let find = |slot: Slot| match slot {
        Slot::Input(n) => &inputs[n],
        Slot::Output(n) => &outputs[n],
        Slot::Temp(n) => &temps[n],
    };
    let mut variants = Vec::new();
    for launch in program.launches(&known)? {
        variants.push(one(program, launch, &known, &find)?);
    }
    for (temp, bound) in program.temps.iter().zip(&temps) {
        let used = bound.whole.bits().iter().position(|bits| *bits != 0);
        if let (TempFill::Kept, Some(at)) = (temp.fill, used) {
            return Err(Failure::NotKept(temp.name, at));
        }
    }
    for (image, bound) in images.inputs.iter_mut().zip(&inputs) {
        image.memory = bound.whole.bits();
    }
    for (image, bound) in images.outputs.iter_mut().zip(&outputs) {
        image.memory = bound.whole.bits();
    }
    Ok(variants)
}

/// Launches the first kernel whose contract is met.
fn one<'b, 'a: 'b>(
    program: &VerifiedProgram,
    launch: &Launch,
    known: &ProgramValues,
    find: &impl Fn(Slot) -> &'b Bound<'a>,
) -> Result<Variant, Failure> {
    let mut extents = Vec::new();
    for (extent, value) in &launch.extents {
        extents.push((*extent, program.eval(value, known)?));
    }
    let arrays: Vec<_> =
        launch.bind.iter().map(|(operand, slot)| (*operand, find(*slot).array())).collect();
    let given = Arguments { extents: &extents, arguments: known.arguments(), arrays: &arrays };
    let mut unmet = None;
    for id in &launch.choose {
        let kernel = program.kernel(*id);
        let call = match kernel.contract().bind(&given) {
            Ok(call) => call,
            Err(lacking) => {
                unmet = Some(lacking);
                continue;
            }
        };
        if call.is_empty() {
            return Ok(kernel.contract().variant());
        }
        let (mut buffers, mut scalars) = (Vec::new(), Vec::new());
        for (param, bits) in kernel.contract().params().iter().zip(&call.scalars) {
            match param {
                Parameter::Scalar { .. } => scalars.push(*bits),
                Parameter::Array(array) => {
                    let slot = launch.bind.iter().find(|(operand, _)| *operand == array.operand);
                    let Some((_, slot)) = slot else {
                        unreachable!("VerifiedProgram::new: every operand is bound")
                    };
                    buffers.push(find(*slot).view.clone());
                }
            }
        }
        gemm_sim::launch(kernel, &buffers, &scalars).map_err(Failure::Sim)?;
        return Ok(kernel.contract().variant());
    }
    match unmet {
        Some(unmet) => Err(Failure::Unmet(Box::new(unmet))),
        None => unreachable!("VerifiedProgram::new: a launch has a kernel"),
    }
}
