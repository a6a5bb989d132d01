//! Roles of the kernels of a reduction in rounds.

/// What a kernel folds, and what it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Elements into results.
    Whole,
    /// Elements into partials.
    First,
    /// Partials into results.
    Last,
    /// Elements into partials, and the block with the last ticket these into results.
    Once,
    /// Those elements of a result that are in a shard, into the partials of their runs.
    Shard,
}

impl Role {
    /// Whether it folds elements.
    pub(super) fn reads(self) -> bool {
        self != Role::Last
    }

    /// Whether it stores results.
    pub(super) fn finishes(self) -> bool {
        matches!(self, Role::Whole | Role::Last | Role::Once)
    }
}
