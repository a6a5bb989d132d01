//! What the hand-built kernels must compute, by Rust's own arithmetic.

use gemm_dsl::ir::{Arith, BinaryOp, Cmp, Elem, Integer, Intrinsic};
use half::{bf16, f16};

const NAN_F32: u64 = 0x7fff_ffff;
const NAN_F64: u64 = 0xfff8_0000_0000_0000;

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn single(value: f32) -> u64 {
    let bits = u64::from(value.to_bits());
    if bits & 0x7fff_ffff > 0x7f80_0000 { NAN_F32 } else { bits }
}

fn double(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits << 1 > 0x7ff0_0000_0000_0000 << 1 { NAN_F64 } else { bits }
}

/// The value of an integer.
fn integer(elem: Elem, bits: u64) -> i128 {
    match elem {
        Elem::I64 => (bits as i64).into(),
        Elem::U64 => bits.into(),
        Elem::I32 => (bits as i32).into(),
        Elem::U32 => (bits as u32).into(),
        Elem::I16 => (bits as i16).into(),
        Elem::U16 => (bits as u16).into(),
        Elem::I8 => (bits as i8).into(),
        _ => (bits as u8).into(),
    }
}

fn mask(elem: Elem) -> u64 {
    u64::MAX >> (64 - 8 * elem.size())
}

