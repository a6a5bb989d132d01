//! Atomic operations, and what they and fences order.

#[cfg(doc)]
use super::Ty;
use super::{Access, Expr, Var};

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
