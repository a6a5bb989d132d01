//! What values are made by: two of the same operation on the same values are the same value.

use super::accesses::{Epoch, Offset};
use crate::lower::code::Slot;
use crate::sass::polynomial::{Polynomial, ValueId};
use gemm_dsl::ir::{Arith, BinaryOp, Cmp, Elem};

/// An operation on values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    Constant(i64),
    /// What a variable holds that was given nothing.
    Undefined(Slot),
    /// What the launch knows, in the constant bank.
    Parameter(i64),
    /// A register of the machine.
    Special(Special),
    /// Where shared memory begins.
    Window,
    /// Where a buffer begins, by its number.
    Pointer(u32),
    Not,
    And,
    Or,
    Select,
    /// Of integers, of 64 bits or of 32.
    Integer(BinaryOp, bool),
    /// Whether the difference of two sums stands so to this constant.
    Compare(Cmp, i64),
    /// Of binary32, or of binary64.
    Float(Arith, Width),
    CompareFloats(Cmp),
    Negative,
    Fma,
    /// A function of numbers, by its address.
    Function(usize),
    Convert(Elem, Elem),
    /// Two numbers as the halves of a word.
    Pack(Elem),
    /// Words side by side.
    Vector,
    /// One of the parts of a value.
    Part(u32),
    /// The column of a row in which elements are exchanged.
    Exchange,
}

/// The registers of the machine that a kernel reads, with the dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Special {
    Block(u8),
    Thread(u8),
    ClusterRank,
}

/// Whether a number has 32 bits or 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Width {
    Word,
    Double,
}

/// What a value is, by which two are found to be the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Op(Operation, Vec<ValueId>),
    /// A sum of values, of 64 bits or of 32.
    Sum(Polynomial, bool),
    /// The address of what lies so many elements behind the start of a buffer, but for a constant.
    Address(u32, Polynomial),
    /// What is loaded from there, while the memory has changed so often.
    Load(ValueId, Offset, Epoch),
}
