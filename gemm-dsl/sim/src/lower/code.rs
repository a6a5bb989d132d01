//! The lowered form of a kernel: linear code over typed expressions whose names are resolved.
//!
//! What is the same in all threads of a block is a [`Uniform`] and computed once for a warp;
//! everything else is computed for the 32 lanes together.

mod effect;
pub(crate) mod expr;

pub(crate) use effect::{Assigned, Slot, SlotKind};

use crate::counters::Site;
use crate::counters::access_fate::AccessFate;
use crate::error::{Fault, FaultKind};
use crate::launch::Launch;
use expr::{Function, Index, Lane, Pred, Uniform, Vector, Wide};
use gemm_dsl::ir::{
    Descriptor, MemoryOrder, ProxyFence, RegisterLimit, Scope, Space, Stmt, TensorSwizzle,
    VerifiedKernel,
};
use gemm_dsl::target::Format;
use std::ops::Range;
use std::sync::Arc;

/// One of the pointers of an array, or a single one: a slot that holds a word of its buffer.
#[derive(Clone, Debug)]
pub(crate) struct Pointer {
    /// The slot of the first pointer of the array.
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// Which of the array.
    pub(crate) index: Option<Index>,
}

/// The word of a pointer that points nowhere: as far from every buffer as can be, since one that
/// stands before its buffer is moved inside like any other.
pub(crate) const NOWHERE: u64 = 1 << 63;

/// A place in a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// The number of the access among those of the kernel.
    pub(crate) access: u32,
    /// The number of the buffer.
    pub(crate) region: u32,
    /// The pointer from which the one index counts, if the access is through one.
    pub(crate) pointer: Option<Box<Pointer>>,
    pub(crate) space: Space,
    pub(crate) index: Vec<Index>,
    /// Whether it is 16 bytes; else it is one element.
    pub(crate) vector: bool,
}

/// A matrix instruction.
#[derive(Clone, Debug)]
pub(crate) struct Mma {
    pub(crate) format: Format,
    pub(crate) d: Fragment,
    pub(crate) a: Fragment,
    pub(crate) b: Fragment,
}

/// A load of matrices.
#[derive(Clone, Debug)]
pub(crate) struct LoadMatrix {
    pub(crate) count: u8,
    pub(crate) transposed: bool,
    pub(crate) to: Fragment,
    pub(crate) from: Memory,
}

/// One of the barriers in shared memory of a declaration.
#[derive(Clone, Debug)]
pub(crate) struct Barriers {
    /// The number of the declaration.
    pub(crate) declaration: u32,
    /// Which of them.
    pub(crate) index: Index,
}

/// What is done at a barrier in shared memory.
#[derive(Clone, Debug)]
pub(crate) struct Mbarrier {
    pub(crate) at: Barriers,
    pub(crate) op: MbarrierOp,
}

#[derive(Clone, Debug)]
pub(crate) enum MbarrierOp {
    /// With the arrivals of a phase.
    Init(u32),
    /// With the bytes that are to be expected, if any.
    Arrive(Option<Index>),
    /// With the block of the cluster, and whether it is relaxed.
    ArriveRemote(Index, bool),
    /// With the parity.
    Wait(Index),
}

/// The copy of a box.
#[derive(Clone, Debug)]
pub(crate) struct TensorCopy {
    /// The number of the buffer that it is a box of.
    pub(crate) from: u32,
    /// Where it begins.
    pub(crate) at: Vec<Index>,
    /// Its extents.
    pub(crate) tile: Vec<u64>,
    pub(crate) swizzle: TensorSwizzle,
    pub(crate) to: Memory,
    pub(crate) barrier: Barriers,
    /// The blocks of the cluster that it goes to, if not to that of its thread.
    pub(crate) multicast: Option<Index>,
}

/// A matrix instruction of a warpgroup.
#[derive(Clone, Debug)]
pub(crate) struct Wgmma {
    pub(crate) format: Format,
    pub(crate) columns: u32,
    pub(crate) d: Fragment,
    pub(crate) a: Tile,
    pub(crate) b: Tile,
    pub(crate) accumulate: Pred,
}

/// A tile in shared memory.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(crate) first: Memory,
    pub(crate) descriptor: Descriptor,
}

