//! Evaluation of IR expressions by the rules of the IR, in which all conversions are explicit.

use crate::c::{Environment, Value};
use crate::trees::coordinate;
use Value::{Bool, Coordinate, F32, I32, I64, U32, U64, Unsigned};
use gemm_dsl::ir::{
    Arith, BinaryOp, Cmp, Elem, Expr, Function, Integer, Intrinsic, Kernel, Logic, Stmt, UnaryOp,
};
use gemm_dsl::target::intrinsic::Semantics;

/// Value of an expression, or None if it is undefined. Signed overflow, division by zero, a shift
/// by too many bits, and a conversion that would change the value are undefined.
pub fn value(kernel: &Kernel, names: &Environment, expr: &Expr) -> Option<Value> {
    let go = |e: &Expr| value(kernel, names, e);
    match expr {
        Expr::I32(v) => Some(I32(*v)),
        Expr::U64(v) => Some(U64(*v)),
        Expr::U32(v) => Some(U32(*v)),
        Expr::I64(v) => Some(I64(*v)),
        Expr::F32(v) => Some(F32(v.to_bits())),
        Expr::Const(c) => names.get(&kernel.consts.get(c.id)?.name).copied(),
        Expr::Param(p) => names.get(&kernel.params.get(p.param)?.name).copied(),
        Expr::Var(v) => match (kernel.vars.get(v.id)?, names.get(&kernel.vars.get(v.id)?.name)?) {
            (decl, Unsigned(value)) if decl.is_unsigned => i32::try_from(*value).ok().map(I32),
            (_, value) => Some(*value),
        },
        Expr::Special(s) => match names.get(coordinate(*s))? {
            Coordinate(v) => i32::try_from(*v).ok().map(I32),
            _ => None,
        },
        Expr::Unary(UnaryOp::Not, e) => match go(e)? {
            Bool(v) => Some(Bool(!v)),
            _ => None,
        },
        Expr::Unary(UnaryOp::Neg, e) => match go(e)? {
            I32(v) => v.checked_neg().map(I32),
            I64(v) => v.checked_neg().map(I64),
            F32(bits) => Some((-f32::from_bits(bits)).into()),
            _ => None,
        },
        Expr::Cast(elem, e) => cast(*elem, go(e)?),
        Expr::Bitcast(elem, e) => match (elem, go(e)?) {
            (Elem::F32, U32(bits) | F32(bits)) => Some(F32(bits)),
            (Elem::F32, I32(bits)) => Some(F32(bits as u32)),
            (Elem::U32, F32(bits) | U32(bits)) => Some(U32(bits)),
            (Elem::U32, I32(bits)) => Some(U32(bits as u32)),
            (Elem::I32, F32(bits) | U32(bits)) => Some(I32(bits as i32)),
            _ => None,
        },
        Expr::Select(c, a, b) => match go(c)? {
            Bool(true) => go(a),
            Bool(false) => go(b),
            _ => None,
        },
        Expr::Binary(BinaryOp::Logic(op), a, b) => match (op, go(a)?) {
            (Logic::And, Bool(false)) | (Logic::Or, Bool(true)) => go(a),
            _ => go(b),
        },
        Expr::Binary(op, a, b) => binary(*op, go(a)?, go(b)?),
        Expr::Call(f, args) => call(*f, &args.iter().map(go).collect::<Option<Vec<_>>>()?),
        Expr::Apply(f, args) => {
            let args: Vec<Value> = args.iter().map(go).collect::<Option<_>>()?;
            apply(kernel, kernel.functions.get(f.id)?, &args)
        }
        _ => None,
    }
}

