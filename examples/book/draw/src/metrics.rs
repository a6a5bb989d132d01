//! What the profiler would count, by the simulator's model of the compiler, with its names and how far off that may be.

use gemm_sim::{Quantity, SassCounters};
use serde::Serialize;

/// A count.
#[derive(Clone, Debug, Serialize)]
pub struct Metric {
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
    counts: &SassCounters,
    further_off: impl Fn(&'static str) -> Option<String>,
) -> Vec<Metric> {
    let of = |quantity: &Quantity| {
        let value = (quantity.of)(counts).filter(|value| *value > 0)?;
        Some(Metric {
            name: written(quantity.name),
            metric: metric(quantity),
            value,
            tolerance: tolerance(quantity),
            further_off: further_off(quantity.name),
        })
    };
    SassCounters::QUANTITIES.iter().filter_map(of).collect()
}

/// The counts of these names.
pub fn quantities(names: &[&str]) -> Vec<&'static Quantity> {
    SassCounters::QUANTITIES.iter().filter(|quantity| names.contains(&quantity.name)).collect()
}

/// What the profiler calls a count.
pub fn metric(quantity: &Quantity) -> String {
    match quantity.metric.contains("__") {
        true => quantity.metric.to_owned(),
        false => format!("sass__inst_executed_per_opcode: {}", quantity.metric),
    }
}

/// How far off it may be.
pub fn tolerance(quantity: &Quantity) -> String {
    match quantity.tolerance {
        0.0 => "exact".to_owned(),
        share if quantity.share_of == quantity.name => format!("± {:.0} %", 100.0 * share),
        share => format!("± {:.0} % of the {}", 100.0 * share, written(quantity.share_of)),
    }
}

/// The name of a count as pages list it.
pub(crate) fn written(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_something_else_says_of_what() {
        let [loads, conflicts, ffma] = ["shared_loads", "shared_load_conflicts", "ffma"]
            .map(|name| tolerance(quantities(&[name])[0]));
        assert_eq!(loads, "± 5 %");
        assert_eq!(conflicts, "± 5 % of the shared load wavefronts");
        assert_eq!(ffma, "exact");
    }
}
