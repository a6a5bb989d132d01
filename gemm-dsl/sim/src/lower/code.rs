//! Lowered kernel: linear code of typed expressions with resolved names.
//!
//! A value that is the same in all threads of a block is a [`Uniform`], and is computed once per
//! warp. All other values are computed for all 32 lanes at once.

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

/// Pointer, or element of an array of pointers. Its slot contains an element number of the buffer.
#[derive(Clone, Debug)]
pub(crate) struct Pointer {
    /// Slot of the first pointer of the array.
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// Index in the array of pointers.
    pub(crate) index: Option<Index>,
}

/// Value of a pointer that was never set. It is as far as possible from every buffer, because a
/// pointer to a position before its buffer is valid until it is used.
pub(crate) const NOWHERE: u64 = 1 << 63;

#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// Number of the access in the kernel.
    pub(crate) access: u32,
    pub(crate) region: u32,
    /// Pointer to which the single index is relative, for an access through a pointer.
    pub(crate) pointer: Option<Box<Pointer>>,
    pub(crate) space: Space,
    pub(crate) index: Vec<Index>,
    /// True for an access of 16 bytes, false for one element.
    pub(crate) vector: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Mma {
    pub(crate) format: Format,
    pub(crate) d: Fragment,
    pub(crate) a: Fragment,
    pub(crate) b: Fragment,
}

/// Load of matrices (`ldmatrix`).
#[derive(Clone, Debug)]
pub(crate) struct LoadMatrix {
    pub(crate) count: u8,
    pub(crate) transposed: bool,
    pub(crate) to: Fragment,
    pub(crate) from: Memory,
}

/// Mbarrier in a declared array.
#[derive(Clone, Debug)]
pub(crate) struct Barriers {
    pub(crate) declaration: u32,
    pub(crate) index: Index,
}

/// Store to shared memory of a block of the cluster, given by its rank.
#[derive(Clone, Debug)]
pub(crate) struct RemoteStore {
    pub(crate) block: Index,
    pub(crate) target: Memory,
    pub(crate) value: StoredValue,
    /// Mbarrier that counts the bytes of an asynchronous store.
    pub(crate) barrier: Option<Barriers>,
}

#[derive(Clone, Debug)]
pub(crate) struct Mbarrier {
    pub(crate) at: Barriers,
    pub(crate) op: MbarrierOp,
}

#[derive(Clone, Debug)]
pub(crate) enum MbarrierOp {
    /// Initialises the mbarrier for this number of arrivals per phase.
    Init(u32),
    /// Arrives. The index is the number of bytes to expect, if any.
    Arrive(Option<Index>),
    /// Arrives at another block of the cluster, given by its rank. The flag is true for a relaxed
    /// arrival.
    ArriveRemote(Index, bool),
    /// Waits for the phase with this parity.
    Wait(Index),
}

#[derive(Clone, Debug)]
pub(crate) struct TensorCopy {
    pub(crate) from: u32,
    pub(crate) at: Vec<Index>,
    pub(crate) tile: Vec<u64>,
    pub(crate) swizzle: TensorSwizzle,
    pub(crate) to: Memory,
    pub(crate) barrier: Barriers,
    /// Mask of the destination blocks; `None` for the thread's own block.
    pub(crate) multicast: Option<Index>,
}

/// Matrix instruction of a warpgroup (`wgmma`).
#[derive(Clone, Debug)]
pub(crate) struct Wgmma {
    pub(crate) formats: [Format; 2],
    pub(crate) columns: u32,
    pub(crate) d: Fragment,
    pub(crate) a: Tile,
    pub(crate) b: Tile,
    pub(crate) accumulate: Pred,
}

#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(crate) first: Memory,
    pub(crate) descriptor: Descriptor,
    /// True if rows of shared memory have elements along M or N instead of K.
    pub(crate) mn_major: bool,
}

/// Synchronisation that a whole warpgroup executes. Accumulator arrays are given by their buffer
/// numbers.
#[derive(Clone, Debug)]
pub(crate) enum WgmmaSyncOp {
    Fence(Vec<u32>),
    Commit,
    Wait {
        pending: u32,
        arrays: Vec<u32>,
    },
    /// Register limit (`setmaxnreg`).
    Limit(RegisterLimit),
}

/// Fragment of a lane: its first element, and the slot of this element if its index is static.
#[derive(Clone, Debug)]
pub(crate) struct Fragment {
    pub(crate) first: Memory,
    pub(crate) slot: Option<u32>,
}

#[derive(Clone, Debug)]
pub(crate) enum StoredValue {
    Lane(Lane),
    Wide(Wide),
    Vector(Vector),
}

#[derive(Clone, Debug)]
pub(crate) struct AsyncCopy {
    pub(crate) target: Memory,
    pub(crate) source: Memory,
    /// Condition of the copy. The flag is true if zeros are written when the condition is false.
    pub(crate) guard: Option<(Pred, bool)>,
}

#[derive(Clone, Debug)]
pub(crate) enum Update {
    Load,
    Add,
    Min,
    Max,
    Exchange,
    /// Stores the operand if the word has these bits.
    CompareExchange(StoredValue),
}

