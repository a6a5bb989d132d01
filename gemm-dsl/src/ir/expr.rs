mod convert;
mod operator;

pub use operator::{Arith, BinaryOp, Cmp, Integer, Logic, UnaryOp};

use super::{BufferId, Const, Elem, FunctionId, Intrinsic, Scalar, Ty, Var};
use crate::target::intrinsic::Semantics;

/// Pure expression. [`Expr::ty`] returns its type. The builder functions ensure that operands have
/// the same type: if one is `U64`, they widen an `I32` operand to `U64`.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    I32(i32),
    U64(u64),
    F32(f32),
    F64(f64),
    U32(u32),
    I64(i64),
    Const(Const),
    Param(Scalar),
    Var(Var),
    /// Coordinate of the thread, of type [`Ty::I32`].
    Special(Special),
    Unary(UnaryOp, Box<Expr>),
    /// Binary operator. Both operands have the same type.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `cond ? yes : no`; only the selected operand is evaluated.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Numeric conversion, see the module documentation of the IR.
    Cast(Elem, Box<Expr>),
    /// Reinterprets the bits as another type of the same size.
    Bitcast(Elem, Box<Expr>),
    Load(Access),
    Call(Intrinsic, Vec<Expr>),
    /// Call of one of the kernel's functions.
    Apply(FunctionId, Vec<Expr>),
    /// Packs elements of one type into a vector. Their number must be that of the vector.
    Pack(Vec<Expr>),
    /// Extracts one element of a vector.
    Lane(Box<Expr>, u8),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    pub buffer: BufferId,
    /// One expression for each logical dimension.
    pub index: Vec<Expr>,
    /// Number of elements that the access covers: 1, or 16 bytes of elements.
    pub lanes: u8,
}

impl Access {
    /// Access to one element.
    pub fn new(buffer: BufferId, index: impl IntoIterator<Item = Expr>) -> Self {
        Self { buffer, index: index.into_iter().collect(), lanes: 1 }
    }

    /// Widens the access to 16 bytes of consecutive elements, starting at the index.
    pub fn vector(mut self) -> Self {
        self.lanes = self.buffer.elem.vector_lanes();
        self
    }

    /// Returns true if the access moves 16 bytes.
    pub fn is_vector(&self) -> bool {
        self.lanes > 1
    }

    pub fn ty(&self) -> Ty {
        if self.is_vector() { Ty::Vector(self.buffer.elem) } else { Ty::Scalar(self.buffer.elem) }
    }

    pub fn load(self) -> Expr {
        Expr::Load(self)
    }
}

/// Coordinate of the executing thread or block; always below 2^31.
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
    /// `blockIdx.z`
    BlockZ,
    /// Index of the block in its cluster: `blockIdx.x` modulo
    /// [`Kernel::cluster`](super::Kernel::cluster).
    ClusterRank,
}

impl Expr {
    pub fn ty(&self) -> Ty {
        match self {
            Expr::I32(_) | Expr::Special(_) => Ty::I32,
            Expr::U64(_) => Ty::U64,
            Expr::F32(_) => Ty::F32,
            Expr::F64(_) => Ty::F64,
            Expr::U32(_) => Ty::U32,
            Expr::I64(_) => Ty::I64,
            Expr::Lane(e, _) => match e.ty() {
                Ty::Vector(elem) => Ty::Scalar(elem),
                other => other,
            },
            Expr::Pack(parts) => match parts.first().map(Expr::ty) {
                Some(Ty::Scalar(elem)) => Ty::Vector(elem),
                _ => Ty::Bool,
            },
            Expr::Const(c) => c.ty,
            Expr::Param(p) => p.ty,
            Expr::Var(v) => v.ty,
            Expr::Unary(UnaryOp::Not, _) => Ty::Bool,
            Expr::Unary(UnaryOp::Neg, e) => e.ty(),
            Expr::Binary(op, ..) if op.is_predicate() => Ty::Bool,
            Expr::Binary(_, a, _) => a.ty(),
            Expr::Select(_, a, _) => a.ty(),
            Expr::Cast(elem, _) | Expr::Bitcast(elem, _) => Ty::Scalar(*elem),
            Expr::Load(access) => access.ty(),
            Expr::Apply(function, _) => function.result,
            Expr::Call(f, args) => match (f.info().semantics, args.first()) {
                (Semantics::Pack(_) | Semantics::Ballot, _) => Ty::U32,
                (Semantics::CountOnes, _) => Ty::I32,
                // All other intrinsics return the type of their first operand.
                (_, first) => first.map_or(Ty::Bool, Expr::ty),
            },
        }
    }

