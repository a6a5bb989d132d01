//! Operators, and the types that they take.

use crate::ir::Ty;

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// Logical negation.
    Not,
    /// Arithmetic negation of a signed integer or a floating-point number.
    Neg,
}

/// Binary operators on operands of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Of numbers; the result has their type.
    Arith(Arith),
    /// Of integers; the result has their type.
    Integer(Integer),
    /// Of numbers; the result is a truth value.
    Cmp(Cmp),
    /// Of truth values.
    Logic(Logic),
}

/// Arithmetic operators of integers and floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arith {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient, of integers towards zero.
    Div,
}

/// Operators that only integers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Integer {
    /// Remainder, with the dividend's sign.
    Rem,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Shift to the left.
    Shl,
    /// Shift of a non-negative integer to the right.
    Shr,
}

/// Comparisons. With a NaN all fail but [`Cmp::Ne`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cmp {
    /// Less than.
    Lt,
    /// Less than or equal.
    Le,
    /// Greater than.
    Gt,
    /// Greater than or equal.
    Ge,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
}

/// Connectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logic {
    /// The right operand is evaluated only where the left holds.
    And,
    /// The right operand is evaluated only where the left does not hold.
    Or,
}

impl BinaryOp {
    /// Sum.
    pub const ADD: Self = Self::Arith(Arith::Add);
    /// Difference.
    pub const SUB: Self = Self::Arith(Arith::Sub);
    /// Product.
    pub const MUL: Self = Self::Arith(Arith::Mul);
    /// Quotient.
    pub const DIV: Self = Self::Arith(Arith::Div);
    /// Remainder.
    pub const REM: Self = Self::Integer(Integer::Rem);
    /// Less than.
    pub const LT: Self = Self::Cmp(Cmp::Lt);

    /// Whether the result is a truth value.
    pub fn is_predicate(self) -> bool {
        matches!(self, Self::Cmp(_) | Self::Logic(_))
    }
    /// Whether it has a value for operands of these types.
    pub(crate) fn takes(self, a: Ty, b: Ty) -> bool {
        let fits = match self {
            Self::Arith(_) | Self::Cmp(_) => a.is_integer() || a.is_float(),
            Self::Integer(_) => a.is_integer(),
            Self::Logic(_) => a == Ty::Bool,
        };
        fits && a == b
    }
}

impl UnaryOp {
    /// Whether it has a value for an operand of this type.
    pub(crate) fn takes(self, ty: Ty) -> bool {
        match self {
            Self::Not => ty == Ty::Bool,
            Self::Neg => matches!(ty, Ty::I32 | Ty::I64 | Ty::F32 | Ty::F64),
        }
    }
}
