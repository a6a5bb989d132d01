//! What the profiler would count, by the simulator's model of the compiler, with its names and how far off that may be.

use gemm_runtime::Compiled;
use serde::Serialize;

/// The figures of stages for which the model is known to be further off: `tests/sim` holds both against the profiler's.
const KNOWN: &str = include_str!("../../../tests/profiler/known.csv");

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

/// Why a quantity of a stage is further off, at the first shape at which it is.
fn reason((ladder, stage): (&str, u32), quantity: &str) -> Option<String> {
    KNOWN.lines().skip(1).find_map(|line| {
        let mut columns = line.splitn(6, ',');
        let is_it = columns.next()? == ladder && columns.next()?.parse() == Ok(stage);
        let (shape, _, of, why) =
            (columns.next()?, columns.next()?, columns.next()?, columns.next()?);
        (is_it && of == quantity).then(|| format!("at {shape}: {}", why.trim_matches('"')))
    })
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
        let line = KNOWN.lines().nth(1).expect("an exception");
        let [ladder, stage, _, _, quantity, _] = line.splitn(6, ',').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let stage = stage.parse().expect("a number");
        assert!(reason((ladder, stage), quantity).is_some());
        assert_eq!(reason((ladder, stage), "none"), None);
    }
}
