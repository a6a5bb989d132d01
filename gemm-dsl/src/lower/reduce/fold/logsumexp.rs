//! The logarithm of a sum of exponentials in one reading: the greatest value so far, and the sum of e to the
//! power of what the others are less than it. A greater value scales the sum (M. Milakov and N. Gimelshein, "Online
//! normalizer calculation for softmax", 2018).

use super::value::extreme;
use super::{Cell, Held, zero};
use crate::expr::library;
use crate::ir::{Elem, Expr, FunctionId, KernelBuilder, Ty, Var};
use crate::target::intrinsic::Intrinsic;

pub(super) struct Logsumexp {
    /// e^x for x that are not positive.
    exp: FunctionId,
    /// What exponents are relative to: a maximum, or 0 where that is infinite.
    base: FunctionId,
    log: FunctionId,
}

pub(super) fn identity(part: usize, elem: Elem) -> Expr {
    if part == 0 { extreme(elem, false) } else { zero(elem) }
}

fn maximum(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    Expr::Call(Intrinsic::Maximum, vec![a.into(), b.into()])
}

fn is_infinite(x: impl Into<Expr>) -> Expr {
    Expr::Call(Intrinsic::Abs, vec![x.into()]).equals(f32::INFINITY)
}

impl Logsumexp {
    pub(super) fn new(k: &mut KernelBuilder) -> Self {
        let exp = library::falling_exponential(k);
        let log = library::logarithm(k);
        let meaning =
            "What exponents are relative to: the greatest value, or 0 where that is infinite.";
        let base = k.function("base_of", &[meaning], &[("top", Ty::F32)], |_, p| {
            is_infinite(p[0]).select(0.0, p[0])
        });
        Self { exp, base, log }
    }

    /// e^(value − base). The difference is exact where it counts.
    fn term(&self, value: Expr, base: Var) -> Expr {
        self.exp.apply([value - base])
    }

    pub(super) fn absorb(&self, k: &mut KernelBuilder, kept: &[Cell], held: &Held) {
        let (top, sum) = (&kept[0], &kept[1]);
        let new_top = k.mut_("new_top", top.get());
        held.each(k, |k, value, _| k.assign(new_top, maximum(new_top, value)));
        let base = k.let_("base", self.base.apply([new_top.into()]));
        sum.set(k, sum.get() * self.term(top.get(), base));
        held.each(k, |k, value, _| sum.set(k, sum.get() + self.term(value, base)));
        top.set(k, new_top);
    }

    pub(super) fn combine(&self, k: &mut KernelBuilder, a: &[Expr], b: &[Expr]) -> Vec<Expr> {
        let top = k.let_("both_top", maximum(a[0].clone(), b[0].clone()));
        let base = k.let_("base", self.base.apply([top.into()]));
        let scaled = |p: &[Expr]| p[1].clone() * self.term(p[0].clone(), base);
        let [own, other] =
            [("own_share", a), ("other_share", b)].map(|(name, p)| k.let_(name, scaled(p)));
        let sum = k.let_("both_sum", own + other);
        vec![top.into(), sum.into()]
    }

    /// An infinite maximum is the result.
    pub(super) fn value(&self, k: &mut KernelBuilder, all: &[Expr]) -> Expr {
        // What is no variable is read once.
        let top = match all[0] {
            Expr::Var(top) => top,
            _ => k.let_("top_of_all", all[0].clone()),
        };
        is_infinite(top).select(top, top + self.log.apply([all[1].clone()]))
    }
}
