//! Tickets for inter-block reduction in one launch. Several blocks each compute a part, and the
//! block that finishes last combines all parts.
//!
//! A block stores its part in global memory and takes a ticket, which is the number of blocks that
//! took one before. The block with the last ticket sees all parts: the atomics of the other blocks
//! release their parts, and its own atomic comes last and acquires them. This block then resets the
//! ticket counter to zero, so each launch starts with zero.
//!
//! The last block may be a different one in each run, but the resulting bits must not depend on it.
//! Parts are therefore stored by block number, and any block combines them in the same order.
//!
//! The caller defines the contents of a part (one number, several, or a tile) and how parts are
//! combined.

use crate::ir::program::{Program, Slot, TempFill};
use crate::ir::{
    Access, AtomicOp, BufferId, BufferLayout, Elem, Expr, KernelBuilder, MemoryOrder, Operand,
    Scope,
};

/// Adds the array of ticket counters to the program. It has one counter for each group of parts.
pub(super) fn slot(program: &mut Program, words: Expr) -> Slot {
    program.temp_of("tickets", Elem::U32, [words], TempFill::Kept)
}

/// Declares the kernel parameter for this array. [`shape`] sets its extent, which may contain later
/// parameters.
pub(super) fn parameter(b: &mut KernelBuilder, operand: Operand) -> BufferId {
    b.global("tickets", Elem::U32, operand)
}

/// Adds the sentences on the workspace of a kernel to its head. `partials` is the sentence on the
/// partial results.
pub(super) fn workspace_title(b: &mut KernelBuilder, partials: &str) {
    b.title("Workspace: all tickets are 0 before the first launch, and each launch resets them;");
    b.title(format!("{partials}. Overlapping launches need separate workspaces."));
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
    /// Flag in shared memory. The thread that takes the ticket sets it for the other threads.
    is_last: Access,
    /// Condition that is true for the thread that takes the block's ticket.
    first_thread: Expr,
    /// Number of participating threads; `None` for all threads of the block.
    meet: Option<u32>,
}

/// Number of the named barrier for a subset of the block's threads.
const MEET: u32 = 1;

/// Emits a barrier for `meet` threads, or for the whole block.
pub(super) fn barrier(b: &mut KernelBuilder, meet: Option<u32>) {
    match meet {
        None => b.barrier(),
        Some(threads) => b.named_barrier(MEET, threads),
    }
}

/// Declares the shared-memory flag that is set if the block has taken the last ticket.
pub(super) fn flag(b: &mut KernelBuilder) -> Access {
    let meaning = "set if this block has taken the last ticket";
    let is_last = b.shared("is_last", Elem::U32, [], BufferLayout::row_major(0), meaning);
    Access::new(is_last, [])
}

impl Tickets {
    /// Creates tickets that the counter `word` counts. `is_last` is the [`flag`] of the block.
    /// `first_thread` must be true for exactly one of its threads.
    pub(super) fn new(word: Access, is_last: Access, blocks: Expr, first_thread: Expr) -> Self {
        Self { word, blocks, is_last, first_thread, meet: None }
    }

    /// Restricts the tickets to `meet` threads; `None` means that all threads of the block
    /// participate.
    pub(super) fn among(self, meet: Option<u32>) -> Self {
        Self { meet, ..self }
    }

    /// Takes the block's ticket in one thread. This thread must have stored the block's whole part.
    pub(super) fn take(&self, b: &mut KernelBuilder) {
        let (one, none) = (Expr::U32(1), Expr::U32(0));
        let (word, order) = (self.word.clone(), MemoryOrder::AcqRel);
        let before = b.atomic("ticket", AtomicOp::Add, word, one.clone(), order, Scope::Device);
        let last = (before + one.clone()).equals(self.blocks.clone().cast(Elem::U32));
        b.store(self.is_last.clone(), last.select(one, none));
    }

    /// Takes the block's ticket after all its threads have stored parts of the result. A barrier
    /// orders their stores before the atomic.
    pub(super) fn take_for_all(&self, b: &mut KernelBuilder) {
        barrier(b, self.meet);
        b.if_(self.first_thread.clone(), |b| self.take(b));
    }

    /// Returns true in all threads of the block with the last ticket. The emitted barrier ensures
    /// that this block sees all parts.
    ///
    /// If a block calls this again for another result, a barrier must come before it takes the
    /// ticket of that result. [`take_for_all`](Self::take_for_all) contains such a barrier.
    pub(super) fn is_last(&self, b: &mut KernelBuilder) -> Expr {
        // The barrier makes the flag visible, and everything that the thread with the ticket has
        // acquired.
        barrier(b, self.meet);
        self.is_last.clone().load().equals(Expr::U32(1))
    }

    /// Resets the counter in the block with the last ticket.
    pub(super) fn reset(&self, b: &mut KernelBuilder) {
        b.comment("Reset the counter for the next launch.");
        b.if_(self.first_thread.clone(), |b| b.store(self.word.clone(), Expr::U32(0)));
    }

    /// Emits `make` for all threads of the block with the last ticket, and then resets the counter.
    pub(super) fn by_last(&self, b: &mut KernelBuilder, make: impl FnOnce(&mut KernelBuilder)) {
        let is_last = self.is_last(b);
        b.if_(is_last, |b| {
            make(b);
            self.reset(b);
        });
    }
}
