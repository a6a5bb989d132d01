//! Threads that fold segments: a group of them folds one up to some length, and the block those that are longer.

use super::{Folds, Member, Place};
use crate::ir::{Access, BufferId, Const, Elem, Expr, KernelBuilder, Scalar, Special, Var};
use crate::plan::ReducePlan;

/// The groups of a block, each of which folds a segment.
pub(in crate::lower::reduce) struct Groups {
    /// How many there are.
    pub(in crate::lower::reduce) per_block: Const,
    /// How long a segment may be that a group folds.
    pub(in crate::lower::reduce) longest: Const,
    /// How many segments there are, and where they begin.
    pub(in crate::lower::reduce) segments: Scalar,
    offsets: BufferId,
    /// Whether there is such a segment as the thread's; past the last one it has the last.
    inside: Expr,
    /// How long that is.
    length: Var,
}

impl Groups {
    /// Whether the thread's group folds its segment.
    pub(super) fn is_short(&self) -> Expr {
        self.inside.clone().and(Expr::from(self.length).le(self.longest))
    }

    /// Whether the thread has a segment that its block is to fold.
    pub(in crate::lower::reduce) fn is_long(&self) -> Expr {
        self.inside.clone().and(Expr::from(self.length).gt(self.longest))
    }

    /// The place of a thread whose whole block folds the segment of this number, and whether it is to.
    pub(in crate::lower::reduce) fn of_long(
        &self,
        b: &mut KernelBuilder,
        (tid, block): (Expr, Const),
        segment: Var,
    ) -> (Place, Expr) {
        let (first, length) = range(b, self.offsets, segment, ["first_of_all", "length_of_all"]);
        let place = whole_block(tid, block, (segment, first, length));
        (place, Expr::from(length).gt(self.longest))
    }
}

impl Place {
    pub(super) fn of_segment(
        b: &mut KernelBuilder,
        plan: &ReducePlan,
        (block, segments, offsets): (Const, Scalar, BufferId),
    ) -> Self {
        let tid: Expr = b.let_("tid", Special::ThreadX).into();
        let member = Member::new(b, plan, &tid, (block, segments), ["segment", "segments"]);
        let (Some(member), Some(longest)) = (member, plan.longest_of_group()) else {
            let segment = b.let_("segment", Expr::from(Special::BlockX).wide());
            let (first, length) = range(b, offsets, segment, ["first", "length"]);
            return whole_block(tid, block, (segment, first, length));
        };
        let Member { group, per_block, lane, own: segment, inside } = member;
        let (first, length) = range(b, offsets, segment, ["first", "length"]);
        let text = "elements of the longest segment that a group folds";
        let longest = b.constant("LONGEST", longest as i32, text);
        let taken = Expr::from(length).le(longest).select(length, 0u64);
        let n = b.let_("taken", taken).into();
        let groups = Some(Groups { per_block, longest, segments, offsets, inside, length });
        let folds = Folds::Segment { segment, first, groups };
        Self { tid, group, lane, n, split: None, folds }
    }
}

fn whole_block(tid: Expr, block: Const, (segment, first, length): (Var, Var, Var)) -> Place {
    let folds = Folds::Segment { segment, first, groups: None };
    Place { lane: tid.clone(), tid, group: block, n: length.into(), split: None, folds }
}

/// Where a segment begins and how many elements it has, as variables of these names.
fn range(
    b: &mut KernelBuilder,
    offsets: BufferId,
    number: Var,
    [first, length]: [&str; 2],
) -> (Var, Var) {
    let at = |i: Expr| Access::new(offsets, [i]).load().cast(Elem::U64);
    let first = b.let_(first, at(number.into()));
    let length = b.let_(length, at(number + 1) - first);
    (first, length)
}
