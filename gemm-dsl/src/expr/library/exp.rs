//! Exponentials, computed as a power of two times a polynomial near 1.

use super::{Function, abs, bits, fma, max, min, neg, of_bits, polynomial, unary};
use crate::ir::{Expr, FunctionId, KernelBuilder, Ty, Var};

/// 1.5 · 2^23. Adding it to a number rounds the number to an integer n, which is in the low bits of
/// the sum.
pub(super) const ROUNDER: f32 = 12_582_912.0;
/// Comment on the sum.
pub(super) const SHIFTED: &str =
    "Adding 1.5 * 2^23 = 12582912 leaves the integer n in the low bits.";
pub(super) const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2, as a sum of two numbers.
pub(super) const LN_2: f32 = std::f32::consts::LN_2;
pub(super) const LN_2_LOW: f32 = -1.904_654_2e-9;

/// Coefficients of (e^r − 1 − r) / r² for |r| ≤ ln 2 / 2, the highest power first.
pub(super) const EXPONENTIAL: [f32; 5] =
    [0.001_382_098_3, 0.008_368_671, 0.041_668_262, 0.166_665_21, 0.499_999_94];

/// Declares `p · 2^n`. It multiplies in two steps, of which only the second can round, overflow or
/// underflow. `n` is passed as the bits of `ROUNDER + n`.
pub(super) fn scale(b: &mut KernelBuilder) -> FunctionId {
    let meaning = [
        "p * 2^n, where shifted holds the bits of 12582912 + n. The multiplication has two steps,",
        "of which only the second can round.",
    ];
    let params = [("p", Ty::F32), ("shifted", Ty::U32)];
    b.function("scale_f32", &meaning, &params, |b, params| {
        let [p, shifted] = [params[0], params[1]];
        let half = b.let_("half", shifted >> Expr::U32(1));
        let power = |n: Expr| of_bits((n << Expr::U32(23)) + bits(1.0));
        b.comment(
            "Each shift by 23 moves half of n to the exponent, and drops the bits of 12582912.",
        );
        let first = b.let_("first", power(half.into()));
        let second = b.let_("second", power(shifted - half));
        p * first * second
    })
}

/// Returns the integer n nearest to `z · log2 e`, preceded by the sum `ROUNDER + n`.
pub(super) fn reduce(b: &mut KernelBuilder, z: Var) -> (Var, Var) {
    b.comment(SHIFTED);
    let shifted = b.let_("shifted", fma(z, LOG2_E, ROUNDER));
    let n = b.let_("n", shifted - ROUNDER);
    (shifted, n)
}

pub(in crate::expr) fn exp(b: &mut KernelBuilder) -> FunctionId {
    let scale = scale(b);
    let meaning = ["e^x, within {bound}: 2^n e^r with |r| <= ln 2 / 2."];
    unary(b, Function::Exp, &meaning, |b, x| {
        // Outside these bounds the result is 0 or infinite. NaN is kept.
        let z = b.let_("z", min(max(x, -105.0), 90.0));
        let (shifted, n) = reduce(b, z);
        let r = b.let_("r", fma(n, -LN_2_LOW, fma(n, -LN_2, z)));
        b.comment("Polynomial for e^r, in Horner form.");
        let coefficients: Vec<f32> = EXPONENTIAL.into_iter().chain([1.0, 1.0]).collect();
        let p = polynomial(b, "p", &r.into(), &coefficients);
        scale.apply([p.into(), bits(shifted)])
    })
}

/// Coefficients of (e^r − 1 − r) / r² for |r| < 0.42.
const EXPONENTIAL_MINUS_1: [f32; 6] =
    [0.000_199_119, 0.001_395_248, 0.008_333_288, 0.041_666_258, 0.166_666_67, 0.5];

