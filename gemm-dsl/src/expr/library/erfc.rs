//! Complementary error function.

use super::exp::{EXPONENTIAL, LN_2, LN_2_LOW, reduce, scale};
use super::{Function, abs, bits, fma, min, neg, polynomial, unary};
use crate::ir::{FunctionId, KernelBuilder};

/// Let a = |x|. Then erfc(a) = e^(−a²) · S / (a + 2), where S is smooth in u = (a − 2) / (a + 2),
/// and the result for negative x is 2 − erfc(a). a², 1 / (a + 2) and S are each represented by two
/// numbers, as in [`gelu`](super::gelu::gelu).
pub(in crate::expr) fn erfc(b: &mut KernelBuilder) -> FunctionId {
    let scale = scale(b);
    let meaning = [
        "1 - erf(x), within {bound}. With a = |x|: e^(-a^2) S(u) / (a + 2), where",
        "u = (a - 2) / (a + 2). Variables named ..._low hold rounding errors.",
    ];
    unary(b, Function::Erfc, &meaning, |b, x| {
        let a = b.let_("a", min(abs(x.clone()), 11.0));
        b.comment("e^(-a^2) = 2^n (1 + t).");
        let h = b.let_("h", a * a);
        let h_low = b.let_("h_low", fma(a, a, neg(h)));
        let z = b.let_("z", neg(h));
        let (shifted, n) = reduce(b, z);
        let r = b.let_("r", fma(n, -LN_2, z) + fma(n, -LN_2_LOW, neg(h_low)));
        let p = polynomial(b, "p", &r.into(), &EXPONENTIAL);
        let t = b.let_("t", fma(r * r, p, r));
        let d = b.let_("d", a + 2.0);
        let rest = b.let_("b", d - a);
        let d_low = b.let_("d_low", (a - (d - rest)) + (2.0 - rest));
        let q = b.let_("q", 1.0 / d);
        let q_low = b.let_("q_low", fma(neg(q), d_low, fma(neg(q), d, 1.0)) * q);
        b.comment("g = q S(u).");
        let u = b.let_("u", fma(-4.0, q_low, fma(-4.0, q, 1.0)));
        let s2 = polynomial(b, "s2", &u.into(), &RATIO);
        let s1 = b.let_("s1", fma(s2, u, RATIO_1));
        let s1_low = b.let_("s1_low", fma(s2, u, RATIO_1 - s1));
        let s = b.let_("s", fma(s1, u, RATIO_0));
        let s_low = fma(s1, u, RATIO_0 - s) + fma(s1_low, u, -RATIO_0_EXCESS);
        let s_low = b.let_("s_low", s_low);
        let g = b.let_("g", q * s);
        let g_low = b.let_("g_low", fma(q, s, neg(g)) + fma(q, s_low, q_low * s));
        let w = b.let_("w", g + fma(g, t, fma(g_low, t, g_low)));
        let tail = b.let_("tail", scale.apply([w.into(), bits(shifted)]));
        x.lt(0.0).select(2.0 - tail, tail)
    })
}

/// Coefficients of S(u) for x up to 10.1, except the last two. The constant one is the sum of two
/// numbers.
const RATIO: [f32; 9] = [
    6.943_781e-5,
    4.690_979_4e-5,
    -0.000_592_482_6,
    -0.000_832_151_1,
    0.003_062_559,
    0.006_475_881_7,
    -0.021_505_68,
    -0.036_441_762,
    0.279_471_78,
];
const RATIO_1: f32 = -0.687_160_7;
const RATIO_0: f32 = 1.021_582_7;
/// Amount by which `RATIO_0` exceeds the exact coefficient.
const RATIO_0_EXCESS: f32 = 3.540_783_7e-8;
