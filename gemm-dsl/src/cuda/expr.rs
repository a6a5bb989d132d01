//! Expressions. Parentheses follow C's precedence; some redundant ones are kept for readability.

use super::extremum::extremum;
use super::helper::{self, cluster};
use super::types::{dims_of, element_type};
use super::unsigned::{is_cast, is_natural, is_unsigned};
use crate::ir::{
    Access, Arith, BinaryOp, BufferId, BufferLayout, Cmp, Elem, Expr, Integer, Kernel, Logic,
    Special, Swizzle, Ty, UnaryOp,
};
use crate::target::intrinsic::Spelling;

/// Precedence of an expression in C, from loosest to tightest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Prec {
    Ternary,
    Or,
    And,
    BitOr,
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
        BinaryOp::Logic(Logic::Or) => (Prec::Or, "||"),
        BinaryOp::Logic(Logic::And) => (Prec::And, "&&"),
        BinaryOp::Integer(Integer::Or) => (Prec::BitOr, "|"),
        BinaryOp::Integer(Integer::Xor) => (Prec::Xor, "^"),
        BinaryOp::Integer(Integer::And) => (Prec::BitAnd, "&"),
        BinaryOp::Cmp(Cmp::Eq) => (Prec::Equality, "=="),
        BinaryOp::Cmp(Cmp::Ne) => (Prec::Equality, "!="),
        BinaryOp::Cmp(Cmp::Lt) => (Prec::Relation, "<"),
        BinaryOp::Cmp(Cmp::Le) => (Prec::Relation, "<="),
        BinaryOp::Cmp(Cmp::Gt) => (Prec::Relation, ">"),
        BinaryOp::Cmp(Cmp::Ge) => (Prec::Relation, ">="),
        BinaryOp::Integer(Integer::Shl) => (Prec::Shift, "<<"),
        BinaryOp::Integer(Integer::Shr) => (Prec::Shift, ">>"),
        BinaryOp::Arith(Arith::Add) => (Prec::Sum, "+"),
        BinaryOp::Arith(Arith::Sub) => (Prec::Sum, "-"),
        BinaryOp::Arith(Arith::Mul) => (Prec::Product, "*"),
        BinaryOp::Arith(Arith::Div) => (Prec::Product, "/"),
        BinaryOp::Integer(Integer::Rem) => (Prec::Product, "%"),
    }
}

