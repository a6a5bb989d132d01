//! Segments that are too long for one group of threads.

use super::accumulators::{FoldAccumulators, Folding};
use super::expressions::Expressions;
use super::finish::{Destination, Finish};
use super::fold::Fold;
use super::params::Params;
use super::place::{FoldPlace, Groups};
use super::reader::ElementReader;
use super::team::{Team, values};
use crate::ir::{
    Access, AtomicOp, BufferLayout, Const, Elem, Expr, For, KernelBuilder, MemoryOrder, Scope,
    Special, Stmt,
};
use crate::plan::ReducePlan;

/// Folds segments that are too long for a group: the whole block folds each of its long segments.
pub(super) struct LongSegments<'l> {
    pub(super) plan: &'l ReducePlan,
    pub(super) fold: &'l Fold,
    pub(super) expressions: &'l Expressions,
    pub(super) params: &'l Params,
    pub(super) block: Const,
    pub(super) groups: &'l Groups,
}

impl LongSegments<'_> {
    pub(super) fn build(
        &self,
        b: &mut KernelBuilder,
        team: &mut Team<'_>,
        kept: &FoldAccumulators,
        place: &FoldPlace,
        missing: Expr,
    ) {
        // The long segments are counted first. Most blocks have none, and then need not check their
        // segments one by one.
        let layout = BufferLayout::row_major(1);
        let found = "number of segments longer than LONGEST";
        let longer =
            Access::new(b.shared("longer", Elem::U32, [1.into()], layout, found), [0.into()]);
        b.comment("The whole block reduces each of its segments that is longer than LONGEST.");
        b.if_(place.tid.clone().equals(0), |b| b.store(longer.clone(), Expr::U32(0)));
        b.barrier();
        let is_long = place.lane.clone().equals(0).and(self.groups.is_long());
        b.if_(is_long, |b| {
            b.atomic_only(
                AtomicOp::Add,
                longer.clone(),
                Expr::U32(1),
                MemoryOrder::Relaxed,
                Scope::Block,
            );
        });
        b.barrier();
        let some = longer.load().gt(Expr::U32(0));
        let all = b.block(|b| self.each_long(b, team, kept, place, missing));
        b.push(Stmt::If { cond: some, then: all, otherwise: Vec::new() });
    }

    /// Folds the long segments of the block, one after another.
    fn each_long(
        &self,
        b: &mut KernelBuilder,
        team: &mut Team<'_>,
        kept: &FoldAccumulators,
        place: &FoldPlace,
        missing: Expr,
    ) {
        let (plan, p, block, groups) = (self.plan, self.params, self.block, self.groups);
        let per_block = groups.per_block;
        b.loop_("nth", For::below(0, per_block), |b, nth| {
            let segment = Expr::from(Special::BlockX).wide() * per_block + nth;
            let segment = b.let_("long_segment", segment);
            b.if_(Expr::from(segment).lt(groups.segments), |b| {
                let tid = place.tid.clone();
                let (place, is_long) = groups.of_long(b, tid, block, segment);
                b.if_(is_long, |b| {
                    kept.reset(b, &place, &team.identity);
                    let (fold, expressions) = (self.fold, self.expressions);
                    let (round, place) = ("LONG_ROUND", &place);
                    let reader = ElementReader {
                        plan,
                        fold,
                        expressions,
                        place,
                        round,
                        missing,
                        wide: false,
                    };
                    reader.rounds(b, p, &Folding { fold, place, kept });
                    let finish = Finish { plan, fold, expressions, place, params: p, wide: false };
                    team.by_block(b, values(&kept.cells(None)), &mut |b, all| {
                        finish.store(b, Destination::Results, None, all);
                    });
                    b.comment("The next segment reuses this shared memory.");
                    b.barrier();
                });
            });
        });
    }
}
