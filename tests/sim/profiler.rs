//! Counters as compiled against the profiler's: each stage of both ladders at three shapes, figure by figure. What is further off
//! than a quantity may be stands in `tests/profiler/known.csv` with its reason, and stands there only as long as it is.

use gemm_dsl::sim::{Compiled, Quantity};
use gemm_dsl::stages;
use gemm_reference::product::Size;
use gemm_runtime::Device;
use gemm_tests::ladder;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const MEASURED: &str = include_str!("../profiler/h200.csv");
const KNOWN: &str = include_str!("../profiler/known.csv");

/// Which launch: its ladder, stage and shape, and which of the stage's launches.
type Which = (String, u32, String, usize);

/// A launch as the profiler has counted it.
struct Measured {
    kernel: String,
    counts: BTreeMap<String, u64>,
}

/// The launches of the table, each by its place among those of its stage.
fn measured() -> BTreeMap<Which, Measured> {
    let mut lines = MEASURED.lines();
    let names: Vec<&str> = lines.next().expect("a line of names").split(',').collect();
    let mut rows = BTreeMap::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let stage: u32 = fields[1].parse().expect("the number of a stage");
        let of = |step| (fields[0].to_owned(), stage, fields[2].to_owned(), step);
        let step = (0..).find(|step| !rows.contains_key(&of(*step))).expect("few launches");
        let counts = names[4..].iter().zip(&fields[4..]);
        let counts = counts.map(|(name, n)| ((*name).to_owned(), n.parse().expect("a count")));
        let kernel = fields[3].to_owned();
        rows.insert(of(step), Measured { kernel, counts: counts.collect() });
    }
    rows
}

/// What each launch of a stage at a shape is predicted to count.
fn predicted(name: &str, stage: u32, shape: &str) -> Vec<(String, Compiled)> {
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
        _ => panic!("{shape} is no shape of a {name}"),
    };
    let launched = launched.unwrap_or_else(|error| panic!("{name} {stage} at {shape}: {error}"));
    let counted = |step: gemm_runtime::LaunchedStep<'_>| {
        let counts = step.compiled_counters().expect("the simulator was asked for them");
        (step.kernel().to_owned(), *counts)
    };
    launched.steps().map(counted).collect()
}

/// How far a prediction is off, as a share of what the quantity's tolerance is one of; none where it is near enough.
fn off(quantity: &Quantity, measured: &Measured, predicted: &Compiled) -> Option<f64> {
    let (found, expected) = ((quantity.of)(predicted)?, measured.counts[quantity.name]);
    let whole = measured.counts[quantity.share_of] as f64;
    let apart = found as f64 - expected as f64;
    (apart.abs() > quantity.tolerance * whole).then_some(apart / whole)
}

#[test]
fn the_profiler_counts_what_is_predicted() {
    let measured = measured();
    let launches: BTreeSet<(&str, u32, &str)> =
        measured.keys().map(|(name, stage, shape, _)| (&**name, *stage, &**shape)).collect();
    let launches: Vec<_> = launches.into_iter().collect();
    let found: Vec<Vec<String>> = launches
        .par_iter()
        .map(|&(name, stage, shape)| {
            let mut outside = Vec::new();
            for (step, (kernel, counts)) in predicted(name, stage, shape).iter().enumerate() {
                let of = &measured[&(name.to_owned(), stage, shape.to_owned(), step)];
                assert_eq!(*kernel, of.kernel, "{name} {stage} at {shape}");
                for quantity in Compiled::QUANTITIES {
                    if off(quantity, of, counts).is_some() {
                        outside.push(format!("{name},{stage},{shape},{step},{}", quantity.name));
                    }
                }
            }
            outside
        })
        .collect();
    let found: BTreeSet<String> = found.concat().into_iter().collect();
    let known: BTreeSet<String> = known().into_keys().collect();
    let new: Vec<&String> = found.difference(&known).collect();
    let gone: Vec<&String> = known.difference(&found).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "outside of its tolerance, and not known to be:\n{new:#?}\nno longer outside:\n{gone:#?}"
    );
}

/// The figures that are known to be further off, each with its reason.
fn known() -> BTreeMap<String, String> {
    let mut known = BTreeMap::new();
    for line in KNOWN.lines().skip(1) {
        let (figure, reason) = line.rsplit_once(',').expect("a figure and its reason");
        assert!(!reason.is_empty(), "`{line}` has no reason");
        assert!(known.insert(figure.to_owned(), reason.to_owned()).is_none(), "`{line}` twice");
    }
    known
}

#[test]
fn every_quantity_is_measured_and_what_is_told_exactly_is_known() {
    let measured = measured();
    let one = measured.values().next().expect("a launch");
    for quantity in Compiled::QUANTITIES {
        assert!(one.counts.contains_key(quantity.name), "{}", quantity.name);
        assert!(one.counts.contains_key(quantity.share_of), "{}", quantity.share_of);
    }
    let figures = measured.len() * Compiled::QUANTITIES.len();
    // The exceptions are few: of hundred figures two.
    assert!(known().len() * 50 <= figures, "{} of {figures}", known().len());
}

#[test]
fn who_asks_for_machine_code_gets_the_same_counters_of_the_text() {
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
    assert_eq!(of(&Device::simulator()), of(&Device::simulator_compiled()));
}
