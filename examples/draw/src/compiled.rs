//! What the profiler would count, by the simulator's model of the compiler, with its names and how far off that may be.

use gemm_dsl::sim::{Compiled, Quantity};
use serde::Serialize;

/// A count.
#[derive(Clone, Debug, Serialize)]
pub struct Predicted {
    /// Its name, with spaces.
    pub name: String,
    /// What the profiler calls it.
    pub metric: String,
    /// How many.
    pub value: u64,
    /// How far off it may be: exact, or a share.
    pub tolerance: String,
    /// Why it is known to be further off.
    pub further_off: Option<String>,
}

/// Counts that are not 0, each with why it is known to be further off, if it is, by its name.
pub fn predicted(
    counts: &Compiled,
    further_off: impl Fn(&'static str) -> Option<String>,
) -> Vec<Predicted> {
    let of = |quantity: &Quantity| {
        let value = (quantity.of)(counts).filter(|value| *value > 0)?;
        Some(Predicted {
            name: quantity.name.replace('_', " "),
            metric: match quantity.metric.contains("__") {
                true => quantity.metric.to_owned(),
                false => format!("sass__inst_executed_per_opcode: {}", quantity.metric),
            },
            value,
            tolerance: match quantity.tolerance {
                0.0 => "exact".to_owned(),
                share => format!("± {:.0} %", 100.0 * share),
            },
            further_off: further_off(quantity.name),
        })
    };
    Compiled::QUANTITIES.iter().filter_map(of).collect()
}
