//! Profiler counts of the stages of both ladders (`tests/data/profiler/h200.csv`), and the counts
//! that are known to differ from predictions by more than the tolerance (`known.csv`). The first
//! line of each file has the column names.

use std::collections::BTreeMap;

const MEASURED: &str = include_str!("../../data/profiler/h200.csv");
const KNOWN: &str = include_str!("../../data/profiler/known.csv");

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Which {
    /// `sgemm` or `reduce`.
    pub ladder: &'static str,
    pub stage: u32,
    /// Extents, separated by `x`.
    pub shape: &'static str,
    /// Number of the launch within the stage, from 0.
    pub step: usize,
}

/// Launch as counted by the profiler.
#[derive(Clone, Debug)]
pub struct Measured {
    pub kernel: &'static str,
    /// Counts, and registers per thread, by column name.
    pub counts: BTreeMap<&'static str, u64>,
}

/// Rows of a table. A row is returned as its fields in the given columns, and its fields in all
/// other columns by name. The last column may contain commas.
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

/// All measured launches.
///
/// # Panics
/// If a count is not a number.
pub fn measured() -> BTreeMap<Which, Measured> {
    let number = |(name, field): (&'static str, &str)| {
        (name, field.parse().unwrap_or_else(|_| panic!("`{field}` is not a {name}")))
    };
    let mut measured = BTreeMap::new();
    for ([ladder, stage, shape, kernel], counts) in
        rows(MEASURED, ["ladder", "stage", "shape", "kernel"])
    {
        let stage = stage.parse().expect("the number of a stage");
        let of = |step| Which { ladder, stage, shape, step };
        // Launches of a stage are listed in order.
        let step = (0..).find(|step| !measured.contains_key(&of(*step))).expect("few launches");
        let counts = counts.into_iter().map(number).collect();
        measured.insert(of(step), Measured { kernel, counts });
    }
    measured
}

/// Counts with a known difference, by launch and quantity, each with the reason.
///
/// # Panics
/// If a count has no reason, or is listed twice.
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
        assert!(before.is_none(), "{quantity} of {which:?} is listed twice");
    }
    known
}
