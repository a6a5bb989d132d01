//! Atomic operations, and the ordering that atomics and fences establish.

#[cfg(doc)]
use super::Ty;
use super::{Access, Expr, Var};

/// Threads that take part in a barrier, or for which a fence or an atomic is ordered.
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
    /// Acquires and releases. In addition, all such fences have one total order, on which all
    /// threads of their scopes agree. The simulator treats it as [`MemoryOrder::AcqRel`]. Its
    /// threads see memory change in one order, so it does not show the effects of a weaker fence.
    SeqCst,
}

/// An atomic operation: it reads a word and writes it in one indivisible step. A load only reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Atomic {
    /// Immutable variable for the previous value of the word. It is visible to the end of the
    /// enclosing block.
    pub old: Option<Var>,
    pub op: AtomicOp,
    /// Word that the operation accesses: one element of global or shared memory.
    pub target: Access,
    /// Second operand of `op`, of the word's type. A load ignores it.
    pub value: Expr,
    /// Any order except [`MemoryOrder::SeqCst`]. A load is relaxed or acquires.
    pub order: MemoryOrder,
    /// Either [`Scope::Block`] or [`Scope::Device`].
    pub scope: Scope,
}

/// Value that an atomic operation writes.
///
/// All operations are defined on 32-bit and 64-bit integers. [`Load`](Self::Load),
/// [`Exchange`](Self::Exchange) and [`CompareExchange`](Self::CompareExchange) only move bits, so
/// they are also defined on [`Ty::F32`] and [`Ty::F64`]. Floating-point addition is omitted on
/// purpose: `atom.add.f32` flushes subnormals in global memory, and its result would depend on the
/// order of the blocks.
#[derive(Clone, Debug, PartialEq)]
pub enum AtomicOp {
    /// Writes nothing.
    Load,
    /// Adds the operand. Signed integers must not overflow; unsigned integers wrap.
    Add,
    Min,
    Max,
    /// Writes the operand unconditionally.
    Exchange,
    /// Writes the operand if the word has the bits of `expected`; otherwise writes nothing.
    CompareExchange {
        expected: Expr,
    },
}

impl AtomicOp {
    /// Lower-case name of the operation.
    pub fn name(&self) -> &'static str {
        match self {
            AtomicOp::Load => "load",
            AtomicOp::Add => "add",
            AtomicOp::Min => "min",
            AtomicOp::Max => "max",
            AtomicOp::Exchange => "exchange",
            AtomicOp::CompareExchange { .. } => "compare_exchange",
        }
    }

    /// Returns true if the operation only moves bits. It then also accepts floating-point words.
    pub fn moves(&self) -> bool {
        matches!(self, AtomicOp::Load | AtomicOp::Exchange | AtomicOp::CompareExchange { .. })
    }
}
