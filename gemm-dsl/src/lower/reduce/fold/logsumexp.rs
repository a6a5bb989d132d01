//! Logarithm of a sum of exponentials in one pass. The accumulator is the greatest value so far,
//! and the sum of the exponentials of the differences from it. A new greatest value rescales the
//! sum (M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax", 2018).

use super::{Cell, LoadedElements};
use crate::expr::library;
use crate::ir::{Elem, Expr, FunctionId, KernelBuilder, Ty, Var};
use crate::lower::folds::extreme;
use crate::lower::literal::zero;
use crate::target::intrinsic::Intrinsic;

pub(super) struct Logsumexp {
    /// e^x for x ≤ 0.
    exp: FunctionId,
    /// Value that is subtracted from exponents: the maximum, or 0 if the maximum is infinite.
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
    pub(super) fn new(b: &mut KernelBuilder) -> Self {
        let exp = library::falling_exponential(b);
        let log = library::logarithm(b);
        let meaning = [
            "Value to subtract before each exponential so that it cannot overflow: the maximum, or \
             0 if the",
            "maximum is infinite (inf - inf is NaN). NaN and +-inf reach the result through top.",
        ];
        let base = b.function("base_of", &meaning, &[("top", Ty::F32)], |_, p| {
            is_infinite(p[0]).select(0.0, p[0])
        });
        Self { exp, base, log }
    }

    /// Returns e^(value − base). The difference is exact if it is small.
    fn term(&self, value: Expr, base: Var) -> Expr {
        self.exp.apply([value - base])
    }

    pub(super) fn absorb(&self, b: &mut KernelBuilder, kept: &[Cell], held: &LoadedElements) {
        let (top, sum) = (&kept[0], &kept[1]);
        b.comment(
            "Online: sum is the sum of e^(x - base) so far. When the maximum rises, sum is \
             rescaled to the new base. If the maximum is finite and does not change, the factor \
             is exactly 1.",
        );
        let new_top = b.mut_("new_top", top.get());
        held.each(b, |b, value, _| b.assign(new_top, maximum(new_top, value)));
        let base = b.let_("base", self.base.apply([new_top.into()]));
        sum.set(b, sum.get() * self.term(top.get(), base));
        held.each(b, |b, value, _| sum.set(b, sum.get() + self.term(value, base)));
        top.set(b, new_top);
    }

    pub(super) fn combine(
        &self,
        b: &mut KernelBuilder,
        left: &[Expr],
        right: &[Expr],
    ) -> Vec<Expr> {
        let top = b.let_("both_top", maximum(left[0].clone(), right[0].clone()));
        let base = b.let_("base", self.base.apply([top.into()]));
        let scaled = |p: &[Expr]| p[1].clone() * self.term(p[0].clone(), base);
        let [own, other] =
            [("own_share", left), ("other_share", right)].map(|(name, p)| b.let_(name, scaled(p)));
        let sum = b.let_("both_sum", own + other);
        vec![top.into(), sum.into()]
    }

    /// The result is the maximum itself if the maximum is infinite.
    pub(super) fn value(&self, b: &mut KernelBuilder, all: &[Expr]) -> Expr {
        // A value from memory is stored in a variable, so that it is read only once.
        let top = match all[0] {
            Expr::Var(top) => top,
            _ => b.let_("top_of_all", all[0].clone()),
        };
        is_infinite(top).select(top, top + self.log.apply([all[1].clone()]))
    }
}
