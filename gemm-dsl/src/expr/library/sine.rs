//! Sine and cosine: x = k · π/2 + r with |r| ≤ π/4, and polynomials in r.

use super::exp::ROUNDER;
use super::{Function, abs, bits, fma, neg, polynomial, unary};
use crate::ir::{Elem, Expr, FunctionId, KernelBuilder, Ty, Var};
use crate::target::intrinsic::CANONICAL_NAN;

/// Magnitude up to which k is at most 2^16, so three numbers give π/2 exactly enough.
const NEAR: f32 = 100_000.0;

/// π/2, as a sum of three numbers.
const HALF_PI: f32 = std::f32::consts::FRAC_PI_2;
const HALF_PI_LOW: f32 = -4.371_139e-8;
const HALF_PI_LOWEST: f32 = -1.715_124_5e-15;

/// The first 224 bits of 2/π, after 32 bits of zeros.
const INVERSE: [u32; 8] =
    [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];

/// 2^−62 · π/2, as a sum of two numbers.
const PART: f32 = 3.406_121_7e-19;
const PART_LOW: f32 = -9.478_396e-27;

pub(in crate::expr) fn sin(b: &mut KernelBuilder) -> FunctionId {
    let sine = sine_of_turns(b);
    let meaning = ["sin x, within {bound}."];
    unary(b, Function::Sin, &meaning, |_, x| {
        // Below 2^−12, x³ / 6 is less than a rounding error, and the sum would turn −0 into +0.
        let value = sine.apply([x.clone(), Expr::U32(0)]);
        abs(x.clone()).lt(0.000_244_140_63).select(x, value)
    })
}

pub(in crate::expr) fn cos(b: &mut KernelBuilder) -> FunctionId {
    let sine = sine_of_turns(b);
    unary(b, Function::Cos, &["cos x = sin(x + pi / 2), within {bound}."], |_, x| {
        sine.apply([x, Expr::U32(1)])
    })
}

/// Declares sin(x + k · π/2).
fn sine_of_turns(b: &mut KernelBuilder) -> FunctionId {
    let reduced = sine_of_reduced(b);
    let large = sine_of_large(b, reduced);
    let meaning = [
        "sin(x + k pi / 2). Up to 100000, x = n pi / 2 + r + r_low with pi / 2 as a sum of three",
        "floats.",
    ];
    b.function("sine_f32", &meaning, &[("x", Ty::F32), ("k", Ty::U32)], |b, params| {
        let [x, k] = [params[0], params[1]];
        let a = b.let_("a", abs(x));
        b.comment(super::exp::SHIFTED);
        let shifted = b.let_("shifted", fma(x, std::f32::consts::FRAC_2_PI, ROUNDER));
        let n = b.let_("n", shifted - ROUNDER);
        let first = b.let_("first", fma(n, -HALF_PI, x));
        let second = b.let_("second", n * HALF_PI_LOW);
        let second_low = b.let_("second_low", fma(n, HALF_PI_LOW, neg(second)));
        let r = b.let_("r", first - second);
        let rest = ((first - r) - second) - second_low;
        let r_low = b.let_("r_low", fma(n, -HALF_PI_LOWEST, rest));
        let near = reduced.apply([r.into(), r_low.into(), bits(shifted) + k]);
        let nan = f32::from_bits(CANONICAL_NAN);
        let far = Expr::from(a).lt(f32::INFINITY).select(large.apply([x.into(), k.into()]), nan);
        Expr::from(a).lt(NEAR).select(near, far)
    })
}

/// Declares sin(r + r_low + k · π/2) for |r| ≤ π/4.
fn sine_of_reduced(b: &mut KernelBuilder) -> FunctionId {
    let meaning = ["sin(r + r_low + k pi / 2) for |r| <= pi / 4, where r_low is a rounding error."];
    let params = [("r", Ty::F32), ("r_low", Ty::F32), ("k", Ty::U32)];
    b.function("sine_of_reduced_f32", &meaning, &params, |b, params| {
        let [r, r_low, k] = [params[0], params[1], params[2]];
        let s = b.let_("s", r * r);
        b.comment("c + c_low = 1 - r^2 / 2.");
        let c = b.let_("c", fma(s, -0.5, 1.0));
        let c_low = b.let_("c_low", fma(s, -0.5, 1.0 - c));
        let p = polynomial(b, "p", &s.into(), &SINE);
        let sine = b.let_("sine", r + fma(r * s, p, r_low * c));
        let q = polynomial(b, "q", &s.into(), &COSINE);
        let cosine = b.let_("cosine", c + fma(s * s, q, fma(neg(r), r_low, c_low)));
        let is_odd = (k & Expr::U32(1)).any_bit();
        let value = b.let_("value", is_odd.select(cosine, sine));
        (k & Expr::U32(2)).any_bit().select(neg(value), value)
    })
}

