//! Instruction costs of operations, for `sm_90` code that NVRTC 13 generates.
//!
//! Each number is the cost of the operation alone. `values` accounts for sharing and for hoisting
//! out of loops. If there are several numbers, a comment explains the choice.

use gemm_dsl::ir::{Arith, BinaryOp, Elem, Integer};

/// Instruction classes that the profiler distinguishes and the model counts.
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
    pub(super) const COUNT: usize = Self::Atomic as usize + 1;
}

/// Instructions of one class, plus other instructions.
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

/// 32-bit quotient by a value that is unknown before launch: a reciprocal by `MUFU.RCP`, a product
/// and two corrections.
pub(super) const DIVISION: u32 = 20;
/// 64-bit quotient: a call of a function with approximately this many instructions.
pub(super) const WIDE_DIVISION: u32 = 70;
/// Quotient of binary32: a reciprocal, `FCHK`, a branch that skips the slow path, and five Newton
/// steps.
pub(super) const FLOAT_DIVISION: SassCost =
    SassCost { class: SassClass::Ffma, count: 5, others: 4 };
/// Reciprocal of binary32: `MUFU.RCP` between range tests, and a Newton step.
pub(super) const RECIPROCAL: SassCost = SassCost { class: SassClass::Ffma, count: 2, others: 8 };
/// Base address of shared memory, computed once per kernel: `S2UR`, `UMOV`, `ULEA`.
pub(super) const SHARED_WINDOW: u32 = 3;
/// Address of another row: its sign, two products, and a sum with the address of the array.
pub(super) const ROW: u32 = 7;
/// Divergent `if`: `BSSY`, `BRA`, `BSYNC`.
pub(super) const DIVERGENT_BRANCH: u32 = 3;
/// Maximum number of predicated instructions of a branch. A jump costs approximately as much.
pub(super) const PREDICATED: u32 = 14;
/// Maximum number of predicated instructions of a divergent branch.
pub(super) const PREDICATED_LANES: u32 = 12;
/// Maximum number of predicated instructions of a branch with barriers.
pub(super) const PREDICATED_BARRIERS: u32 = 8;
/// Instructions that ptxas inserts before asynchronous copies: three loads from shared memory that
/// no lane executes.
pub(super) const BEFORE_COPIES: u32 = 3;

/// Cost of an integer operator other than `+`, `-` and `*`. `right` is the right operand if it is
/// constant. `positive` is true if the dividend is known not to be negative.
pub(super) fn integer(op: BinaryOp, right: Option<i64>, wide: bool, positive: bool) -> u32 {
    let words = if wide { 2 } else { 1 };
    let is_power = right.is_some_and(|by| by > 0 && by & (by - 1) == 0);
    match op {
        // A shift. If the dividend may be negative, a bias is added first.
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
        // The dividend minus the divisor times the quotient, which is shared with the division.
        BinaryOp::Integer(Integer::Rem) => words,
        _ => words,
    }
}

/// Cost of a conversion between number types.
pub(super) fn conversion(from: Elem, to: Elem) -> u32 {
    let is_word = |elem: Elem| elem.is_integer() && elem.size() <= 4;
    match to {
        // Integers of the same width have the same bits, and loads extend narrow integers.
        _ if is_word(from) && is_word(to) => 0,
        // `F2FP` converts two numbers when it packs them.
        Elem::F16 | Elem::Bf16 => 0,
        // About ten instructions, one of which converts a binary16.
        Elem::E4m3 | Elem::E5m2 => 10,
        Elem::F64 | Elem::F32 | Elem::Tf32 => 1,
        Elem::I64 | Elem::U64 | Elem::I32 | Elem::U32 => 1,
        Elem::I16 | Elem::U16 | Elem::I8 | Elem::U8 => 1,
    }
}
