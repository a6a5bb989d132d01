//! Statements of a kernel's body.

use super::{
    Access, Atomic, BufferId, Expr, LoadMatrix, Mbarrier, MemoryOrder, Mma, ProxyFence,
    RegisterLimit, Scope, TensorCopy, Var, Wgmma, WgmmaSync,
};
#[cfg(doc)]
use super::{BufferLayout, Space, Ty};

/// A statement. Comments are statements, because people read the CUDA source.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    Let {
        /// Variable, visible from here to the end of the enclosing block.
        var: Var,
        value: Expr,
    },
    /// Declares a mutable variable; it is always initialised.
    Mut {
        /// Variable, visible from here to the end of the enclosing block.
        var: Var,
        value: Expr,
    },
    Assign {
        /// A variable declared by [`Stmt::Mut`].
        var: Var,
        value: Expr,
    },
    /// Declares a register array, or pointers, one instance per thread.
    Registers {
        /// A buffer in [`Space::Register`] or with [`BufferLayout::Pointer`], visible to the end of
        /// the enclosing block.
        buffer: BufferId,
        /// Initialises its elements to +0; otherwise they start uninitialised.
        zeroed: bool,
    },
    /// Selects an array of a list. From here to the end of the enclosing block the buffer, one with
    /// [`BufferLayout::OfList`], is that array, which must exist. It reads a pointer and is not
    /// counted.
    Choose {
        buffer: BufferId,
        /// Index of the array: a literal, a constant or an immutable variable.
        nth: Expr,
    },
    /// Writes one element, or the consecutive elements of 16 bytes.
    Store {
        target: Access,
        /// Value to write, a [`Ty::Vector`] for a vector access.
        value: Expr,
    },
    If {
        cond: Expr,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    /// A counted loop: `for (var = from; test; var step)`.
    For(Loop),
    /// Barrier among all threads of the scope, after which they see one another's accesses. The
    /// scope is [`Scope::Warp`], [`Scope::Block`] or [`Scope::Cluster`].
    Barrier(Scope),
    /// Barrier of `threads` threads of the block (`bar.sync`, `bar.arrive`), executed by whole
    /// converged warps.
    NamedBarrier {
        /// Barrier of the block, 1 to 15. All statements of one id have the same number of threads.
        id: u32,
        /// Number of participating threads, waiting or only arriving. A multiple of 32: each warp
        /// counts for 32, even a partial one.
        threads: u32,
        /// True if the thread waits for all of them; otherwise it arrives and continues.
        wait: bool,
    },
    /// Orders the thread's accesses before it and after it, as observed by the scope.
    Fence {
        /// Either [`MemoryOrder::AcqRel`] or [`MemoryOrder::SeqCst`].
        order: MemoryOrder,
        /// Either [`Scope::Block`] or [`Scope::Device`].
        scope: Scope,
    },
    Atomic(Atomic),
    /// Starts an asynchronous copy from global to shared memory (`cp.async`).
    CopyAsync {
        /// Shared destination; its width is the width of the copy.
        target: Access,
        /// Global source, of the same width.
        source: Access,
        /// If present and false, the source is not read.
        guard: Option<Guard>,
    },
    /// Sets a pointer to an element of its global buffer.
    Point {
        pointer: PointerRef,
        /// Element to point at, one element wide.
        at: Access,
    },
    Advance {
        pointer: PointerRef,
        /// Distance in elements, not negative.
        by: Expr,
    },
    /// Loads words of small matrices from shared memory, with addresses shared among the lanes of a
    /// warp (`ldmatrix`).
    LoadMatrix(LoadMatrix),
    /// Multiplies small matrices distributed over the lanes of a warp, and accumulates into a third
    /// (`mma.sync`).
    Mma(Mma),
    /// Performs an operation on a barrier in shared memory.
    Mbarrier(Mbarrier),
    /// Orders accesses through different proxies.
    ProxyFence(ProxyFence),
    /// Starts the copy of a box from global to shared memory.
    TensorCopy(TensorCopy),
    /// Multiplies matrices in shared memory (`wgmma`).
    Wgmma(Wgmma),
    /// Orders `wgmma` instructions and accesses to their accumulators.
    WgmmaSync(WgmmaSync),
    /// Sets the register limit of the threads of a warpgroup.
    RegisterLimit(RegisterLimit),
    /// Closes the group of the asynchronous copies that this thread has issued since the last
    /// commit.
    CopyCommit,
    /// Waits until at most `pending` of this thread's newest groups are unfinished.
    CopyWait {
        /// Number of groups that may still be in flight, over literals and constants.
        pending: Expr,
    },
    /// A comment line, without the comment marks.
    Comment(String),
}

/// Condition of an asynchronous copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// Copies only if it holds.
    pub cond: Expr,
    /// Writes zeros if the condition does not hold; otherwise nothing is written.
    pub or_zero: bool,
}

/// A pointer: a buffer with [`BufferLayout::Pointer`], and the index in its array of pointers.
#[derive(Clone, Debug, PartialEq)]
pub struct PointerRef {
    pub buffer: BufferId,
    /// One expression for each extent of the array; none for a single pointer.
    pub index: Vec<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// Loop variable, an integer, visible in the test, the change and the body.
    pub var: Var,
    pub from: Expr,
    pub test: Expr,
    /// Change of the variable after each iteration.
    pub change: Change,
    /// Unroll request to the compiler.
    pub unroll: Unroll,
    pub body: Vec<Stmt>,
}

/// Change of a loop variable.
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

/// Unroll request to the compiler; it changes no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unroll {
    Auto,
    /// `#pragma unroll`
    Full,
    /// `#pragma unroll n`; 1 keeps the loop rolled.
    By(u32),
}