/// Declares sin(x + k · π/2) for x from [`NEAR`] on, by the method of Payne and Hanek.
///
/// Let |x| = m · 2^e with an integer m of 24 bits. |x| · 2/π modulo 4 is m times 96 bits of 2/π;
/// bits of a higher weight give multiples of 4. The two highest bits of the product, rounded to an
/// integer, count the quarter turns. The rest is r in units of 2^−62 · π/2. No `f32` is nearer to a
/// multiple of π/2 than 2^−30, so r has at least 32 exact bits.
fn sine_of_large(b: &mut KernelBuilder, reduced: FunctionId) -> FunctionId {
    let meaning = [
        "sin(x + k pi / 2) for 100000 <= |x|, finite: Payne and Hanek's reduction. |x| 2 / pi",
        "modulo 4 is the 24 bits of x times the 96 bits of 2 / pi that matter for its exponent.",
    ];
    let params = [("x", Ty::F32), ("k", Ty::U32)];
    b.function("sine_of_large_f32", &meaning, &params, |b, params| {
        let [x, k] = [params[0], params[1]];
        let x_bits = b.let_("x_bits", bits(abs(x)));
        let first = b.let_("first", (x_bits >> Expr::U32(23)) - Expr::U32(120));
        let word = b.let_("word", first >> Expr::U32(5));
        let shift = b.let_("shift", first & Expr::U32(31));
        b.comment("Four words of 2 / pi, shifted so that bit `first` is the highest.");
        let words = |from: usize| {
            let at = |i: usize| Expr::U32(INVERSE[i]);
            let choices = (0..4).rev().fold(at(from + 4), |later, i| {
                Expr::from(word).equals(Expr::U32(i as u32)).select(at(from + i), later)
            });
            choices.cast(Elem::U64)
        };
        let pair = |from: usize| (words(from) << Expr::U64(32)) | words(from + 1);
        let upper = b.let_("upper", pair(0));
        let lower = b.let_("lower", pair(2));
        let by = b.let_("by", Expr::from(shift).cast(Elem::U64));
        let carried = (lower >> Expr::U64(1)) >> (Expr::U64(63) - by);
        let high = b.let_("high", (upper << by) | carried);
        let next = b.let_("next", (lower << by) >> Expr::U64(32));
        let mantissa = (x_bits & Expr::U32(0x7f_ffff)) | Expr::U32(0x80_0000);
        let m = b.let_("m", mantissa.cast(Elem::U64));
        b.comment("Quarter turns in the two highest bits, and their fraction.");
        let turns = b.let_("turns", m * high + ((m * next) >> Expr::U64(32)));
        let up = b.let_("up", (turns >> Expr::U64(61)) & Expr::U64(1));
        let n = b.let_("n", ((turns >> Expr::U64(62)) + up).cast(Elem::U32));
        let part = b.let_("part", turns & Expr::U64((1 << 62) - 1));
        let rest = Expr::U64(1 << 62) - part;
        let distance = b.let_("distance", Expr::from(up).equals(Expr::U64(1)).select(rest, part));
        b.comment(
            "The distance to the nearest quarter turn, in units of 2^-62 pi / 2, as s + s_low.",
        );
        let number = |e: Expr| e.cast(Elem::U32).cast(Elem::F32);
        let s1 = b.let_("s1", number(distance >> Expr::U64(38)) * 274_877_906_944.0);
        let middle = (distance >> Expr::U64(14)) & Expr::U64(0xff_ffff);
        let s2 = b.let_("s2", number(middle) * 16384.0);
        let s = b.let_("s", s1 + s2);
        let s3 = number(distance & Expr::U64(0x3fff));
        let s_low = b.let_("s_low", (s2 - (s - s1)) + s3);
        let r = b.let_("r", s * PART);
        let r_low = b.let_("r_low", fma(s, PART, neg(r)) + fma(s, PART_LOW, s_low * PART));
        b.comment("A negative x turns backwards. A distance that was rounded up is negative.");
        let negative = b.let_("negative", bits(x) >> Expr::U32(31));
        let backwards = Expr::from(up).cast(Elem::U32).xor(negative).any_bit();
        let backwards = b.let_("backwards", backwards);
        let signed = |value: Var| Expr::from(backwards).select(neg(value), value);
        let quarter = Expr::from(negative).any_bit().select(Expr::U32(0) - n, n);
        reduced.apply([signed(r), signed(r_low), quarter + k])
    })
}

/// Coefficients of (sin(r) / r − 1) / r² in r², for |r| ≤ π/4.
const SINE: [f32; 3] = [-0.000_195_184_05, 0.008_332_19, -0.166_666_55];

/// Coefficients of (cos(r) − 1 + r² / 2) / r⁴ in r², for |r| ≤ π/4.
const COSINE: [f32; 3] = [2.443_067e-5, -0.001_388_730_1, 0.041_666_646];
