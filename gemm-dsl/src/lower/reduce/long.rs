//! Segments that are too long for a group of threads.

use super::expressions::Expressions;
use super::finish::{Finish, To};
use super::fold::Fold;
use super::kept::Kept;
use super::params::Params;
use super::place::{Groups, Place};
use super::reader::Reader;
use super::team::{Team, values};
use crate::ir::{
    Access, AtomicOp, Const, Elem, Expr, For, KernelBuilder, Layout, Order, Scope, Special, Stmt,
};
use crate::plan::ReducePlan;

/// The segments that are too long for a group: the whole block folds each of those that its groups were to
/// fold.
pub(super) struct Long<'l> {
    pub(super) plan: &'l ReducePlan,
    pub(super) fold: &'l Fold,
    pub(super) expressions: &'l Expressions,
    pub(super) params: &'l Params,
    pub(super) block: Const,
    pub(super) groups: &'l Groups,
}

impl Long<'_> {
    pub(super) fn build(
        &self,
        k: &mut KernelBuilder,
        team: &mut Team<'_>,
        kept: &Kept,
        (place, missing): (&Place, Expr),
    ) {
        // Most blocks have none: they are not to look at each of their segments.
        let layout = Layout::row_major(1);
        let found = "how many of the block's segments are longer";
        let longer =
            Access::new(k.shared("longer", Elem::U32, [1.into()], layout, found), [0.into()]);
        k.comment("The whole block folds each longer one of its segments, if there is one.");
        k.if_(place.tid.clone().equals(0), |k| k.store(longer.clone(), Expr::U32(0)));
        k.barrier();
        let is_long = place.lane.clone().equals(0).and(self.groups.is_long());
        k.if_(is_long, |k| {
            k.atomic_only(
                AtomicOp::Add,
                longer.clone(),
                Expr::U32(1),
                Order::Relaxed,
                Scope::Block,
            );
        });
        k.barrier();
        let some = longer.load().gt(Expr::U32(0));
        let all = k.block(|k| self.each_long(k, team, kept, (place, missing)));
        k.push(Stmt::If { cond: some, then: all, otherwise: Vec::new() });
    }

    /// The segments of the block that are too long, one after the other.
    fn each_long(
        &self,
        k: &mut KernelBuilder,
        team: &mut Team<'_>,
        kept: &Kept,
        (place, missing): (&Place, Expr),
    ) {
        let (plan, p, block, groups) = (self.plan, self.params, self.block, self.groups);
        let per_block = groups.per_block;
        k.loop_("nth", For::below(0, per_block), |k, nth| {
            let segment = Expr::from(Special::BlockX).wide() * per_block + nth;
            let segment = k.let_("long_segment", segment);
            k.if_(Expr::from(segment).lt(groups.segments), |k| {
                let tid = place.tid.clone();
                let (place, is_long) = groups.of_long(k, (tid, block), segment);
                k.if_(is_long, |k| {
                    kept.reset(k, &place, &team.identity);
                    let (fold, expressions) = (self.fold, self.expressions);
                    let (round, place) = ("LONG_ROUND", &place);
                    let reader =
                        Reader { plan, fold, expressions, place, round, missing, wide: false };
                    reader.rounds(k, p, kept);
                    let finish = Finish { plan, fold, expressions, place, params: p, wide: false };
                    team.by_block(k, values(&kept.of(None)), &mut |k, all| {
                        finish.store(k, To::Results, None, all);
                    });
                    k.comment("The next one uses the same shared memory.");
                    k.barrier();
                });
            });
        });
    }
}
