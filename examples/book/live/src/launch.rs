//! Execution of a program on the simulator. The arrays are packed, and their shapes follow from the
//! extents of the problem.

use crate::operands::{Numbers, argument};
use gemm_dsl::ir::contract::{ArrayAxis, ArrayPlace, BoundArray, Contract, ContractError, Region};
use gemm_dsl::ir::program::{
    Array, BindError, KernelLaunch, LaunchProgram, PackedLayout, ProgramBackend, ProgramValues,
    Temporary,
};
use gemm_dsl::ir::{Elem, Extent, HostError, HostExpr, VerifiedKernel, VerifiedProgram};
use gemm_sim::{Buffer, BufferArg, Options, Profile, SimError, Trace};
use thiserror::Error;

/// Maximum number of simulated instructions of a launch: a few seconds in a browser.
const INSTRUCTIONS: u64 = 1 << 24;

/// Maximum number of elements of an array, including the program's temporaries.
const ELEMENTS: u64 = 1 << 24;

/// Record of the main launch of a program.
#[derive(Clone, Debug)]
pub struct RunRecord {
    pub kernel: VerifiedKernel,
    /// Blocks of the grid along x, y and z.
    pub grid: [u32; 3],
    /// Counters of all statements of the kernel.
    pub profile: Profile,
    /// Trace of its first block.
    pub trace: Trace,
    /// Number of launches of the program.
    pub launches: usize,
}

/// Reason for a failed run.
#[derive(Debug, Error)]
pub enum Failure {
    /// The arguments violate the contract of the kernel.
    #[error("the kernel cannot be launched here: {0}")]
    Unmet(#[from] ContractError),
    /// An extent cannot be computed.
    #[error("the launch cannot be set up: {0}")]
    Host(#[from] HostError),
    /// The page bound an argument that the program does not declare.
    #[error("internal error of the page: {0}")]
    Bind(#[from] BindError),
    /// The simulator found a fault.
    #[error("{0}")]
    Simulator(#[from] SimError),
    /// An array of the program has too many elements.
    #[error("too large to simulate: a local array has {0} elements, and the limit is {ELEMENTS}")]
    TooLarge(u64),
    /// The generated program launched nothing.
    #[error("internal error of the generator: nothing was launched")]
    NothingLaunched,
}

/// Runs a program with the given extents. `offsets`, the offsets of segments, replaces the contents
/// of the last input.
///
/// # Errors
/// Returns an error if the program cannot be launched or the simulator finds a fault.
pub fn launch(
    program: &VerifiedProgram,
    extents: &[(Extent, u64)],
    offsets: Option<&[u64]>,
) -> Result<RunRecord, Failure> {
    let numbers = program.arguments.iter().map(|of| (&*of.name, argument(of.ty)));
    let values = program.bind(extents, &numbers.collect::<Vec<_>>())?;
    let mut inputs = Inputs { program, values: &values, numbers: Numbers::new() };
    let mut arrays = Vec::new();
    for (nth, array) in program.inputs.iter().enumerate() {
        let is_last = nth + 1 == program.inputs.len();
        arrays.push((array.operand, inputs.array(array, offsets.filter(|_| is_last))?));
    }
    for array in &program.outputs {
        arrays.push((array.operand, inputs.array(array, None)?));
    }
    let mut page = Page { program, main: None };
    let run = program.execute(&values, &program.bind_arrays(&arrays)?, &mut page)?;
    let main = page.main.ok_or(Failure::NothingLaunched)?;
    Ok(RunRecord { launches: run.launches.len(), ..main })
}

/// Builder of the caller's arrays.
struct Inputs<'a> {
    program: &'a LaunchProgram,
    values: &'a ProgramValues,
    numbers: Numbers,
}

impl Inputs<'_> {
    /// Allocates a packed array, or a list of them. Matrices are row-major, or column-major if the
    /// kernels require it.
    fn array(
        &mut self,
        array: &Array<HostExpr>,
        offsets: Option<&[u64]>,
    ) -> Result<PageArray, Failure> {
        let PackedLayout { mut axes, len } = self.values.packed(&array.dims)?;
        check_len(len)?;
        if is_by_column(self.program, array) && axes.len() > 1 {
            let last = axes.len() - 1;
            axes[last].stride = axes[last - 1].extent;
            axes[last - 1].stride = 1;
        }
        let mut one = || match offsets {
            Some(offsets) => Buffer::from_bits(array.elem, offsets.iter().copied()),
            None if array.is_given => self.numbers.array(array.elem, len as usize),
            None => Buffer::zeros_of(array.elem, len as usize),
        };
        let (given, many) = match &array.count {
            None => (BufferArg::One(one()), 1),
            Some(count) => {
                let count = self.values.eval(count)?;
                (BufferArg::List((0..count).map(|_| one()).collect()), count)
            }
        };
        let regions = vec![Region { address: 0, len }; many as usize];
        Ok(PageArray { elem: array.elem, given, regions, axes: axes.into_vec() })
    }
}

/// Returns [`Failure::TooLarge`] if an array exceeds the limit.
fn check_len(len: u64) -> Result<(), Failure> {
    if len > ELEMENTS { Err(Failure::TooLarge(len)) } else { Ok(()) }
}

/// True if a kernel requires the matrices of the array to be column-major.
fn is_by_column(program: &LaunchProgram, array: &Array<HostExpr>) -> bool {
    let mut taken = program.contracts.iter().flat_map(Contract::arrays);
    taken.any(|of| of.operand == array.operand && of.contiguous_dim() + 2 == of.rank())
}

/// Array in the memory of the page.
struct PageArray {
    elem: Elem,
    given: BufferArg,
    regions: Vec<Region>,
    axes: Vec<ArrayAxis>,
}

/// Simulator back end of the page. It records the first block of the main launch.
struct Page<'p> {
    program: &'p VerifiedProgram,
    /// Record of the main launch, once it has finished.
    main: Option<RunRecord>,
}

impl ProgramBackend for Page<'_> {
    type Array = PageArray;
    type Report = ();
    type Error = Failure;

