//! The kernel IR and its normative semantics.
//!
//! A [`Kernel`] is one CUDA kernel: parameters, named constants, buffers and a structured body.
//! Two back ends read it, the CUDA printer and the simulator, and neither may add meaning of its
//! own. What follows is the definition both are tested against.
//!
//! **Execution.** Every thread of a block runs the body. Threads are grouped into warps of 32 by
//! linear thread index (`y * blockDim.x + x`). Nothing may be assumed about the order in which two
//! threads run between synchronising statements, not even inside a warp.
//!
//! **Values.** [`Ty::I32`] is a signed integer whose arithmetic must not overflow; [`Ty::U64`]
//! wraps; both divide towards zero. [`Ty::F32`] is IEEE binary32, round to nearest even, subnormals
//! kept; the text is compiled without contraction, so a multiply-add is fused exactly where the IR
//! has [`Intrinsic::Fma`]. A NaN produced by arithmetic is the canonical `0x7fffffff`; loads,
//! stores, selects and shuffles move payloads unchanged. [`Ty::F32x4`] only moves data: it is
//! loaded, stored, packed and taken apart, never computed with.
//!
//! **Expressions** have no side effects. They read variables, parameters and memory. The operands
//! of [`Expr::Select`], [`BinaryOp::And`] and [`BinaryOp::Or`] are evaluated only in the threads
//! that need them, as in C, so a guard protects the load behind it. Within one statement all reads
//! happen before the write.
//!
//! **Memory.** An [`Access`] names a buffer and a *logical* index, one expression per dimension.
//! The buffer's [`Layout`] alone says where that element lies: padding, transposition and pitch
//! change no other code. A vector access covers four consecutive elements of the physically
//! last dimension and is aligned to 16 bytes. An index outside the logical extents is an error even
//! where it hits allocated memory. A pointer is an alias of a global buffer from a moving element on:
//! an access through it is bounded by the allocation alone. Shared memory starts uninitialised, and so do
//! register arrays unless their declaration says otherwise.
//!
//! **Ordering.** Accesses of two agents are ordered only through synchronisation: program order
//! within a thread, [`Stmt::Barrier`] among all threads of its scope, and for an asynchronous copy
//! (an agent of its own) from its issue, and to the [`Stmt::CopyWait`] of the issuing thread that
//! covers its group. Two unordered accesses to one word, one of them a write, are a data race.
//! All threads of a barrier's scope must reach the *same* barrier statement, converged; the same
//! holds for the lanes of a warp-wide intrinsic.

mod build;
mod expr;
mod host;
mod layout;
mod names;
mod program;
mod verify;
mod visit;

pub use build::KernelBuilder;
pub use expr::{Access, BinaryOp, Expr, Special, UnaryOp};
pub use host::{HostError, Scalars};
pub use layout::{Buffer, Layout, Space};
pub use names::{is_identifier, is_reserved};
pub use program::{Fill, Passes, Program, Scratch};
pub use verify::{IrError, MAX_SHARED_BYTES, MAX_THREADS, STATIC_SHARED_BYTES, VerifiedKernel};

pub use crate::intrinsic::Intrinsic;

/// The type of an expression, a variable or a scalar parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// A truth value.
    Bool,
    /// A signed 32-bit integer: indices inside a block, matrix extents.
    I32,
    /// An unsigned 64-bit integer: offsets and lengths of arrays that may pass 2^31 elements.
    U64,
    /// An IEEE binary32 value.
    F32,
    /// Four consecutive `F32`, moved by one 16-byte access.
    F32x4,
}

impl Ty {
    /// Whether arithmetic and comparison are defined on the type.
    pub fn is_integer(self) -> bool {
        matches!(self, Ty::I32 | Ty::U64)
    }
}

/// A variable: a handle that carries its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Var {
    /// Index into [`Kernel::vars`].
    pub id: usize,
    /// The type of its value.
    pub ty: Ty,
}

/// A named compile-time constant: a handle that carries its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Const {
    /// Index into [`Kernel::consts`].
    pub id: usize,
    /// The type of its value.
    pub ty: Ty,
}

/// A scalar parameter: a handle that carries its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scalar {
    /// Index into [`Kernel::params`].
    pub param: usize,
    /// The type of its value.
    pub ty: Ty,
}