#[derive(Clone, Debug)]
pub(crate) struct Atomic {
    pub(crate) update: Update,
    pub(crate) target: Memory,
    pub(crate) value: StoredValue,
    pub(crate) order: MemoryOrder,
    pub(crate) scope: Scope,
    /// Slot of the variable that receives the previous value.
    pub(crate) old: Option<u32>,
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Sets a variable; inactive lanes keep their values.
    SetUniform(u32, Uniform),
    SetLane(u32, Lane),
    SetWide(u32, Wide),
    SetPred(u32, Pred),
    /// Sets a 16-byte variable, or the slots of a vector in a register array.
    SetVector(u32, Vector),
    /// Sets an 8-byte element of a register array whose index is static.
    SetElement(u32, Wide),
    /// Sets a variable, or an element of a register array with a static index, to a multiply-add of
    /// such operands.
    Fma {
        target: u32,
        operands: [u32; 3],
    },
    /// Marks `count` lane slots as uninitialised.
    Forget {
        first: u32,
        count: u32,
    },
    /// Sets elements of a register array to zero.
    Zero {
        first: u32,
        count: u32,
    },
    /// Sets pointers to [`NOWHERE`].
    Unset {
        first: u32,
        count: u32,
    },
    /// Sets a pointer to an element, which may be out of bounds.
    Point(Box<(Pointer, Memory)>),
    Advance(Box<(Pointer, Index)>),
    StoreRegister(Box<(Memory, StoredValue)>),
    Store(Box<(Memory, StoredValue)>),
    StoreRemote(Box<RemoteStore>),
    /// Jumps to the target if the uniform condition is false.
    Unless(Uniform, u32),
    Jump(u32),
    /// Enters an `if`. Lanes in which the condition is false wait for the `Else`. If it is false in
    /// all lanes, jumps to the `Else` at the target.
    If(Pred, u32),
    /// Activates the waiting lanes. If there are none, jumps to the `End` at the target.
    Else(u32),
    /// Restores the lanes that were active before the `If` or `Loop`.
    End,
    /// Saves the active lanes for the `End` of the loop.
    Loop,
    /// Deactivates the lanes in which the test is false. If no lane is left, jumps to the `End` at
    /// the target.
    Test(Pred, u32),
    Barrier(Scope),
    /// Arrives at a named barrier. With `wait`, waits until all threads have arrived.
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
    /// Marks that an ordinary statement uses or declares an accumulator array, given by its buffer
    /// number.
    UseAccumulators {
        array: u32,
        declared: bool,
    },
    /// Returns a fault if a list, given by its buffer number, has no array with this index.
    Choose(Box<(u32, Index)>),
}

/// Instruction, with its cost site and its statement.
#[derive(Clone, Debug)]
pub(crate) struct Instr {
    pub(crate) op: Op,
    pub(crate) site: u32,
    pub(crate) stmt: u32,
    /// Index into [`Code::rounds`] of the instruction's enclosing loops.
    pub(crate) rounds: u32,
}

/// Current value of a loop variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LoopIndex {
    /// Value in one iteration of an unrolled loop.
    Static(i64),
    Uniform(u32),
    Lane(u32),
    Wide(u32),
}

/// Number of variables of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slots {
    pub(crate) uniforms: u32,
    pub(crate) lanes: u32,
    pub(crate) wides: u32,
    pub(crate) preds: u32,
}

/// Slots of the variables that determine what a warp does in a loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopState {
    pub(crate) uniforms: Vec<u32>,
    pub(crate) lanes: Vec<u32>,
    pub(crate) wides: Vec<u32>,
    pub(crate) preds: Vec<u32>,
}

/// Outermost loop. A warp enters it at most once.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) code: Range<usize>,
    pub(crate) loop_state: Arc<LoopState>,
}

pub(crate) struct Code<'k> {
    pub(crate) kernel: &'k VerifiedKernel,
    pub(crate) instrs: Vec<Instr>,
    pub(crate) sites: Vec<Site>,
    /// Statements of the kernel, by number.
    pub(crate) stmts: Vec<&'k Stmt>,
    pub(crate) accesses: u32,
    pub(crate) slots: Slots,
    /// Numbers of slots of register arrays and pointers. These slots come before the slots of
    /// variables.
    pub(crate) arrays: Slots,
    /// Sets of enclosing loops, given by variable number, outermost first. All are empty if no
    /// block is recorded.
    pub(crate) rounds: Vec<Vec<(usize, LoopIndex)>>,
    /// Outermost loops in code order.
    pub(crate) loops: Vec<Loop>,
    pub(crate) functions: Vec<Function>,
    /// For each buffer: true if the kernel loads from it.
    pub(crate) loaded: Vec<bool>,
    pub(crate) stored: Vec<bool>,
    /// For each buffer: true if the kernel has atomics on it.
    pub(crate) atomics: Vec<bool>,
    /// Fate of each access in the machine code; `None` if it was not requested.
    pub(crate) fates: Option<Vec<AccessFate>>,
}

/// Thread of a block and its current statement, given by their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadStmt {
    pub(crate) block: u32,
    pub(crate) thread: u32,
    pub(crate) stmt: u32,
}

impl Code<'_> {
    pub(crate) fn text(&self, stmt: u32) -> String {
        let stmt = self.stmts.get(stmt as usize);
        stmt.map_or_else(String::new, |stmt| gemm_dsl::cuda::statement(self.kernel, stmt))
    }

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

    /// State of a warp at this instruction, if it is in a loop.
    pub(crate) fn loop_state(&self, pc: usize) -> Option<&LoopState> {
        let at = self.loops.partition_point(|l| l.code.end <= pc);
        self.loops.get(at).filter(|l| l.code.contains(&pc)).map(|l| &*l.loop_state)
    }
}
