//! Lowering of functions without a hardware instruction: arithmetic in the IR, by range reduction
//! and polynomials with explicit fused multiply-adds. It calls no vendor library, so every GPU and
//! the simulator return the same bits.
//!
//! All functions handle ±0, ±Inf, subnormal arguments and results, and overflow. A NaN argument
//! gives `0x7fffffff`, except that `pow(x, 0)` and `pow(1, y)` are 1. The table below lists the
//! greatest error of each function over all 2^32 inputs, in units in the last place (ulp) of the
//! exact result. For `pow`, which has two arguments, the inputs are a sample of 2^32 pairs.
//! `cargo run --release --example ulp` measures the errors on a GPU.

pub(super) mod erfc;
pub(super) mod exp;
pub(super) mod gelu;
pub(super) mod log;
pub(super) mod pow;
pub(super) mod saturating;
pub(super) mod sigmoid;
pub(super) mod sine;

pub use exp::falling_exponential;
pub(crate) use log::log as logarithm;

use super::function::Function;
use crate::ir::{Elem, Expr, FunctionId, Intrinsic, KernelBuilder, Ty, UnaryOp, Var};

/// Lowering of a function of the language.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lowering {
    /// Hardware operations. The result is an expression of the arguments; unused arguments are 0.
    InPlace(fn([Expr; 3]) -> Expr),
    /// As `InPlace`, for a result that reads an argument more than once. Each argument is computed
    /// once, into a variable.
    Shared(fn([Expr; 3]) -> Expr),
    /// A device function of the kernel, which the given Rust function declares.
    Library(fn(&mut KernelBuilder) -> FunctionId),
}

pub(super) fn lowering(function: Function) -> Lowering {
    match function {
        Function::Min => Lowering::InPlace(|[a, b, _]| min(a, b)),
        Function::Max => Lowering::InPlace(|[a, b, _]| max(a, b)),
        Function::Abs => Lowering::InPlace(|[x, ..]| abs(x)),
        Function::Sqrt => Lowering::InPlace(|[x, ..]| call(Intrinsic::Sqrt, [x])),
        Function::Rsqrt => {
            Lowering::InPlace(|[x, ..]| number(&x, 1.0) / call(Intrinsic::Sqrt, [x]))
        }
        Function::Fma => Lowering::InPlace(|[a, b, c]| fma(a, b, c)),
        Function::Clamp => Lowering::InPlace(|[x, low, high]| min(max(x, low), high)),
        Function::Floor => Lowering::InPlace(|[x, ..]| call(Intrinsic::Floor, [x])),
        Function::Round => Lowering::InPlace(|[x, ..]| call(Intrinsic::RoundEven, [x])),
        Function::Ceil => Lowering::InPlace(|[x, ..]| call(Intrinsic::Ceil, [x])),
        Function::Trunc => Lowering::InPlace(|[x, ..]| call(Intrinsic::Trunc, [x])),
        Function::Sign => Lowering::Shared(|[x, ..]| {
            let [zero, one, minus] = [0.0, 1.0, -1.0].map(|value| number(&x, value));
            let negative = x.clone().lt(zero.clone()).select(minus, x.clone());
            x.gt(zero).select(one, negative)
        }),
        Function::IsNan => Lowering::Shared(|[x, ..]| x.clone().differs(x)),
        Function::Pow => Lowering::Library(pow::pow),
        Function::Exp => Lowering::Library(exp::exp),
        Function::Expm1 => Lowering::Library(exp::expm1),
        Function::Exp2 => Lowering::Library(exp::exp2),
        Function::Log => Lowering::Library(log::log),
        Function::Log1p => Lowering::Library(log::log1p),
        Function::Log2 => Lowering::Library(log::log2),
        Function::Sin => Lowering::Library(sine::sin),
        Function::Cos => Lowering::Library(sine::cos),
        Function::Tanh => Lowering::Library(saturating::tanh),
        Function::Erf => Lowering::Library(saturating::erf),
        Function::Erfc => Lowering::Library(erfc::erfc),
        Function::Sigmoid => Lowering::Library(sigmoid::sigmoid),
        Function::Relu => Lowering::InPlace(|[x, ..]| {
            let zero = number(&x, 0.0);
            max(x, zero)
        }),
        Function::Softplus => Lowering::Library(log::softplus),
        Function::Mish => Lowering::Library(sigmoid::mish),
        Function::Silu => Lowering::Library(sigmoid::silu),
        Function::Gelu => Lowering::Library(gelu::gelu),
        Function::GeluTanh => Lowering::Library(gelu::gelu_tanh),
        Function::ToF32 => Lowering::InPlace(|[n, ..]| n.cast(Elem::F32)),
        Function::ToF64 => Lowering::InPlace(|[n, ..]| n.cast(Elem::F64)),
    }
}

