//! Expressions. Parentheses follow C's precedence; a few that C does not need are kept for the reader.

use crate::ir::{Access, BinaryOp, Expr, Kernel, Layout, Special, Ty, UnaryOp};

/// How tightly an expression binds in C, and whether its left operand may bind equally.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Prec {
    Ternary,
    Or,
    And,
    Xor,
    BitAnd,
    Equality,
    Relation,
    Shift,
    Sum,
    Product,
    Unary,
    Primary,
}

fn binary(op: BinaryOp) -> (Prec, &'static str) {
    match op {
        BinaryOp::Or => (Prec::Or, "||"),
        BinaryOp::And => (Prec::And, "&&"),
        BinaryOp::Xor => (Prec::Xor, "^"),
        BinaryOp::BitAnd => (Prec::BitAnd, "&"),
        BinaryOp::Eq => (Prec::Equality, "=="),
        BinaryOp::Ne => (Prec::Equality, "!="),
        BinaryOp::Lt => (Prec::Relation, "<"),
        BinaryOp::Le => (Prec::Relation, "<="),
        BinaryOp::Gt => (Prec::Relation, ">"),
        BinaryOp::Ge => (Prec::Relation, ">="),
        BinaryOp::Shl => (Prec::Shift, "<<"),
        BinaryOp::Shr => (Prec::Shift, ">>"),
        BinaryOp::Add => (Prec::Sum, "+"),
        BinaryOp::Sub => (Prec::Sum, "-"),
        BinaryOp::Mul => (Prec::Product, "*"),
        BinaryOp::Div => (Prec::Product, "/"),
        BinaryOp::Rem => (Prec::Product, "%"),
    }
}

/// The next tighter precedence: a right operand of an equal one needs parentheses.
fn above(prec: Prec) -> Prec {
    match prec {
        Prec::Ternary => Prec::Or,
        Prec::Or => Prec::And,
        Prec::And => Prec::Xor,
        Prec::Xor => Prec::BitAnd,
        Prec::BitAnd => Prec::Equality,
        Prec::Equality => Prec::Relation,
        Prec::Relation => Prec::Shift,
        Prec::Shift => Prec::Sum,
        Prec::Sum => Prec::Product,
        Prec::Product => Prec::Unary,
        Prec::Unary | Prec::Primary => Prec::Primary,
    }
}

/// Operators whose precedence readers do not remember: their binary operands are parenthesised.
fn is_obscure(prec: Prec) -> bool {
    matches!(prec, Prec::Xor | Prec::BitAnd | Prec::Shift)
}

/// The functions that spell 16-byte accesses.
pub(super) const LOAD4: &str = "load4";
pub(super) const STORE4: &str = "store4";

/// Their definitions.
pub(super) const LOAD4_DEFINITION: &str = "\
// Reads four floats by one 16-byte access.
__device__ __forceinline__ float4 load4(const float* from)
{
    return *reinterpret_cast<const float4*>(from);
}
";
pub(super) const STORE4_DEFINITION: &str = "\
// Writes four floats by one 16-byte access.
__device__ __forceinline__ void store4(float* to, float4 value)
{
    *reinterpret_cast<float4*>(to) = value;
}
";

/// The text of an expression that stands alone.
pub(super) fn text(k: &Kernel, e: &Expr) -> String {
    if let Expr::Special(s) = e { special(*s).to_owned() } else { print(k, e).0 }
}

/// The spelling of an operator that can be compounded with an assignment.
pub(super) fn compound(op: BinaryOp) -> Option<&'static str> {
    use BinaryOp::{Add, BitAnd, Div, Mul, Rem, Shl, Shr, Sub, Xor};
    matches!(op, Add | Sub | Mul | Div | Rem | Xor | BitAnd | Shl | Shr).then(|| binary(op).1)
}

/// The name of a type.
pub(super) fn ty(ty: Ty) -> &'static str {
    match ty {
        Ty::Bool => "bool",
        Ty::I32 => "int",
        Ty::U64 => "size_t",
        Ty::F32 => "float",
        Ty::F32x4 => "float4",
    }
}

/// The place of an access as an lvalue; of a vector access, its first element.
pub(super) fn element(k: &Kernel, access: &Access) -> String {
    let Some(buffer) = k.buffers.get(access.buffer.0) else {
        return String::new();
    };
    match &buffer.layout {
        Layout::Array { order, .. } => {
            let index = order.iter().filter_map(|&d| access.index.get(d));
            index.fold(buffer.name.clone(), |place, e| format!("{place}[{}]", text(k, e)))
        }
        Layout::Pointer { .. } => {
            let index = access.index.iter();
            index.fold(buffer.name.clone(), |place, e| format!("{place}[{}]", text(k, e)))
        }
        Layout::Strided { strides } => {
            let mut offset: Option<Expr> = None;
            for (d, index) in access.index.iter().enumerate() {
                // Widened before the product: an array may hold more than 2^31 elements.
                let term = match strides.get(d) {
                    Some(stride) => index.clone().wide() * stride.clone(),
                    None => index.clone(),
                };
                offset = Some(match offset {
                    Some(sum) => sum + term,
                    None => term,
                });
            }
            let offset = offset.map(|o| text(k, &o)).unwrap_or_default();
            format!("{}[{offset}]", buffer.name)
        }
    }
}

