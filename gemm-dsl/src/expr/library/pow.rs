//! Powers: 2^(y · log2 x), where the logarithm and the product are each a sum of two numbers.

use super::exp::{POWER, ROUNDER, SHIFTED, scale};
use super::log::{outside, split};
use super::{Function, abs, bits, call, declare, fma, max, min, neg, polynomial};
use crate::ir::{Expr, FunctionId, Intrinsic, KernelBuilder, Var};
use crate::target::intrinsic::CANONICAL_NAN;

/// Number, and the rounding error that must be added to it.
#[derive(Clone, Copy)]
struct Sum {
    high: Var,
    low: Var,
}

pub(in crate::expr) fn pow(b: &mut KernelBuilder) -> FunctionId {
    let scale = scale(b);
    let meaning = [
        "x^y, within {bound}: 2^(y log2 |x|), negated for a negative x and an odd y.",
        "Variables named ..._low hold rounding errors.",
    ];
    declare(b, Function::Pow, &meaning, |b, params| {
        let [x, y] = [params[0], params[1]];
        let a = b.let_("a", abs(x));
        let log = binary_logarithm(b, a);
        b.comment("y log2 |x|. Outside these bounds the result is 0 or infinite. NaN is kept.");
        let e = b.let_("e", y * log.high);
        let e_low = b.let_("e_low", fma(y, log.high, neg(e)) + y * log.low);
        let z = b.let_("z", min(max(e, -160.0), 160.0));
        let z_low = b.let_("z_low", Expr::from(z).equals(e).select(e_low, 0.0));
        b.comment(SHIFTED);
        let shifted = b.let_("shifted", z + ROUNDER);
        let fraction = b.let_("fraction", (z - (shifted - ROUNDER)) + z_low);
        b.comment("Polynomial for 2^fraction, in Horner form.");
        let p = polynomial(b, "p", &fraction.into(), &POWER);
        let magnitude = b.let_("magnitude", scale.apply([p.into(), bits(shifted)]));
        signed(b, x, y, magnitude)
    })
}

/// log2(a) for positive finite a. 0 has the logarithm −∞, and ∞ has ∞.
///
/// ln m = 2 · atanh(q) = 2 · (q + q · s · (1/3 + s · R(s))) with q = (m − 1) / (m + 1) and s = q².
fn binary_logarithm(b: &mut KernelBuilder, a: Var) -> Sum {
    /// 1/3 and 2 / ln 2, each as a sum of two numbers.
    const THIRD: f32 = 1.0 / 3.0;
    const THIRD_LOW: f32 = -9.934_108e-9;
    const TWO_LOG2_E: f32 = 2.0 * std::f32::consts::LOG2_E;
    const TWO_LOG2_E_LOW: f32 = 3.851_926e-8;
    let (n, f) = split(b, &a.into());
    b.comment("q = f / (2 + f); log2(1 + f) = 2 log2 e atanh(q).");
    let d = b.let_("d", f + 2.0);
    let d_low = b.let_("d_low", f - (d - 2.0));
    let inverse = b.let_("inverse", 1.0 / Expr::from(d));
    let q = b.let_("q", f * inverse);
    let q_low = b.let_("q_low", fma(neg(q), d_low, fma(neg(q), d, f)) * inverse);
    let s = b.let_("s", q * q);
    let s_low = b.let_("s_low", fma(q, q, neg(s)) + 2.0 * q * q_low);
    b.comment("Polynomial for ((atanh(q) / q - 1) / s - 1 / 3) / s, in Horner form.");
    let p = polynomial(b, "t", &s.into(), &AREA_TANGENT);
    let g = b.let_("g", s * THIRD);
    let rest = fma(s * s, p, fma(s, THIRD_LOW, s_low * THIRD));
    let g_low = b.let_("g_low", fma(s, THIRD, neg(g)) + rest);
    let h = b.let_("h", q * g);
    let h_low = b.let_("h_low", fma(q, g, neg(h)) + fma(q, g_low, q_low * g));
    let l = b.let_("l", q + h);
    let l_low = b.let_("l_low", ((q - l) + h) + (h_low + q_low));
    let m = b.let_("m", l * TWO_LOG2_E);
    let rest = fma(l, TWO_LOG2_E_LOW, l_low * TWO_LOG2_E);
    let m_low = b.let_("m_low", fma(l, TWO_LOG2_E, neg(m)) + rest);
    let sum = b.let_("sum", n + m);
    let low = b.let_("log_low", ((n - sum) + m) + m_low);
    let high = b.let_("log", outside(&a.into(), sum.into()));
    Sum { high, low }
}

/// Gives the magnitude its sign, and replaces it in the special cases of IEEE 754.
fn signed(b: &mut KernelBuilder, x: Var, y: Var, magnitude: Var) -> Expr {
    let whole = |e: Expr| call(Intrinsic::Trunc, [e.clone()]).equals(e);
    let is_integer = b.let_("is_integer", whole(y.into()));
    let half = b.let_("half", y * 0.5);
    let is_odd = Expr::from(is_integer).and(whole(half.into()).negated());
    let is_negative = (bits(x) >> Expr::U32(31)).any_bit();
    let is_number = Expr::from(magnitude).equals(magnitude);
    let negated = is_odd.and(is_negative).and(is_number);
    let real = b.let_("real", negated.select(neg(magnitude), magnitude));
    b.comment("A finite negative x has powers with integers only.");
    let finite = Expr::from(x).lt(0.0).and(Expr::from(x).gt(f32::NEG_INFINITY));
    let none = finite.and(Expr::from(is_integer).negated());
    let nan = f32::from_bits(CANONICAL_NAN);
    let power = b.let_("power", none.select(nan, real));
    let endless = Expr::from(x).equals(-1.0).and(abs(y).equals(f32::INFINITY));
    let one = Expr::from(x).equals(1.0).or(Expr::from(y).equals(0.0)).or(endless);
    one.select(1.0, power)
}

/// Coefficients of (atanh(q) / q − 1 − s / 3) / s² in s = q², for |q| ≤ 1/5.
const AREA_TANGENT: [f32; 4] = [0.099_620_86, 0.110_776_64, 0.142_862_35, 0.199_999_97];
