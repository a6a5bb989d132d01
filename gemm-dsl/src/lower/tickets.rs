//! Tickets for inter-block reduction within one launch: several blocks each compute a part, and the
//! last block combines all parts.
//!
//! A block stores its part in global memory and takes a ticket: the number of blocks that took one
//! before it. The block with the last ticket sees all parts. The other blocks' atomics release
//! their parts, and its own atomic comes after these and acquires them. It then resets the ticket
//! counter to zero, so a launch leaves the counter as it found it.
//!
//! The block that is last differs from run to run, and the resulting bits must not depend on it.
//! Parts are therefore stored by block number, and every block would combine them in the same
//! order.
//!
//! The caller defines a part (one number, several, or a tile) and the combination of parts.

use crate::ir::program::{Program, Slot, TempFill};
use crate::ir::{
    Access, AtomicOp, BufferId, BufferLayout, Elem, Expr, KernelBuilder, MemoryOrder, Operand,
    Scope,
};

/// Adds the program's array of ticket counters, one per group of parts.
pub(super) fn slot(program: &mut Program, words: Expr) -> Slot {
    program.temp_of("tickets", Elem::U32, [words], TempFill::Kept)
}

/// Declares the kernel parameter for this array. Its extent may name later parameters, and is set
/// by [`shape`].
pub(super) fn parameter(b: &mut KernelBuilder, operand: Operand) -> BufferId {
    b.global("tickets", Elem::U32, operand)
}

/// Sets the number of counters.
pub(super) fn shape(b: &mut KernelBuilder, tickets: BufferId, words: Expr) {
    b.shape(tickets, [words], [1.into()]);
}

/// Ticket of this block among the blocks that share one result.
pub(super) struct Tickets {
    word: Access,
    /// Number of blocks that share the result; at least 1.
    blocks: Expr,
    /// Flag in shared memory by which the ticket-taking thread informs the others.
    is_last: Access,
    /// True for the thread that takes the block's ticket.
    first_thread: Expr,
    /// Number of participating threads, if not all threads of the block.
    meet: Option<u32>,
}

/// Id of the named barrier for a subset of the block's threads.
const MEET: u32 = 1;

/// Emits a barrier for the given number of threads, or for the whole block.
pub(super) fn barrier(b: &mut KernelBuilder, meet: Option<u32>) {
    match meet {
        None => b.barrier(),
        Some(threads) => b.named_barrier(MEET, threads),
    }
}

/// Declares the shared-memory flag that is set in the block with the last ticket.
pub(super) fn flag(b: &mut KernelBuilder) -> Access {
    let meaning = "set if this block has taken the last ticket";
    let is_last = b.shared("is_last", Elem::U32, [], BufferLayout::row_major(0), meaning);
    Access::new(is_last, [])
}

impl Tickets {
    /// Creates tickets counted in `word`. `is_last` is the [`flag`] of the block, and
    /// `first_thread` holds for exactly one of its threads.
    pub(super) fn new(word: Access, is_last: Access, blocks: Expr, first_thread: Expr) -> Self {
        Self { word, blocks, is_last, first_thread, meet: None }
    }

    /// Restricts the tickets to the given number of threads, if not all threads of the block
    /// participate.
    pub(super) fn among(self, meet: Option<u32>) -> Self {
        Self { meet, ..self }
    }

    /// Takes the block's ticket in one thread, which has stored the block's whole part itself.
    pub(super) fn take(&self, b: &mut KernelBuilder) {
        let (one, none) = (Expr::U32(1), Expr::U32(0));
        let (word, order) = (self.word.clone(), MemoryOrder::AcqRel);
        let before = b.atomic("ticket", AtomicOp::Add, word, one.clone(), order, Scope::Device);
        let last = (before + one.clone()).equals(self.blocks.clone().cast(Elem::U32));
        b.store(self.is_last.clone(), last.select(one, none));
    }

    /// Takes the block's ticket after all its threads have stored to the part. The barrier orders
    /// their stores before the atomic.
    pub(super) fn take_for_all(&self, b: &mut KernelBuilder) {
        barrier(b, self.meet);
        b.if_(self.first_thread.clone(), |b| self.take(b));
    }

    /// Returns true in all threads of the block with the last ticket, after a barrier; that block
    /// then sees all parts.
    ///
    /// A block that calls this again for another result must pass a barrier before it takes that
    /// result's ticket, as [`take_for_all`](Self::take_for_all) does.
    pub(super) fn is_last(&self, b: &mut KernelBuilder) -> Expr {
        // The barrier makes the flag visible, and everything that the ticket-taking thread has
        // acquired.
        barrier(b, self.meet);
        self.is_last.clone().load().equals(Expr::U32(1))
    }

    /// Resets the counter in the block with the last ticket.
    pub(super) fn reset(&self, b: &mut KernelBuilder) {
        b.comment("Reset the counter for the next launch.");
        b.if_(self.first_thread.clone(), |b| b.store(self.word.clone(), Expr::U32(0)));
    }

    /// Emits `make` for all threads of the block with the last ticket, then resets the counter.
    pub(super) fn by_last(&self, b: &mut KernelBuilder, make: impl FnOnce(&mut KernelBuilder)) {
        let is_last = self.is_last(b);
        b.if_(is_last, |b| {
            b.comment("Last ticket: the partials of all other blocks are visible to this block.");
            make(b);
            self.reset(b);
        });
    }
}
