//! Follows the steps of a program on the simulator, on packed arrays of its own.
//!
//! It does what the runtime does, without a device, callers' arrays and memory that is used again: the extents of the
//! problem give all shapes.

use crate::operands::{Numbers, argument};
use gemm_dsl::ir::contract::{self, ArrayAxis, ArrayPlace, Call, ContractError, Region};
use gemm_dsl::ir::program::{Array, Launch, ProgramValues, Slot};
use gemm_dsl::ir::{Expr, HostError, ParamKind, VerifiedKernel, VerifiedProgram};
use gemm_sim::{Buffer, BufferArg, Options, Profile, SimError, Trace};
use std::collections::HashMap;
use thiserror::Error;

/// Instructions of the simulator that a launch may take: some seconds in a browser.
const INSTRUCTIONS: u64 = 1 << 24;

/// Elements that an array may have, the program's own included.
const ELEMENTS: u64 = 1 << 24;

/// What was seen of the kernel that does most.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// The kernel.
    pub kernel: VerifiedKernel,
    /// Its blocks along x, y and z.
    pub grid: [u32; 3],
    /// What its statements were charged with.
    pub profile: Profile,
    /// What happened in its first block.
    pub trace: Trace,
    /// The number of launches that the program took.
    pub launches: usize,
}

/// Why a program did not run.
#[derive(Debug, Error)]
pub enum Failure {
    /// What the kernel was given is not what it asks for.
    #[error("the kernel cannot be launched here: {0}")]
    Unmet(#[from] ContractError),
    /// An extent that cannot be computed.
    #[error("the launch cannot be laid out: {0}")]
    Host(#[from] HostError),
    /// What the simulator found.
    #[error("{0}")]
    Simulator(#[from] SimError),
    /// An array of the program's own.
    #[error(
        "it is too large to simulate: an array of its own has {0} elements, and at most {ELEMENTS} are taken here"
    )]
    TooLarge(u64),
    /// A fault of the generator.
    #[error("a fault of the generator: {0}")]
    Internal(&'static str),
}

/// A launch that is over.
struct LaunchResult<'p> {
    kernel: &'p VerifiedKernel,
    grid: [u32; 3],
    profile: Profile,
    trace: Option<Trace>,
}

/// An array of the program, and how its elements lie.
struct BoundArray {
    given: BufferArg,
    stretches: Vec<Region>,
    axes: Vec<ArrayAxis>,
}

/// Runs a program. The problem is its extents, in its order; what it folds segments by is given.
///
/// # Errors
/// What keeps it from being launched, and what the simulator finds.
pub fn launch(
    program: &VerifiedProgram,
    extents: &[u64],
    offsets: Option<&[u64]>,
) -> Result<RunRecord, Failure> {
    let arguments = program.arguments.iter().map(|of| argument(of.ty));
    let problem: Vec<u64> = extents.iter().copied().chain(arguments).collect();
    let known = program.known(&problem)?;
    let launches = program.launches(&known)?;
    let mut run = Run {
        program,
        known: &known,
        offsets,
        launches: &launches,
        arrays: HashMap::new(),
        numbers: Numbers::new(),
    };
    let main = VerifiedProgram::main_of(&launches);
    let mut seen = None;
    for (number, launch) in launches.iter().enumerate() {
        let is_main = main == Some(number);
        let LaunchResult { kernel, grid, profile, trace } = run.launch(launch, is_main)?;
        if is_main {
            let trace = trace.ok_or(Failure::Internal("no block was seen"))?;
            let kernel = kernel.clone();
            seen = Some(RunRecord { kernel, grid, profile, trace, launches: launches.len() });
        }
    }
    seen.ok_or(Failure::Internal("nothing was launched"))
}

struct Run<'a> {
    program: &'a VerifiedProgram,
    known: &'a ProgramValues,
    offsets: Option<&'a [u64]>,
    launches: &'a [&'a Launch],
    arrays: HashMap<Slot, BoundArray>,
    numbers: Numbers,
}

