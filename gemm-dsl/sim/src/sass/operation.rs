//! Operations. The same operation on the same values gives the same value.

use super::accesses::{Epoch, Offset};
use crate::lower::code::Slot;
use crate::sass::polynomial::{Polynomial, ValueId};
use gemm_dsl::ir::{Arith, BinaryOp, Cmp, Elem};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    Constant(i64),
    /// Value of an uninitialised variable.
    Undefined(Slot),
    /// Value that is known at launch, in the constant bank.
    Parameter(i64),
    Special(Special),
    /// Base address of shared memory.
    Window,
    /// Base address of a buffer, by number.
    Pointer(u32),
    Not,
    And,
    Or,
    Select,
    /// Integer operator. The flag is true for 64 bits and false for 32.
    Integer(BinaryOp, bool),
    /// Comparison of the difference of two sums with a constant.
    Compare(Cmp, i64),
    /// Operator on binary32 or binary64.
    Float(Arith, Width),
    CompareFloats(Cmp),
    Negative,
    Fma,
    /// Function of numbers, identified by its address.
    Function(usize),
    Convert(Elem, Elem),
    CountOnes,
    /// Two numbers, converted and packed as the halves of a word.
    Pack(Elem),
    Vector,
    Part(u32),
    /// Swizzled column of an element.
    Exchange,
}

/// Special registers that a kernel reads, with their dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Special {
    Block(u8),
    Thread(u8),
    ClusterRank,
}

/// Size of a number: 32 or 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Width {
    Word,
    Double,
}

/// Identity of a value, for common-subexpression elimination.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Op(Operation, Vec<ValueId>),
    /// Sum of values. The flag is true for 64 bits and false for 32.
    Sum(Polynomial, bool),
    /// Address in a buffer, without its constant part.
    Address(u32, Polynomial),
    /// Value loaded from an address, for a version of the memory.
    Load(ValueId, Offset, Epoch),
}
