//! Recorded events of selected blocks of a launch, as shown by pages about a kernel.

mod detail;
pub(crate) mod recorder;

use crate::cost::pattern::Pattern;

pub use detail::{Action, BoxCopy, Detail, Operand};

/// Recorded events of one block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trace {
    pub block: (u32, u32, u32),
    /// Distinct address patterns of the block's accesses, in order of first occurrence.
    pub patterns: Vec<Pattern>,
    /// Distinct loop iterations: numbers and values of the loop variables, outermost first. The
    /// first entry is empty, for code outside loops.
    pub rounds: Vec<Vec<(usize, i64)>>,
    /// Events of all warps, in execution order. Only the order of events of the same warp is
    /// meaningful.
    pub events: Vec<Event>,
    /// Actions other than memory accesses, in the same order: shuffles, mbarrier operations and
    /// byte counts, matrix instructions.
    pub details: Vec<Detail>,
}

/// Event that is a memory access.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AccessEvent<'t> {
    pub event: &'t Event,
    /// Index of the pattern in [`Trace::patterns`].
    pub number: u32,
    pub pattern: &'t Pattern,
    /// Buffer element accessed by the first active lane.
    pub first: u32,
    /// Words written, for each active lane in turn.
    pub words: &'t [u32],
}

impl Trace {
    pub fn accesses(&self) -> impl Iterator<Item = AccessEvent<'_>> {
        self.events.iter().filter_map(|event| match &event.what {
            EventKind::Statement | EventKind::Refused => None,
            EventKind::Access { pattern: number, first, words } => Some(AccessEvent {
                event,
                number: *number,
                pattern: &self.patterns[*number as usize],
                first: *first,
                words,
            }),
        })
    }
}

/// Event of a warp: an access, or a synchronising statement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Warp number in the block.
    pub warp: u32,
    /// Number of the statement ([`Kernel::statements`](gemm_dsl::ir::Kernel::statements)).
    pub stmt: u32,
    /// Instructions that the warp had executed before, and the multiply-adds among them.
    pub executed: [u64; 2],
    /// Iteration of the enclosing loops, for the first lane: an index into [`Trace::rounds`].
    pub rounds: u32,
    pub what: EventKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Synchronising statement, or start of asynchronous work: a barrier, a fence, a commit, a
    /// wait, a TMA copy, a matrix instruction.
    Statement,
    /// Access to global or shared memory.
    Access {
        /// Index into [`Trace::patterns`].
        pattern: u32,
        /// Buffer element accessed by the first active lane.
        first: u32,
        /// Words written, for each active lane in turn; empty for an atomic.
        words: Vec<u32>,
    },
    /// Access that some lane may not make. No lane made it and the launch ends. The fault holds the
    /// access ([`Fault::refused`](crate::Fault::refused)).
    Refused,
}
