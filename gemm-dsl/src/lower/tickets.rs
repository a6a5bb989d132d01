//! Tickets: several blocks each have a part of something, and one of them makes one of all parts, in the same
//! launch.
//!
//! A block leaves its part in global memory and takes a ticket, the number of blocks that took one before it. Whoever
//! gets the last sees what all others have left: their atomics released it, and its own, which comes behind all
//! of theirs, acquires it. The word is then set back to zero, so that a launch leaves it as it was found.
//!
//! Which block is the last differs from run to run, so bits must not depend on it: parts lie by the
//! numbers of their blocks, and the last block folds them as any other would have.
//!
//! What a part is, a number, a few of them or a tile, and how parts become one, is the caller's.

use crate::ir::program::{Fill, Program, Slot};
use crate::ir::{
    Access, AtomicOp, BufferId, BufferLayout, Elem, Expr, KernelBuilder, MemoryOrder, Operand,
    Scope,
};

/// The array of words that a program keeps for tickets: as many as there are things made of parts.
pub(super) fn slot(program: &mut Program, words: Expr) -> Slot {
    program.temp_of("tickets", Elem::U32, [words], Fill::Kept)
}

/// The parameter of a kernel that is this array. Its extent may name parameters that come later, and is given
/// to [`shape`].
pub(super) fn parameter(b: &mut KernelBuilder, operand: Operand) -> BufferId {
    b.global("tickets", Elem::U32, operand)
}

/// Says how many words there are.
pub(super) fn shape(b: &mut KernelBuilder, tickets: BufferId, words: Expr) {
    b.shape(tickets, [words], [1.into()]);
}

/// The tickets of the blocks that share one thing.
pub(super) struct Tickets {
    /// The word that they count in.
    word: Access,
    /// How many blocks these are, at least 1.
    blocks: Expr,
    /// Where the thread that takes the block's ticket tells the others.
    is_last: Access,
    /// Whether this is the thread that takes the block's ticket.
    first_thread: Expr,
    /// How many threads of the block take part, where these are not all.
    meet: Option<u32>,
}

/// The name of the barrier at which those meet.
const MEET: u32 = 1;

/// A barrier of so many threads of a block, or of all.
pub(super) fn barrier(b: &mut KernelBuilder, meet: Option<u32>) {
    match meet {
        None => b.barrier(),
        Some(threads) => b.named_barrier(MEET, threads),
    }
}

/// Declares the word of shared memory by which a block learns that it is the last.
pub(super) fn flag(b: &mut KernelBuilder) -> Access {
    let meaning = "whether all other blocks have left their parts";
    let is_last = b.shared("is_last", Elem::U32, [], BufferLayout::row_major(0), meaning);
    Access::new(is_last, [])
}

impl Tickets {
    /// Tickets that are counted in `word`; the block learns by the [`flag`] that it is the last. `first_thread`
    /// holds for one thread of the block.
    pub(super) fn new((word, is_last): (Access, Access), blocks: Expr, first_thread: Expr) -> Self {
        Self { word, blocks, is_last, first_thread, meet: None }
    }

    /// The same where so many threads of the block take part, if these are not all.
    pub(super) fn among(self, meet: Option<u32>) -> Self {
        Self { meet, ..self }
    }

    /// Takes the block's ticket, by the one thread that has left all of the block's part.
    pub(super) fn take(&self, b: &mut KernelBuilder) {
        let (one, none) = (Expr::U32(1), Expr::U32(0));
        let (word, order) = (self.word.clone(), MemoryOrder::AcqRel);
        let before = b.atomic("ticket", AtomicOp::Add, word, one.clone(), order, Scope::Device);
        let last = (before + one.clone()).equals(self.blocks.clone().cast(Elem::U32));
        b.store(self.is_last.clone(), last.select(one, none));
    }

    /// Takes the block's ticket where all its threads have left some of its part: the barrier puts their stores
    /// before the atomic.
    pub(super) fn take_for_all(&self, b: &mut KernelBuilder) {
        barrier(b, self.meet);
        b.if_(self.first_thread.clone(), |b| self.take(b));
    }

    /// Whether the block has the last ticket, as all its threads know behind a barrier: it then sees all parts. A
    /// block that comes here again, for another thing, must meet at a barrier before it takes that one's ticket, as it does
    /// by [`take_for_all`](Self::take_for_all).
    pub(super) fn is_last(&self, b: &mut KernelBuilder) -> Expr {
        // The flag is seen by all; and what its thread has acquired is.
        barrier(b, self.meet);
        self.is_last.clone().load().equals(Expr::U32(1))
    }

    /// Sets the word back, by the block with the last ticket.
    pub(super) fn reset(&self, b: &mut KernelBuilder) {
        b.comment("Back to zero, for the next launch.");
        b.if_(self.first_thread.clone(), |b| b.store(self.word.clone(), Expr::U32(0)));
    }

    /// Does something by all threads of the block with the last ticket, and sets the word back.
    pub(super) fn by_last(&self, b: &mut KernelBuilder, make: impl FnOnce(&mut KernelBuilder)) {
        let is_last = self.is_last(b);
        b.if_(is_last, |b| {
            b.comment("The last ticket: this block sees the parts of all others.");
            make(b);
            self.reset(b);
        });
    }
}
