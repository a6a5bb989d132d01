//! What the profiler counts of the stages of both ladders (`tests/data/profiler/h200.csv`), and which of these figures are known to be
//! further off a prediction than they may be (`known.csv`). The first line of either has the names of its columns.

use std::collections::BTreeMap;

const MEASURED: &str = include_str!("../../data/profiler/h200.csv");
const KNOWN: &str = include_str!("../../data/profiler/known.csv");

/// Which launch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Which {
    /// `sgemm` or `reduce`.
    pub ladder: &'static str,
    /// The number of the stage.
    pub stage: u32,
    /// Its extents, between which stands an `x`.
    pub shape: &'static str,
    /// Which of the stage's launches, from 0.
    pub step: usize,
}

/// A launch as the profiler has counted it.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The name of the kernel.
    pub kernel: &'static str,
    /// What was counted, and the registers of a thread, by the names of the columns.
    pub counts: BTreeMap<&'static str, u64>,
}

/// The lines of a table, each as what it has in these columns and, by its name, in each of the others. The last column may have
/// commas in it.
///
/// # Panics
/// If a column is missing.
fn rows<const N: usize>(
    table: &'static str,
    columns: [&str; N],
) -> impl Iterator<Item = ([&'static str; N], BTreeMap<&'static str, &'static str>)> {
    let mut lines = table.lines();
    let names: Vec<&str> = lines.next().expect("a line of names").split(',').collect();
    lines.map(move |line| {
        let mut fields: BTreeMap<&str, &str> =
            names.iter().copied().zip(line.splitn(names.len(), ',')).collect();
        let of = |name| fields.remove(name).unwrap_or_else(|| panic!("no `{name}` in `{line}`"));
        (columns.map(of), fields)
    })
}

/// All launches that were measured.
///
/// # Panics
/// If the table has something else than a count in a column of counts.
pub fn measured() -> BTreeMap<Which, Measured> {
    let number = |(name, field): (&'static str, &str)| {
        (name, field.parse().unwrap_or_else(|_| panic!("`{field}` is no {name}")))
    };
    let mut measured = BTreeMap::new();
    for ([ladder, stage, shape, kernel], counts) in
        rows(MEASURED, ["ladder", "stage", "shape", "kernel"])
    {
        let stage = stage.parse().expect("the number of a stage");
        let of = |step| Which { ladder, stage, shape, step };
        // Those of a stage stand in their order.
        let step = (0..).find(|step| !measured.contains_key(&of(*step))).expect("few launches");
        let counts = counts.into_iter().map(number).collect();
        measured.insert(of(step), Measured { kernel, counts });
    }
    measured
}

/// The figures that are known to be further off, by launch and quantity, each with its reason.
///
/// # Panics
/// If a figure has no reason, or stands there twice.
pub fn known() -> BTreeMap<(Which, &'static str), &'static str> {
    let mut known = BTreeMap::new();
    for ([ladder, stage, shape, step, quantity, reason], _) in
        rows(KNOWN, ["ladder", "stage", "shape", "step", "quantity", "reason"])
    {
        let stage = stage.parse().expect("the number of a stage");
        let step = step.parse().expect("the number of a launch");
        let which = Which { ladder, stage, shape, step };
        assert!(!reason.is_empty(), "{quantity} of {which:?} has no reason");
        let before = known.insert((which.clone(), quantity), reason);
        assert!(before.is_none(), "{quantity} of {which:?} stands there twice");
    }
    known
}
