//! Runs a program on the simulator, on packed arrays of its own: the extents of the problem give all shapes.

use crate::operands::{Numbers, argument};
use gemm_dsl::ir::contract::{ArrayAxis, ArrayPlace, BoundArray, ContractError, Region};
use gemm_dsl::ir::program::{
    Array, BindError, KernelLaunch, PackedLayout, ProgramBackend, ProgramValues, Temporary,
};
use gemm_dsl::ir::{Elem, Extent, HostError, VerifiedKernel, VerifiedProgram};
use gemm_sim::{Buffer, BufferArg, Options, Profile, SimError, Trace};
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
    /// A fault of the page, which gives what the program does not ask for.
    #[error("a fault of the page: {0}")]
    Bind(#[from] BindError),
    /// What the simulator found.
    #[error("{0}")]
    Simulator(#[from] SimError),
    /// An array of the program's own.
    #[error(
        "it is too large to simulate: an array of its own has {0} elements, and at most {ELEMENTS} are taken here"
    )]
    TooLarge(u64),
    /// A fault of the generator.
    #[error("a fault of the generator: nothing was launched")]
    NothingLaunched,
}

/// Runs a program on extents by name; what it folds segments by is given.
///
/// # Errors
/// What keeps it from being launched, and what the simulator finds.
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

/// Makes the arrays of a caller.
struct Inputs<'a> {
    program: &'a VerifiedProgram,
    values: &'a ProgramValues,
    numbers: Numbers,
}

impl Inputs<'_> {
    /// An array, or a list of them, without gaps: matrices lie row by row, or column by column where the kernels that take
    /// them say so.
    fn array(&mut self, array: &Array, offsets: Option<&[u64]>) -> Result<PageArray, Failure> {
        let PackedLayout { mut axes, len } = self.program.packed(&array.dims, self.values)?;
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
                let count = self.program.eval(count, self.values)?;
                (BufferArg::List((0..count).map(|_| one()).collect()), count)
            }
        };
        let regions = vec![Region { address: 0, len }; many as usize];
        Ok(PageArray { elem: array.elem, given, regions, axes })
    }
}

/// Checks that a page has room for an array.
fn check_len(len: u64) -> Result<(), Failure> {
    if len > ELEMENTS { Err(Failure::TooLarge(len)) } else { Ok(()) }
}

/// Whether kernels take the matrices of an array column by column.
fn is_by_column(program: &VerifiedProgram, array: &Array) -> bool {
    let mut taken = program.kernels.iter().flat_map(|kernel| kernel.contract().arrays());
    taken.any(|of| of.operand == array.operand && of.contiguous_dim() + 2 == of.rank())
}

/// An array in the memory of the page.
struct PageArray {
    elem: Elem,
    given: BufferArg,
    regions: Vec<Region>,
    axes: Vec<ArrayAxis>,
}

/// The page as a back end: the simulator, which records the first block of the main launch.
struct Page<'p> {
    program: &'p VerifiedProgram,
    /// The record of the main launch, once it is over.
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
        Ok(PageArray { elem, given, regions: vec![Region { address: 0, len }], axes })
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

    /// What comes of a program all of whose extents are one number.
    fn launched(program: &VerifiedProgram, extent: u64) -> Result<RunRecord, Failure> {
        let extents = program.extents.iter().map(|of| (*of, extent));
        launch(program, &extents.collect::<Vec<_>>(), None)
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
