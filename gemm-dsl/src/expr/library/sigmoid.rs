//! Products of a number and a sigmoid, with one or two roundings in total.

use super::exp::{EXPONENTIAL, LN_2, LN_2_LOW, reduce, scale};
use super::{Function, abs, bits, fma, max, min, neg, polynomial, unary};
use crate::ir::{Expr, FunctionId, KernelBuilder, Ty};

/// Declares `y · σ(v + v_low)`, where v_low is small compared to v.
///
/// Let z = −|v| and e^z = 2^n (1 + t). The result is y / (1 + e^z) for positive v, and y (1 + t)
/// 2^n / (1 + e^z) for negative v. The denominator and the quotient are corrected by their rounding
/// errors. The power of two is applied last, so an underflowing result is rounded only once.
pub(super) fn times_sigmoid(b: &mut KernelBuilder) -> FunctionId {
    let scale = scale(b);
    let meaning = [
        "y / (1 + e^-(v + v_low)), within 0.6 ulp where v + v_low is exact: with e^-|v| = 2^n (1 + \
         t),",
        "a quotient that is corrected by its rounding error.",
    ];
    let params = [("y", Ty::F32), ("v", Ty::F32), ("v_low", Ty::F32)];
    b.function("times_sigmoid_f32", &meaning, &params, |b, params| {
        let [y, v, v_low] = [params[0], params[1], params[2]];
        let z = b.let_("z", neg(min(abs(v), 160.0)));
        let (shifted, n) = reduce(b, z);
        let negative = b.let_("negative", Expr::from(v).lt(0.0));
        let low = b.let_("low", Expr::from(negative).select(v_low, neg(v_low)));
        let r = b.let_("r", fma(n, -LN_2, z) + fma(n, -LN_2_LOW, low));
        let p = polynomial(b, "p", &r.into(), &EXPONENTIAL);
        let t = b.let_("t", fma(r * r, p, r));
        let power = b.let_("power", scale.apply([1.0.into(), bits(shifted)]));
        let e = b.let_("e", fma(power, t, power));
        let e_low = b.let_("e_low", fma(power, t, power - e));
        let d = b.let_("d", 1.0 + Expr::from(e));
        let d_low = b.let_("d_low", (e - (d - 1.0)) + e_low);
        let inverse = b.let_("inverse", 1.0 / Expr::from(d));
        let choose = |yes: Expr, no: Expr| Expr::from(negative).select(yes, no);
        let top = b.let_("top", choose(fma(y, t, y), y.into()));
        let top_low = b.let_("top_low", choose(fma(y, t, y - top), 0.0.into()));
        let q = b.let_("q", top * inverse);
        // Error of q, with the sign for which a q of −0 stays −0.
        let over = b.let_("over", fma(q, d_low, fma(q, d, neg(top))) - top_low);
        let w = b.let_("w", fma(neg(over), inverse, q));
        // Above 30 the sigmoid rounds to 1, and an infinite y must not be corrected.
        let scaled = choose(scale.apply([w.into(), bits(shifted)]), w.into());
        Expr::from(v).gt(30.0).select(y, scaled)
    })
}

pub(in crate::expr) fn sigmoid(b: &mut KernelBuilder) -> FunctionId {
    let times_sigmoid = times_sigmoid(b);
    unary(b, Function::Sigmoid, &["1 / (1 + e^-x), within {bound}."], |_, x| {
        times_sigmoid.apply([1.0.into(), x, 0.0.into()])
    })
}

pub(in crate::expr) fn silu(b: &mut KernelBuilder) -> FunctionId {
    let times_sigmoid = times_sigmoid(b);
    unary(b, Function::Silu, &["x / (1 + e^-x), within {bound}."], |_, x| {
        // Below −160 the result is −0, also for infinite x.
        times_sigmoid.apply([max(x.clone(), -160.0), x, 0.0.into()])
    })
}

/// Let z = x below 20, e^z = 2^n (1 + t) = e and g = e + 2. The result is x · e g / (e g + 2),
/// which is computed as x (1 + t) g / (e g + 2), corrected by the rounding errors of the three
/// products and of the quotient. The power of two is applied last, as in [`times_sigmoid`].
pub(in crate::expr) fn mish(b: &mut KernelBuilder) -> FunctionId {
    let scale = scale(b);
    let meaning = [
        "x tanh(ln(1 + e^x)), within {bound}. With e = e^x and g = e + 2: x e g / (e g + 2).",
        "Variables named ..._low hold rounding errors.",
    ];
    unary(b, Function::Mish, &meaning, |b, x| {
        // Above 20 the result is x, and below −160 it is −0.
        let z = b.let_("z", min(max(x.clone(), -160.0), 20.0));
        let (shifted, n) = reduce(b, z);
        let r = b.let_("r", fma(n, -LN_2_LOW, fma(n, -LN_2, z)));
        let p = polynomial(b, "p", &r.into(), &EXPONENTIAL);
        let t = b.let_("t", fma(r * r, p, r));
        let power = b.let_("power", scale.apply([1.0.into(), bits(shifted)]));
        let e = b.let_("e", fma(power, t, power));
        let e_low = b.let_("e_low", fma(power, t, power - e));
        let g = b.let_("g", e + 2.0);
        let g_low = b.let_("g_low", (e - (g - 2.0)) + e_low);
        let k = b.let_("k", e * g);
        let k_low = b.let_("k_low", fma(e, g, neg(k)) + fma(e, g_low, e_low * g));
        let d = b.let_("d", k + 2.0);
        let d_low = b.let_("d_low", (k - (d - 2.0)) + k_low);
        let inverse = b.let_("inverse", 1.0 / Expr::from(d));
        let y = b.let_("y", fma(z, t, z));
        let y_low = b.let_("y_low", fma(z, t, z - y));
        let top = b.let_("top", y * g);
        let top_low = b.let_("top_low", fma(y, g, neg(top)) + fma(y, g_low, y_low * g));
        let q = b.let_("q", top * inverse);
        let over = b.let_("over", fma(q, d_low, fma(q, d, neg(top))) - top_low);
        let w = b.let_("w", fma(neg(over), inverse, q));
        let result = b.let_("result", scale.apply([w.into(), bits(shifted)]));
        let is_x = x.clone().gt(20.0).or(x.clone().equals(0.0));
        is_x.select(x, result)
    })
}