fn range(elem: Elem) -> (i128, i128) {
    let bits = 8 * elem.size();
    if elem.is_signed() {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}

/// The bits of an integer type that are nearest to a value another one has.
pub(super) fn fit(from: Elem, to: Elem, bits: u64) -> u64 {
    let (low, high) = range(to);
    integer(from, bits).clamp(low, high) as u64 & mask(from)
}

/// The conversion of the bits of one type to those of another.
pub(super) fn convert(from: Elem, to: Elem, bits: u64) -> u64 {
    let float = match from {
        Elem::F64 => Some(f64::from_bits(bits)),
        Elem::F32 | Elem::Tf32 => Some(f32_of(bits).into()),
        Elem::F16 => Some(f16::from_bits(bits as u16).to_f64()),
        Elem::Bf16 => Some(bf16::from_bits(bits as u16).to_f64()),
        _ => None,
    };
    let Some(value) = float else {
        let value = integer(from, bits);
        return match to {
            Elem::F64 => (value as f64).to_bits(),
            Elem::F32 => (value as f32).to_bits().into(),
            _ => value as u64 & mask(to),
        };
    };
    match to {
        Elem::F64 => double(value),
        // These keep the bits, a NaN's too.
        Elem::F32 if from == Elem::Bf16 => bits << 16,
        Elem::F32 if from == Elem::Tf32 => bits,
        Elem::F32 => single(value as f32),
        Elem::F16 if value.is_nan() => 0x7fff,
        Elem::F16 => f16::from_f32(f32_of(bits)).to_bits().into(),
        Elem::Bf16 if value.is_nan() => 0x7fff,
        Elem::Bf16 => bf16::from_f32(f32_of(bits)).to_bits().into(),
        Elem::Tf32 if value.is_nan() => NAN_F32,
        Elem::Tf32 if value.is_infinite() => bits,
        Elem::Tf32 => (bits + 0x1000) & 0xffff_e000,
        _ if value.is_nan() && from.size() == 4 && to.size() == 4 => 0,
        _ if value.is_nan() => 1 << (8 * to.size() - 1),
        Elem::I32 => u64::from(value as i32 as u32),
        Elem::U32 => u64::from(value as u32),
        Elem::I64 => value as i64 as u64,
        _ => value as u64,
    }
}

/// Operands for which an operator is defined, near those given.
pub(super) fn domain(elem: Elem, op: BinaryOp, a: u64, b: u64) -> (u64, u64) {
    let bits = u64::from(8 * elem.size());
    match op {
        BinaryOp::Integer(Integer::Shl) => (a, b % bits),
        // A negative integer is not shifted to the right.
        BinaryOp::Integer(Integer::Shr) if elem.is_signed() => (a & (mask(elem) >> 1), b % bits),
        BinaryOp::Integer(Integer::Shr) => (a, b % bits),
        _ => (a, b),
    }
}

/// An operator of a floating-point type, its result as bits.
macro_rules! operator {
    ($elem:expr, $op:expr, $a:expr, $b:expr, $bits:ident) => {{
        let (a, b) = ($a, $b);
        Some(match $op {
            BinaryOp::Arith(Arith::Add) => $bits(a + b),
            BinaryOp::Arith(Arith::Sub) => $bits(a - b),
            BinaryOp::Arith(Arith::Mul) => $bits(a * b),
            BinaryOp::Arith(Arith::Div) => $bits(a / b),
            BinaryOp::Cmp(op) => truth($elem, compare(op, a, b)),
            _ => return None,
        })
    }};
}

/// The result of an operator; none where it has none.
pub(super) fn binary(elem: Elem, op: BinaryOp, a: u64, b: u64) -> Option<u64> {
    match elem {
        Elem::F32 => operator!(elem, op, f32_of(a), f32_of(b), single),
        Elem::F64 => operator!(elem, op, f64::from_bits(a), f64::from_bits(b), double),
        _ => {
            let (x, y) = (integer(elem, a), integer(elem, b));
            let exact = match op {
                BinaryOp::Arith(Arith::Add) => x + y,
                BinaryOp::Arith(Arith::Sub) => x - y,
                // Of two unsigned 64-bit integers it may pass 127 bits; it wraps all the same.
                BinaryOp::Arith(Arith::Mul) => x.wrapping_mul(y),
                BinaryOp::Arith(Arith::Div) => x.checked_div(y)?,
                BinaryOp::Integer(Integer::Rem) => x.checked_rem(y)?,
                BinaryOp::Integer(Integer::And) => x & y,
                BinaryOp::Integer(Integer::Or) => x | y,
                BinaryOp::Integer(Integer::Xor) => x ^ y,
                BinaryOp::Integer(Integer::Shl) => x << y,
                BinaryOp::Integer(Integer::Shr) => x >> y,
                BinaryOp::Cmp(op) => return Some(truth(elem, compare(op, x, y))),
                BinaryOp::Logic(_) => return None,
            };
            let (low, high) = range(elem);
            let fits = (low..=high).contains(&exact);
            (fits || !elem.is_signed()).then_some(exact as u64 & mask(elem))
        }
    }
}

fn compare<T: PartialOrd>(op: Cmp, a: T, b: T) -> bool {
    match op {
        Cmp::Lt => a < b,
        Cmp::Le => a <= b,
        Cmp::Gt => a > b,
        Cmp::Ge => a >= b,
        Cmp::Eq => a == b,
        Cmp::Ne => a != b,
    }
}

/// One or zero.
fn truth(elem: Elem, holds: bool) -> u64 {
    match elem {
        Elem::F32 => f32::from(u8::from(holds)).to_bits().into(),
        Elem::F64 => f64::from(u8::from(holds)).to_bits(),
        _ => holds.into(),
    }
}

/// The negative.
pub(super) fn negated(elem: Elem, bits: u64) -> u64 {
    match elem {
        Elem::F32 => single(-f32_of(bits)),
        Elem::F64 => double(-f64::from_bits(bits)),
        _ => (-integer(elem, bits)) as u64 & mask(elem),
    }
}

/// A function of a floating-point type.
macro_rules! function {
    ($float:ident, $f:expr, $a:ident, $b:ident, $c:ident) => {
        match $f {
            Intrinsic::Fma => $a.mul_add($b, $c),
            Intrinsic::Maximum | Intrinsic::Minimum if $a.is_nan() || $b.is_nan() => $float::NAN,
            Intrinsic::Maximum if $a == $b => $float::from_bits($a.to_bits() & $b.to_bits()),
            Intrinsic::Minimum if $a == $b => $float::from_bits($a.to_bits() | $b.to_bits()),
            Intrinsic::Maximum => $a.max($b),
            Intrinsic::Minimum => $a.min($b),
            Intrinsic::Abs => $a.abs(),
            Intrinsic::Sqrt => $a.sqrt(),
            Intrinsic::Floor => $a.floor(),
            Intrinsic::RoundEven => $a.round_ties_even(),
            Intrinsic::ShuffleDown | Intrinsic::ShuffleXor | Intrinsic::OrOfLanes => {
                unreachable!("no function of one lane")
            }
            Intrinsic::PackBf16 | Intrinsic::PackF16 => unreachable!("it gives a word"),
        }
    };
}

/// The result of a function.
pub(super) fn unary(elem: Elem, f: Intrinsic, operands: &[u64]) -> u64 {
    let at = |i: usize| operands.get(i).copied().unwrap_or(0);
    match elem {
        Elem::F32 => {
            let [a, b, c] = [at(0), at(1), at(2)].map(f32_of);
            single(function!(f32, f, a, b, c))
        }
        _ => {
            let [a, b, c] = [at(0), at(1), at(2)].map(f64::from_bits);
            double(function!(f64, f, a, b, c))
        }
    }
}
