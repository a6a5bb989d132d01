//! Plans of scans and of elementwise kernels with equal decisions are equal.

use crate::plan::{Decision, MapPlan, ScanPlan};
use crate::{Plan, cuda};
use std::collections::HashMap;

/// Sources of all kernels of a plan, without their names and the comments at their heads.
fn sources(plan: &impl Plan) -> String {
    let program = plan.program().expect("a sound spec");
    let code = program.launched().map(|kernel| {
        let source = cuda::source(kernel);
        let code = source.split_once("\n\n").expect("a head").1.replace(&kernel.name, "kernel");
        // Lines are broken after another word if a name is longer.
        code.split_whitespace().collect::<String>()
    });
    code.collect()
}

/// Compares the plans of all combinations of keys, one of each list. Combinations that have no
/// plan are left out.
fn compare<P: Plan>(keys: &[&[&str]], decisions: impl Fn(&P) -> Vec<Decision>) {
    let mut lines = vec![String::new()];
    for alternatives in keys {
        let extended = lines.iter().flat_map(|line| {
            alternatives.iter().map(move |key| match (line.as_str(), *key) {
                (line, "") => line.to_owned(),
                ("", key) => key.to_owned(),
                (line, key) => format!("{line}, {key}"),
            })
        });
        lines = extended.collect();
    }
    let mut seen: HashMap<_, (String, String)> = HashMap::new();
    let mut repeated = 0;
    for line in lines {
        let Ok(plan) = line.parse::<P>() else { continue };
        let sources = sources(&plan);
        let told = decisions(&plan);
        for (nth, decision) in told.iter().enumerate() {
            assert!(!decision.value.is_empty(), "{line}: {decision:?}");
            assert!(told[..nth].iter().all(|other| other.name != decision.name), "{decision:?}");
        }
        let (known, other) = seen.entry(told).or_insert_with(|| (sources.clone(), line.clone()));
        assert_eq!(*known, sources, "the same is said of `{line}` and `{other}`");
        repeated += usize::from(*other != line);
    }
    assert!(seen.len() > 20 && repeated > 0, "{} lists, {repeated} of them twice", seen.len());
}

#[test]
fn scans_with_equal_decisions_have_equal_sources() {
    compare::<ScanPlan>(
        &[
            &["", "over: rows"],
            &["", "type: u8, acc: u32, result: u32", "type: f64"],
            &["block: 128", "block: 512"],
            &["", "items: 2", "group: 32"],
            &["", "blocks_per_sm: 1", "blocks_per_sm: 2", "blocks_per_sm: 4"],
        ],
        ScanPlan::decisions,
    );
}

#[test]
fn maps_with_equal_decisions_have_equal_sources() {
    compare::<MapPlan>(
        &[
            &[
                "|x[m, n]| gelu(x)",
                "|x[m, n]: bf16| x * x",
                "|x[m, n], y[n]| -> f64 x + y",
                "|x[m, n]| { let e = exp(x - max(x)); e / sum(e) }",
                "|x[m, n]: f16| -> f32[m] sum(x * x)",
            ],
            &["block: 32", "block: 256"],
            &["", "items: 1", "items: 2", "items: 4"],
            &["", "name: own"],
        ],
        MapPlan::decisions,
    );
}
