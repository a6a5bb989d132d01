//! Threads that fold segments. A group of threads folds a segment up to a maximum length, and the
//! whole block folds a longer segment.

use super::{FoldPlace, Folds, GroupMember};
use crate::ir::{Access, BufferId, Const, Elem, Expr, KernelBuilder, Scalar, Special, Var};
use crate::plan::ReducePlan;

/// Groups of a block, each of which folds a segment.
pub(in crate::lower::reduce) struct Groups {
    pub(in crate::lower::reduce) per_block: Const,
    /// Maximum length of a segment that a group folds.
    pub(in crate::lower::reduce) longest: Const,
    /// Number of segments. `offsets` contains the index of the first element of each.
    pub(in crate::lower::reduce) segments: Scalar,
    offsets: BufferId,
    /// True if the thread's segment exists. Otherwise the thread is assigned the last segment.
    inside: Expr,
    /// Length of the thread's segment.
    length: Var,
}

impl Groups {
    /// True if the thread's group folds its segment.
    pub(super) fn is_short(&self) -> Expr {
        self.inside.clone().and(Expr::from(self.length).le(self.longest))
    }

    /// True if the thread's block must fold its segment.
    pub(in crate::lower::reduce) fn is_long(&self) -> Expr {
        self.inside.clone().and(Expr::from(self.length).gt(self.longest))
    }

    /// Returns the position of a thread if its whole block folds this segment, and a condition that
    /// is true if the segment is long enough.
    pub(in crate::lower::reduce) fn of_long(
        &self,
        b: &mut KernelBuilder,
        tid: Expr,
        block: Const,
        segment: Var,
    ) -> (FoldPlace, Expr) {
        let (first, length) = range(b, self.offsets, segment, ["first_of_all", "length_of_all"]);
        let place = whole_block(tid, block, segment, first, length);
        (place, Expr::from(length).gt(self.longest))
    }
}

impl FoldPlace {
    pub(super) fn of_segment(
        b: &mut KernelBuilder,
        plan: &ReducePlan,
        block: Const,
        segments: Scalar,
        offsets: BufferId,
    ) -> Self {
        let tid: Expr = b.let_("tid", Special::ThreadX).into();
        let member = GroupMember::new(b, plan, &tid, block, segments, ["segment", "segments"]);
        let (Some(member), Some(longest)) = (member, plan.longest_of_group()) else {
            let segment = b.let_("segment", Expr::from(Special::BlockX).wide());
            let (first, length) = range(b, offsets, segment, ["first", "length"]);
            return whole_block(tid, block, segment, first, length);
        };
        let GroupMember { group, per_block, lane, own: segment, inside } = member;
        let (first, length) = range(b, offsets, segment, ["first", "length"]);
        let text = "maximum length of a segment that a group reduces";
        let longest = b.constant("LONGEST", longest as i32, text);
        let taken = Expr::from(length).le(longest).select(length, 0u64);
        let n = b.let_("taken", taken).into();
        let groups = Some(Groups { per_block, longest, segments, offsets, inside, length });
        let folds = Folds::Segment { segment, first, groups };
        Self { tid, group, lane, n, split: None, folds }
    }
}

fn whole_block(tid: Expr, block: Const, segment: Var, first: Var, length: Var) -> FoldPlace {
    let folds = Folds::Segment { segment, first, groups: None };
    FoldPlace { lane: tid.clone(), tid, group: block, n: length.into(), split: None, folds }
}

/// Declares the first element and the length of a segment, as variables with these names.
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
