//! Odd functions that tend to ±1, computed as a polynomial near 0 and as 1 minus a small term
//! elsewhere.

use super::{Function, abs, exp, fma, min, neg, odd, polynomial, unary};
use crate::ir::{Expr, FunctionId, KernelBuilder};

pub(in crate::expr) fn tanh(b: &mut KernelBuilder) -> FunctionId {
    let exp = exp::exp(b);
    let meaning = ["tanh x, within {bound}: an odd polynomial, 1 - 2 / (e^2|x| + 1) from 0.63 on."];
    unary(b, Function::Tanh, &meaning, |b, x| {
        let a = b.let_("a", abs(x.clone()));
        let s = b.let_("s", x.clone() * x.clone());
        let p = polynomial(b, "p", &s.into(), &TANH);
        // x + x s p would turn −0 into +0.
        let small = b.let_("small", x.clone() * fma(s, p, 1.0));
        let large = b.let_("large", 1.0 - 2.0 / (exp.apply([2.0 * a]) + 1.0));
        Expr::from(a).lt(0.63).select(small, odd(x, large))
    })
}

pub(in crate::expr) fn erf(b: &mut KernelBuilder) -> FunctionId {
    let exp = exp::exp(b);
    let meaning = ["erf x, within {bound}: an odd polynomial, 1 - e^-q(|x|) from 0.93 on."];
    unary(b, Function::Erf, &meaning, |b, x| {
        let a = b.let_("a", abs(x.clone()));
        let s = b.let_("s", x.clone() * x.clone());
        let p = polynomial(b, "p", &s.into(), &ERF);
        let small = b.let_("small", fma(x.clone(), p, x.clone()));
        let c = b.let_("c", min(a, 4.0));
        let q = polynomial(b, "q", &c.into(), &ERFC_EXPONENT);
        let large = b.let_("large", 1.0 - exp.apply([neg(q * c)]));
        Expr::from(a).lt(0.93).select(small, odd(x, large))
    })
}

/// Coefficients of (tanh(x) / x − 1) / x² in x², for |x| < 0.63.
const TANH: [f32; 5] = [-0.005_680_683_5, 0.020_619_597, -0.053_734_56, 0.133_313_92, -0.333_332_8];

/// Coefficients of erf(x) / x − 1 in x², for |x| < 0.93.
const ERF: [f32; 7] = [
    7.969_663_4e-5,
    -0.000_804_383_95,
    0.005_191_948,
    -0.026_855_588,
    0.112_836_24,
    -0.376_126_3,
    0.128_379_17,
];

/// Coefficients of −ln(1 − erf(x)) / x for x in [0.93, 4]; erf(4) rounds to 1.
const ERFC_EXPONENT: [f32; 7] = [
    1.123_003_1e-5,
    -0.000_322_801_47,
    0.003_642_481_8,
    -0.023_762_16,
    0.106_237_03,
    0.635_151_2,
    1.128_648_5,
];
