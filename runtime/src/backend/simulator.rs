//! Simulator back end: memory of the process, and launches that complete before they return. Needs
//! the feature `sim`.

mod counters;
pub mod fault;
mod speed;
pub mod watch;

pub use counters::StepCounters;
pub use gemm_sim::{Counters, Quantity, SassCounters, SimError};

use super::Backend;
use super::stream_group::StreamGroup;
use crate::blocks::Blocks;
use crate::error::{Error, Result};
use crate::kernel_arg::{Address, KernelArg};
use crate::program::CachedProgram;
use gemm_dsl::ir::Elem;
use gemm_dsl::ir::program::KernelId;
use gemm_dsl::target::element::Element;
use gemm_sim::{Buffer, BufferArg, Options};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use watch::{Arguments, KernelRun, Watch};

/// Simulator as a back end.
pub struct Simulator {
    pub(crate) options: Simulation,
    /// Number of allocations of buffers so far.
    allocations: AtomicU64,
    /// Devices that share buffers with this one.
    group: Arc<StreamGroup>,
}

impl Simulator {
    pub(crate) fn new(options: Simulation) -> Self {
        Self { options, allocations: AtomicU64::new(0), group: Arc::default() }
    }

    /// Simulator that shares the buffers of this one.
    pub(crate) fn on_new_stream(&self) -> Self {
        Self { group: Arc::clone(&self.group), ..Self::new(self.options.clone()) }
    }

    /// Devices that share buffers.
    pub(crate) fn group(&self) -> &Arc<StreamGroup> {
        &self.group
    }
}

/// Options of a simulator, for [`Device::simulator_of`](crate::Device::simulator_of). The default
/// options are those of [`Device::simulator`](crate::Device::simulator).
///
/// ```
/// use gemm_runtime::sim::Simulation;
/// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
///
/// const SUM: ReduceKernel = reduce_kernel!(op: sum);
/// let limited = Simulation { instructions: 10, ..Simulation::default() };
/// let device = Device::simulator_of(limited);
/// assert!(SUM.run(&device, &[1.0; 1000]).is_err());
/// ```
#[derive(Clone)]
pub struct Simulation {
    /// Limit of the instructions of a launch, summed over all warps. A statement, a test or a
    /// branch counts as one instruction.
    pub instructions: u64,
    /// Also predicts the machine-code instructions of each kernel from its text
    /// ([`StepReport::compiled_counters`](crate::StepReport::compiled_counters)).
    pub compiled: bool,
    /// Collects counters only: detects no races, and runs blocks with inter-block synchronisation
    /// in one order.
    pub unchecked: bool,
    /// Observer of all launches, if there is one.
    pub watch: Option<Arc<dyn Watch>>,
}

impl Default for Simulation {
    fn default() -> Self {
        let instructions = Options::default().instructions;
        Self { instructions, compiled: false, unchecked: false, watch: None }
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("instructions", &self.instructions)
            .field("compiled", &self.compiled)
            .field("unchecked", &self.unchecked)
            .field("is_watched", &self.watch.is_some())
            .finish()
    }
}

impl Address for Buffer {
    fn elem(&self) -> Elem {
        self.elem()
    }

    fn bytes(&self) -> u64 {
        self.byte_offset()
    }

    fn part(&self, start: u64, len: u64) -> Option<Self> {
        self.view(usize::try_from(start).ok()?, usize::try_from(len).ok()?)
    }

    fn reinterpreted(&self, elem: Elem) -> Option<Self> {
        self.reinterpreted(elem)
    }

    fn range(&self, len: u64) -> Range<u64> {
        let start = self.addresses().start as u64;
        let len = len.min(self.len() as u64);
        start..start + len * u64::from(self.elem().size())
    }
}

/// Allocates zeros.
fn allocate(elem: Elem, len: u64) -> Result<Buffer> {
    let bytes = len.saturating_mul(elem.size().into());
    // Reserves memory fallibly first: the process would abort if a plain allocation failed.
    let room = usize::try_from(bytes).ok().and_then(|bytes| {
        Vec::<u8>::new().try_reserve_exact(bytes).ok()?;
        usize::try_from(len).ok()
    });
    let len = room.ok_or_else(|| Error::OutOfMemory {
        bytes,
        device: "the simulator (memory of this process)".to_owned(),
    })?;
    Ok(Buffer::zeros_of(elem, len))
}

/// Copies the rows of blocks. `copy` gets the offsets of a row on the target and on the source, and
/// returns `None` if the row is not inside its memory: the creator of the blocks has a bug.
fn each_row(blocks: &Blocks, mut copy: impl FnMut(usize, usize) -> Option<()>) -> Result<()> {
    for (to, from) in blocks.starts_of_rows() {
        let copied = copy(to, from);
        copied.ok_or_else(|| Error::Internal("a copy reaches beyond its memory".to_owned()))?;
    }
    Ok(())
}