/// Returns the next higher precedence. A right operand of equal precedence needs parentheses.
fn above(prec: Prec) -> Prec {
    match prec {
        Prec::Ternary => Prec::Or,
        Prec::Or => Prec::And,
        Prec::And => Prec::BitOr,
        Prec::BitOr => Prec::Xor,
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

/// Returns true if the operand has the same operator, so that it needs no parentheses for
/// readability. Shifts are excluded.
fn is_chain(prec: Prec, inner: Prec) -> bool {
    inner == prec && prec != Prec::Shift
}

/// Returns true for operators whose precedence is easily forgotten. Their binary operands are
/// parenthesised.
fn is_obscure(prec: Prec) -> bool {
    matches!(prec, Prec::BitOr | Prec::Xor | Prec::BitAnd | Prec::Shift)
}

/// Returns true for a quotient or a remainder, which is parenthesised as a factor.
fn is_quotient(e: &Expr) -> bool {
    matches!(e, Expr::Binary(BinaryOp::Arith(Arith::Div) | BinaryOp::Integer(Integer::Rem), ..))
}

/// Prints an expression that stands alone, where an unsigned coordinate needs no cast.
pub(super) fn text(k: &Kernel, e: &Expr) -> String {
    if let Expr::Special(s) = e { special(*s).to_owned() } else { operand(k, e) }
}

/// Prints an expression as an operand, with exactly its IR type.
pub(super) fn operand(k: &Kernel, e: &Expr) -> String {
    print(k, e).0
}

/// Prints the right operand of a compound assignment.
pub(super) fn right_operand(k: &Kernel, op: BinaryOp, left: &Expr, right: &Expr) -> String {
    if is_cast(k, op, left, right) && is_unsigned(k, right) {
        as_int(k, right).0
    } else {
        operand(k, right)
    }
}

/// Spelling of an operator that C can combine with an assignment.
pub(super) fn compound(op: BinaryOp) -> Option<&'static str> {
    (!op.is_predicate()).then(|| binary(op).1)
}

/// Lvalue of an access; for a vector access, its first element.
pub(super) fn element(k: &Kernel, access: &Access) -> String {
    let buffer = &k[access.buffer];
    let subscripts = |name: &str, index: &[Expr]| {
        index.iter().fold(name.to_owned(), |place, e| format!("{place}[{}]", text(k, e)))
    };
    match &buffer.layout {
        BufferLayout::Array { order, swizzle, .. } => {
            let mut index: Vec<Expr> = order.iter().map(|&d| access.index[d].clone()).collect();
            if let Some(swizzle) = swizzle {
                exchange(k, dims_of(buffer), *swizzle, &mut index);
            }
            subscripts(&buffer.name, &index)
        }
        BufferLayout::Pointer { .. } => subscripts(&buffer.name, &access.index),
        BufferLayout::Strided { strides }
        | BufferLayout::Listed { strides }
        | BufferLayout::OfList { strides, .. } => {
            // The first index of a list selects the pointer.
            let (list, index) = access.index.split_at(access.index.len() - strides.len());
            // The index is widened before the multiplication, because an array may have more than
            // 2^31 elements.
            let terms = index.iter().zip(strides);
            let (along, across): (Vec<_>, Vec<_>) =
                terms.partition(|(_, stride)| **stride == Expr::I32(1));
            let across =
                across.into_iter().map(|(index, stride)| index.clone().wide() * stride.clone());
            let along = along.into_iter().map(|(index, _)| index.clone());
            let offset = across.chain(along).reduce(|sum, term| sum + term);
            let offset = offset.unwrap_or(Expr::I32(0));
            format!("{}[{}]", subscripts(&buffer.name, list), text(k, &offset))
        }
    }
}

pub(super) fn indexed(k: &Kernel, buffer: BufferId, index: &[Expr]) -> String {
    let name = k[buffer].name.clone();
    index.iter().fold(name, |place, e| format!("{place}[{}]", text(k, e)))
}

/// Applies the XOR swizzle to the column index.
fn exchange(k: &Kernel, dims: Vec<Expr>, swizzle: Swizzle, index: &mut [Expr]) {
    let Some((column, rows)) = index.split_last_mut() else { return };
    let pow = |bits: u8| Expr::I32(1 << bits);
    // Row index across all outer dimensions. Further dimensions have no effect once the extents so
    // far are a multiple of the number of rows that the swizzle distinguishes.
    let reach = 1i128 << (swizzle.shift + swizzle.bits);
    let mut row = Expr::I32(0);
    let mut below = Expr::I32(1);
    for (i, dim) in rows.iter().zip(&dims).rev() {
        row = i.clone() * below.clone() + row;
        below = below * dim.clone();
        if k.eval_const(&below).is_ok_and(|n| n % reach == 0) {
            break;
        }
    }
    let chosen = row / pow(swizzle.shift) % pow(swizzle.bits) * pow(swizzle.base);
    *column = column.clone().xor(chosen);
}

fn special(s: Special) -> &'static str {
    match s {
        Special::ThreadX => "threadIdx.x",
        Special::ThreadY => "threadIdx.y",
        Special::BlockX => "blockIdx.x",
        Special::BlockY => "blockIdx.y",
        Special::BlockZ => "blockIdx.z",
        Special::ClusterRank => cluster::RANK,
    }
}

fn float(v: f32) -> (String, Prec) {
    if v.is_finite() {
        (format!("{v:?}f"), sign(v.is_sign_negative()))
    } else {
        // `INFINITY` and `NAN` are macros of a header that NVRTC does not provide.
        (format!("__int_as_float({:#010x})", v.to_bits()), Prec::Primary)
    }
}

fn double(v: f64) -> (String, Prec) {
    if v.is_finite() {
        (format!("{v:?}"), sign(v.is_sign_negative()))
    } else {
        (format!("__longlong_as_double({:#018x})", v.to_bits()), Prec::Primary)
    }
}

/// Precedence of a literal. A negative literal is a unary expression.
fn sign(negative: bool) -> Prec {
    if negative { Prec::Unary } else { Prec::Primary }
}