pub(super) fn call<const N: usize>(f: Intrinsic, args: [Expr; N]) -> Expr {
    Expr::Call(f, args.into())
}

pub(super) fn fma(a: impl Into<Expr>, b: impl Into<Expr>, c: impl Into<Expr>) -> Expr {
    call(Intrinsic::Fma, [a.into(), b.into(), c.into()])
}

pub(super) fn max(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    call(Intrinsic::Maximum, [a.into(), b.into()])
}

pub(super) fn min(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    call(Intrinsic::Minimum, [a.into(), b.into()])
}

pub(super) fn abs(x: impl Into<Expr>) -> Expr {
    call(Intrinsic::Abs, [x.into()])
}

/// Returns a constant of the same type as `like`.
pub(super) fn number(like: &Expr, value: f32) -> Expr {
    match like.ty() {
        Ty::F64 => Expr::F64(value.into()),
        _ => Expr::F32(value),
    }
}

pub(super) fn neg(x: impl Into<Expr>) -> Expr {
    Expr::Unary(UnaryOp::Neg, Box::new(x.into()))
}

/// Comment on the reason for a device function in place of one of CUDA's.
const WRITTEN_OUT: &str =
    "IEEE operations only, so every GPU and toolkit gives the same bits; CUDA's functions may not.";

/// Declares a device function of one `f32`, as [`declare`] does.
fn unary(
    b: &mut KernelBuilder,
    function: Function,
    meaning: &[&str],
    body: impl FnOnce(&mut KernelBuilder, Expr) -> Expr,
) -> FunctionId {
    declare(b, function, meaning, |b, params| body(b, params[0].into()))
}

/// Declares a device function of `f32`s, which are the operands of the function's row. In
/// `meaning`, `{bound}` is replaced by the function's error bound.
fn declare(
    b: &mut KernelBuilder,
    function: Function,
    meaning: &[&str],
    body: impl FnOnce(&mut KernelBuilder, &[Var]) -> Expr,
) -> FunctionId {
    let row = function.info();
    let Some(bound) = row.bound else {
        unreachable!("the table bounds every function that is computed: {function:?}")
    };
    let inputs = if row.operands.len() == 1 { "all inputs" } else { "a sample of 2^32 pairs" };
    let bound = format!("{bound} over {inputs}");
    let meaning = meaning.iter().map(|line| line.replace("{bound}", &bound));
    let meaning: Vec<String> = meaning.chain([WRITTEN_OUT.to_owned()]).collect();
    let meaning: Vec<&str> = meaning.iter().map(String::as_str).collect();
    let name = format!("{}_f32", row.name);
    let params: Vec<(&str, Ty)> = row.operands.iter().map(|name| (*name, Ty::F32)).collect();
    b.function(&name, &meaning, &params, body)
}

/// Emits a polynomial in Horner form and returns the variable that accumulates it. The coefficient
/// of the highest power comes first.
fn polynomial(b: &mut KernelBuilder, name: &str, x: &Expr, coefficients: &[f32]) -> Var {
    let [highest, rest @ ..] = coefficients else {
        unreachable!("every polynomial here has coefficients")
    };
    let p = b.mut_(name, *highest);
    for coefficient in rest {
        b.assign(p, fma(p, x.clone(), *coefficient));
    }
    p
}

/// Returns the bits of an `f32`.
fn bits(x: impl Into<Expr>) -> Expr {
    x.into().bitcast(Elem::U32)
}

/// Returns the `f32` with these bits.
fn of_bits(x: impl Into<Expr>) -> Expr {
    x.into().bitcast(Elem::F32)
}

/// Gives `result` the sign of `x`, for an odd function. NaN is kept.
fn odd(x: Expr, result: Var) -> Expr {
    x.lt(0.0).select(neg(result), result)
}
