//! Expressions and the functions that build them.

mod convert;

use super::{BufferId, Const, Intrinsic, Scalar, Ty, Var};

/// A pure expression. [`Expr::ty`] is its type; the builder functions keep operands of one type by
/// widening `I32` to `U64` where the two meet.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A literal of type [`Ty::I32`].
    I32(i32),
    /// A literal of type [`Ty::U64`].
    U64(u64),
    /// A literal of type [`Ty::F32`].
    F32(f32),
    /// A named compile-time constant.
    Const(Const),
    /// A scalar parameter.
    Param(Scalar),
    /// A variable.
    Var(Var),
    /// A coordinate of the thread, of type [`Ty::I32`].
    Special(Special),
    /// A unary operator.
    Unary(UnaryOp, Box<Expr>),
    /// A binary operator on operands of one type.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `cond ? yes : no`, evaluating only the operand it needs.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Conversion between integer types, preserving the value.
    Cast(Ty, Box<Expr>),
    /// A read of memory.
    Load(Access),
    /// An intrinsic function.
    Call(Intrinsic, Vec<Expr>),
    /// Four `F32` as one `F32x4`.
    Pack(Box<[Expr; 4]>),
    /// One of the four elements of an `F32x4`.
    Lane(Box<Expr>, u8),
}

/// A place in memory: a buffer, a logical index and a width.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The buffer.
    pub buffer: BufferId,
    /// One expression for each logical dimension.
    pub index: Vec<Expr>,
    /// 1, or 4 for a 16-byte access.
    pub lanes: u8,
}

impl Access {
    /// One element.
    pub fn new(buffer: BufferId, index: impl IntoIterator<Item = Expr>) -> Self {
        Self { buffer, index: index.into_iter().collect(), lanes: 1 }
    }

    /// Four consecutive elements, the first at the index.
    pub fn vector(mut self) -> Self {
        self.lanes = 4;
        self
    }

    /// The type of the value at this place.
    pub fn ty(&self) -> Ty {
        if self.lanes == 4 { Ty::F32x4 } else { Ty::F32 }
    }

    /// The value at this place.
    pub fn load(self) -> Expr {
        Expr::Load(self)
    }
}

/// A coordinate of the executing thread or block, each below 2^31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    /// `threadIdx.x`
    ThreadX,
    /// `threadIdx.y`
    ThreadY,
    /// `blockIdx.x`
    BlockX,
    /// `blockIdx.y`
    BlockY,
}

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// Logical negation.
    Not,
    /// Arithmetic negation of an `I32` or `F32`.
    Neg,
}

/// Binary operators. Arithmetic and bit operators give the operands' type, the others `Bool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient, of integers towards zero.
    Div,
    /// Remainder of integers, with the dividend's sign.
    Rem,
    /// Bitwise exclusive or of integers.
    Xor,
    /// Bitwise and of integers.
    BitAnd,
    /// Shift of an integer to the left.
    Shl,
    /// Shift of a non-negative integer to the right.
    Shr,
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
    /// Logical and; the right operand is evaluated only where the left holds.
    And,
    /// Logical or; the right operand is evaluated only where the left does not hold.
    Or,
}

impl BinaryOp {
    /// Whether the result is a truth value.
    pub fn is_predicate(self) -> bool {
        use BinaryOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Or};
        matches!(self, Lt | Le | Gt | Ge | Eq | Ne | And | Or)
    }
}

impl Expr {
    /// The type of the value.
    pub fn ty(&self) -> Ty {
        match self {
            Expr::I32(_) | Expr::Special(_) => Ty::I32,
            Expr::U64(_) => Ty::U64,
            Expr::F32(_) | Expr::Lane(..) => Ty::F32,
            Expr::Pack(_) => Ty::F32x4,
            Expr::Const(c) => c.ty,
            Expr::Param(p) => p.ty,
            Expr::Var(v) => v.ty,
            Expr::Unary(UnaryOp::Not, _) => Ty::Bool,
            Expr::Unary(UnaryOp::Neg, e) => e.ty(),
            Expr::Binary(op, ..) if op.is_predicate() => Ty::Bool,
            Expr::Binary(_, a, _) => a.ty(),
            Expr::Select(_, a, _) => a.ty(),
            Expr::Cast(ty, _) => *ty,
            Expr::Load(access) => access.ty(),
            Expr::Call(f, _) => f.row().result,
        }
    }

    /// The expression widened to `U64`; unchanged if it is one.
    pub fn wide(self) -> Expr {
        match self {
            Expr::I32(v) if v >= 0 => Expr::U64(v as u64),
            e if e.ty() == Ty::I32 => Expr::Cast(Ty::U64, Box::new(e)),
            e => e,
        }
    }

    /// A binary operator, with an `I32` operand widened where the other is `U64`.
    pub fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
        let (a, b) = match (a.ty(), b.ty()) {
            (Ty::U64, Ty::I32) => (a, b.wide()),
            (Ty::I32, Ty::U64) => (a.wide(), b),
            _ => (a, b),
        };
        Expr::Binary(op, Box::new(a), Box::new(b))
    }

    /// `self < other`
    pub fn lt(self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Lt, self, other.into())
    }

    /// `self <= other`
    pub fn le(self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Le, self, other.into())
    }

    /// `self > other`
    pub fn gt(self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Gt, self, other.into())
    }

    /// `self >= other`
    pub fn ge(self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Ge, self, other.into())
    }

    /// `self == other`
    pub fn equals(self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Eq, self, other.into())
    }

    /// `self && other`
    pub fn and(self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::And, self, other.into())
    }

    /// `self || other`
    pub fn or(self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Or, self, other.into())
    }

    /// `self ^ other`
    pub fn xor(self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Xor, self, other.into())
    }

    /// `self ? yes : no`
    pub fn select(self, yes: impl Into<Expr>, no: impl Into<Expr>) -> Expr {
        Expr::Select(Box::new(self), Box::new(yes.into()), Box::new(no.into()))
    }

    /// Element `lane` of an `F32x4`.
    pub fn lane(self, lane: u8) -> Expr {
        Expr::Lane(Box::new(self), lane)
    }

    /// The smaller one.
    pub fn min(self, other: impl Into<Expr>) -> Expr {
        let other = other.into();
        self.clone().lt(other.clone()).select(self, other)
    }

    /// `self / by` rounded up, both non-negative: `(self + by - 1) / by`.
    pub fn div_ceil(self, by: impl Into<Expr>) -> Expr {
        let by = by.into();
        (self + by.clone() - 1) / by
    }

    fn is_int(&self, value: u32) -> bool {
        *self == Expr::I32(value as i32) || *self == Expr::U64(value.into())
    }

    /// Visits this expression and all below it, parents first.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        f(self);
        match self {
            Expr::I32(_)
            | Expr::U64(_)
            | Expr::F32(_)
            | Expr::Const(_)
            | Expr::Param(_)
            | Expr::Var(_)
            | Expr::Special(_) => {}
            Expr::Unary(_, e) | Expr::Cast(_, e) | Expr::Lane(e, _) => e.visit(f),
            Expr::Binary(_, a, b) => {
                a.visit(f);
                b.visit(f);
            }
            Expr::Select(c, a, b) => {
                c.visit(f);
                a.visit(f);
                b.visit(f);
            }
            Expr::Load(access) => access.index.iter().for_each(|e| e.visit(f)),
            Expr::Call(_, args) => args.iter().for_each(|e| e.visit(f)),
            Expr::Pack(parts) => parts.iter().for_each(|e| e.visit(f)),
        }
    }
}
