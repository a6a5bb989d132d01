//! Trait of machines that run reductions, and the simulator as a machine.

use super::Case;
use super::placement::{Image, Images, Placement, poison};
use gemm_dsl::Plan;
use gemm_dsl::ir::contract::{ArrayAxis, ArrayPlace, BoundArray, ContractError, Region};
use gemm_dsl::ir::program::{
    BindError, ExecutedLaunch, KernelLaunch, PackedLayout, ProgramBackend, TempFill, Temporary,
};
use gemm_dsl::ir::{HostError, Variant, VerifiedProgram};
use gemm_dsl::spec::ReduceSpec;
use gemm_sim::{Buffer, SimError};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// Machine that runs a reduction. It reads the inputs and overwrites the outputs.
pub trait Machine {
    /// Launches the kernels of a spec and returns the access variant of each.
    ///
    /// # Errors
    /// Returns the reason why there is no result.
    fn launch(&self, case: &Case, images: &mut Images) -> Result<Vec<Variant>, String>;
}

/// Outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Bits of each output.
    pub results: Vec<Vec<u64>>,
    /// Access variants of the launches.
    pub variants: Vec<Variant>,
}

/// Runs a case on a machine and checks it. The results must be right. The inputs and the memory
/// outside of the results must be unchanged.
///
/// # Errors
/// Returns a description of the failure.
pub fn run(machine: &impl Machine, case: &Case, placement: &Placement) -> Result<Ran, String> {
    let mut images = case.images(placement);
    let before = images.inputs.clone();
    let text = |what: String| format!("`{}` {:?}, {placement:?}: {what}", case.spec, case.shape);
    let variants = machine.launch(case, &mut images).map_err(text)?;
    if images.inputs != before {
        return Err(text("an input is written".to_owned()));
    }
    let results = images.results().map_err(text)?;
    case.judge(&results).map_err(|wrong| format!("{wrong}; {placement:?}"))?;
    Ok(Ran { results, variants })
}

/// Simulator that caches its last program, because many cases of one spec run consecutively.
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
        let steps = simulate(&program, images).map_err(|error| error.to_string())?;
        Ok(steps.into_iter().filter(|step| step.is_launched).map(|step| step.variant).collect())
    }
}

/// Reason why a program has no result.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The arguments do not meet the contract of any kernel.
    Unmet(Box<ContractError>),
    /// A host expression of the program has no value.
    Host(HostError),
    Sim(SimError),
    /// A scratch buffer that must be zero after the launch is not. Name of the buffer, and index of
    /// a non-zero element.
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

impl From<ContractError> for Failure {
    fn from(error: ContractError) -> Self {
        Failure::Unmet(Box::new(error))
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        match error {
            BindError::Value(error) => Failure::Host(error),
            error => unreachable!("the images are those of the program: {error}"),
        }
    }
}

struct SimulatedArray {
    whole: Buffer,
    view: Buffer,
    axes: Vec<ArrayAxis>,
}

impl SimulatedArray {
    fn new(image: &Image) -> Self {
        let whole = Buffer::from_bits(image.elem, image.memory.iter().copied());
        let view = whole.view(image.start, image.len);
        let view = view.unwrap_or_else(|| unreachable!("an image has room for its elements"));
        Self { whole, view, axes: image.axes.clone() }
    }
}

/// Back end on the simulator. Scratch buffers contain poison, as if other launches had used them.
struct Harness<'p> {
    program: &'p VerifiedProgram,
    /// Scratch buffers that must be zero after the launch, by name.
    kept: Vec<(&'static str, Buffer)>,
}

impl ProgramBackend for Harness<'_> {
    type Array = SimulatedArray;
    type Report = ();
    type Error = Failure;

    fn describe<'a>(&self, array: &'a SimulatedArray) -> BoundArray<'a> {
        let (address, len) = (array.view.byte_offset(), array.view.len() as u64);
        let place = ArrayPlace::One(Region { address, len });
        BoundArray { name: "array", elem: array.view.elem(), place, axes: Some(&array.axes) }
    }

    fn temporary(&mut self, temporary: &Temporary<'_>) -> Result<SimulatedArray, Failure> {
        let (temp, PackedLayout { axes, len }) = (temporary.temp, temporary.layout.clone());
        // Reads of uninitialised elements return poison.
        let bits = if temp.fill == TempFill::Uninitialised { poison(temp.elem) } else { 0 };
        let whole = Buffer::from_bits(temp.elem, vec![bits; len as usize].into_iter());
        if temp.fill == TempFill::Kept {
            self.kept.push((temp.name, whole.clone()));
        }
        Ok(SimulatedArray { view: whole.clone(), whole, axes: axes.into_vec() })
    }

    fn launch(&mut self, launch: &KernelLaunch<'_, SimulatedArray>) -> Result<(), Failure> {
        let buffers: Vec<_> = launch.arrays().map(|array| array.view.clone()).collect();
        let scalars: Vec<_> = launch.scalars().collect();
        let kernel = self.program.kernel(launch.kernel);
        gemm_sim::launch(kernel, &buffers, &scalars).map(drop).map_err(Failure::Sim)
    }
}

/// Launch of a program, or a step whose grid is empty.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedStep {
    pub variant: Variant,
    /// False if the grid is empty, so that nothing is launched.
    pub is_launched: bool,
}

/// Executes a program as a launch does and copies its results into the images.
///
/// # Errors
/// Returns the failure of the program.
pub fn simulate(
    program: &VerifiedProgram,
    images: &mut Images,
) -> Result<Vec<SimulatedStep>, Failure> {
    let extents = program.extents.iter().map(|extent| (*extent, images.extent(*extent)));
    let takes = |name: &str| program.arguments.iter().any(|argument| argument.name == name);
    let numbers = images.numbers.iter().filter(|(name, _)| takes(name));
    let numbers: Vec<(&str, u64)> = numbers.map(|(name, bits)| (&**name, *bits)).collect();
    let values = program.bind(&extents.collect::<Vec<_>>(), &numbers)?;
    let given = program.inputs.iter().zip(&images.inputs);
    let given = given.chain(program.outputs.iter().zip(&images.outputs));
    let arrays = given.map(|(array, image)| (array.operand, SimulatedArray::new(image)));
    let arrays: Vec<_> = arrays.collect();
    let arrays = program.bind_arrays(&arrays)?;
    let mut harness = Harness { program, kept: Vec::new() };
    let run = program.execute(&values, &arrays, &mut harness)?;
    for (name, buffer) in &harness.kept {
        if let Some(at) = buffer.bits().iter().position(|bits| *bits != 0) {
            return Err(Failure::NotKept(name, at));
        }
    }
    let all = images.inputs.iter_mut().zip(arrays.inputs());
    for (image, array) in all.chain(images.outputs.iter_mut().zip(arrays.outputs())) {
        image.memory = array.whole.bits();
    }
    let variant = |id| program.kernel(id).contract().variant;
    let step = |launch: &ExecutedLaunch<()>| SimulatedStep {
        variant: variant(launch.kernel),
        is_launched: launch.report.is_some(),
    };
    Ok(run.launches.iter().map(step).collect())
}
