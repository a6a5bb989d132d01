//! Final timing of the best specs, and their output.

use crate::limits::SearchLimits;
use gemm_bench::cli::Failure;
use gemm_bench::gpu::median;
use gemm_bench::report::write_line;
use gemm_bench::table;
use gemm_bench::table::{Table, number, text};
use gemm_bench::tune::rank::Ranking;
use gemm_bench::tune::target::{SpecTime, Target};
use serde::Serialize;
use std::io::Write;

/// Number of rounds of a measurement, and number of measurements.
const ROUNDS: usize = 25;
const REPEATS: usize = 3;

/// Result of a finalist, for the table and `--json`.
#[derive(Serialize)]
struct Final {
    size: String,
    rank: usize,
    spec: String,
    /// Median over the measurements of the time of a launch.
    time_ms: f64,
    /// Median over the measurements, in the target's unit.
    rate: f64,
    unit: &'static str,
    baseline: &'static str,
    /// Ratio to the baseline: median, minimum and maximum over the measurements. NaN (`null` in
    /// JSON) if the baseline is not installed.
    ratio: f64,
    ratio_min: f64,
    ratio_max: f64,
    registers: u32,
    /// Overhead of the epilogue in percent, and time of cuBLAS plus an epilogue kernel. `None` for
    /// a spec without an epilogue.
    over_plain_percent: Option<f64>,
    separate_ms: Option<f64>,
    max_err: f64,
}

/// Checks the best specs of a size, times them again and prints them. Returns the specs with wrong
/// results, which are not printed.
///
/// # Errors
/// Returns the errors of the launches and of the standard output.
pub fn finals<T: Target>(
    target: &mut T,
    size: usize,
    ranking: &Ranking<T::Spec>,
    limits: &SearchLimits,
    json: bool,
) -> Result<Vec<String>, Failure> {
    let mut finalists = Vec::new();
    let mut wrong = Vec::new();
    for found in ranking.best(size, limits.finalists) {
        match target.check(Some(size), &found.spec)? {
            (error, true) => finalists.push((found, error)),
            (_, false) => wrong.push(found.spec.to_string()),
        }
    }
    let mut times = vec![Vec::new(); finalists.len()];
    for repeat in 0..REPEATS {
        for ((found, _), times) in finalists.iter().zip(&mut times) {
            // Every finalist is timed once, even after the time limit.
            if repeat == 0 || !limits.passed(1.0) {
                times.push(target.time(size, &found.spec, ROUNDS)?);
            }
        }
    }
    let name = target.sizes().into_iter().nth(size).unwrap_or_default();
    let mut all: Vec<Final> = Vec::new();
    for ((found, error), times) in finalists.iter().zip(&times) {
        let fusion = target.fusion(size, &found.spec, ROUNDS)?;
        let of = |value: fn(&SpecTime) -> f64| times.iter().map(value).collect::<Vec<_>>();
        let ratios = of(|timed| timed.ratio);
        all.push(Final {
            size: name.clone(),
            rank: 0,
            spec: found.spec.to_string(),
            time_ms: median(&mut of(|timed| timed.time)),
            rate: median(&mut of(|timed| timed.rate)),
            unit: T::UNIT,
            baseline: T::BASELINE,
            ratio: median(&mut ratios.clone()),
            ratio_min: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            ratio_max: ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            registers: found.resources.registers,
            over_plain_percent: fusion.map(|fusion| 100.0 * fusion.over_plain()),
            separate_ms: fusion.and_then(|fusion| fusion.separate),
            max_err: *error,
        });
    }
    all.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    all.iter_mut().enumerate().for_each(|(i, row)| row.rank = i + 1);
    print::<T>(&name, &all, json)?;
    Ok(wrong)
}

fn ratio(value: f64) -> String {
    if value.is_finite() { format!("{value:.3}") } else { "–".to_owned() }
}

fn print<T: Target>(size: &str, all: &[Final], json: bool) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    if json {
        all.iter().try_for_each(|row| write_line(&mut out, row))?;
        return Ok(());
    }
    let fused = all.iter().any(|row| row.over_plain_percent.is_some());
    let mut columns = vec![
        number(""),
        number("time").optional(3),
        number(T::UNIT),
        number(&format!("of {}", T::BASELINE)),
        number("from … to").optional(2),
        number("registers").optional(1),
    ];
    if fused {
        columns.push(number("epilogue\nadds"));
        columns.push(number("cuBLAS plus\nepilogue kernel"));
    }
    columns.push(text("spec").wrapping());
    let mut table = Table::new(columns);
    for row in all {
        let mut cells = vec![
            row.rank.to_string(),
            table::time(row.time_ms),
            format!("{:.0}", row.rate),
            ratio(row.ratio),
            format!("{} … {}", ratio(row.ratio_min), ratio(row.ratio_max)),
            row.registers.to_string(),
        ];
        if fused {
            let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
            let added =
                row.over_plain_percent.map(|percent| table::signed_percent(percent / 100.0));
            cells.push(or_none(added));
            cells.push(or_none(row.separate_ms.map(table::time)));
        }
        cells.push(row.spec.clone());
        table.add(cells);
    }
    writeln!(out, "\nThe best found at {size}\n\n{}", table.text())?;
    Ok(())
}
