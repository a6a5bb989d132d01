//! Statements.

use super::{
    Access, Atomic, BufferId, Expr, LoadMatrix, Mbarrier, MemoryOrder, Mma, ProxyFence,
    RegisterLimit, Scope, TensorCopy, Var, Wgmma, WgmmaSync,
};
#[cfg(doc)]
use super::{BufferLayout, Space, Ty};

/// A statement. Comments are part of the kernel because the text is read by people.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// Declares an immutable variable.
    Let {
        /// The variable, declared here and visible to the end of the enclosing block.
        var: Var,
        /// Its value.
        value: Expr,
    },
    /// Declares a mutable variable; always initialised.
    Mut {
        /// The variable, declared here and visible to the end of the enclosing block.
        var: Var,
        /// Its first value.
        value: Expr,
    },
    /// Gives a mutable variable a new value.
    Assign {
        /// A variable declared by [`Stmt::Mut`].
        var: Var,
        /// Its new value.
        value: Expr,
    },
    /// Declares a register array, or pointers, one per thread.
    Registers {
        /// A buffer in [`Space::Register`] or with [`BufferLayout::Pointer`], visible to the end of the enclosing block.
        buffer: BufferId,
        /// Whether its elements start as +0; else they start uninitialised.
        zeroed: bool,
    },
    /// Chooses an array of a list: from here to the end of the enclosing block the buffer, one with
    /// [`BufferLayout::OfList`], is that array, which must exist. It reads a pointer and counts as nothing.
    Choose {
        /// The buffer.
        buffer: BufferId,
        /// Which array: a literal, a constant or an immutable variable.
        nth: Expr,
    },
    /// Writes one element, or the consecutive ones of 16 bytes.
    Store {
        /// The place.
        target: Access,
        /// The value, a [`Ty::Vector`] for a vector access.
        value: Expr,
    },
    /// Runs one of two blocks.
    If {
        /// The condition.
        cond: Expr,
        /// Run where the condition holds.
        then: Vec<Stmt>,
        /// Run elsewhere; may be empty.
        otherwise: Vec<Stmt>,
    },
    /// A counted loop: `for (var = from; test; var step)`.
    For(Loop),
    /// All threads of the scope wait for one another, and see one another's accesses. The scope is
    /// [`Scope::Warp`], [`Scope::Block`] or [`Scope::Cluster`].
    Barrier(Scope),
    /// A barrier of so many threads of the block (`bar.sync`, `bar.arrive`): whole converged warps.
    NamedBarrier {
        /// Which of the block's barriers: 1 to 15. One id has one number of threads.
        id: u32,
        /// How many threads take part, those that wait and those that do not: a multiple of 32, as each
        /// warp counts for 32, even one that has fewer.
        threads: u32,
        /// Whether the thread waits for all of them; else it only arrives, and goes on.
        wait: bool,
    },
    /// Orders what the thread does before it and what it does after it, in the eyes of the scope.
    Fence {
        /// [`MemoryOrder::AcqRel`] or [`MemoryOrder::SeqCst`].
        order: MemoryOrder,
        /// [`Scope::Block`] or [`Scope::Device`].
        scope: Scope,
    },
    /// Reads a word and writes it, in one step.
    Atomic(Atomic),
    /// Starts an asynchronous copy from global to shared memory (`cp.async`).
    CopyAsync {
        /// The shared destination; its width is the width of the copy.
        target: Access,
        /// The global source, of the same width.
        source: Access,
        /// Where present and false, the source is not read.
        guard: Option<Guard>,
    },
    /// Sets a pointer to a place in the global buffer it points into.
    Point {
        /// The pointer.
        pointer: PointerRef,
        /// The place, one element wide.
        at: Access,
    },
    /// Moves a pointer forward.
    Advance {
        /// The pointer.
        pointer: PointerRef,
        /// The distance in elements, not negative.
        by: Expr,
    },
    /// Loads words of small matrices from shared memory, which the lanes of a warp read for one another
    /// (`ldmatrix`).
    LoadMatrix(LoadMatrix),
    /// Multiplies small matrices that the lanes of a warp hold together, and adds the product to a third
    /// (`mma.sync`).
    Mma(Mma),
    /// Does something at a barrier in shared memory.
    Mbarrier(Mbarrier),
    /// Orders what goes different ways to memory.
    ProxyFence(ProxyFence),
    /// Starts the copy of a box from global to shared memory.
    TensorCopy(TensorCopy),
    /// Multiplies matrices that lie in shared memory.
    Wgmma(Wgmma),
    /// Orders such multiplications and the use of their sums.
    WgmmaSync(WgmmaSync),
    /// Says how many registers the threads of a warpgroup may have.
    RegisterLimit(RegisterLimit),
    /// Closes the group of the asynchronous copies this thread has issued since the last one.
    CopyCommit,
    /// Waits until at most `pending` of this thread's newest groups are unfinished.
    CopyWait {
        /// The number of groups that may still be in flight, over literals and constants.
        pending: Expr,
    },
    /// A promise to the compiler that the condition holds, without loads and calls in it. It changes
    /// no result and counts as no instruction; where it does not hold, the kernel is at fault.
    Assume(Expr),
    /// A line of commentary, without the comment marks.
    Comment(String),
}

/// The condition of an asynchronous copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// Where it holds, the copy is made.
    pub cond: Expr,
    /// Whether zeros are written where it does not hold; else the copy is skipped.
    pub or_zero: bool,
}

/// A pointer: a buffer with [`BufferLayout::Pointer`], and which of an array of them.
#[derive(Clone, Debug, PartialEq)]
pub struct PointerRef {
    /// The buffer that stands for the pointers.
    pub buffer: BufferId,
    /// One expression for each extent of the array; none for a single pointer.
    pub index: Vec<Expr>,
}

/// A counted loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// The loop variable, an integer, visible in the test, the change and the body.
    pub var: Var,
    /// Its first value.
    pub from: Expr,
    /// The loop goes on while this holds.
    pub test: Expr,
    /// How the variable changes after each round.
    pub change: Change,
    /// What the compiler is asked to do with the loop.
    pub unroll: Unroll,
    /// The body.
    pub body: Vec<Stmt>,
}

/// How a loop variable changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// `var += e`
    Add(Expr),
    /// `var -= e`
    Sub(Expr),
    /// `var *= e`
    Mul(Expr),
    /// `var /= e`
    Div(Expr),
}

/// A request to the compiler; it changes no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unroll {
    /// Nothing is asked.
    Auto,
    /// `#pragma unroll`
    Full,
    /// `#pragma unroll n`; 1 keeps the loop rolled.
    By(u32),
}