fn special(s: Special) -> &'static str {
    match s {
        Special::ThreadX => "threadIdx.x",
        Special::ThreadY => "threadIdx.y",
        Special::BlockX => "blockIdx.x",
        Special::BlockY => "blockIdx.y",
    }
}

fn float(v: f32) -> (String, Prec) {
    if v.is_finite() {
        let prec = if v.is_sign_negative() { Prec::Unary } else { Prec::Primary };
        (format!("{v:?}f"), prec)
    } else {
        // INFINITY and NAN are macros of a header that NVRTC does not have.
        (format!("__int_as_float({:#010x})", v.to_bits()), Prec::Primary)
    }
}

fn print(k: &Kernel, e: &Expr) -> (String, Prec) {
    let at_least = |e: &Expr, floor: Prec| -> String {
        let (text, prec) = print(k, e);
        if prec < floor { format!("({text})") } else { text }
    };
    match e {
        Expr::I32(v) if *v < 0 => (v.to_string(), Prec::Unary),
        Expr::I32(v) => (v.to_string(), Prec::Primary),
        Expr::U64(v) => (format!("{v}ull"), Prec::Primary),
        Expr::F32(v) => float(*v),
        Expr::Const(c) => (k.consts.get(c.id).map_or("", |d| &d.name).into(), Prec::Primary),
        Expr::Param(p) => (k.params.get(p.param).map_or("", |d| &d.name).into(), Prec::Primary),
        Expr::Var(v) => (k.vars.get(v.id).map_or("", |d| &d.name).into(), Prec::Primary),
        // The coordinates are unsigned in CUDA and would make a whole expression unsigned.
        Expr::Special(s) => (format!("(int){}", special(*s)), Prec::Unary),
        Expr::Unary(op, e) => {
            let sign = match op {
                UnaryOp::Not => "!",
                UnaryOp::Neg => "-",
            };
            // `- -x` must not become `--x`.
            let floor = if *op == UnaryOp::Neg { Prec::Primary } else { Prec::Unary };
            (format!("{sign}{}", at_least(e, floor)), Prec::Unary)
        }
        Expr::Cast(to, e) => {
            let inner = match &**e {
                Expr::Special(s) => special(*s).to_owned(),
                e => at_least(e, Prec::Unary),
            };
            (format!("({}){inner}", ty(*to)), Prec::Unary)
        }
        Expr::Binary(op, a, b) => {
            let (prec, sign) = binary(*op);
            let (a, b) = implicit(a, b);
            let operand = |e: &Expr, other: &Expr, floor: Prec| {
                // Beside a `size_t`, a small literal needs no suffix.
                let (text, inner) = match e {
                    Expr::U64(v) if *v <= i32::MAX as u64 && !matches!(other, Expr::U64(_)) => {
                        (v.to_string(), Prec::Primary)
                    }
                    e => print(k, e),
                };
                let for_the_reader = (is_obscure(prec) && inner < Prec::Unary)
                    || (prec == Prec::Or && inner == Prec::And);
                if inner < floor || for_the_reader { format!("({text})") } else { text }
            };
            let left = operand(a, b, prec);
            let right = operand(b, a, above(prec));
            (format!("{left} {sign} {right}"), prec)
        }
        Expr::Select(c, a, b)
            if **c == Expr::binary(BinaryOp::Lt, (**a).clone(), (**b).clone()) =>
        {
            (format!("min({}, {})", text(k, a), text(k, b)), Prec::Primary)
        }
        Expr::Select(c, a, b) => {
            let c = at_least(c, Prec::Or);
            let (a, b) = (at_least(a, Prec::Or), at_least(b, Prec::Ternary));
            (format!("{c} ? {a} : {b}"), Prec::Ternary)
        }
        Expr::Load(access) if access.lanes == 4 => {
            (format!("{LOAD4}(&{})", element(k, access)), Prec::Primary)
        }
        Expr::Load(access) => (element(k, access), Prec::Primary),
        Expr::Call(f, args) => {
            let row = f.row();
            // A warp-wide function names the lanes that take part: all of them.
            let mask = row.warp_wide.then(|| "0xffffffff".to_owned());
            let args: Vec<String> =
                mask.into_iter().chain(args.iter().map(|a| text(k, a))).collect();
            (format!("{}({})", row.cuda, args.join(", ")), Prec::Primary)
        }
        Expr::Pack(parts) => {
            let parts: Vec<String> = parts.iter().map(|p| text(k, p)).collect();
            (format!("make_float4({})", parts.join(", ")), Prec::Primary)
        }
        Expr::Lane(e, lane) => {
            let name = ["x", "y", "z", "w"].get(usize::from(*lane)).copied().unwrap_or("x");
            (format!("{}.{name}", at_least(e, Prec::Primary)), Prec::Primary)
        }
    }
}

/// Operands without the conversion that C makes by itself: an `int` beside a `size_t`.
fn implicit<'e>(a: &'e Expr, b: &'e Expr) -> (&'e Expr, &'e Expr) {
    match (a, b) {
        (Expr::U64(_), Expr::U64(_)) => (a, b),
        (_, Expr::Cast(Ty::U64, inner)) => (a, inner),
        _ => (a, b),
    }
}
