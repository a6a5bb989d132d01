//! Predicted counters of compiled kernels, compared with the profiler's counts. Each count that
//! exceeds its tolerance must be listed with a reason in `tests/data/profiler/known.csv`. No other
//! counts may be listed.
//!
//! Reductions are tested at two shapes. Of the GEMMs, every sixth stage is tested at one shape,
//! with whole or partial tiles. With `GEMM_EVERY_SHAPE` all three shapes are tested, which takes
//! minutes longer.

use gemm_dsl::stages;
use gemm_oracle::product::Size;
use gemm_oracle::profiler::{Measured, Which, known, measured};
use gemm_runtime::Device;
use gemm_sim::{Quantity, SassCounters};
use gemm_tests::ladder;
use gemm_tests::simulator;
use libtest_mimic::Trial;
use rayon::prelude::*;
use std::collections::BTreeSet;

/// Shapes with partial tiles but whole vectors of four.
const OF_VECTORS: [&str; 2] = ["500x516x508", "1000x1004"];

/// Shape of GEMMs with partial tiles along every axis.
const RAGGED: &str = "509x517x523";

/// True if launches of a stage at a shape are tested.
fn is_held(of: &Which) -> bool {
    let every_shape = std::env::var_os("GEMM_EVERY_SHAPE").is_some_and(|value| !value.is_empty());
    let is_chosen = match (of.ladder, of.stage % 12) {
        ("sgemm", 1) => of.shape == RAGGED,
        ("sgemm", 10) => of.shape != RAGGED,
        (ladder, _) => ladder != "sgemm",
    };
    every_shape || (is_chosen && !OF_VECTORS.contains(&of.shape))
}

/// Number of counts that the model does not predict: instructions of launches that keep arrays in
/// local memory.
const DECLINED: usize = 0;

/// Predicted counters of each launch of a stage at a shape.
fn predicted(name: &str, stage: u32, shape: &str) -> Vec<(String, SassCounters)> {
    let device = Device::simulator_compiled();
    let extents: Vec<usize> = shape.split('x').map(|n| n.parse().expect("an extent")).collect();
    let launched = match (name, &extents[..]) {
        ("sgemm", &[m, n, k]) => {
            let stage = stages::sgemm().into_iter().find(|known| known.index == stage);
            ladder::product(&device, &stage.expect("a stage").spec, Size { m, n, k })
        }
        (_, &[rows, cols]) => {
            let stage = stages::reduce().into_iter().find(|known| known.index == stage);
            ladder::reduction(&device, &stage.expect("a stage").spec, (rows, cols))
        }
        _ => panic!("{shape} is not a shape of a {name}"),
    };
    let launched = launched.unwrap_or_else(|error| panic!("{name} {stage} at {shape}: {error}"));
    let counted = |step: gemm_runtime::StepReport<'_>| {
        let counts = step.compiled_counters().expect("the simulator was asked for them");
        (step.kernel().to_owned(), *counts)
    };
    launched.steps().map(counted).collect()
}

/// Relation of a prediction to the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Near,
    /// The error exceeds the tolerance of the quantity.
    Outside,
    Declined,
}

fn verdict(quantity: &Quantity, measured: &Measured, predicted: &SassCounters) -> Verdict {
    let Some(found) = (quantity.of)(predicted) else { return Verdict::Declined };
    let apart = found.abs_diff(measured.counts[quantity.name]) as f64;
    match apart > quantity.tolerance * measured.counts[quantity.share_of] as f64 {
        true => Verdict::Outside,
        false => Verdict::Near,
    }
}

fn the_profiler_counts_what_is_predicted() {
    let mut measured = measured();
    assert!(OF_VECTORS.iter().all(|shape| measured.keys().any(|of| of.shape == *shape)));
    measured.retain(|of, _| is_held(of));
    let launches: BTreeSet<_> = measured.keys().map(|of| (of.ladder, of.stage, of.shape)).collect();
    let launches: Vec<_> = launches.into_iter().collect();
    let found: Vec<Vec<_>> = launches
        .par_iter()
        .map(|&(ladder, stage, shape)| {
            let steps = predicted(ladder, stage, shape);
            let of = |step| Which { ladder, stage, shape, step };
            let counted: Vec<&Measured> = (0..).map_while(|step| measured.get(&of(step))).collect();
            let kernels: Vec<&str> = steps.iter().map(|(kernel, _)| &**kernel).collect();
            let profiled: Vec<&str> = counted.iter().map(|measured| measured.kernel).collect();
            assert_eq!(kernels, profiled, "launches of {ladder} {stage} at {shape}");
            let mut verdicts = Vec::new();
            for (step, ((_, counts), measured)) in steps.iter().zip(counted).enumerate() {
                for quantity in SassCounters::QUANTITIES {
                    let verdict = verdict(quantity, measured, counts);
                    verdicts.push(((of(step), quantity.name), verdict));
                }
            }
            verdicts
        })
        .collect();
    let found = found.concat();
    assert_eq!(found.len(), measured.len() * SassCounters::QUANTITIES.len());
    let are = |which| found.iter().filter(move |(_, verdict)| *verdict == which);
    let outside: BTreeSet<_> = are(Verdict::Outside).map(|(figure, _)| figure.clone()).collect();
    let known: BTreeSet<_> = known().into_keys().filter(|(of, _)| is_held(of)).collect();
    let new: Vec<_> = outside.difference(&known).collect();
    let gone: Vec<_> = known.difference(&outside).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "outside the tolerance, but not listed:\n{new:#?}\nlisted, but not outside:\n{gone:#?}"
    );
    assert_eq!(are(Verdict::Declined).count(), DECLINED);
}

fn every_quantity_is_measured_and_what_is_told_exactly_is_known() {
    let measured = measured();
    let one = measured.values().next().expect("a launch");
    for quantity in SassCounters::QUANTITIES {
        assert!(one.counts.contains_key(quantity.name), "{}", quantity.name);
        assert!(one.counts.contains_key(quantity.share_of), "{}", quantity.share_of);
    }
    let figures = measured.len() * SassCounters::QUANTITIES.len();
    // At most two of a hundred counts are exceptions.
    assert!(known().len() * 50 <= figures, "{} of {figures}", known().len());
}

fn machine_code_does_not_change_the_source_counters() {
    let of = |device: &Device| -> Vec<_> {
        let products = stages::sgemm().into_par_iter().map(|stage| {
            let launched = ladder::product(device, &stage.spec, Size::new(256, 256, 64));
            launched.unwrap_or_else(|error| panic!("{}: {error}", stage.name))
        });
        let reductions = stages::reduce().into_par_iter().map(|stage| {
            let launched = ladder::reduction(device, &stage.spec, (33, 100));
            launched.unwrap_or_else(|error| panic!("{}: {error}", stage.name))
        });
        let launched: Vec<_> = products.chain(reductions).collect();
        launched.iter().flat_map(|l| l.steps().map(|step| step.counters().copied())).collect()
    };
    assert_eq!(of(&simulator()), of(&Device::simulator_compiled()));
}

pub fn trials() -> Vec<Trial> {
    simulated![
        the_profiler_counts_what_is_predicted,
        every_quantity_is_measured_and_what_is_told_exactly_is_known,
        machine_code_does_not_change_the_source_counters,
    ]
}
