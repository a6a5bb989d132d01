//! Atomic operations, and the order that atomics and fences establish.

#[cfg(doc)]
use super::Ty;
use super::{Access, Expr, Var};

/// Threads that take part in a barrier, or that observe a fence or an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The 32 threads of a warp (`__syncwarp`).
    Warp,
    /// All threads of the block (`__syncthreads`).
    Block,
    /// All threads of the blocks of a cluster (`barrier.cluster`). Only barriers may use it.
    Cluster,
    /// All threads of the launch.
    Device,
}

/// Order that a fence or an atomic establishes among other accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryOrder {
    /// Orders no other access.
    Relaxed,
    /// Orders later accesses after the value that the atomic read.
    Acquire,
    /// Orders earlier accesses before the value that the atomic writes.
    Release,
    /// Acquires and releases.
    AcqRel,
    /// Acquires and releases, and all such fences have one total order for every thread of their
    /// scopes. The simulator treats it as [`MemoryOrder::AcqRel`]: its threads see memory change in
    /// a single order, so it does not show the effects of a weaker fence.
    SeqCst,
}

/// An atomic operation: it reads a word and writes it in one indivisible step.
#[derive(Clone, Debug, PartialEq)]
pub struct Atomic {
    /// Immutable variable that holds the word's previous value, visible to the end of the enclosing
    /// block.
    pub old: Option<Var>,
    pub op: AtomicOp,
    /// The word: one element of global or shared memory.
    pub target: Access,
    /// Second operand of `op`, of the word's type.
    pub value: Expr,
    /// Any order except [`MemoryOrder::SeqCst`].
    pub order: MemoryOrder,
    /// Either [`Scope::Block`] or [`Scope::Device`].
    pub scope: Scope,
}

/// Value that an atomic operation writes.
///
/// All operations are defined on 32-bit and 64-bit integers. The two that compute nothing are
/// defined on [`Ty::F32`] and [`Ty::F64`] too, by their bits. Floating-point addition is omitted on
/// purpose: `atom.add.f32` flushes subnormals in global memory, and the result would depend on the
/// order of the blocks.
#[derive(Clone, Debug, PartialEq)]
pub enum AtomicOp {
    /// Adds the operand: signed integers must not overflow, unsigned ones wrap.
    Add,
    Min,
    Max,
    /// Writes the operand unconditionally.
    Exchange,
    /// Writes the operand if the word has the bits of `expected`; otherwise nothing.
    CompareExchange {
        expected: Expr,
    },
}

impl AtomicOp {
    /// Lower-case name of the operation.
    pub fn name(&self) -> &'static str {
        match self {
            AtomicOp::Add => "add",
            AtomicOp::Min => "min",
            AtomicOp::Max => "max",
            AtomicOp::Exchange => "exchange",
            AtomicOp::CompareExchange { .. } => "compare_exchange",
        }
    }

    /// Returns true if the operation only moves bits, so that it also accepts floating-point words.
    pub fn moves(&self) -> bool {
        matches!(self, AtomicOp::Exchange | AtomicOp::CompareExchange { .. })
    }
}
