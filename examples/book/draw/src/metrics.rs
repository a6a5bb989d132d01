//! Profiler metrics predicted by the simulator's model of the compiler, with their names and
//! tolerances.

use gemm_sim::{Quantity, SassCounters};
use serde::Serialize;

/// Predicted metric of the profiler.
#[derive(Clone, Debug, Serialize)]
pub struct Metric {
    /// Name of the count, with spaces.
    pub name: String,
    /// Name of the profiler's metric.
    pub metric: String,
    pub value: u64,
    /// Maximum error of the prediction: `exact`, or a percentage.
    pub tolerance: String,
    /// Reason why the prediction is known to exceed the tolerance, if it does.
    pub further_off: Option<String>,
}

/// Returns the counts that are not 0. `further_off` maps the name of a count to the reason why its
/// prediction is known to exceed the tolerance.
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

/// Looks up counts by name and skips unknown names.
pub fn quantities(names: &[&str]) -> Vec<&'static Quantity> {
    SassCounters::QUANTITIES.iter().filter(|quantity| names.contains(&quantity.name)).collect()
}

/// Name of the profiler's metric, with the opcode for instruction counts.
pub fn metric(quantity: &Quantity) -> String {
    match quantity.metric.contains("__") {
        true => quantity.metric.to_owned(),
        false => format!("sass__inst_executed_per_opcode: {}", quantity.metric),
    }
}

/// Formats the tolerance of a count: `exact`, or a percentage of a count.
pub fn tolerance(quantity: &Quantity) -> String {
    match quantity.tolerance {
        0.0 => "exact".to_owned(),
        share if quantity.share_of == quantity.name => format!("± {:.0} %", 100.0 * share),
        share => format!("± {:.0} % of the {}", 100.0 * share, written(quantity.share_of)),
    }
}

/// Name of a count as pages list it.
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