/// A buffer handle: global, shared or register memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId(pub usize);

/// The declaration of a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct VarDecl {
    /// Its name in the text.
    pub name: String,
    /// The type of its value.
    pub ty: Ty,
}

/// The declaration of a named compile-time constant (`constexpr` in the text).
#[derive(Clone, Debug, PartialEq)]
pub struct ConstDecl {
    /// Its name in the text.
    pub name: String,
    /// The type of its value.
    pub ty: Ty,
    /// Its value, over literals and constants declared before it.
    pub value: Expr,
    /// What it is, for the comment beside it; may be empty.
    pub meaning: String,
}

/// What a kernel parameter is, and where a launch takes it from.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name in the text.
    pub name: String,
    /// What is passed.
    pub kind: ParamKind,
}

/// The two kinds of kernel parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamKind {
    /// The base address of a global buffer.
    Buffer {
        /// The buffer declared for it.
        buffer: BufferId,
        /// What the launch binds to it.
        operand: Operand,
    },
    /// A number passed by value.
    Scalar {
        /// Its type, [`Ty::I32`], [`Ty::U64`] or [`Ty::F32`].
        ty: Ty,
        /// Where the launch takes its value from.
        source: Source,
    },
}

/// An array that a launch binds to a buffer parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The n-th input of the call (A = 0 and B = 1 of a product; the array of a reduction = 0).
    Input(usize),
    /// The n-th output of the call (C of a product; the value of a reduction).
    Output(usize),
    /// The n-th scratch buffer of the [`Program`].
    Scratch(usize),
}

/// Where the value of a scalar parameter comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// An extent of the problem: the length of a reduction, or one of M, N, K.
    Extent(Extent),
    /// The distance between two rows of an operand, in elements (its leading dimension).
    RowStride(Operand),
}

/// A problem extent by its name in the literature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Extent {
    /// The number of elements of a reduction.
    Length,
    /// Rows of A and C.
    M,
    /// Columns of B and C.
    N,
    /// Columns of A, rows of B.
    K,
}

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
        /// The value, [`Ty::F32x4`] for a vector access.
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
    /// A promise to the compiler that the condition holds, without memory accesses in it. It changes
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

/// What a launch must satisfy before the kernel may run.
#[derive(Clone, Debug, PartialEq)]
pub enum Requirement {
    /// The base address of a buffer parameter is a multiple of `bytes`.
    Aligned {
        /// The operand.
        operand: Operand,
        /// The alignment.
        bytes: u32,
    },
    /// A scalar parameter is a multiple of `of`.
    Multiple {
        /// The parameter.
        scalar: Scalar,
        /// The divisor.
        of: u64,
    },
    /// A scalar parameter lies between two bounds, both included.
    Range {
        /// The parameter.
        scalar: Scalar,
        /// The least value.
        min: u64,
        /// The greatest value.
        max: u64,
    },
}

/// Grid and block of a kernel. The grid is in expressions over its scalar parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// Threads of a block along x and y.
    pub block: (u32, u32),
    /// Blocks of the grid along x and y, of type [`Ty::U64`]; nothing is launched where one is 0.
    pub grid: [Expr; 2],
    /// Blocks that shall fit on a multiprocessor at once (`__launch_bounds__`).
    pub blocks_per_sm: u32,
}

impl Geometry {
    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.block.0 * self.block.1
    }
}

/// One kernel. Built by [`KernelBuilder`], checked into a [`VerifiedKernel`].
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Its name: that of the `extern "C"` function.
    pub name: String,
    /// What it does, line by line, for the head of the text.
    pub title: Vec<String>,
    /// Which access variant it is where a program has several: `vector` or `scalar`; else empty.
    pub variant: String,
    /// Parameters in the order of the launch.
    pub params: Vec<Param>,
    /// Named constants in the order of the text.
    pub consts: Vec<ConstDecl>,
    /// All variables.
    pub vars: Vec<VarDecl>,
    /// All buffers.
    pub buffers: Vec<Buffer>,
    /// Grid, block and occupancy.
    pub geometry: Geometry,
    /// The number of threads as an expression over the constants, for `__launch_bounds__`.
    pub launch_bounds: Option<Expr>,
    /// What a launch must satisfy.
    pub requires: Vec<Requirement>,
    /// The body.
    pub body: Vec<Stmt>,
}