    fn describe<'a>(&self, array: &'a PageArray) -> BoundArray<'a> {
        let place = match (&array.given, &array.regions[..]) {
            (BufferArg::One(_), [region]) => ArrayPlace::One(*region),
            (_, regions) => ArrayPlace::List(regions),
        };
        BoundArray { name: "array", elem: array.elem, place, axes: Some(&array.axes) }
    }

    fn temporary(&mut self, temporary: &Temporary<'_>) -> Result<PageArray, Failure> {
        let PackedLayout { axes, len } = temporary.layout.clone();
        check_len(len)?;
        let elem = temporary.temp.elem;
        let given = BufferArg::One(Buffer::zeros_of(elem, len as usize));
        Ok(PageArray {
            elem,
            given,
            regions: vec![Region { address: 0, len }],
            axes: axes.into_vec(),
        })
    }

    fn launch(&mut self, launch: &KernelLaunch<'_, PageArray>) -> Result<(), Failure> {
        let buffers: Vec<_> = launch.arrays().map(|array| array.given.clone()).collect();
        let scalars: Vec<_> = launch.scalars().collect();
        let mut options = Options::default();
        options.instructions = INSTRUCTIONS;
        options.compiled = launch.is_main;
        let kernel = self.program.kernel(launch.kernel);
        let watched: &[u32] = if launch.is_main { &[0] } else { &[] };
        let (ran, traces) = gemm_sim::record(kernel, &buffers, &scalars, watched, &options)?;
        let profile = ran?;
        if let Some(trace) = traces.into_iter().next() {
            let (kernel, grid) = (kernel.clone(), launch.grid);
            self.main = Some(RunRecord { kernel, grid, profile, trace, launches: 1 });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_dsl::Plan as _;
    use gemm_dsl::plan::{ReducePlan, SgemmPlan};

    /// Launches a program with the same value for all extents.
    fn launched(program: &VerifiedProgram, extent: u64) -> Result<RunRecord, Failure> {
        let extents = program.extents.iter().map(|of| (*of, extent));
        launch(program, &extents.collect::<Vec<_>>(), None)
    }

    /// A launch stops at the instruction limit. A launch of 2^16 blocks with K = 256 exceeds it, a
    /// launch of one block with K = 16 does not.
    #[test]
    fn a_launch_that_takes_long_is_given_up() {
        let plan: SgemmPlan = "block: 1x1".parse().expect("a line");
        let program = plan.program().expect("a program");
        assert!(launched(&program, 16).is_ok());
        let failure = launched(&program, 256).map(drop).expect_err("it takes long");
        assert!(matches!(failure, Failure::Simulator(_)), "{failure}");
        assert!(failure.to_string().contains(&INSTRUCTIONS.to_string()), "{failure}");
    }

    /// An array too large for the page's memory is refused before its allocation.
    #[test]
    fn an_array_that_is_too_large_is_refused() {
        let plan: ReducePlan = "over: rows, block: 64".parse().expect("a line");
        let program = plan.program().expect("a program");
        let failure = launched(&program, 4097).map(drop).expect_err("4097 x 4097 elements");
        assert!(matches!(failure, Failure::TooLarge(len) if len == 4097 * 4097), "{failure}");
    }
}
