//! Statements.

use super::{Access, BufferId, Expr, Var};
#[cfg(doc)]
use super::{Layout, Space, Ty};

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
        /// A buffer in [`Space::Register`] or with [`Layout::Pointer`], visible to the end of the enclosing block.
        buffer: BufferId,
        /// Whether its elements start as +0; else they start uninitialised.
        zeroed: bool,
    },
    /// Writes one element, or four consecutive ones.
    Store {
        /// The place.
        target: Access,
        /// The value, [`Ty::F32X4`] for a vector access.
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
    /// All threads of the scope wait for one another, and see one another's accesses.
    Barrier(Scope),
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
    /// Closes the group of the asynchronous copies this thread has issued since the last one.
    CopyCommit,
    /// Waits until at most `pending` of this thread's newest groups are unfinished.
    CopyWait {
        /// The number of groups that may still be in flight.
        pending: u32,
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

/// A pointer: a buffer with [`Layout::Pointer`], and which of an array of them.
#[derive(Clone, Debug, PartialEq)]
pub struct PointerRef {
    /// The buffer that stands for the pointers.
    pub buffer: BufferId,
    /// One expression for each extent of the array; none for a single pointer.
    pub index: Vec<Expr>,
}

/// The threads that take part in a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The 32 threads of a warp (`__syncwarp`).
    Warp,
    /// All threads of the block (`__syncthreads`).
    Block,
}

/// A counted loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// The loop variable, an integer, visible in the test, the step and the body.
    pub var: Var,
    /// Its first value.
    pub from: Expr,
    /// The loop goes on while this holds.
    pub test: Expr,
    /// How the variable changes after each round.
    pub step: Step,
    /// What the compiler is asked to do with the loop.
    pub unroll: Unroll,
    /// The body.
    pub body: Vec<Stmt>,
}

/// How a loop variable changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
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
