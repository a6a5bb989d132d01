use crate::metrics::{metric, quantities, tolerance, written};
use gemm_sim::Counters;
use serde::Serialize;

/// Counter of the simulator with its value and the profiler's metric for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CounterValue {
    /// Name of the counter, with spaces.
    pub name: String,
    /// Description of the counted events.
    pub says: String,
    pub value: u64,
    /// Profiler metrics that correspond to the counter. Empty if the profiler has none.
    pub metric: String,
    /// Maximum error of the prediction.
    pub tolerance: String,
}

/// Source counters, each given by its field, with the corresponding SASS counters. Other source
/// counters have no SASS counter.
pub const AS_COMPILED: [(&str, &[&str]); 17] = [
    ("instructions", &["instructions"]),
    ("fma", &["ffma"]),
    ("fmas", &["thread_ffma"]),
    ("shuffle", &["shuffles"]),
    ("mma", &["hmma"]),
    ("wgmma", &["hgmma"]),
    ("global_loads", &["global_loads"]),
    ("global_stores", &["global_stores"]),
    ("shared_loads", &["shared_loads", "matrix_loads"]),
    ("shared_stores", &["shared_stores"]),
    ("copies", &["copies"]),
    ("bulk_copies", &["box_copies"]),
    ("global_requests", &["global_load_requests", "global_store_requests"]),
    ("global_sectors", &["global_load_sectors", "global_store_sectors"]),
    ("shared_wavefronts", &["shared_load_wavefronts", "shared_store_wavefronts"]),
    ("shared_bank_conflicts", &["shared_load_conflicts", "shared_store_conflicts"]),
    ("block_barriers", &["barriers"]),
];

/// Returns the counters that are not 0.
pub fn counted(counters: &Counters) -> Vec<CounterValue> {
    let of = |(name, says, value): (&'static str, String, u64)| {
        let stand = AS_COMPILED.iter().find(|(field, _)| *field == name);
        let stand = quantities(stand.map_or(&[], |(_, names)| names));
        // The tolerance of the counter is the largest tolerance of its metrics.
        let rough = stand.iter().max_by(|a, b| a.tolerance.total_cmp(&b.tolerance));
        (value > 0).then(|| CounterValue {
            name: written(name),
            says,
            value,
            metric: stand.iter().map(|of| metric(of)).collect::<Vec<_>>().join(", "),
            tolerance: rough.map_or(String::new(), |of| tolerance(of)),
        })
    };
    counters.described().filter_map(of).collect()
}

/// Defines the counters that pages and their tests refer to, each by its field.
macro_rules! counters {
    ($($variant:ident: $field:ident,)*) => {
        /// Counter that pages and tests refer to by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter { $(#[doc = concat!("`", stringify!($field), "`.")] $variant,)* }

        impl Counter {
            pub fn value(self, counters: &Counters) -> u64 {
                match self { $(Self::$variant => counters.$field,)* }
            }

            /// Name of the counter as pages list it.
            pub fn name(self) -> String {
                match self { $(Self::$variant => written(stringify!($field)),)* }
            }
        }
    };
}

counters! {
    Blocks: blocks,
    Instructions: instructions,
    ThreadInstructions: thread_instructions,
    Sync: sync,
    Fma: fma,
    SharedWavefronts: shared_wavefronts,
    SharedBankConflicts: shared_bank_conflicts,
    GlobalSectors: global_sectors,
    GlobalRequests: global_requests,
    DivergentBranches: divergent_branches,
}

impl Counter {
    /// Returns the value of the counter in a list that omits counters of 0.
    pub fn among(self, all: &[CounterValue]) -> u64 {
        all.iter().find(|counted| counted.name == self.name()).map_or(0, |counted| counted.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_sim::SassCounters;

    /// Every name in the table exists. Every SASS counter but `atomics` corresponds to a source
    /// counter: source counters count atomics as stores.
    #[test]
    fn compiled_counters_have_valid_names() {
        let fields: Vec<&str> = Counters::default().each().map(|(name, _)| name).collect();
        for (field, names) in AS_COMPILED {
            assert!(fields.contains(&field) && quantities(names).len() == names.len(), "{field}");
        }
        for quantity in SassCounters::QUANTITIES {
            let stands = AS_COMPILED.iter().any(|(_, names)| names.contains(&quantity.name));
            assert_eq!(stands, quantity.name != "atomics", "{}", quantity.name);
        }
        let mut counters = Counters::default();
        (counters.fma, counters.branch) = (3, 2);
        let [fma, branch] = &counted(&counters)[..] else { panic!("two counters") };
        assert_eq!(
            (&*fma.metric, &*fma.tolerance),
            ("sass__inst_executed_per_opcode: FFMA", "exact")
        );
        assert_eq!((&*branch.metric, &*branch.tolerance), ("", ""));
    }
}
