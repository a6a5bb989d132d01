//! Roles of the kernels of a reduction in rounds.

/// Role of a kernel, given by its input and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Folds elements into results.
    Whole,
    /// Folds elements into partial results.
    First,
    /// Folds partial results into results.
    Last,
    /// Folds elements into partial results. The block with the last ticket folds these into
    /// results.
    Once,
    /// Folds the elements of a shard into a partial result for each run.
    Shard,
}

impl Role {
    pub(super) fn reads(self) -> bool {
        self != Role::Last
    }

    pub(super) fn finishes(self) -> bool {
        matches!(self, Role::Whole | Role::Last | Role::Once)
    }
}
