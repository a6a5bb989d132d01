//! What the profiler would count, by the simulator's model of the compiler, with its names and how far off that may be.

use gemm_reference::profiler;
use gemm_runtime::Compiled;
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
    /// Why it may be further off, of a stage of which that is known.
    pub further_off: Option<String>,
}

/// Counts that are not 0, of the stage if it is one.
pub(super) fn all(counts: &Compiled, stage: Option<(&str, u32)>) -> Vec<Predicted> {
    let of = |quantity: &gemm_runtime::Quantity| {
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
            further_off: stage.and_then(|stage| reason(stage, quantity.name)),
        })
    };
    Compiled::QUANTITIES.iter().filter_map(of).collect()
}

/// Why a quantity of a stage is further off, at the first shape at which it is: `tests/sim` holds both against the profiler's.
fn reason((ladder, stage): (&str, u32), quantity: &str) -> Option<String> {
    let known = profiler::known();
    let mut of_stage = known.iter().filter(|((which, of), _)| {
        (which.ladder, which.stage) == (ladder, stage) && *of == quantity
    });
    of_stage.next().map(|((which, _), why)| format!("at {}: {why}", which.shape))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::gather::Spec;
    use crate::family::Family;

    #[test]
    fn loads_of_neighbours_are_merged_and_multiply_adds_are_not() {
        let spec =
            Spec::parse(Family::Sgemm, "tile: 32x32x8, thread: 4x4, transpose").expect("a spec");
        let looked = spec.look(spec.at().expect("a shape")).expect("a launch");
        let counts = looked.compiled().expect("counts");
        let text = &looked.profile.total;
        assert_eq!(counts.ffma, text.fma);
        assert!(counts.shared_loads < text.shared_loads, "{counts:?}");
        let all = all(counts, None);
        let ffma = all.iter().find(|of| of.name == "ffma").expect("multiply-adds");
        assert_eq!(ffma.metric, "sass__inst_executed_per_opcode: FFMA");
        assert_eq!((&*ffma.tolerance, ffma.value), ("exact", text.fma));
        assert!(all.iter().all(|of| of.further_off.is_none()));
    }

    #[test]
    fn what_is_known_of_a_stage_is_said() {
        let known = profiler::known();
        let ((which, quantity), why) = known.first_key_value().expect("an exception");
        let said = reason((which.ladder, which.stage), quantity).expect("a reason");
        assert_eq!(said, format!("at {}: {why}", which.shape));
        assert_eq!(reason((which.ladder, which.stage), "none"), None);
    }
}
