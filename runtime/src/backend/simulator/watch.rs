//! What somebody sees who looks on at the simulator ([`Simulation::watch`](crate::Simulation::watch)). It needs the
//! feature `sim`.

pub use gemm_dsl::ir::VerifiedKernel;
// Not its `Buffer`: with two of that name the compiler's messages spell out which one is meant.
pub use gemm_sim::{
    AccessEvent, Action, BoxCopy, BufferArg, Detail, Event, EventKind, Kind, Operand, Pattern,
    Price, Profile, Trace, cost,
};

use gemm_dsl::ir::{Elem, ParamKind};
use gemm_sim::{Buffer, Options, SimError};
use std::ops::Range;

/// Looks on at what a simulator runs, kernel by kernel ([`Simulation::watch`](crate::Simulation::watch)).
pub trait Watch: Send + Sync {
    /// The blocks of a launch that are to be recorded, by their numbers: along x first, then y, then z.
    fn blocks(&self, kernel: &VerifiedKernel, grid: [u32; 3]) -> Vec<u32>;

    /// A kernel has run, or has come to a fault.
    fn ran(&self, seen: KernelRun<'_>);
}

/// What was seen of the launch of a kernel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KernelRun<'a> {
    /// The kernel.
    pub kernel: &'a VerifiedKernel,
    /// The blocks along x, y and z.
    pub grid: [u32; 3],
    /// Whether it is the [main step](crate::LaunchReport::main_step) of its program.
    pub is_main: bool,
    /// What it was charged with, statement by statement; or its fault, which the launch returns too.
    pub ran: Result<&'a Profile, &'a SimError>,
    /// What happened in the blocks that were asked for, as far as they have come.
    pub traces: Vec<Trace>,
    /// What it was launched with.
    pub arguments: Arguments,
}

/// What a kernel was launched with, as it was before the launch: another one may run on the same.
#[derive(Clone, Debug)]
pub struct Arguments {
    buffers: Vec<BufferArg>,
    scalars: Vec<u64>,
}

/// A launch on arguments of another one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Replay {
    /// What it was charged with, statement by statement; or its fault.
    pub ran: Result<Profile, SimError>,
    /// What happened in the blocks that were asked for.
    pub traces: Vec<Trace>,
    /// Its arrays, in the order of the parameters, as it has left them.
    pub buffers: Vec<BufferArg>,
}

impl Arguments {
    pub(super) fn new(buffers: Vec<BufferArg>, scalars: Vec<u64>) -> Self {
        Self { buffers, scalars }
    }

    /// The value of each parameter of the kernel; none of an array.
    pub fn scalars(&self, kernel: &VerifiedKernel) -> Vec<Option<u64>> {
        let mut scalars = self.scalars.iter().copied();
        let is_scalar = |kind: &ParamKind| matches!(kind, ParamKind::Scalar { .. });
        kernel.params.iter().map(|p| is_scalar(&p.kind).then(|| scalars.next()).flatten()).collect()
    }

    /// The bytes of what each parameter of the kernel was given, of a list those of all its arrays; none of a number.
    pub fn bytes(&self, kernel: &VerifiedKernel) -> Vec<Option<u64>> {
        let bytes = |given: &BufferArg| -> u64 {
            let all = match given {
                BufferArg::One(buffer) => std::slice::from_ref(buffer),
                BufferArg::List(buffers) => buffers,
            };
            all.iter().map(|buffer| buffer.len() as u64 * u64::from(buffer.elem().size())).sum()
        };
        let mut given = self.buffers.iter().map(bytes);
        let is_scalar = |kind: &ParamKind| matches!(kind, ParamKind::Scalar { .. });
        kernel.params.iter().map(|p| if is_scalar(&p.kind) { None } else { given.next() }).collect()
    }

    /// The same, but that each element of an array of `F32` has a number for its bits, so that it can be told wherever it is
    /// moved to: from 1 on, those of an array behind those of the one before. With them the numbers of each array, none of a list
    /// or of another type.
    pub fn numbered(&self) -> (Self, Vec<Range<u64>>) {
        let mut next = 1;
        let number = |given: &BufferArg| match given {
            BufferArg::One(buffer) if buffer.elem() == Elem::F32 => {
                let numbers = next..next + buffer.len() as u64;
                next = numbers.end;
                let bits: Vec<u64> = numbers.clone().collect();
                (BufferArg::One(Buffer::from_bits(Elem::F32, bits.into_iter())), numbers)
            }
            other => (other.copied(), next..next),
        };
        let (buffers, numbers) = self.buffers.iter().map(number).unzip();
        (Self { buffers, scalars: self.scalars.clone() }, numbers)
    }

    /// The same, but that each element of the first array, whatever its type, and of others of `F32` is the last digit of its
    /// index: whole numbers that are small, whose sums can be followed.
    pub fn digits(&self) -> Self {
        let digit = |(number, given): (usize, &BufferArg)| match given {
            BufferArg::One(buffer) if number == 0 || buffer.elem() == Elem::F32 => {
                let elem = buffer.elem();
                let digits =
                    (0..buffer.len()).map(|index| gemm_sim::digit(elem, (index % 10) as u8));
                BufferArg::One(Buffer::from_bits(elem, digits))
            }
            other => other.copied(),
        };
        let buffers = self.buffers.iter().enumerate().map(digit).collect();
        Self { buffers, scalars: self.scalars.clone() }
    }

    /// Runs a kernel with the same parameters on copies of the arrays, and records blocks by their numbers. It may execute so
    /// many instructions ([`Options::instructions`]).
    ///
    /// # Errors
    /// Arguments that do not fit the kernel. What it is itself at fault with is beside what was seen.
    pub fn replay(
        &self,
        kernel: &VerifiedKernel,
        blocks: &[u32],
        instructions: u64,
    ) -> Result<Replay, SimError> {
        let buffers: Vec<BufferArg> = self.buffers.iter().map(BufferArg::copied).collect();
        let mut options = Options::default();
        options.instructions = instructions;
        let (ran, traces) = gemm_sim::record(kernel, &buffers, &self.scalars, blocks, &options)?;
        Ok(Replay { ran, traces, buffers })
    }
}
