//! Observers of the simulator ([`Simulation::watch`](crate::sim::Simulation::watch)). Needs the
//! feature `sim`.

pub use gemm_dsl::ir::VerifiedKernel;
// `Buffer` is not exported: with two types of that name, compiler messages would print full paths.
pub use gemm_sim::{
    AccessEvent, Action, BoxCopy, BufferArg, Detail, Event, EventKind, Kind, Operand, Pattern,
    Price, Profile, Trace, cost,
};

use gemm_dsl::ir::{Elem, ParamKind};
use gemm_sim::{Buffer, Options, SimError};
use std::ops::Range;

/// Observer of the kernels that a simulator runs
/// ([`Simulation::watch`](crate::sim::Simulation::watch)).
/// [`Device::simulator_watched`](crate::Device::simulator_watched) has an example.
pub trait Watch: Send + Sync {
    /// Returns the linear indices of the blocks to trace: x varies fastest, then y, then z.
    fn blocks(&self, kernel: &VerifiedKernel, grid: [u32; 3]) -> Vec<u32>;

    /// Receives the record of a kernel launch, which has run or failed.
    fn ran(&self, seen: KernelRun<'_>);
}

/// Record of a kernel launch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KernelRun<'a> {
    /// Kernel that was launched, in the IR.
    pub kernel: &'a VerifiedKernel,
    /// Number of blocks along x, y and z.
    pub grid: [u32; 3],
    /// True for the [main step](crate::LaunchReport::main_step) of its program.
    pub is_main: bool,
    /// Cost of each statement, or the fault that the launch also returns.
    pub ran: Result<&'a Profile, &'a SimError>,
    /// Events of the traced blocks, up to a fault.
    pub traces: Vec<Trace>,
    /// Arguments of the launch, as they were before it.
    pub arguments: Arguments,
}

/// Arguments of a launch, as they were before it. [`Arguments::replay`] runs other kernels on
/// copies of them.
#[derive(Clone, Debug)]
pub struct Arguments {
    buffers: Vec<BufferArg>,
    scalars: Vec<u64>,
}

/// Record of a kernel that ran on the arguments of another launch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Replay {
    /// Cost of each statement, or the fault.
    pub ran: Result<Profile, SimError>,
    /// Events of the traced blocks, up to a fault.
    pub traces: Vec<Trace>,
    /// Arrays after the launch, in the order of the parameters.
    pub buffers: Vec<BufferArg>,
}

impl Arguments {
    pub(super) fn new(buffers: Vec<BufferArg>, scalars: Vec<u64>) -> Self {
        Self { buffers, scalars }
    }

    /// Returns the value of each parameter of the kernel, or `None` for an array.
    pub fn scalars(&self, kernel: &VerifiedKernel) -> Vec<Option<u64>> {
        let mut scalars = self.scalars.iter().copied();
        let is_scalar = |kind: &ParamKind| matches!(kind, ParamKind::Scalar { .. });
        kernel.params.iter().map(|p| is_scalar(&p.kind).then(|| scalars.next()).flatten()).collect()
    }

    /// Returns the size in bytes of each array parameter, for a list the sum over its arrays, or
    /// `None` for a scalar.
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

    /// Returns copies in which every `F32` element has its own number as its bits, so that an
    /// element can be recognised wherever it is moved. The numbers count from 1 through all arrays.
    /// Also returns the range of numbers of each array, which is empty for a list and for other
    /// element types.
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

    /// Returns copies in which each element is the last decimal digit of its index, in the first
    /// array and in all arrays of `F32`. Sums of such small integers are easy to follow.
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

    /// Runs a kernel with the same parameters on copies of the arrays, and traces the blocks with
    /// the given linear indices. The kernel may execute at most `instructions`
    /// ([`Options::instructions`]).
    ///
    /// # Errors
    /// Returns an error if the arguments do not fit the kernel. A fault of the kernel is not an
    /// error but part of the [`Replay`].
    pub fn replay(
        &self,
        kernel: &VerifiedKernel,
        blocks: &[u32],
        instructions: u64,
    ) -> Result<Replay, SimError> {
        let mut options = Options::default();
        options.instructions = instructions;
        self.run(kernel, blocks, &options)
    }

    /// Runs and traces a kernel as [`replay`](Self::replay) does, but faster: it detects no races,
    /// and runs blocks with inter-block synchronisation in one order. Use it for a launch that
    /// [`replay`](Self::replay) or a checked device has already run without a fault.
    ///
    /// # Errors
    /// Returns the errors of [`replay`](Self::replay).
    pub fn retrace(
        &self,
        kernel: &VerifiedKernel,
        blocks: &[u32],
        instructions: u64,
    ) -> Result<Replay, SimError> {
        let mut options = Options::default();
        (options.instructions, options.unchecked) = (instructions, true);
        self.run(kernel, blocks, &options)
    }

    fn run(
        &self,
        kernel: &VerifiedKernel,
        blocks: &[u32],
        options: &Options<'_>,
    ) -> Result<Replay, SimError> {
        let buffers: Vec<BufferArg> = self.buffers.iter().map(BufferArg::copied).collect();
        let (ran, traces) = gemm_sim::record(kernel, &buffers, &self.scalars, blocks, options)?;
        Ok(Replay { ran, traces, buffers })
    }
}
