//! Recorded events of selected blocks of a launch. Pages about a kernel show them.

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
    /// Distinct loop iterations, as numbers and values of the loop variables, outermost first. The
    /// first entry is empty, for code outside of loops.
    pub rounds: Vec<Vec<(usize, i64)>>,
    /// Events of all warps, in execution order. Only the order of events of the same warp has a
    /// meaning.
    pub events: Vec<Event>,
    /// Actions other than memory accesses, in the same order: shuffles, mbarrier operations, byte
    /// counts and matrix instructions.
    pub details: Vec<Detail>,
}

/// Event that consists of a memory access.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AccessEvent<'t> {
    pub event: &'t Event,
    /// Index of the pattern in [`Trace::patterns`].
    pub number: u32,
    pub pattern: &'t Pattern,
    /// Buffer element that the first active lane accessed.
    pub first: u32,
    /// Words that were written, one active lane after another.
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

/// Event of a warp: an access or a synchronising statement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Number of the warp in the block.
    pub warp: u32,
    /// Number of the statement ([`Kernel::statements`](gemm_dsl::ir::Kernel::statements)).
    pub stmt: u32,
    /// Number of instructions that the warp had executed before the event, and of multiply-adds
    /// among them.
    pub executed: [u64; 2],
    /// Iteration of the enclosing loops for the first lane, as an index into [`Trace::rounds`].
    pub rounds: u32,
    pub what: EventKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Synchronising statement, or start of asynchronous work: a barrier, a fence, a commit, a
    /// wait, a TMA copy or a matrix instruction.
    Statement,
    /// Access to global or shared memory.
    Access {
        /// Index into [`Trace::patterns`].
        pattern: u32,
        /// Buffer element that the first active lane accessed.
        first: u32,
        /// Words that were written, one active lane after another; empty for an atomic.
        words: Vec<u32>,
    },
    /// Access that is not valid in some lane. No lane performed it, and the launch ended. The fault
    /// contains the access ([`Fault::refused`](crate::Fault::refused)).
    Refused,
}
