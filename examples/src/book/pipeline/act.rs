//! What an event of a warp is, as far as copies and multiply-adds go.

use gemm_dsl::ir::{Buffer, BufferLayout, Kernel, MbarrierOp, Space, Stmt, WgmmaSync};
use gemm_runtime::watch::{Event, EventKind, Kind, Trace};

/// What a warp does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::book) enum Act {
    /// Loads from global memory.
    Load,
    /// Starts asynchronous copies.
    Copy,
    /// Asks for boxes.
    Box,
    /// Says how many bytes a barrier in shared memory, the one of this declaration, is to expect.
    Expect(usize),
    /// Closes a group of copies.
    Commit,
    /// Waits until no more groups of copies than these are unfinished.
    Wait(u64),
    /// Waits at a barrier in shared memory.
    Await(usize),
    /// Comes to a barrier.
    Barrier,
    /// Writes shared memory, and by an asynchronous copy that.
    Write,
    Arrive,
    /// Reads shared memory.
    Read,
    /// Multiplies on tensor cores.
    Matrix,
    /// Waits for that.
    Sums,
    /// Stores to global memory.
    Store,
}

/// An act, and where it is.
#[derive(Clone, Copy, Debug)]
pub(in crate::book) struct Acted {
    pub(in crate::book) act: Act,
    /// The slot of the ring that is written or read.
    pub(in crate::book) slot: Option<u64>,
    /// Instructions that the warp had executed before, and multiply-adds among them.
    pub(in crate::book) executed: [u64; 2],
    /// The number of its event among those of the warp.
    pub(in crate::book) event: usize,
}

/// Arrays in shared memory that hold several tiles, one behind the other.
pub(in crate::book) struct Ring {
    /// The elements of a tile, by buffer.
    tiles: Vec<Option<u64>>,
    /// How many tiles.
    pub(in crate::book) slots: u64,
}

impl Ring {
    pub(in crate::book) fn of(kernel: &Kernel) -> Self {
        let stacked = |buffer: &Buffer| {
            matches!(&buffer.layout, BufferLayout::Array { order, .. } if order.len() > 2 && order[0] == 0)
                && buffer.space == Space::Shared
        };
        // A ring has tiles of A and of B: what a single array stacks is something else.
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

    pub(in crate::book) fn slot(&self, buffer: usize, first: u32) -> Option<u64> {
        self.tiles.get(buffer).copied().flatten().map(|tile| u64::from(first) / tile)
    }
}

/// What the events of a warp are.
pub(in crate::book) fn all(
    kernel: &Kernel,
    trace: &Trace,
    ring: &Ring,
    events: &[&Event],
) -> Vec<Acted> {
    let statements = kernel.statements();
    let of = |(number, event): (usize, &&Event)| {
        let (act, slot) = match &event.what {
            EventKind::Access { pattern, first, .. } => {
                let pattern = &trace.patterns[*pattern as usize];
                let act = match (kernel.buffers[pattern.buffer].space, pattern.kind) {
                    (Space::Global, Kind::Load) => Act::Load,
                    (Space::Global, Kind::Store) => Act::Store,
                    (Space::Shared, Kind::Load) => Act::Read,
                    (Space::Shared, Kind::Store) => Act::Write,
                    (Space::Shared, Kind::CopyWrite) => Act::Arrive,
                    (_, Kind::CopyRead) => Act::Copy,
                    // What is added to others' sums is no part of a copy, and nothing is copied to global memory.
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
        Some(Acted { act, slot, executed: event.executed, event: number })
    };
    events.iter().enumerate().filter_map(of).collect()
}

fn statement(kernel: &Kernel, stmt: &Stmt) -> Option<Act> {
    Some(match stmt {
        Stmt::CopyCommit => Act::Commit,
        Stmt::CopyWait { pending } => Act::Wait(kernel.eval_const(pending).ok()?.try_into().ok()?),
        Stmt::Barrier(_) | Stmt::NamedBarrier { .. } => Act::Barrier,
        Stmt::TensorCopy(_) => Act::Box,
        Stmt::Mma(_) | Stmt::Wgmma(_) => Act::Matrix,
        Stmt::WgmmaSync(WgmmaSync::Wait { .. }) => Act::Sums,
        Stmt::Mbarrier(barrier) => match barrier.op {
            MbarrierOp::ArriveExpect { .. } => Act::Expect(barrier.at.barriers.id),
            MbarrierOp::Wait { .. } => Act::Await(barrier.at.barriers.id),
            MbarrierOp::Init { .. } | MbarrierOp::Arrive | MbarrierOp::ArriveRemote { .. } => {
                return None;
            }
        },
        // Accesses are events of their own; the rest computes, or speaks to others without a wait.
        Stmt::Let { .. }
        | Stmt::Mut { .. }
        | Stmt::Assign { .. }
        | Stmt::Registers { .. }
        | Stmt::Choose { .. }
        | Stmt::Store { .. }
        | Stmt::If { .. }
        | Stmt::For(_)
        | Stmt::Fence { .. }
        | Stmt::Atomic(_)
        | Stmt::CopyAsync { .. }
        | Stmt::Point { .. }
        | Stmt::Advance { .. }
        | Stmt::LoadMatrix(_)
        | Stmt::ProxyFence(_)
        | Stmt::WgmmaSync(WgmmaSync::Fence { .. } | WgmmaSync::Commit)
        | Stmt::RegisterLimit(_)
        | Stmt::Assume(_)
        | Stmt::Comment(_) => return None,
    })
}
