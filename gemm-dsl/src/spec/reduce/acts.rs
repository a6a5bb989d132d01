//! Conditions on reductions: the kernels on which certain keys act.

use super::{Op, Over, ReduceSpec};
use crate::spec::table::{ActsOn, Suggestion};

/// Reductions whose blocks combine their values in shared memory.
pub(super) const SHARED_TREE: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| !spec.shuffle,
    rests_on: &["shuffle"],
    because: "`shuffle` replaces the shared-memory tree",
    suggestion: Suggestion::Say("leave one of them out"),
};

/// Reductions with a built-in operator.
pub(super) const NO_FOLD: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| spec.fold.is_none(),
    rests_on: &["fold"],
    because: "`fold` replaces the operator",
    suggestion: Suggestion::Say("leave one of them out"),
};

/// Reductions with a user's `fold`.
pub(super) const FOLD: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| spec.fold.is_some(),
    rests_on: &["fold"],
    because: "the operators of `op` have identities of their own",
    suggestion: Suggestion::Or("write a `fold`"),
};

/// Reductions with numeric results.
pub(super) const NUMBERS: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| !spec.operator().is_some_and(|op| op.is_index() || op.is_truth()),
    rests_on: &["op"],
    because: "the result of `op` is an index or a boolean",
    suggestion: Suggestion::Leave,
};

/// Reductions with a numeric value among their results.
pub(super) const VALUES: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| (NUMBERS.includes)(spec) || spec.has_value_and_index(),
    rests_on: &["op"],
    because: "the result of `op` is an index or a boolean",
    suggestion: Suggestion::Leave,
};

/// Reductions whose result is the index of an element.
pub(super) const ARGS: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| spec.operator().is_some_and(Op::is_index),
    rests_on: &["op"],
    because: "only `argmax` and `argmin` choose an element",
    suggestion: Suggestion::Or("use `op: argmax` or `op: argmin`"),
};

/// Reductions that compare elements.
pub(super) const EXTREMA: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| {
        let op = spec.operator();
        op.is_some_and(|op| op.is_index() || matches!(op, Op::Max | Op::Min))
    },
    rests_on: &["op"],
    because: "only `max`, `min`, `argmax` and `argmin` compare elements",
    suggestion: Suggestion::Or("use one of these operators"),
};

/// Reductions that keep indices or counts of elements, or read offsets.
pub(super) const INDICES: ActsOn<ReduceSpec> = ActsOn {
    includes: ReduceSpec::has_indices,
    rests_on: &["op"],
    because: "`op` keeps neither indices nor counts of elements",
    suggestion: Suggestion::Leave,
};

pub(super) const SUM: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| spec.operator() == Some(Op::Sum),
    rests_on: &["op"],
    because: "only the rounding of sums is compensated",
    suggestion: Suggestion::Leave,
};

/// Reductions with more than one result.
pub(super) const MANY: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| spec.over != Over::All,
    rests_on: &["over"],
    because: "all threads fold one result",
    suggestion: Suggestion::Or("compute several results with `over: rows`"),
};

/// Reductions of tensors with more than one dimension.
pub(super) const DIMENSIONS: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| matches!(spec.over, Over::Rows | Over::Columns | Over::Middle),
    rests_on: &["over"],
    because: "there are no rows to pad",
    suggestion: Suggestion::Leave,
};

/// Reductions in which several blocks may share a result.
pub(super) const SHARED: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| spec.over != Over::Segments,
    rests_on: &["over"],
    because: "the length of a segment is unknown at launch",
    suggestion: Suggestion::Leave,
};

/// Reductions in which several blocks do share a result.
pub(super) const SEVERAL: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| {
        spec.run.is_some() || spec.blocks.map_or(spec.over == Over::All, |blocks| blocks > 1)
    },
    rests_on: &["over"],
    because: "one block folds a result unless `blocks` or `run` is given",
    suggestion: Suggestion::Leave,
};

/// Reductions whose threads may read vectors.
pub(super) const ALIGNED: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| spec.over != Over::Segments,
    rests_on: &["over"],
    because: "a segment may begin at any element",
    suggestion: Suggestion::Leave,
};

/// Reductions whose threads fold columns one by one.
pub(super) const COLUMNS: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| matches!(spec.over, Over::Columns | Over::Middle) && !spec.float4,
    rests_on: &["over"],
    because: "a thread folds several columns only if it folds columns and does not read vectors",
    suggestion: Suggestion::Leave,
};

/// Reductions in which all threads of a block fold one result together.
pub(super) const WHOLE_BLOCK: ActsOn<ReduceSpec> = ActsOn {
    includes: ReduceSpec::folds_by_blocks,
    rests_on: &["over"],
    because: "groups of up to a warp always use shuffles, and columns always use a tree",
    suggestion: Suggestion::Leave,
};
