//! Statements.

use super::{
    Access, BufferId, Expr, Mbarrier, ProxyFence, RegisterLimit, TensorCopy, Var, Wgmma, WgmmaSync,
};
#[cfg(doc)]
use super::{BufferLayout, Space, Ty};
use crate::target::tensor_core::Format;

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

impl AtomicOp {
    /// Its name, in small letters.
    pub fn name(&self) -> &'static str {
        match self {
            AtomicOp::Add => "add",
            AtomicOp::Min => "min",
            AtomicOp::Max => "max",
            AtomicOp::Exchange => "exchange",
            AtomicOp::CompareExchange { .. } => "compare_exchange",
        }
    }

    /// Whether it only moves bits, which those of a floating-point number are too.
    pub fn moves(&self) -> bool {
        matches!(self, AtomicOp::Exchange | AtomicOp::CompareExchange { .. })
    }
}

/// The condition of an asynchronous copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// Where it holds, the copy is made.
    pub cond: Expr,
    /// Whether zeros are written where it does not hold; else the copy is skipped.
    pub or_zero: bool,
}

/// `D = A·B + D` on tensor cores, of [`Mma::ROWS`] by [`Mma::COLS`] sums. What a lane holds of a matrix lies in the last
/// dimension of a register array, all of it; the access is to its first element. A word, a [`Ty::U32`], holds one
/// element of 32 bits, or two of 16 that are neighbours along k, the first in its lower half.
#[derive(Clone, Debug, PartialEq)]
pub struct Mma {
    /// What the elements of A and B are.
    pub format: Format,
    /// [`Mma::OF_D`] sums, of [`Ty::F32`].
    pub d: Access,
    /// [`Mma::OF_A`] words.
    pub a: Access,
    /// [`Mma::OF_B`] words.
    pub b: Access,
}

impl Mma {
    /// Rows of A and D.
    pub const ROWS: usize = 16;
    /// Columns of B and D.
    pub const COLS: usize = 8;
    /// Sums that a lane holds of D.
    pub const OF_D: usize = 4;
    /// Words that a lane holds of A.
    pub const OF_A: usize = 4;
    /// Words that a lane holds of B.
    pub const OF_B: usize = 2;
    /// Lanes along the rows of D.
    pub const LANES_M: u32 = 8;
    /// Lanes along the columns of D.
    pub const LANES_N: u32 = 4;

    /// The row and the column of a sum that a lane holds.
    pub const fn place_of_d(lane: usize, sum: usize) -> (usize, usize) {
        (lane / 4 + 8 * (sum / 2), 2 * (lane % 4) + sum % 2)
    }

    /// The row of a word that a lane holds of A, and which word of that row it is.
    pub const fn place_of_a(lane: usize, word: usize) -> (usize, usize) {
        (lane / 4 + 8 * (word % 2), lane % 4 + 4 * (word / 2))
    }

    /// The column of a word that a lane holds of B, and which word of that column it is.
    pub const fn place_of_b(lane: usize, word: usize) -> (usize, usize) {
        (lane / 4, lane % 4 + 4 * word)
    }
}

/// The load of one, two or four matrices of 8x8 elements of 16 bits, each row of which is four words, a [`Ty::U32`] or
/// a [`Ty::F32`], that lie beside one another in shared memory. Lane `8 * i + r` says where row `r` of matrix `i` lies; what the others say,
/// where there are fewer matrices, is not looked at. Each lane gets a word of each matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadMatrix {
    /// How many: 1, 2 or 4.
    pub count: u8,
    /// Whether rows and columns, of elements of 16 bits, change places on the way.
    pub transposed: bool,
    /// Where the words go, one of each matrix: the last dimensions of a register array, all of them; the first element.
    pub to: Access,
    /// Where a row lies: 16 bytes.
    pub from: Access,
}

impl LoadMatrix {
    /// Of what was asked for, a lane gets this word: two elements that are neighbours in a row, the first in its lower half.
    pub const fn place(lane: usize) -> (usize, usize) {
        (lane / 4, lane % 4)
    }
}

/// A pointer: a buffer with [`BufferLayout::Pointer`], and which of an array of them.
#[derive(Clone, Debug, PartialEq)]
pub struct PointerRef {
    /// The buffer that stands for the pointers.
    pub buffer: BufferId,
    /// One expression for each extent of the array; none for a single pointer.
    pub index: Vec<Expr>,
}

/// The threads that take part in a barrier, or that a fence or an atomic speaks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The 32 threads of a warp (`__syncwarp`).
    Warp,
    /// All threads of the block (`__syncthreads`).
    Block,
    /// All threads of the blocks of a cluster (`barrier.cluster`), for barriers alone.
    Cluster,
    /// All threads of the launch.
    Device,
}

/// What a fence or an atomic orders beside itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryOrder {
    /// Nothing.
    Relaxed,
    /// What follows comes after what the atomic has read.
    Acquire,
    /// What precedes comes before what the atomic writes.
    Release,
    /// Both.
    AcqRel,
    /// Both, and all such fences have one order that every thread of their scopes agrees on. The simulator
    /// takes it as [`MemoryOrder::AcqRel`]: its threads see memory change in one order in any case, so it does
    /// not show what a weaker fence would let happen.
    SeqCst,
}

/// An atomic operation: it reads a word and writes it, and nobody comes between.
#[derive(Clone, Debug, PartialEq)]
pub struct Atomic {
    /// An immutable variable of the word's former value, visible to the end of the enclosing block.
    pub old: Option<Var>,
    /// What is written.
    pub op: AtomicOp,
    /// The word: one element of global or shared memory.
    pub target: Access,
    /// The operand.
    pub value: Expr,
    /// What is ordered by it: all but [`MemoryOrder::SeqCst`].
    pub order: MemoryOrder,
    /// [`Scope::Block`] or [`Scope::Device`].
    pub scope: Scope,
}

/// What an atomic operation writes. All of them are defined on 32-bit and 64-bit integers, and the
/// two that compute nothing on [`Ty::F32`] and [`Ty::F64`] too, by their bits. A sum of
/// floating-point numbers is left out on purpose: `atom.add.f32` flushes subnormals in global memory,
/// and no order of the blocks would be the right one.
#[derive(Clone, Debug, PartialEq)]
pub enum AtomicOp {
    /// The sum. Of signed integers it must not overflow; of unsigned ones it wraps.
    Add,
    /// The smaller.
    Min,
    /// The greater.
    Max,
    /// The operand.
    Exchange,
    /// The operand where the word has the bits of `expected`; else nothing.
    CompareExchange {
        /// What the word is compared with.
        expected: Expr,
    },
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