/// Prints a signed literal. C has no literal for the smallest value, because its digits alone would
/// have a wider type.
fn signed(v: i64, least: i64, suffix: &str) -> (String, Prec) {
    if v == least {
        (format!("({}{suffix} - 1)", v + 1), Prec::Primary)
    } else {
        (format!("{v}{suffix}"), sign(v < 0))
    }
}

/// Text and precedence of a literal.
fn literal(e: &Expr) -> (String, Prec) {
    match e {
        Expr::I32(v) => signed((*v).into(), i32::MIN.into(), ""),
        Expr::I64(v) => signed(*v, i64::MIN, "ll"),
        // Large values are usually bit masks, so they are printed in hexadecimal.
        Expr::U32(v) if *v >= 0x1000 => (format!("{v:#x}u"), Prec::Primary),
        Expr::U32(v) => (format!("{v}u"), Prec::Primary),
        Expr::U64(v) => (format!("{v}ull"), Prec::Primary),
        Expr::F32(v) => float(*v),
        Expr::F64(v) => double(*v),
        e => unreachable!("{e:?} is not a literal"),
    }
}

/// Text and precedence of a binary operation.
fn binary_text(k: &Kernel, op: BinaryOp, a: &Expr, b: &Expr) -> (String, Prec) {
    let (prec, sign) = binary(op);
    let cast = is_cast(k, op, a, b);
    let (a, b) = implicit(k, a, b);
    let side = |e: &Expr, other: &Expr, floor: Prec| {
        let (text, inner) = match e {
            Expr::U64(v) if is_suffix_idle(*v, other) => (v.to_string(), Prec::Primary),
            e if cast && is_unsigned(k, e) => as_int(k, e),
            e => print(k, e),
        };
        let for_the_reader = (is_obscure(prec) && inner < Prec::Unary && !is_chain(prec, inner))
            || (prec == Prec::Or && inner == Prec::And)
            || (prec == Prec::Product && is_quotient(e));
        if inner < floor || for_the_reader { format!("({text})") } else { text }
    };
    // The type of a shift follows from its left operand alone.
    let left = if prec == Prec::Shift { side(a, a, prec) } else { side(a, b, prec) };
    let right = side(b, a, above(prec));
    (format!("{left} {sign} {right}"), prec)
}

/// Prints an operand, in parentheses if its precedence is below `floor`.
fn operand_text(k: &Kernel, e: &Expr, floor: Prec) -> String {
    let (text, prec) = print(k, e);
    if prec < floor { format!("({text})") } else { text }
}

/// Text and precedence of a conversion.
fn cast_text(k: &Kernel, to: Elem, e: &Expr) -> (String, Prec) {
    match helper::conversion(e.ty(), to) {
        Some(Spelling { name, .. }) => (format!("{name}({})", text(k, e)), Prec::Primary),
        None => {
            let inner = match e {
                Expr::Special(s) => special(*s).to_owned(),
                e if is_unsigned(k, e) && !is_natural(k, e) => as_int(k, e).0,
                e => operand_text(k, e, Prec::Unary),
            };
            (format!("({}){inner}", element_type(to)), Prec::Unary)
        }
    }
}

/// Text and precedence of an unsigned expression cast to `int`.
fn as_int(k: &Kernel, e: &Expr) -> (String, Prec) {
    (format!("(int){}", operand_text(k, e, Prec::Unary)), Prec::Unary)
}

