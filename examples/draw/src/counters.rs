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
        (value > 0).then(|| Counted { name: written(name), says, value })
    };
    counters.described().filter_map(of).collect()
}

fn written(field: &str) -> String {
    field.replace('_', " ")
}

/// Defines the counters that pages and their tests single out, each by its field.
macro_rules! counters {
    ($($variant:ident: $field:ident,)*) => {
        /// A counter that is told from others.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter { $(#[doc = concat!("`", stringify!($field), "`.")] $variant,)* }

        impl Counter {
            /// How many.
            pub fn of(self, counters: &Counters) -> u64 {
                match self { $(Self::$variant => counters.$field,)* }
            }

            /// Its name, as pages list it.
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
    /// Its value in a list, from which it is missing where it is 0.
    pub fn among(self, all: &[Counted]) -> u64 {
        all.iter().find(|counted| counted.name == self.name()).map_or(0, |counted| counted.value)
    }
}
