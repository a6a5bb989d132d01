//! Predicted counts that are known to differ from the profiler's by more than the tolerance.

use gemm_oracle::profiler;
use gemm_oracle::profiler::{Measured, Which};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Profiler measurements and known deviations. They are parsed once, because every count on every
/// page is looked up.
static MEASURED: LazyLock<BTreeMap<Which, Measured>> = LazyLock::new(profiler::measured);
static KNOWN: LazyLock<BTreeMap<(Which, &str), &str>> = LazyLock::new(profiler::known);

/// Returns the reasons for the deviations of a kernel's count, with the shapes at which they occur.
/// `tests/kernels` checks the deviations against the profiler.
pub(super) fn reason(kernel: &str, quantity: &str) -> Option<String> {
    let mut of_kernel: Vec<(&str, Vec<&str>)> = Vec::new();
    for ((which, of), why) in &*KNOWN {
        let is_its = MEASURED.get(which).is_some_and(|measured| measured.kernel == kernel);
        if !is_its || *of != quantity {
            continue;
        }
        match of_kernel.iter_mut().find(|(other, _)| other == why) {
            Some((_, shapes)) => shapes.push(which.shape),
            None => of_kernel.push((why, vec![which.shape])),
        }
    }
    let said = of_kernel.iter().map(|(why, shapes)| format!("at {}: {why}", shapes.join(", ")));
    Some(said.collect::<Vec<_>>().join("; ")).filter(|said| !said.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::looked;
    use gemm_bench::family::Family;
    use gemm_draw::metrics::predicted;

    #[test]
    fn loads_of_neighbours_are_merged_and_multiply_adds_are_not() {
        let looked = looked(Family::Sgemm, "tile: 32x32x8, thread: 4x4, transpose");
        let counts = looked.compiled().expect("counts");
        let text = &looked.profile.total;
        assert_eq!(counts.ffma, text.fma);
        assert!(counts.shared_loads < text.shared_loads, "{counts:?}");
        let all = predicted(counts, |_| None);
        let ffma = all.iter().find(|of| of.name == "ffma").expect("multiply-adds");
        assert_eq!(ffma.metric, "sass__inst_executed_per_opcode: FFMA");
        assert_eq!((&*ffma.tolerance, ffma.value), ("exact", text.fma));
        let loads = predicted(counts, |name| (name == "shared_loads").then(|| "so".to_owned()));
        let further_off = |of: &&gemm_draw::metrics::Metric| of.further_off.is_some();
        let named: Vec<&str> = loads.iter().filter(further_off).map(|of| &*of.name).collect();
        assert_eq!(named, ["shared loads"]);
    }

    /// Each known deviation is reported for its kernel, and for no other kernel of its stage.
    #[test]
    fn known_deviations_are_reported_for_their_kernel() {
        let (known, measured) = (profiler::known(), profiler::measured());
        for ((which, quantity), why) in &known {
            let said = reason(measured[which].kernel, quantity).expect("a reason");
            assert!(said.contains(why) && said.contains(which.shape), "{which:?}: {said}");
        }
        for (which, launch) in &measured {
            let of_kernel = |(at, _): &(_, &str)| measured[at].kernel == launch.kernel;
            for quantity in launch.counts.keys() {
                let is_known = known.keys().any(|key| key.1 == *quantity && of_kernel(key));
                assert_eq!(
                    reason(launch.kernel, quantity).is_some(),
                    is_known,
                    "{which:?}, {quantity}"
                );
            }
        }
    }
}
