//! Gaussian error linear unit and its common approximation.

use super::exp::{EXPONENTIAL, LN_2, LN_2_LOW, reduce, scale};
use super::sigmoid::times_sigmoid;
use super::{Function, abs, bits, fma, max, min, neg, polynomial, unary};
use crate::ir::{FunctionId, KernelBuilder};

/// Let a = |x| and Φ(−a) = e^(−a²/2) · S / (a + 3), where S is smooth in u = (a − 3) / (a + 3). The
/// result is −a · Φ(−a) for negative x, and x − a · Φ(−a) for positive x. a², a / (a + 3) and S are
/// each represented by two numbers, so the rounding of the last steps is nearly all of the error.
pub(in crate::expr) fn gelu(b: &mut KernelBuilder) -> FunctionId {
    let scale = scale(b);
    let meaning = [
        "x * Phi(x) of the normal distribution, within {bound}. With a = |x|: a Phi(-a)",
        "is e^(-a^2 / 2) S(u) a / (a + 3), where u = (a - 3) / (a + 3). Variables named",
        "..._low hold rounding errors.",
    ];
    unary(b, Function::Gelu, &meaning, |b, x| {
        let a = b.let_("a", min(abs(x.clone()), 16.0));
        b.comment("e^(-a^2 / 2) = 2^n (1 + t).");
        let h = b.let_("h", a * a);
        let h_low = b.let_("h_low", fma(a, a, neg(h)));
        let z = b.let_("z", -0.5 * h);
        let (shifted, n) = reduce(b, z);
        let r = b.let_("r", fma(n, -LN_2, z) + fma(n, -LN_2_LOW, -0.5 * h_low));
        let p = polynomial(b, "p", &r.into(), &EXPONENTIAL);
        let t = b.let_("t", fma(r * r, p, r));
        b.comment("q = a / (a + 3).");
        let d = b.let_("d", a + 3.0);
        let rest = b.let_("b", d - a);
        let d_low = b.let_("d_low", (a - (d - rest)) + (3.0 - rest));
        let inverse = b.let_("inverse", 1.0 / d);
        let q = b.let_("q", a * inverse);
        let q_low = b.let_("q_low", fma(neg(q), d_low, fma(neg(q), d, a)) * inverse);
        b.comment("g = q S(u).");
        let u = b.let_("u", fma(2.0, q_low, fma(2.0, q, -1.0)));
        let s1 = polynomial(b, "s1", &u.into(), &RATIO);
        let s = b.let_("s", fma(s1, u, RATIO_0));
        let s_low = b.let_("s_low", fma(s1, u, RATIO_0 - s) - RATIO_0_EXCESS);
        let g = b.let_("g", q * s);
        let g_low = b.let_("g_low", fma(q, s, neg(g)) + fma(q, s_low, q_low * s));
        let w = b.let_("w", g + fma(g, t, fma(g_low, t, g_low)));
        let tail = b.let_("tail", scale.apply([w.into(), bits(shifted)]));
        x.clone().lt(0.0).select(neg(tail), x - tail)
    })
}

/// Coefficients of S(u), except the constant one, which is the sum of two numbers.
const RATIO: [f32; 10] = [
    5.228_324e-5,
    0.000_127_747_74,
    -0.000_243_379_68,
    -0.001_028_606_6,
    0.001_024_764_8,
    0.006_967_769_5,
    -0.010_462_608,
    -0.047_262_453,
    0.230_017_7,
    -0.509_332,
];
const RATIO_0: f32 = 0.729_083_7;
/// Amount by which `RATIO_0` exceeds the exact coefficient.
const RATIO_0_EXCESS: f32 = 2.645_292_9e-8;

/// x · σ(v), where v = 2 · sqrt(2/π) · (x + 0.044715 · x³) is a sum of two numbers.
pub(in crate::expr) fn gelu_tanh(b: &mut KernelBuilder) -> FunctionId {
    /// 2 · sqrt(2/π), and 0.044715 times this number.
    const LINEAR: f32 = 1.595_769_2;
    const LINEAR_LOW: f32 = -4.534_068e-8;
    const CUBIC: f32 = 0.071_354_814;
    const CUBIC_LOW: f32 = 2.398_832_5e-9;
    let times_sigmoid = times_sigmoid(b);
    let meaning = [
        "x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, within {bound}:",
        "x / (1 + e^-v), where v = x (1.59577 + 0.0713548 x^2) to twice the precision.",
    ];
    unary(b, Function::GeluTanh, &meaning, |b, x| {
        // Below −20 the result is −0, and above 20 it is x.
        let y = b.let_("y", max(x, -20.0));
        let c = b.let_("c", min(y, 20.0));
        let h = b.let_("h", c * c);
        let h_low = b.let_("h_low", fma(c, c, neg(h)));
        let p = b.let_("p", CUBIC * h);
        let p_low = b.let_("p_low", fma(CUBIC, h, neg(p)) + fma(CUBIC, h_low, CUBIC_LOW * h));
        let w = b.let_("w", LINEAR + p);
        let rest = b.let_("b", w - LINEAR);
        let w_low = (LINEAR - (w - rest)) + (p - rest) + (p_low + LINEAR_LOW);
        let w_low = b.let_("w_low", w_low);
        let v = b.let_("v", c * w);
        let v_low = b.let_("v_low", fma(c, w_low, fma(c, w, neg(v))));
        times_sigmoid.apply([y.into(), v.into(), v_low.into()])
    })
}
