//! Statements of a kernel's body.

use super::{
    Access, Atomic, BufferId, Expr, LoadMatrix, Mbarrier, MbarrierRef, MemoryOrder, Mma,
    ProxyFence, RegisterLimit, Scope, TensorCopy, Var, Wgmma, WgmmaSync,
};
#[cfg(doc)]
use super::{BufferLayout, Space, Ty};

/// Statement. Comments are statements, because people read the CUDA source.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    Let {
        /// Variable, visible from this statement to the end of the enclosing block.
        var: Var,
        value: Expr,
    },
    /// Declares a mutable variable; it is always initialised.
    Mut {
        /// Variable, visible from this statement to the end of the enclosing block.
        var: Var,
        value: Expr,
    },
    Assign {
        /// A variable declared by [`Stmt::Mut`].
        var: Var,
        value: Expr,
    },
    /// Declares a register array or pointers. Each thread has its own.
    Registers {
        /// A buffer in [`Space::Register`] or with [`BufferLayout::Pointer`], visible to the end of
        /// the enclosing block.
        buffer: BufferId,
        /// True to initialise the elements to +0. Otherwise they start uninitialised.
        zeroed: bool,
    },
    /// Selects an array of a list. The buffer, one with [`BufferLayout::OfList`], is this array
    /// from here to the end of the enclosing block. The array must exist. The statement reads a
    /// pointer, which counters ignore.
    Choose {
        buffer: BufferId,
        /// Index of the array: a literal, a constant or an immutable variable.
        nth: Expr,
    },
    /// Writes one element, or 16 bytes of consecutive elements.
    Store {
        target: Access,
        /// Value to write, a [`Ty::Vector`] for a vector access. A vector of elements of less than
        /// four bytes may also be given as four words.
        value: Expr,
    },
    /// Writes shared memory of a block of the cluster.
    StoreRemote {
        /// Index of the block in the cluster, an [`Ty::I32`]. It may be the thread's own block.
        block: Expr,
        /// Place in the shared memory of that block, at the buffer of the same name.
        target: Access,
        /// Value to write, a [`Ty::Vector`] for a vector access.
        value: Expr,
        /// Mbarrier of that block at which the bytes of an asynchronous store count; `None` for an
        /// ordinary store.
        barrier: Option<MbarrierRef>,
    },
    If {
        cond: Expr,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    /// Counted loop: `for (var = from; test; var step)`.
    For(Loop),
    /// Block of statements that the source has as a call of a device function.
    Section(Section),
    /// Barrier of all threads of the scope, after which each sees the earlier accesses of the
    /// others. The scope is [`Scope::Warp`], [`Scope::Block`] or [`Scope::Cluster`].
    Barrier(Scope),
    /// Named barrier of `threads` threads of the block (`bar.sync`, `bar.arrive`). Whole converged
    /// warps must execute it.
    NamedBarrier {
        /// Number of the barrier in the block, 1 to 15. All statements with the same number must
        /// have the same `threads`.
        id: u32,
        /// Number of participating threads, whether they wait or only arrive. It is a multiple of
        /// 32, and each warp counts as 32, even a partial one.
        threads: u32,
        /// True if the thread waits for all participants; otherwise it arrives and continues.
        wait: bool,
    },
    /// Orders the thread's accesses before the fence and after it, for observers in the scope.
    Fence {
        /// Either [`MemoryOrder::AcqRel`] or [`MemoryOrder::SeqCst`].
        order: MemoryOrder,
        /// Either [`Scope::Block`] or [`Scope::Device`].
        scope: Scope,
    },
    Atomic(Atomic),
    /// Starts an asynchronous copy from global to shared memory (`cp.async`).
    CopyAsync {
        /// Destination in shared memory, of 4, 8 or 16 bytes.
        target: Access,
        /// Source in global memory, of the same number of bytes.
        source: Access,
        /// Condition of the copy. If it is false, the source is not read.
        guard: Option<Guard>,
    },
    /// Sets a pointer to an element of its global buffer.
    Point {
        pointer: PointerRef,
        /// Element to which the pointer is set; a scalar access.
        at: Access,
    },
    Advance {
        pointer: PointerRef,
        /// Distance in elements, not negative.
        by: Expr,
    },
    /// Loads small matrices from shared memory (`ldmatrix`). The lanes of a warp supply the row
    /// addresses for each other.
    LoadMatrix(LoadMatrix),
    /// Multiplies small matrices whose elements are distributed over the lanes of a warp, and adds
    /// the product to a third matrix (`mma.sync`).
    Mma(Mma),
    /// Performs an operation on an mbarrier.
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
    /// Closes a group: the asynchronous copies that this thread has issued since its last commit.
    CopyCommit,
    /// Waits until all groups of this thread are complete, except at most the `pending` newest.
    CopyWait {
        /// Number of groups that may still be in flight, an expression of literals and constants.
        pending: Expr,
    },
    /// Comment line, without `//`.
    Comment(String),
}

/// Condition of an asynchronous copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// Condition; the copy is performed if it is true.
    pub cond: Expr,
    /// True to write zeros if the condition is false; otherwise nothing is written.
    pub or_zero: bool,
}

/// Pointer: a buffer with [`BufferLayout::Pointer`], and the pointer's index in its array of
/// pointers.
#[derive(Clone, Debug, PartialEq)]
pub struct PointerRef {
    pub buffer: BufferId,
    /// One expression for each extent of the array; none for a single pointer.
    pub index: Vec<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// Loop variable, an integer. It is visible in the test, the change and the body.
    pub var: Var,
    pub from: Expr,
    pub test: Expr,
    /// Change of the variable after each iteration.
    pub change: Change,
    /// Unroll request to the compiler.
    pub unroll: Unroll,
    pub body: Vec<Stmt>,
}

/// Block of statements with a name. It is executed like the statements of its body.
///
/// The source has it as a call of a function. Sections whose bodies have the same text share the
/// function, which the kernel defines before the first of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Name of the function.
    pub name: String,
    /// Description for the comment above the function.
    pub meaning: String,
    /// Number of parameters. The first statements of the body declare them by [`Stmt::Let`]; their
    /// values are the arguments of the call.
    pub params: usize,
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

/// Unroll request to the compiler. It does not change results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unroll {
    Auto,
    /// `#pragma unroll`
    Full,
    /// `#pragma unroll n`; with n = 1 the loop is not unrolled.
    By(u32),
}