impl<'a> Run<'a> {
    fn launch(&mut self, launch: &Launch, is_watched: bool) -> Result<LaunchResult<'a>, Failure> {
        let program = self.program;
        let value = |expr: &Expr| program.eval(expr, self.known);
        let extents = launch.extents.iter().map(|(extent, expr)| Ok((*extent, value(expr)?)));
        let extents = extents.collect::<Result<Vec<_>, HostError>>()?;
        for (_, slot) in &launch.bind {
            self.bind(*slot)?;
        }
        let array = |slot: &Slot| {
            let BoundArray { given, stretches, axes } = &self.arrays[slot];
            let elem = match given {
                BufferArg::One(buffer) => Some(buffer.elem()),
                BufferArg::List(buffers) => buffers.first().map(Buffer::elem),
            };
            let place = match (given, &stretches[..]) {
                (BufferArg::One(_), [stretch]) => ArrayPlace::One(*stretch),
                (_, stretches) => ArrayPlace::List(stretches),
            };
            elem.map(|elem| contract::BoundArray { name: "array", elem, place, axes: Some(axes) })
        };
        let arrays =
            launch.bind.iter().filter_map(|(operand, slot)| Some((*operand, array(slot)?)));
        let arrays: Vec<_> = arrays.collect();
        let given = contract::Arguments {
            extents: &extents,
            arguments: self.known.arguments(),
            arrays: &arrays,
        };
        let mut bound = Err(Failure::Internal("a launch of no kernel"));
        for id in &launch.choose {
            let kernel = program.kernel(*id);
            bound =
                kernel.contract().bind(&given).map(|call| (kernel, call)).map_err(Failure::from);
            if bound.is_ok() {
                break;
            }
        }
        let (kernel, call) = bound?;
        let (buffers, scalars) = self.given(launch, kernel, &call)?;
        let mut options = Options::default();
        options.instructions = INSTRUCTIONS;
        options.compiled = is_watched;
        let watched: &[u32] = if is_watched { &[0] } else { &[] };
        let (ran, traces) = gemm_sim::record(kernel, &buffers, &scalars, watched, &options)?;
        Ok(LaunchResult {
            kernel,
            grid: call.grid,
            profile: ran?,
            trace: traces.into_iter().next(),
        })
    }

    /// What a kernel is given, in the order of its parameters.
    fn given(
        &self,
        launch: &Launch,
        kernel: &VerifiedKernel,
        call: &Call,
    ) -> Result<(Vec<BufferArg>, Vec<u64>), Failure> {
        let (mut buffers, mut scalars) = (Vec::new(), Vec::new());
        for (param, bits) in kernel.params.iter().zip(&call.scalars) {
            match &param.kind {
                ParamKind::Scalar { .. } => scalars.push(*bits),
                ParamKind::Buffer { operand, .. } | ParamKind::TensorMap { operand, .. } => {
                    let slot = launch.bind.iter().find(|(of, _)| of == operand);
                    let (_, slot) = slot.ok_or(Failure::Internal("an operand is not bound"))?;
                    buffers.push(self.arrays[slot].given.clone());
                }
            }
        }
        Ok((buffers, scalars))
    }

    /// Makes an array of the program, unless a launch before had it.
    fn bind(&mut self, slot: Slot) -> Result<(), Failure> {
        if self.arrays.contains_key(&slot) {
            return Ok(());
        }
        let program = self.program;
        let (elem, dims, count, is_given) = match slot {
            Slot::Input(n) => array_parts(program.inputs.get(n))?,
            Slot::Output(n) => array_parts(program.outputs.get(n))?,
            Slot::Temp(n) => {
                let temp = program.temps.get(n).ok_or(Failure::Internal("no such temporary"))?;
                (temp.elem, &temp.dims, None, false)
            }
        };
        let axes = self.axes(slot, dims)?;
        let len = axes.iter().map(|axis| axis.extent).fold(1, u64::saturating_mul);
        if len > ELEMENTS {
            return Err(Failure::TooLarge(len));
        }
        let is_offsets = self.offsets.is_some() && slot == Slot::Input(program.inputs.len() - 1);
        let mut one = || match self.offsets.filter(|_| is_offsets) {
            Some(offsets) => Buffer::from_bits(elem, offsets.iter().copied()),
            None if is_given => self.numbers.array(elem, len as usize),
            None => Buffer::zeros_of(elem, len as usize),
        };
        let (given, many) = match count {
            None => (BufferArg::One(one()), 1),
            Some(count) => {
                let count = program.eval(count, self.known)?;
                (BufferArg::List((0..count).map(|_| one()).collect()), count)
            }
        };
        let stretches = vec![Region { address: 0, len }; many as usize];
        self.arrays.insert(slot, BoundArray { given, stretches, axes });
        Ok(())
    }

    /// The extents of an array without gaps, and the distances between neighbours: matrices lie row by row, or column by
    /// column where the kernels that take them say so.
    fn axes(&self, slot: Slot, dims: &[Expr]) -> Result<Vec<ArrayAxis>, Failure> {
        let mut order: Vec<usize> = (0..dims.len()).collect();
        if self.is_by_column(slot) && dims.len() > 1 {
            order.swap(dims.len() - 2, dims.len() - 1);
        }
        let mut axes = vec![ArrayAxis { extent: 1, stride: 1 }; dims.len()];
        let mut stride = 1;
        for dim in order.into_iter().rev() {
            let extent = self.program.eval(&dims[dim], self.known)?;
            axes[dim] = ArrayAxis { extent, stride };
            stride = stride.saturating_mul(extent);
        }
        Ok(axes)
    }

    fn is_by_column(&self, slot: Slot) -> bool {
        let binds = self.launches.iter().flat_map(|launch| {
            let operands = launch.bind.iter().filter(move |(_, of)| *of == slot);
            operands.flat_map(|(operand, _)| launch.choose.iter().map(|id| (*operand, *id)))
        });
        let mut arrays = binds.flat_map(|(operand, id)| {
            let arrays = self.program.kernel(id).contract().arrays();
            arrays.filter(move |array| array.operand == operand)
        });
        arrays.any(|array| array.contiguous_dim() + 2 == array.rank())
    }
}

