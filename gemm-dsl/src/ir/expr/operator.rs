//! Operators and their operand types.

use crate::ir::Ty;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    Not,
    /// Arithmetic negation of a signed integer or a floating-point number.
    Neg,
}

/// Binary operators. Both operands have the same type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Operator on numbers; the result has the type of the operands.
    Arith(Arith),
    /// Operator on integers; the result has the type of the operands.
    Integer(Integer),
    /// Comparison of numbers; the result is a boolean.
    Cmp(Cmp),
    Logic(Logic),
}

/// Arithmetic operators on integers and floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arith {
    Add,
    Sub,
    Mul,
    /// Quotient; the quotient of integers is truncated towards zero.
    Div,
}

/// Operators on integers only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Integer {
    /// Remainder, with the dividend's sign.
    Rem,
    And,
    Or,
    Xor,
    Shl,
    /// Right shift of a non-negative integer.
    Shr,
}

/// Comparisons. With a NaN all are false except [`Cmp::Ne`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cmp {
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
}

/// Short-circuiting connectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logic {
    /// Evaluates the right operand only if the left operand is true.
    And,
    /// Evaluates the right operand only if the left operand is false.
    Or,
}

impl BinaryOp {
    pub const ADD: Self = Self::Arith(Arith::Add);
    pub const SUB: Self = Self::Arith(Arith::Sub);
    pub const MUL: Self = Self::Arith(Arith::Mul);
    pub const DIV: Self = Self::Arith(Arith::Div);
    pub const REM: Self = Self::Integer(Integer::Rem);
    pub const LT: Self = Self::Cmp(Cmp::Lt);

    /// Returns true if the result is a boolean.
    pub fn is_predicate(self) -> bool {
        matches!(self, Self::Cmp(_) | Self::Logic(_))
    }
    /// Returns true if the operator is defined for operands of these types.
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
    /// Returns true if the operator is defined for an operand of this type.
    pub(crate) fn takes(self, ty: Ty) -> bool {
        match self {
            Self::Not => ty == Ty::Bool,
            Self::Neg => matches!(ty, Ty::I32 | Ty::I64 | Ty::F32 | Ty::F64),
        }
    }
}
