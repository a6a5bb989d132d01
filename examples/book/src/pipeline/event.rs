//! Classification of a warp's events by their role in copies and multiply-adds.

use gemm_dsl::ir::{Buffer, BufferLayout, Kernel, MbarrierOp, Space, Stmt, WgmmaSync};
use gemm_runtime::sim::watch::{Event, EventKind, Kind, Trace};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WarpAction {
    /// Load of elements from global memory.
    Load,
    /// Start of `cp.async` copies by the warp.
    Copy,
    /// Start of a TMA copy.
    Box,
    /// Announcement of expected bytes at an mbarrier of the declaration with this index.
    Expect(usize),
    /// Commit of a group of copies.
    Commit,
    /// Wait until at most this many groups of copies are pending.
    Wait(u64),
    /// Wait at an mbarrier of the declaration with this index.
    Await(usize),
    /// Barrier of any scope, or a named barrier.
    Barrier,
    /// Write to shared memory by a store, or (`Arrive`) by an asynchronous copy.
    Write,
    Arrive,
    /// Load from shared memory by the warp.
    Read,
    /// Tensor-core instruction: `mma` or `wgmma`.
    Matrix,
    /// Wait for accumulators of `wgmma`.
    Sums,
    /// Store of elements to global memory.
    Store,
}

/// Action with its position in the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActionAt {
    pub(crate) act: WarpAction,
    /// Slot of the ring that is written or read.
    pub(crate) slot: Option<u64>,
    /// Instructions that the warp executed before the action, and multiply-adds among them.
    pub(crate) executed: [u64; 2],
    /// Index of the event among those of the warp.
    pub(crate) event: usize,
}

/// Arrays in shared memory that hold several tiles consecutively.
pub(crate) struct TileArrays {
    /// Elements of a tile, by buffer.
    tiles: Vec<Option<u64>>,
    /// Number of tiles in each array.
    pub(crate) slots: u64,
}

impl TileArrays {
    pub(crate) fn new(kernel: &Kernel) -> Self {
        let stacked = |buffer: &Buffer| {
            let is_stacked = |order: &[usize]| order.len() > 2 && order[0] == 0;
            matches!(&buffer.layout, BufferLayout::Array { order, .. } if is_stacked(order))
                && buffer.space == Space::Shared
        };
        // A ring has an array for A and one for B. A single array with several tiles is not a ring.
        let is_ring = |buffer: &&Buffer| {
            let all = kernel.buffers.iter().filter(|other| stacked(other));
            stacked(buffer)
                && all.filter(|other| other.dims.first() == buffer.dims.first()).count() > 1
        };
        let mut slots = 1;
        let mut tile = |buffer: &Buffer| {
            let dims = Some(buffer).filter(is_ring)?.physical_dims()?;
            let dims = dims.iter().map(|dim| u64::try_from(kernel.eval_const(dim).ok()?).ok());
            let dims = dims.collect::<Option<Vec<u64>>>()?;
            let (count, tile) = dims.split_first()?;
            slots = slots.max(*count);
            Some(tile.iter().product::<u64>().max(1))
        };
        Self { tiles: kernel.buffers.iter().map(&mut tile).collect(), slots }
    }

    pub(crate) fn slot(&self, buffer: usize, first: u32) -> Option<u64> {
        self.tiles.get(buffer).copied().flatten().map(|tile| u64::from(first) / tile)
    }
}

/// Classifies the events of a warp.
pub(crate) fn all(
    kernel: &Kernel,
    trace: &Trace,
    ring: &TileArrays,
    events: &[&Event],
) -> Vec<ActionAt> {
    let statements = kernel.statements();
    let of = |(number, event): (usize, &&Event)| {
        let (act, slot) = match &event.what {
            EventKind::Access { pattern, first, .. } => {
                let pattern = &trace.patterns[*pattern as usize];
                let act = match (kernel.buffers[pattern.buffer].space, pattern.kind) {
                    (Space::Global, Kind::Load) => WarpAction::Load,
                    (Space::Global, Kind::Store) => WarpAction::Store,
                    (Space::Shared, Kind::Load) => WarpAction::Read,
                    (Space::Shared, Kind::Store) => WarpAction::Write,
                    (Space::Shared, Kind::CopyWrite) => WarpAction::Arrive,
                    (_, Kind::CopyRead) => WarpAction::Copy,
                    // Atomics belong to reductions, not to copies, and no copy writes global
                    // memory.
                    (_, Kind::Atomic) | (Space::Global, Kind::CopyWrite) => return None,
                    (Space::Register, Kind::Load | Kind::Store | Kind::CopyWrite) => return None,
                };
                (act, ring.slot(pattern.buffer, *first))
            }
            EventKind::Statement => {
                (statement(kernel, statements.get(event.stmt as usize)?)?, None)
            }
            EventKind::Refused => return None,
        };
        Some(ActionAt { act, slot, executed: event.executed, event: number })
    };
    events.iter().enumerate().filter_map(of).collect()
}

fn statement(kernel: &Kernel, stmt: &Stmt) -> Option<WarpAction> {
    Some(match stmt {
        Stmt::CopyCommit => WarpAction::Commit,
        Stmt::CopyWait { pending } => {
            WarpAction::Wait(kernel.eval_const(pending).ok()?.try_into().ok()?)
        }
        Stmt::Barrier(_) | Stmt::NamedBarrier { .. } => WarpAction::Barrier,
        Stmt::TensorCopy(_) => WarpAction::Box,
        Stmt::Mma(_) | Stmt::Wgmma(_) => WarpAction::Matrix,
        Stmt::WgmmaSync(WgmmaSync::Wait { .. }) => WarpAction::Sums,
        Stmt::Mbarrier(barrier) => match barrier.op {
            MbarrierOp::ArriveExpect { .. } => WarpAction::Expect(barrier.at.barriers.id),
            MbarrierOp::Wait { .. } => WarpAction::Await(barrier.at.barriers.id),
            MbarrierOp::Init { .. } | MbarrierOp::Arrive | MbarrierOp::ArriveRemote { .. } => {
                return None;
            }
        },
        // These statements compute, or signal without waiting. Their accesses are separate events.
        Stmt::Let { .. }
        | Stmt::Mut { .. }
        | Stmt::Assign { .. }
        | Stmt::Registers { .. }
        | Stmt::Choose { .. }
        | Stmt::Store { .. }
        | Stmt::StoreRemote { .. }
        | Stmt::If { .. }
        | Stmt::For(_)
        | Stmt::Section(_)
        | Stmt::Fence { .. }
        | Stmt::Atomic(_)
        | Stmt::CopyAsync { .. }
        | Stmt::Point { .. }
        | Stmt::Advance { .. }
        | Stmt::LoadMatrix(_)
        | Stmt::ProxyFence(_)
        | Stmt::WgmmaSync(WgmmaSync::Fence { .. } | WgmmaSync::Commit)
        | Stmt::RegisterLimit(_)
        | Stmt::Comment(_) => return None,
    })
}