fn print(k: &Kernel, e: &Expr) -> (String, Prec) {
    let at_least = |e: &Expr, floor: Prec| operand_text(k, e, floor);
    match e {
        Expr::I32(_) | Expr::I64(_) | Expr::U32(_) | Expr::U64(_) | Expr::F32(_) | Expr::F64(_) => {
            literal(e)
        }
        Expr::Const(c) => (k[*c].name.clone(), Prec::Primary),
        Expr::Param(p) => (k[*p].name.clone(), Prec::Primary),
        Expr::Var(v) => (k[*v].name.clone(), Prec::Primary),
        Expr::Special(Special::ClusterRank) => (cluster::RANK.to_owned(), Prec::Primary),
        // CUDA's coordinates are unsigned and would make the whole expression unsigned.
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
        Expr::Cast(to, e) => cast_text(k, *to, e),
        Expr::Bitcast(to, e) => match helper::reinterpretation(e.ty(), *to) {
            Some(function) => (format!("{function}({})", text(k, e)), Prec::Primary),
            None => (format!("({}){}", element_type(*to), at_least(e, Prec::Unary)), Prec::Unary),
        },
        e if *e == Expr::truth() => ("true".to_owned(), Prec::Primary),
        Expr::Binary(op, a, b) => binary_text(k, *op, a, b),
        Expr::Select(c, a, b) => {
            // `size_t` and `unsigned long long` differ, and CUDA has no function of both.
            let is_wide_literal = |e: &Expr| matches!(e, Expr::U64(_) | Expr::I64(_));
            let is_mixed = is_wide_literal(a) || is_wide_literal(b);
            if let Some(name) = extremum(c, a, b).filter(|_| !is_mixed) {
                let side = |e| if is_unsigned(k, e) { as_int(k, e).0 } else { operand(k, e) };
                return (format!("{name}({}, {})", side(a), side(b)), Prec::Primary);
            }
            let c = at_least(c, Prec::Or);
            let (a, b) = (at_least(a, Prec::Or), at_least(b, Prec::Ternary));
            (format!("{c} ? {a} : {b}"), Prec::Ternary)
        }
        Expr::Load(access) if access.is_vector() => {
            let load = helper::vector::load(access.buffer.elem);
            (format!("{load}(&{})", element(k, access)), Prec::Primary)
        }
        Expr::Load(access) => (element(k, access), Prec::Primary),
        Expr::Call(f, args) => {
            let name = args.first().map_or("", |first| helper::spelling(*f, first.ty()).name);
            // A warp-wide function takes a mask of participating lanes, which are all lanes.
            let mask = f.info().warp_wide.then(|| "0xffffffff".to_owned());
            let args: Vec<String> =
                mask.into_iter().chain(args.iter().map(|a| text(k, a))).collect();
            (format!("{name}({})", args.join(", ")), Prec::Primary)
        }
        Expr::Apply(function, args) => {
            let args: Vec<String> = args.iter().map(|a| text(k, passed(a))).collect();
            (format!("{}({})", k.functions[function.id].name, args.join(", ")), Prec::Primary)
        }
        Expr::Pack(parts) => {
            let elem = parts.first().map(Expr::ty);
            let in_words = matches!(elem, Some(Ty::Scalar(elem)) if elem.size() < 4);
            if in_words && parts.iter().all(helper::is_zero) {
                return (helper::zeros(elem), Prec::Primary);
            }
            let parts: Vec<String> = parts.iter().map(|p| text(k, p)).collect();
            (helper::pack(elem, &parts), Prec::Primary)
        }
        Expr::Lane(e, lane) => {
            let Ty::Vector(elem) = e.ty() else {
                unreachable!("verified: a lane is one of a vector");
            };
            let (text, whole) = helper::lane(elem, &at_least(e, Prec::Primary), *lane);
            (text, if whole { Prec::Primary } else { Prec::Unary })
        }
    }
}

/// Drops a conversion of an argument from `int` to `long long`, which C performs implicitly.
fn passed(arg: &Expr) -> &Expr {
    match arg {
        Expr::Cast(Elem::I64, inner) if inner.ty() == Ty::I32 => inner,
        arg => arg,
    }
}

/// Drops a conversion of an operand to `size_t`, which C performs implicitly if the other operand
/// is a `size_t`.
fn implicit<'e>(k: &Kernel, a: &'e Expr, b: &'e Expr) -> (&'e Expr, &'e Expr) {
    match (a, b) {
        (_, Expr::Cast(_, inner)) if is_unsigned(k, inner) && !is_natural(k, inner) => (a, b),
        // The conversion is clearer than the suffix of a literal, so it is kept.
        (Expr::U64(_), _) => (a, b),
        (_, Expr::Cast(Elem::U64, inner)) if inner.ty() == Ty::I32 => (a, inner),
        _ => (a, b),
    }
}

/// Returns true if a `size_t` literal needs no suffix, because it is small and the other operand is
/// a `size_t`.
fn is_suffix_idle(literal: u64, other: &Expr) -> bool {
    literal <= i32::MAX as u64 && other.ty() == Ty::U64 && !matches!(other, Expr::U64(_))
}
