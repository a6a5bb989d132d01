//! Lines of the kernels that a table has chosen, cached for later calls.

use gemm_dsl::SpecErrors;
use std::sync::OnceLock;

/// Lines of the rules of a table, each made by the first call that needs it.
#[derive(Debug)]
pub(super) struct RuleLines(OnceLock<Box<[RuleLine]>>);

/// Canonical spec of a rule for a kind of call, or the faults of a rule that cannot take the
/// epilogue of the call.
pub(super) type RuleLine = OnceLock<Result<String, SpecErrors>>;

impl RuleLines {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Line with a number below `count`, which is the same in every call.
    pub(super) fn get(&self, count: usize, number: usize) -> &RuleLine {
        &self.0.get_or_init(|| (0..count).map(|_| OnceLock::new()).collect())[number]
    }
}