type ArrayParts<'p> = (gemm_dsl::ir::Elem, &'p Vec<Expr>, Option<&'p Expr>, bool);

fn array_parts(array: Option<&Array>) -> Result<ArrayParts<'_>, Failure> {
    let array = array.ok_or(Failure::Internal("no such array"))?;
    Ok((array.elem, &array.dims, array.count.as_ref(), array.is_given))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_dsl::Plan as _;
    use gemm_dsl::plan::{ReducePlan, SgemmPlan};

    /// What comes of a program all of whose extents are one number.
    fn launched(program: &VerifiedProgram, extent: u64) -> Result<RunRecord, Failure> {
        launch(program, &vec![extent; program.extents.len()], None)
    }

    /// A launch ends where a reader has waited for some seconds: of 2^16 blocks with 256 terms each, not of one with 16.
    #[test]
    fn a_launch_that_takes_long_is_given_up() {
        let plan: SgemmPlan = "block: 1x1".parse().expect("a line");
        let program = plan.program().expect("a program");
        assert!(launched(&program, 16).is_ok());
        let failure = launched(&program, 256).map(drop).expect_err("it takes long");
        assert!(matches!(failure, Failure::Simulator(_)), "{failure}");
        assert!(failure.to_string().contains(&INSTRUCTIONS.to_string()), "{failure}");
    }

    /// What memory of a page cannot hold is refused before it is asked for.
    #[test]
    fn an_array_that_is_too_large_is_refused() {
        let plan: ReducePlan = "over: rows, block: 64".parse().expect("a line");
        let program = plan.program().expect("a program");
        let failure = launched(&program, 4097).map(drop).expect_err("4097 x 4097 elements");
        assert!(matches!(failure, Failure::TooLarge(len) if len == 4097 * 4097), "{failure}");
    }
}