    /// Widens an `I32` expression to `U64`; returns any other expression unchanged.
    pub fn wide(self) -> Expr {
        match self {
            Expr::I32(v) if v >= 0 => Expr::U64(v as u64),
            e if e.ty() == Ty::I32 => Expr::Cast(Elem::U64, Box::new(e)),
            e => e,
        }
    }

    /// Binary operator. An `I32` operand is widened if the other operand is `U64`.
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
        Expr::binary(BinaryOp::Cmp(Cmp::Lt), self, other.into())
    }

    /// `self <= other`
    pub fn le(self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Cmp(Cmp::Le), self, other.into())
    }

    /// `self > other`
    pub fn gt(self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Cmp(Cmp::Gt), self, other.into())
    }

    /// `self >= other`
    pub fn ge(self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Cmp(Cmp::Ge), self, other.into())
    }

    /// `self == other`
    pub fn equals(self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Cmp(Cmp::Eq), self, other.into())
    }

    /// `self != other`
    pub fn differs(self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Cmp(Cmp::Ne), self, other.into())
    }

    /// Returns true if some bit of a `U32` is set: `self != 0u`
    pub fn any_bit(self) -> Expr {
        self.differs(Expr::U32(0))
    }

    /// `self && other`
    pub fn and(self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Logic(Logic::And), self, other.into())
    }

    /// `self || other`
    pub fn or(self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Logic(Logic::Or), self, other.into())
    }

    /// `self ^ other`
    pub fn xor(self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Integer(Integer::Xor), self, other.into())
    }

    /// `self ? yes : no`
    pub fn select(self, yes: impl Into<Expr>, no: impl Into<Expr>) -> Expr {
        Expr::Select(Box::new(self), Box::new(yes.into()), Box::new(no.into()))
    }

    /// Extracts element `lane` of a vector.
    pub fn lane(self, lane: u8) -> Expr {
        Expr::Lane(Box::new(self), lane)
    }

    /// Lesser of two integers.
    pub fn min(self, other: impl Into<Expr>) -> Expr {
        let other = other.into();
        self.clone().lt(other.clone()).select(self, other)
    }

    /// Greater of two integers.
    pub fn max(self, other: impl Into<Expr>) -> Expr {
        let other = other.into();
        other.clone().lt(self.clone()).select(self, other)
    }

    /// Expression that is always true.
    pub fn truth() -> Expr {
        Expr::I32(0).equals(0)
    }

    /// `!self`
    pub fn negated(self) -> Expr {
        Expr::Unary(UnaryOp::Not, Box::new(self))
    }

    /// Converts a number to another type; returns it unchanged if it already has that type.
    pub fn cast(self, elem: Elem) -> Expr {
        if self.ty() == Ty::Scalar(elem) { self } else { Expr::Cast(elem, Box::new(self)) }
    }

    /// Reinterprets the bits as another type of the same size.
    pub fn bitcast(self, elem: Elem) -> Expr {
        if self.ty() == Ty::Scalar(elem) { self } else { Expr::Bitcast(elem, Box::new(self)) }
    }

    /// `self / by` rounded up, as `(self + by - 1) / by`; both must be non-negative.
    pub fn div_ceil(self, by: impl Into<Expr>) -> Expr {
        let by = by.into();
        (self + by.clone() - 1) / by
    }

    fn is_int(&self, value: u32) -> bool {
        *self == Expr::I32(value as i32) || *self == Expr::U64(value.into())
    }

    /// Visits this expression and its subexpressions, parents first.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        f(self);
        match self {
            Expr::I32(_)
            | Expr::U64(_)
            | Expr::F32(_)
            | Expr::F64(_)
            | Expr::U32(_)
            | Expr::I64(_)
            | Expr::Const(_)
            | Expr::Param(_)
            | Expr::Var(_)
            | Expr::Special(_) => {}
            Expr::Unary(_, e) | Expr::Cast(_, e) | Expr::Bitcast(_, e) | Expr::Lane(e, _) => {
                e.visit(f);
            }
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
            Expr::Call(_, args) | Expr::Apply(_, args) => args.iter().for_each(|e| e.visit(f)),
            Expr::Pack(parts) => parts.iter().for_each(|e| e.visit(f)),
        }
    }
}

impl FunctionId {
    /// Calls the function with these operands.
    pub fn apply(self, args: impl IntoIterator<Item = Expr>) -> Expr {
        Expr::Apply(self, args.into_iter().collect())
    }
}
