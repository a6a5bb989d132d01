//! Roles of the kernels of a reduction in rounds.

/// Input and output of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Folds elements into results.
    Whole,
    /// Folds elements into partials.
    First,
    /// Folds partials into results.
    Last,
    /// Folds elements into partials; the block with the last ticket folds these into results.
    Once,
    /// Folds the elements of a result in a shard into the partials of their runs.
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