/// What else a warpgroup executes together. Arrays of sums are the numbers of their buffers.
#[derive(Clone, Debug)]
pub(crate) enum WgmmaSyncOp {
    Fence(Vec<u32>),
    Commit,
    Wait {
        pending: u32,
        arrays: Vec<u32>,
    },
    /// A limit of registers.
    Limit(RegisterLimit),
}

/// What a lane holds of a matrix: the first element, and its slot where that is static.
#[derive(Clone, Debug)]
pub(crate) struct Fragment {
    pub(crate) first: Memory,
    pub(crate) slot: Option<u32>,
}

/// What a store writes.
#[derive(Clone, Debug)]
pub(crate) enum StoredValue {
    Lane(Lane),
    Wide(Wide),
    Vector(Vector),
}

/// An asynchronous copy.
#[derive(Clone, Debug)]
pub(crate) struct AsyncCopy {
    pub(crate) target: Memory,
    pub(crate) source: Memory,
    /// Where it is made, and whether zeros are written elsewhere.
    pub(crate) guard: Option<(Pred, bool)>,
}

/// What an atomic writes.
#[derive(Clone, Debug)]
pub(crate) enum Update {
    Add,
    Min,
    Max,
    Exchange,
    /// The operand where the word has these bits.
    CompareExchange(StoredValue),
}

/// An atomic operation.
#[derive(Clone, Debug)]
pub(crate) struct Atomic {
    pub(crate) update: Update,
    pub(crate) target: Memory,
    pub(crate) value: StoredValue,
    pub(crate) order: MemoryOrder,
    pub(crate) scope: Scope,
    /// The slot of the variable that holds the word's former value.
    pub(crate) old: Option<u32>,
}

/// An instruction of the executor.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Sets a variable; inactive lanes keep their value.
    SetUniform(u32, Uniform),
    SetLane(u32, Lane),
    SetWide(u32, Wide),
    SetPred(u32, Pred),
    /// Sets a variable of 16 bytes, or the slots of an element of a register array.
    SetVector(u32, Vector),
    /// Sets an element of 8 bytes of a register array at a static index.
    SetElement(u32, Wide),
    /// Sets an element of a register array at a static index, or a variable, to a multiply-add
    /// of such elements.
    Fma {
        target: u32,
        operands: [u32; 3],
    },
    /// Makes `count` lane slots uninitialised.
    Forget {
        first: u32,
        count: u32,
    },
    /// Sets elements of a register array to zero.
    Zero {
        first: u32,
        count: u32,
    },
    /// Makes the pointers point nowhere.
    Unset {
        first: u32,
        count: u32,
    },
    /// Sets a pointer to a place, which need not exist.
    Point(Box<(Pointer, Memory)>),
    /// Moves a pointer forward.
    Advance(Box<(Pointer, Index)>),
    StoreRegister(Box<(Memory, StoredValue)>),
    Store(Box<(Memory, StoredValue)>),
    /// Continues elsewhere where the condition, the same in all lanes, does not hold.
    Unless(Uniform, u32),
    Jump(u32),
    /// Enters an `if`: lanes where the condition fails wait for `Else`. Where no lane holds it,
    /// goes to the `Else` at the target.
    If(Pred, u32),
    /// Hands over to the waiting lanes; goes to the target, an `End`, where there are none.
    Else(u32),
    /// Restores the lanes of before the `If` or `Loop`.
    End,
    /// Remembers the active lanes.
    Loop,
    /// Drops the lanes for which the test fails; goes to the target, an `End`, where none is left.
    Test(Pred, u32),
    Barrier(Scope),
    /// Arrives at the barrier with this name; where `wait`, goes on when all have.
    Named {
        barrier: u32,
        threads: u32,
        wait: bool,
    },
    Fence(Scope),
    Atomic(Box<Atomic>),
    AsyncCopy(Box<AsyncCopy>),
    LoadMatrix(Box<LoadMatrix>),
    Mma(Box<Mma>),
    Commit,
    Wait(u32),
    Mbarrier(Box<Mbarrier>),
    ProxyFence(ProxyFence),
    TensorCopy(Box<TensorCopy>),
    Wgmma(Box<Wgmma>),
    WgmmaSync(Box<WgmmaSyncOp>),
    /// Statements use an array of sums of matrix instructions, by the number of its buffer; or it is declared.
    UseAccumulators {
        array: u32,
        declared: bool,
    },
    /// Faults where the condition does not hold.
    Assume(Pred),
    /// Faults where a list, by the number of its buffer, has no such array.
    Choose(Box<(u32, Index)>),
}

