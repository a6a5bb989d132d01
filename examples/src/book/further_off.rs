//! Which counts of a stage, as compiled, are known to be further off the profiler's than they may be.

use gemm_reference::profiler;

/// Why a quantity of a stage is, at the first shape at which it is: `tests/sim` holds both against the profiler's.
pub(super) fn reason((ladder, stage): (&str, u32), quantity: &str) -> Option<String> {
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
    use gemm_draw::compiled::predicted;

    #[test]
    fn loads_of_neighbours_are_merged_and_multiply_adds_are_not() {
        let spec =
            Spec::parse(Family::Sgemm, "tile: 32x32x8, thread: 4x4, transpose").expect("a spec");
        let looked = spec.look(spec.at().expect("a shape")).expect("a launch");
        let counts = looked.compiled().expect("counts");
        let text = &looked.profile.total;
        assert_eq!(counts.ffma, text.fma);
        assert!(counts.shared_loads < text.shared_loads, "{counts:?}");
        let all = predicted(counts, |_| None);
        let ffma = all.iter().find(|of| of.name == "ffma").expect("multiply-adds");
        assert_eq!(ffma.metric, "sass__inst_executed_per_opcode: FFMA");
        assert_eq!((&*ffma.tolerance, ffma.value), ("exact", text.fma));
        let loads = predicted(counts, |name| (name == "shared_loads").then(|| "so".to_owned()));
        let further_off = |of: &&gemm_draw::compiled::Predicted| of.further_off.is_some();
        let named: Vec<&str> = loads.iter().filter(further_off).map(|of| &*of.name).collect();
        assert_eq!(named, ["shared loads"]);
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
