//! What the compiler spends on an operation: instructions of `sm_90`, as NVRTC 13 writes them.
//!
//! Each number is what its machine code has for the operation alone; what it shares with others, or does once outside of a
//! loop, is the business of `values`. Where it is one of several, the reason stands beside it.

use gemm_dsl::ir::{Arith, BinaryOp, Elem, Integer};

/// The classes of instructions that the profiler tells apart and the model counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SassClass {
    Other,
    Ffma,
    Hmma,
    Hgmma,
    Barrier,
    Shuffle,
    GlobalLoad,
    GlobalStore,
    SharedLoad,
    MatrixLoad,
    SharedStore,
    Copy,
    BoxCopy,
    Atomic,
}

impl SassClass {
    /// How many there are.
    pub(super) const COUNT: usize = Self::Atomic as usize + 1;
}

/// Instructions of one class, and others beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SassCost {
    pub(super) class: SassClass,
    pub(super) count: u32,
    pub(super) others: u32,
}

impl SassCost {
    pub(super) const FREE: Self = Self::others(0);

    pub(super) const fn others(others: u32) -> Self {
        Self { class: SassClass::Other, count: 0, others }
    }

    pub(super) const fn one(class: SassClass) -> Self {
        Self { class, count: 1, others: 0 }
    }

    pub(super) const fn beside(self, others: u32) -> Self {
        Self { others: self.others + others, ..self }
    }

    pub(super) fn instructions(self) -> u32 {
        self.count + self.others
    }
}

/// A quotient of 32 bits by what only the launch knows: a reciprocal by `MUFU.RCP`, a product and two corrections.
pub(super) const DIVISION: u32 = 20;
/// One of 64 bits is a call of a function of about as many instructions.
pub(super) const WIDE_DIVISION: u32 = 70;
/// A quotient of binary32: a reciprocal, `FCHK`, a branch past the slow path, and five steps of Newton's.
pub(super) const FLOAT_DIVISION: SassCost =
    SassCost { class: SassClass::Ffma, count: 5, others: 4 };
/// A reciprocal of binary32: `MUFU.RCP` between a test of the range, and a step of Newton's.
pub(super) const RECIPROCAL: SassCost = SassCost { class: SassClass::Ffma, count: 2, others: 8 };
/// Setting up the address of shared memory: `S2UR`, `UMOV`, `ULEA` of the window, once.
pub(super) const SHARED_WINDOW: u32 = 3;
/// The address of another row: its sign, two products, and the sum with the array's.
pub(super) const ROW: u32 = 7;
/// An `if` whose lanes may disagree: `BSSY`, `BRA`, `BSYNC`.
pub(super) const DIVERGENT_BRANCH: u32 = 3;
/// The most instructions of a branch that are executed under a predicate instead: a branch costs about as much.
pub(super) const PREDICATED: u32 = 14;
/// The same of one whose lanes may disagree.
pub(super) const PREDICATED_LANES: u32 = 12;
/// The same of a branch with barriers.
pub(super) const PREDICATED_BARRIERS: u32 = 8;
/// Instructions that ptxas places before asynchronous copies: three loads of shared memory that no lane executes.
pub(super) const BEFORE_COPIES: u32 = 3;

/// An operator on integers but sums and products, on operands of which the right one is this constant, if it is one; of a
/// dividend that is known not to be negative.
pub(super) fn integer(op: BinaryOp, right: Option<i64>, wide: bool, positive: bool) -> u32 {
    let words = if wide { 2 } else { 1 };
    let is_power = right.is_some_and(|by| by > 0 && by & (by - 1) == 0);
    match op {
        // A shift; of what may be negative the bits that are shifted out are added to first.
        BinaryOp::Arith(Arith::Div) if is_power => words * if positive { 1 } else { 3 },
        // The high half of a product, and a shift.
        BinaryOp::Arith(Arith::Div) if right.is_some() => 3 * words,
        BinaryOp::Arith(Arith::Div) => {
            if wide {
                WIDE_DIVISION
            } else {
                DIVISION
            }
        }
        BinaryOp::Integer(Integer::Rem) if is_power => words * if positive { 1 } else { 3 },
        // Behind the quotient, which is shared: the dividend less its product.
        BinaryOp::Integer(Integer::Rem) => words,
        _ => words,
    }
}

/// A conversion between types of numbers.
pub(super) fn conversion(from: Elem, to: Elem) -> u32 {
    let is_word = |elem: Elem| elem.is_integer() && elem.size() <= 4;
    match to {
        // Of one width the bits are the same; narrow ones are extended when they are loaded.
        _ if is_word(from) && is_word(to) => 0,
        // `F2FP` converts two as it packs them.
        Elem::F16 | Elem::Bf16 => 0,
        Elem::F64 | Elem::F32 | Elem::Tf32 => 1,
        Elem::I64 | Elem::U64 | Elem::I32 | Elem::U32 => 1,
        Elem::I16 | Elem::U16 | Elem::I8 | Elem::U8 => 1,
    }
}
