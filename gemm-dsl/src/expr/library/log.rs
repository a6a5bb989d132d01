//! Logarithms: x = 2^n · m with m in [2/3, 4/3), and a polynomial in f = m − 1.

use super::{Function, abs, bits, exp, fma, max, neg, of_bits, polynomial, unary};
use crate::ir::{Elem, Expr, FunctionId, KernelBuilder, Var};
use crate::target::intrinsic::CANONICAL_NAN;

/// Returns n and f. For arguments that are not positive finite numbers, [`outside`] replaces the
/// result.
pub(super) fn split(b: &mut KernelBuilder, x: &Expr) -> (Var, Var) {
    b.comment("Subnormals are scaled by 2^23 first.");
    let tiny = b.let_("tiny", x.clone().lt(f32::MIN_POSITIVE));
    let normal = Expr::from(tiny).select(x.clone() * 8_388_608.0, x.clone());
    let bits_ = b.let_("bits", bits(normal));
    let exponent_bits = exponent_bits(b, "x", bits_);
    let f = b.let_("f", of_bits(bits_ - exponent_bits) - 1.0);
    let shift = Expr::from(tiny).select(-23.0, 0.0);
    let n = b.let_("n", fma(as_number(exponent_bits), PER_EXPONENT, shift));
    (n, f)
}

/// Factor that turns the number n · 2^23 into n.
const PER_EXPONENT: f32 = 1.192_092_9e-7;

/// Returns n · 2^23, where a positive normal number with these bits divided by 2^n lies in
/// [2/3, 4/3). The comment calls the number `name`.
fn exponent_bits(b: &mut KernelBuilder, name: &str, bits_: Var) -> Var {
    b.comment(format!(
        "exponent_bits = n << 23: subtracting the bits of 2/3 selects n with {name} / 2^n in \
         [2/3, 4/3). 1.1920929e-7 is 2^-23."
    ));
    let above = (bits_ - bits(2.0 / 3.0)) >> Expr::U32(23);
    b.let_("exponent_bits", above << Expr::U32(23))
}

/// Returns the signed integer with these bits as a number.
fn as_number(bits_: Var) -> Expr {
    Expr::from(bits_).bitcast(Elem::I32).cast(Elem::F32)
}

/// Selects `result` for positive finite x, and the special values for all other x.
pub(super) fn outside(x: &Expr, result: Expr) -> Expr {
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

/// Let u = 1 + x and choose n as [`split`] does for u. Then f = 2^−n (1 + x) − 1 is the sum of
/// 2^−n − 1 and 2^−n x, each of which is exact where it matters, so f needs no digits of x that u
/// has lost.
pub(in crate::expr) fn log1p(b: &mut KernelBuilder) -> FunctionId {
    let meaning = [
        "ln(1 + x), within {bound}: n ln 2 + ln(1 + f) with 1 + x = 2^n (1 + f),",
        "|f| <= 1 / 3. f_low is the rounding error of f.",
    ];
    unary(b, Function::Log1p, &meaning, |b, x| {
        let u = b.let_("u", 1.0 + x.clone());
        let bits_ = b.let_("bits", bits(u));
        let exponent_bits = exponent_bits(b, "u", bits_);
        b.comment("2^-n is 0.25 times a number whose exponent does not overflow.");
        let power = b.let_("power", of_bits(bits(4.0) - exponent_bits));
        let rest = b.let_("rest", fma(0.25, power, -1.0));
        let m = b.let_("m", of_bits(bits(x.clone()) - exponent_bits));
        let f = b.let_("f", rest + m);
        let f_low = b.let_("f_low", m - (f - rest));
        let n = b.let_("n", as_number(exponent_bits) * PER_EXPONENT);
        b.comment("Polynomial for (ln(1 + f) - f) / f^2, in Horner form.");
        let p = polynomial(b, "p", &f.into(), &LOGARITHM);
        let part = b.let_("part", fma(f * f, p, f_low * (1.0 - f)) + f);
        let result = fma(n, std::f32::consts::LN_2, part);
        // The sum would turn −0 into +0.
        let finite = x.clone().lt(f32::INFINITY).and(x.clone().differs(0.0));
        let above = finite.select(result, x.clone());
        let nan = f32::from_bits(CANONICAL_NAN);
        let pole = x.clone().equals(-1.0).select(f32::NEG_INFINITY, nan);
        x.gt(-1.0).select(above, pole)
    })
}

pub(in crate::expr) fn softplus(b: &mut KernelBuilder) -> FunctionId {
    let (exp, log1p) = (exp::exp(b), log1p(b));
    let meaning = ["ln(1 + e^x), within {bound}: max(x, 0) + ln(1 + e^-|x|)."];
    unary(b, Function::Softplus, &meaning, |_, x| {
        let small = exp.apply([neg(abs(x.clone()))]);
        max(x, 0.0) + log1p.apply([small])
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
