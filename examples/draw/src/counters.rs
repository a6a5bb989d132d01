//! Counters as pages list them.

use gemm_dsl::sim::Counters;
use serde::Serialize;

/// A counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// Its name, with spaces.
    pub name: String,
    /// What it counts.
    pub says: String,
    /// How many.
    pub value: u64,
}

/// Counters that are not 0.
pub fn counted(counters: &Counters) -> Vec<Counted> {
    let of = |(name, says, value): (&'static str, String, u64)| {
        (value > 0).then(|| Counted { name: name.replace('_', " "), says, value })
    };
    counters.described().filter_map(of).collect()
}
