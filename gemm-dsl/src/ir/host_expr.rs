//! Expressions that the host evaluates at every launch, as flat code.

#[cfg(test)]
mod tests;

use super::eval::{binary, checked, eval};
use super::{BinaryOp, ConstDecl, Elem, Expr, HostError, List, Logic, Ty, UnaryOp};
use smallvec::SmallVec;

/// Integer or boolean expression over the scalars of a launch. It has the value that
/// [`Kernel::eval`](super::Kernel::eval) computes for the original [`Expr`].
#[derive(Clone, Debug, PartialEq)]
pub enum HostExpr {
    Number(u64),
    /// The scalar at this index, whose bits are its value.
    Scalar(usize),
    Code(List<HostOp>),
}

/// Operation on a stack of exact integers, on which a boolean is 0 or 1.
///
/// An operation with a type fails if its result does not fit the type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HostOp {
    /// Pushes a number.
    Number(u64),
    /// Pushes the bits of the scalar at this index.
    Scalar(usize, Ty),
    /// Negates the number on top.
    Neg(Ty),
    /// Negates the boolean on top.
    Not,
    /// Converts the number on top.
    Cast(Ty),
    /// Replaces the two numbers on top by the result of an operator other than [`BinaryOp::Logic`].
    Binary(BinaryOp, Ty),
    /// Pops a boolean, and skips this many operations if it is false.
    SkipUnless(usize),
    /// Skips this many operations.
    Skip(usize),
}

/// Stack of an evaluation. Few expressions are deeper.
type Stack = SmallVec<[i128; 8]>;

impl HostExpr {
    /// Compiles an expression that [`check`](super::eval::check) accepts.
    pub(super) fn new(expr: &Expr, consts: &[ConstDecl]) -> Result<Self, String> {
        if let Some(value) = constant(expr, consts) {
            return Ok(Self::Number(value));
        }
        if let Expr::Param(scalar) = expr
            && scalar.ty == Ty::U64
        {
            return Ok(Self::Scalar(scalar.param));
        }
        let mut compiler = Compiler { consts, code: Vec::new() };
        compiler.add(expr)?;
        Ok(Self::Code(compiler.code.into()))
    }

    /// Evaluates for the scalars of a launch.
    pub fn value(&self, scalars: &[u64]) -> Result<i128, HostError> {
        let scalar = |index: usize| scalars.get(index).copied().ok_or(HostError::Unbound(index));
        match self {
            Self::Number(value) => Ok((*value).into()),
            Self::Scalar(index) => scalar(*index).map(i128::from),
            Self::Code(code) => {
                let mut stack = Stack::new();
                let mut next = 0;
                while let Some(op) = code.get(next) {
                    next += 1;
                    match *op {
                        HostOp::Number(value) => stack.push(value.into()),
                        HostOp::Scalar(index, ty) => {
                            stack.push(checked(scalar(index)?.into(), ty)?);
                        }
                        HostOp::Neg(ty) => {
                            let value = pop(&mut stack);
                            stack.push(checked(-value, ty)?);
                        }
                        HostOp::Not => {
                            let value = pop(&mut stack);
                            stack.push(i128::from(value == 0));
                        }
                        HostOp::Cast(ty) => {
                            let value = pop(&mut stack);
                            stack.push(checked(value, ty)?);
                        }
                        HostOp::Binary(op, ty) => {
                            let (y, x) = (pop(&mut stack), pop(&mut stack));
                            let value = binary(op, x, y).ok_or(HostError::Overflow)?;
                            stack.push(checked(value, ty)?);
                        }
                        HostOp::SkipUnless(count) => {
                            next += if pop(&mut stack) == 0 { count } else { 0 }
                        }
                        HostOp::Skip(count) => next += count,
                    }
                }
                Ok(pop(&mut stack))
            }
        }
    }
}

/// Value of a constant expression that is not negative.
fn constant(expr: &Expr, consts: &[ConstDecl]) -> Option<u64> {
    eval(expr, consts, &[]).ok().and_then(|value| u64::try_from(value).ok())
}

struct Compiler<'a> {
    consts: &'a [ConstDecl],
    code: Vec<HostOp>,
}

impl Compiler<'_> {
    fn add(&mut self, expr: &Expr) -> Result<(), String> {
        if let Some(value) = constant(expr, self.consts) {
            self.code.push(HostOp::Number(value));
            return Ok(());
        }
        match expr {
            Expr::I32(value) => self.negative((*value).into(), Ty::I32),
            Expr::I64(value) => self.negative(*value, Ty::I64),
            Expr::Const(c) => match self.consts.get(c.id) {
                Some(decl) => {
                    self.add(&decl.value)?;
                    self.code.push(HostOp::Cast(c.ty));
                }
                None => return Err(HostError::NotUniform.to_string()),
            },
            Expr::Param(scalar) => self.code.push(HostOp::Scalar(scalar.param, scalar.ty)),
            Expr::Bitcast(Elem::U32, of) => match &**of {
                Expr::Param(scalar) => self.code.push(HostOp::Scalar(scalar.param, Ty::U32)),
                _ => return Err(HostError::NotUniform.to_string()),
            },
            Expr::Unary(UnaryOp::Not, of) => {
                self.add(of)?;
                self.code.push(HostOp::Not);
            }
            Expr::Unary(UnaryOp::Neg, of) => {
                self.add(of)?;
                self.code.push(HostOp::Neg(of.ty()));
            }
            Expr::Cast(to, of) => {
                self.add(of)?;
                self.code.push(HostOp::Cast(Ty::Scalar(*to)));
            }
            Expr::Select(cond, yes, no) => self.either(cond, yes, no)?,
            Expr::Binary(BinaryOp::Logic(Logic::And), a, b) => {
                self.either(a, b, &Expr::truth().negated())?;
            }
            Expr::Binary(BinaryOp::Logic(Logic::Or), a, b) => self.either(a, &Expr::truth(), b)?,
            Expr::Binary(op, a, b) => {
                self.add(a)?;
                self.add(b)?;
                self.code.push(HostOp::Binary(*op, expr.ty()));
            }
            // Numbers without a sign are constants.
            _ => return Err(HostError::NotUniform.to_string()),
        }
        Ok(())
    }

    fn negative(&mut self, value: i64, ty: Ty) {
        self.code.extend([HostOp::Number(value.unsigned_abs()), HostOp::Neg(ty)]);
    }

    /// Evaluates one of two expressions only.
    fn either(&mut self, cond: &Expr, yes: &Expr, no: &Expr) -> Result<(), String> {
        self.add(cond)?;
        let unless = self.code.len();
        self.code.push(HostOp::SkipUnless(0));
        self.add(yes)?;
        let skip = self.code.len();
        self.code.push(HostOp::Skip(0));
        self.add(no)?;
        self.code[unless] = HostOp::SkipUnless(skip - unless);
        self.code[skip] = HostOp::Skip(self.code.len() - skip - 1);
        Ok(())
    }
}

/// Pops a value. [`Compiler`] adds no operation without its operands.
fn pop(stack: &mut Stack) -> i128 {
    stack.pop().unwrap_or_else(|| unreachable!("Compiler: the operands precede an operation"))
}
