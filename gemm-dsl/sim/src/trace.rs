//! What happened in some blocks of a launch, event by event: what a page shows of a kernel is what is recorded here.

mod detail;
pub(crate) mod recorder;

use crate::cost::pattern::Pattern;

pub use detail::{Action, BoxCopy, Detail, Operand};

/// What happened in a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trace {
    /// Its `blockIdx`.
    pub block: (u32, u32, u32),
    /// How lanes accessed memory, each way once, in the order in which they came.
    pub patterns: Vec<Pattern>,
    /// Where loops were: the numbers of their variables and the values, from the outside in, each combination once. The first
    /// is that of no loop.
    pub rounds: Vec<Vec<(usize, i64)>>,
    /// What its warps did, in the order in which they took turns. That order is the warps' own only between what each
    /// of them did itself.
    pub events: Vec<Event>,
    /// What was done that is no access of a warp to memory: shuffles, barriers in shared memory and what counts there, matrix
    /// instructions. In the same order.
    pub details: Vec<Detail>,
}

/// An access to memory among what happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AccessEvent<'t> {
    /// The event.
    pub event: &'t Event,
    /// The number of its pattern: an index into [`Trace::patterns`].
    pub number: u32,
    /// How its lanes accessed the buffer.
    pub pattern: &'t Pattern,
    /// The element of the buffer at which the first active lane did.
    pub first: u32,
    /// What was written: for each active lane the words.
    pub words: &'t [u32],
}

impl Trace {
    /// The accesses to memory, in order.
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

/// Something that a warp did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The warp, by its number in the block.
    pub warp: u32,
    /// The number of the statement ([`Kernel::statements`](gemm_dsl::ir::Kernel::statements)).
    pub stmt: u32,
    /// Instructions that the warp had executed before, and multiply-adds among them.
    pub executed: [u64; 2],
    /// Where the loops around the statement were, for the first lane: an index into [`Trace::rounds`].
    pub rounds: u32,
    /// What it did.
    pub what: EventKind,
}

/// What a warp did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It came to a statement that synchronises, or that starts what others do for it: a barrier, a fence, a commit, a wait, the
    /// copy of a box, a matrix instruction.
    Statement,
    /// It accessed global or shared memory.
    Access {
        /// An index into [`Trace::patterns`].
        pattern: u32,
        /// The element of the buffer at which its first active lane did.
        first: u32,
        /// What it wrote, but by an atomic: for each active lane the words that it wrote.
        words: Vec<u32>,
    },
    /// It would have accessed memory that some lane may not: nothing was done, and the launch ends. The fault has the access
    /// ([`Fault::refused`](crate::Fault::refused)).
    Refused,
}