pub(in crate::expr) fn expm1(b: &mut KernelBuilder) -> FunctionId {
    let meaning = [
        "e^x - 1, within {bound}: 2^k t + (2^k - 1) with t = e^r - 1. For |x| < 0.41, k is 0;",
        "otherwise |r| <= ln 2 / 2.",
    ];
    unary(b, Function::Expm1, &meaning, |b, x| {
        // Outside these bounds the result is −1 or infinite. NaN is kept.
        let z = b.let_("z", min(max(x.clone(), -30.0), 89.0));
        let near = b.let_("near", abs(z).lt(0.41));
        let (shifted, nearest) = reduce(b, z);
        let k = b.let_("k", Expr::from(near).select(0.0, nearest));
        let r = b.let_("r", fma(k, -LN_2_LOW, fma(k, -LN_2, z)));
        b.comment("Polynomial for (e^r - 1 - r) / r^2, in Horner form.");
        let p = polynomial(b, "p", &r.into(), &EXPONENTIAL_MINUS_1);
        let t = b.let_("t", fma(r * r, p, r));
        b.comment("2^(k - 1), which does not overflow. The shift drops the bits of 12582912.");
        let power = of_bits((bits(shifted) << Expr::U32(23)) + bits(0.5));
        let half = b.let_("half", Expr::from(near).select(0.5, power));
        let sum = b.let_("sum", 2.0 * fma(t, half, half - 0.5));
        // x² / 2 is less than a rounding error there, and halving a subnormal is not exact.
        abs(x.clone()).lt(NEGLIGIBLE).select(x, sum)
    })
}

/// Bound of |x| below which e^x − 1 rounds to x: 2^−25.
const NEGLIGIBLE: f32 = 2.980_232_2e-8;

/// Declares a faster e^x for x ≤ 0, for sums whose greatest term is 1. x is clamped to −87, below
/// which a term no longer affects the sum. For NaN the result is some number.
pub fn falling_exponential(b: &mut KernelBuilder) -> FunctionId {
    let meaning = [
        "e^max(x, -87) for x <= 0; relative error within (1.8 + 0.14 |x|) 1e-7 for x >= -87;",
        "exactly 1 at 0. Computed as 2^n 2^f with |f| <= 1 / 2; n is added to the exponent.",
        super::WRITTEN_OUT,
    ];
    b.function("falling_exp_f32", &meaning, &[("x", Ty::F32)], |b, params| {
        let z = b.let_("z", max(params[0], -87.0));
        let (shifted, n) = reduce(b, z);
        let f = b.let_("f", fma(z, LOG2_E, neg(n)));
        b.comment("Polynomial for 2^f, in Horner form.");
        let p = polynomial(b, "p", &f.into(), &SHORT_POWER);
        b.comment("The shift by 23 moves n to the exponent, and drops the bits of 12582912.");
        of_bits(bits(p) + (bits(shifted) << Expr::U32(23)))
    })
}

pub(in crate::expr) fn exp2(b: &mut KernelBuilder) -> FunctionId {
    let scale = scale(b);
    let meaning = ["2^x, within {bound}: 2^n 2^f with |f| <= 1 / 2."];
    unary(b, Function::Exp2, &meaning, |b, x| {
        let z = b.let_("z", min(max(x, -151.0), 129.0));
        b.comment(SHIFTED);
        let shifted = b.let_("shifted", z + ROUNDER);
        let f = b.let_("f", z - (shifted - ROUNDER));
        b.comment("Polynomial for 2^f, in Horner form.");
        let p = polynomial(b, "p", &f.into(), &POWER);
        scale.apply([p.into(), bits(shifted)])
    })
}

/// Coefficients of 2^f for |f| ≤ 1/2, exact at 0.
#[allow(clippy::approx_constant, reason = "a fitted coefficient near ln 2, not ln 2 itself")]
const SHORT_POWER: [f32; 6] =
    [0.001_326_509, 0.009_671_255, 0.055_507_306, 0.240_222_45, 0.693_147, 1.0];

/// Coefficients of 2^f for |f| ≤ 1/2.
#[allow(clippy::approx_constant, reason = "a fitted coefficient near ln 2, not ln 2 itself")]
pub(super) const POWER: [f32; 7] =
    [0.000_153_288_73, 0.001_339_097, 0.009_618_5, 0.055_503_596, 0.240_226_48, 0.693_147_2, 1.0];