/// Value of a function for these arguments.
pub fn apply(kernel: &Kernel, function: &Function, args: &[Value]) -> Option<Value> {
    let name = |var: &gemm_dsl::ir::Var| kernel[*var].name.clone();
    let params = function.params.iter().map(name);
    let mut names: Environment = params.zip(args.iter().copied()).collect();
    for stmt in &function.body {
        match stmt {
            Stmt::Let { var, value: e }
            | Stmt::Mut { var, value: e }
            | Stmt::Assign { var, value: e } => {
                let value = value(kernel, &names, e)?;
                names.insert(name(var), value);
            }
            Stmt::Comment(_) => {}
            _ => return None,
        }
    }
    value(kernel, &names, &function.value)
}

fn call(f: Intrinsic, args: &[Value]) -> Option<Value> {
    let Semantics::Float { f32, .. } = f.info().semantics else { return None };
    let mut operands = [0.0; 3];
    for (operand, arg) in operands.iter_mut().zip(args) {
        *operand = match arg {
            F32(bits) => f32::from_bits(*bits),
            _ => return None,
        };
    }
    Some(F32(f32(operands).to_bits()))
}

fn whole(value: Value) -> Option<i128> {
    match value {
        I32(v) => Some(v.into()),
        U32(v) => Some(v.into()),
        I64(v) => Some(v.into()),
        U64(v) => Some(v.into()),
        _ => None,
    }
}

fn cast(elem: Elem, value: Value) -> Option<Value> {
    let v = whole(value)?;
    match elem {
        Elem::I32 => v.try_into().ok().map(I32),
        Elem::U32 => v.try_into().ok().map(U32),
        Elem::I64 => v.try_into().ok().map(I64),
        Elem::U64 => v.try_into().ok().map(U64),
        Elem::F32 => Some(F32((v as f32).to_bits())),
        _ => None,
    }
}

fn binary(op: BinaryOp, a: Value, b: Value) -> Option<Value> {
    use BinaryOp::{Arith as A, Cmp as C, Integer as I};
    if let (F32(a), F32(b)) = (a, b) {
        let (a, b) = (f32::from_bits(a), f32::from_bits(b));
        return match op {
            A(Arith::Add) => Some((a + b).into()),
            A(Arith::Sub) => Some((a - b).into()),
            A(Arith::Mul) => Some((a * b).into()),
            A(Arith::Div) => Some((a / b).into()),
            C(op) => Some(Bool(compared(op, &a, &b))),
            _ => None,
        };
    }
    if a.ty() != b.ty() {
        return None;
    }
    let (x, y) = (whole(a)?, whole(b)?);
    let bits = if matches!(a, I64(_) | U64(_)) { 64 } else { 32 };
    let shift = || (0..bits).contains(&y).then_some(y as u32);
    let result = match op {
        A(Arith::Add) => x + y,
        A(Arith::Sub) => x - y,
        // The product of two 64-bit integers may need 128 bits. Only its lower bits are used.
        A(Arith::Mul) => x.wrapping_mul(y),
        A(Arith::Div) => x.checked_div(y)?,
        I(Integer::Rem) => x.checked_rem(y)?,
        I(Integer::Xor) => x ^ y,
        I(Integer::And) => x & y,
        I(Integer::Or) => x | y,
        I(Integer::Shl) if x >= 0 => x.wrapping_mul(1 << shift()?),
        I(Integer::Shr) if x >= 0 => x >> shift()?,
        I(Integer::Shl | Integer::Shr) => return None,
        C(op) => return Some(Bool(compared(op, &x, &y))),
        BinaryOp::Logic(_) => return None,
    };
    match a {
        I32(_) => result.try_into().ok().map(I32),
        I64(_) => result.try_into().ok().map(I64),
        U32(_) => Some(U32(result as u32)),
        _ => Some(U64(result as u64)),
    }
}

fn compared<T: PartialOrd>(op: Cmp, a: &T, b: &T) -> bool {
    match op {
        Cmp::Lt => a < b,
        Cmp::Le => a <= b,
        Cmp::Gt => a > b,
        Cmp::Ge => a >= b,
        Cmp::Eq => a == b,
        Cmp::Ne => a != b,
    }
}
