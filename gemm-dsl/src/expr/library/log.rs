//! Logarithms: x = 2^n · m with m in [2/3, 4/3), and a polynomial in f = m − 1.

use super::{Function, bits, fma, of_bits, polynomial, unary};
use crate::ir::{Elem, Expr, FunctionId, KernelBuilder, Var};
use crate::target::intrinsic::CANONICAL_NAN;

/// Returns n and f. For arguments that are not positive finite numbers, [`outside`] replaces the
/// result.
fn split(b: &mut KernelBuilder, x: &Expr) -> (Var, Var) {
    b.comment("Subnormals are scaled by 2^23 first.");
    let tiny = b.let_("tiny", x.clone().lt(f32::MIN_POSITIVE));
    let normal = Expr::from(tiny).select(x.clone() * 8_388_608.0, x.clone());
    let bits_ = b.let_("bits", bits(normal));
    b.comment(
        "exponent_bits = n << 23: subtracting the bits of 2/3 selects n with x / 2^n in [2/3, \
         4/3). 1.1920929e-7 is 2^-23.",
    );
    let above = (bits_ - bits(2.0 / 3.0)) >> Expr::U32(23);
    let exponent_bits = b.let_("exponent_bits", above << Expr::U32(23));
    let f = b.let_("f", of_bits(bits_ - exponent_bits) - 1.0);
    let scaled = Expr::from(exponent_bits).bitcast(Elem::I32).cast(Elem::F32);
    let shift = Expr::from(tiny).select(-23.0, 0.0);
    let n = b.let_("n", fma(scaled, 1.192_092_9e-7, shift));
    (n, f)
}

/// Selects `result` for positive finite x, and the special values for all other x.
fn outside(x: &Expr, result: Expr) -> Expr {
    let infinite = x.clone().lt(f32::INFINITY).select(result, x.clone());
    let nan = f32::from_bits(CANONICAL_NAN);
    let zero = x.clone().equals(0.0).select(f32::NEG_INFINITY, nan);
    x.clone().gt(0.0).select(infinite, zero)
}

pub(crate) fn log(b: &mut KernelBuilder) -> FunctionId {
    let meaning = ["ln x, within {bound}: n ln 2 + ln(1 + f) with x = 2^n (1 + f), |f| <= 1 / 3."];
    unary(b, Function::Log, &meaning, |b, x| {
        let (n, f) = split(b, &x);
        b.comment("Polynomial for (ln(1 + f) - f) / f^2, in Horner form.");
        let p = polynomial(b, "p", &f.into(), &LOGARITHM);
        let part = b.let_("part", fma(f * f, p, f));
        outside(&x, fma(n, std::f32::consts::LN_2, part))
    })
}

pub(in crate::expr) fn log2(b: &mut KernelBuilder) -> FunctionId {
    let meaning = [
        "log2 x, within {bound}: n + log2(1 + f) with x = 2^n (1 + f), |f| <= 1 / 3,",
        "where high + low is n + f log2 e to twice the precision.",
    ];
    unary(b, Function::Log2, &meaning, |b, x| {
        const LOG2_E: f32 = std::f32::consts::LOG2_E;
        const LOG2_E_LOW: f32 = 1.925_963e-8;
        let (n, f) = split(b, &x);
        b.comment("Polynomial for (log2(1 + f) - f log2 e) / f^2, in Horner form.");
        let p = polynomial(b, "p", &f.into(), &BINARY_LOGARITHM);
        let rest = b.let_("rest", fma(f * f, p, f * LOG2_E_LOW));
        let high = b.let_("high", fma(f, LOG2_E, n));
        let low = b.let_("low", fma(f, LOG2_E, n - high));
        outside(&x, high + (low + rest))
    })
}

/// Coefficients of (ln(1 + f) − f) / f² for |f| ≤ 1/3.
const LOGARITHM: [f32; 9] = [
    -0.127_670_17,
    0.140_027_76,
    -0.122_134_775,
    0.140_016_2,
    -0.166_783_33,
    0.200_107_14,
    -0.249_998_46,
    0.333_332_1,
    -0.5,
];

/// Coefficients of (log2(1 + f) − f · log2 e) / f² for |f| ≤ 1/3.
const BINARY_LOGARITHM: [f32; 9] = [
    -0.184_098_51,
    0.201_836_75,
    -0.176_257_54,
    0.202_042_39,
    -0.240_608_5,
    0.288_690_57,
    -0.360_672_1,
    0.480_896_62,
    -0.721_347_5,
];