/// An instruction with what it is charged and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Instr {
    pub(crate) op: Op,
    pub(crate) site: u32,
    pub(crate) stmt: u32,
    /// Which loops it is in: an index into [`Code::rounds`].
    pub(crate) rounds: u32,
}

/// Where a loop is: the value of its variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LoopIndex {
    /// Of a loop that is unrolled.
    Static(i64),
    Uniform(u32),
    Lane(u32),
    Wide(u32),
}

/// Numbers of variables of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slots {
    pub(crate) uniforms: u32,
    pub(crate) lanes: u32,
    pub(crate) wides: u32,
    pub(crate) preds: u32,
}

/// The slots of the variables on which depends what a warp does in a loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopState {
    pub(crate) uniforms: Vec<u32>,
    pub(crate) lanes: Vec<u32>,
    pub(crate) wides: Vec<u32>,
    pub(crate) preds: Vec<u32>,
}

/// A loop that is inside no other: a warp goes round there once.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// Its instructions.
    pub(crate) code: Range<usize>,
    pub(crate) loop_state: Arc<LoopState>,
}

/// A kernel, lowered for one launch.
pub(crate) struct Code<'k> {
    pub(crate) kernel: &'k VerifiedKernel,
    pub(crate) instrs: Vec<Instr>,
    pub(crate) sites: Vec<Site>,
    /// The statements that instructions come from.
    pub(crate) stmts: Vec<&'k Stmt>,
    /// How many accesses to memory there are.
    pub(crate) accesses: u32,
    pub(crate) slots: Slots,
    /// Register arrays and pointers have the slots before these.
    pub(crate) arrays: Slots,
    /// The loops that instructions are in, from the outside in, by the numbers of their variables; none for all if nobody
    /// watches.
    pub(crate) rounds: Vec<Vec<(usize, LoopIndex)>>,
    /// The outermost loops, in the order of the code.
    pub(crate) loops: Vec<Loop>,
    pub(crate) functions: Vec<Function>,
    /// For each buffer, whether the kernel loads from it, and whether it stores to it.
    pub(crate) loaded: Vec<bool>,
    pub(crate) stored: Vec<bool>,
    /// And whether atomics work on it.
    pub(crate) atomics: Vec<bool>,
    /// What becomes of each access in the machine code, if somebody asks.
    pub(crate) fates: Option<Vec<AccessFate>>,
}

/// A thread of a block and the statement that it executes, by their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadStmt {
    pub(crate) block: u32,
    pub(crate) thread: u32,
    pub(crate) stmt: u32,
}

impl Code<'_> {
    /// The text of a statement.
    pub(crate) fn text(&self, stmt: u32) -> String {
        let stmt = self.stmts.get(stmt as usize);
        stmt.map_or_else(String::new, |stmt| gemm_dsl::cuda::statement(self.kernel, stmt))
    }

    /// The fault of a thread in a statement.
    pub(crate) fn fault(&self, launch: &Launch<'_>, at: ThreadStmt, kind: FaultKind) -> Box<Fault> {
        let ThreadStmt { block, thread, stmt } = at;
        Box::new(Fault {
            kernel: self.kernel.name.clone(),
            block: launch.block(block),
            thread: launch.thread(thread),
            statement: self.text(stmt),
            number: stmt,
            refused: None,
            order: None,
            turns: None,
            kind,
        })
    }

    /// What a warp goes round with that is at this instruction, if it is in a loop.
    pub(crate) fn loop_state(&self, pc: usize) -> Option<&LoopState> {
        let at = self.loops.partition_point(|l| l.code.end <= pc);
        self.loops.get(at).filter(|l| l.code.contains(&pc)).map(|l| &*l.loop_state)
    }
}