impl Backend for Simulator {
    type Address = Buffer;
    type Allocation = Buffer;
    type Pointers = ();
    type Workspace<'b> = ();

    fn alloc(&self, elem: Elem, len: u64) -> Result<Buffer> {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        allocate(elem, len)
    }

    fn allocations(&self) -> u64 {
        self.allocations.load(Ordering::Relaxed)
    }

    fn address(allocation: &Buffer) -> Buffer {
        allocation.clone()
    }

    /// The simulator needs no pointers: it is passed the arrays themselves.
    fn pointers(&self, _: &[Buffer]) -> Result<()> {
        Ok(())
    }

    fn zero(&self, at: &Buffer, len: u64) -> Result<()> {
        match at.part(0, len) {
            Some(part) => part.zero(),
            None => unreachable!("the caller has allocated so many elements"),
        }
        Ok(())
    }

    fn fill<T: Element>(&self, to: &Buffer, value: T, blocks: &Blocks) -> Result<()> {
        let row = vec![value; blocks.cols];
        each_row(blocks, |at, _| to.view(at, row.len())?.copy_from(&row).then_some(()))
    }

    fn copy(&self, to: &Buffer, from: &Buffer, blocks: &Blocks) -> Result<()> {
        let cols = blocks.cols;
        each_row(blocks, |at, of| to.view(at, cols)?.copy_of(&from.view(of, cols)?).then_some(()))
    }

    fn write<T: Element>(&self, to: &Buffer, elements: &[T], blocks: &Blocks) -> Result<()> {
        let cols = blocks.cols;
        each_row(blocks, |at, of| {
            to.view(at, cols)?.copy_from(elements.get(of..of + cols)?).then_some(())
        })
    }

    fn read<T: Element>(&self, elements: &mut [T], from: &Buffer, blocks: &Blocks) -> Result<()> {
        let cols = blocks.cols;
        each_row(blocks, |at, of| {
            from.view(of, cols)?.copy_to(elements.get_mut(at..at + cols)?).then_some(())
        })
    }

    fn workspace(&self) {}

    fn scratch(&self, _: &mut (), _: usize, elem: Elem, len: u64) -> Result<Buffer> {
        allocate(elem, len)
    }

    /// Allocates new zeros for each launch, because in the simulator launches of different threads
    /// may overlap.
    fn scratch_of_zeros(&self, _: &mut (), _: usize, elem: Elem, len: u64) -> Result<Buffer> {
        allocate(elem, len)
    }

    fn holds_zeros(_: &mut (), _: bool) {}

    fn launch(
        &self,
        program: &CachedProgram,
        kernel: KernelId,
        grid: [u32; 3],
        is_main: bool,
        arguments: &[KernelArg<'_, Buffer, ()>],
    ) -> Result<Option<Box<StepCounters>>> {
        let (mut buffers, mut scalars) = (Vec::new(), Vec::new());
        for argument in arguments {
            match argument {
                KernelArg::Word(bits) => scalars.push((*bits).into()),
                KernelArg::Double(bits) => scalars.push(*bits),
                KernelArg::Array(buffer) | KernelArg::TensorMap { address: buffer, .. } => {
                    buffers.push(BufferArg::One(buffer.clone()));
                }
                KernelArg::List { arrays, .. } => buffers.push(BufferArg::List(arrays.to_vec())),
            }
        }
        // A `Call` does not record the arrays that it was bound with, so the simulator binds them
        // itself.
        let mut options = Options::default();
        let Simulation { instructions, compiled, unchecked, watch } = &self.options;
        options.instructions = *instructions;
        options.compiled = *compiled;
        options.unchecked = *unchecked;
        let kernel = program.bodies()?.kernel(kernel);
        let _timed = speed::Timed::start();
        let Some(watch) = watch else {
            let profile = gemm_sim::profile(kernel, &buffers, &scalars, &options)?;
            return Ok(Some(Box::new(StepCounters::from_profile(&profile))));
        };
        let blocks = watch.blocks(kernel, grid);
        let before = buffers.iter().map(BufferArg::copied).collect();
        let (ran, traces) = gemm_sim::record(kernel, &buffers, &scalars, &blocks, &options)?;
        let arguments = Arguments::new(before, scalars);
        watch.ran(KernelRun { kernel, grid, is_main, ran: ran.as_ref(), traces, arguments });
        Ok(Some(Box::new(StepCounters::from_profile(&ran?))))
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

impl From<SimError> for Error {
    fn from(error: SimError) -> Self {
        Error::Simulator(Box::new(error))
    }
}
