//! Use of the time model: printing of a ranking, or the first specs of a search.

use crate::limits::SearchLimits;
use gemm_bench::cli::{Failure, Outcome};
use gemm_bench::products::Products;
use gemm_bench::report::write_line;
use gemm_bench::table;
use gemm_bench::table::{Table, number, text};
use gemm_bench::tune::options::{TuneOptions, TuneProblem};
use gemm_bench::tune::predicted::{Limit, PredictedSpec, rank};
use gemm_bench::tune::space::{Point, Space};
use gemm_perf::H200;
use serde::Serialize;
use std::io::Write;
use std::time::Duration;

/// Share of the time limit that the model may take before a search.
const SHARE: f64 = 0.3;
/// Number of ranked specs with which a search begins, for each size.
const FIRST: usize = 40;

/// Line of the ranking, for the table and `--json`.
#[derive(Serialize)]
struct RankingRow<'a> {
    size: &'a str,
    rank: usize,
    spec: String,
    predicted_ms: f64,
    rate: f64,
    bound: String,
    device: &'static str,
}

/// Returns the limits of a ranking that may take this time.
fn limit(options: &TuneOptions, time: Duration, seed: u64) -> Limit {
    Limit { time, classes: options.classes.unwrap_or(usize::MAX), seed }
}

/// Returns the single GEMMs of the problem.
fn products(problem: &TuneProblem) -> Result<&[Products], Failure> {
    match problem {
        TuneProblem::Products(products) if products.iter().all(|one| one.batch.is_none()) => {
            Ok(products)
        }
        TuneProblem::Products(_) => Err(Failure::Usage(
            "the time model ranks single GEMMs: leave out --batch, or --for".to_owned(),
        )),
        TuneProblem::Arrays(_) => Err(Failure::Usage(
            "the time model ranks only GEMMs, not reductions: leave out --for and give --device \
             cuda, or leave out --family reduce"
                .to_owned(),
        )),
    }
}

/// Prints the ranking of a space.
///
/// # Errors
/// Returns the errors of [`rank`], and [`Failure::Usage`] for a problem that the model does not
/// support.
pub fn print(
    space: &Space,
    problem: &TuneProblem,
    options: &TuneOptions,
    time: Duration,
    seed: u64,
) -> Result<Outcome, Failure> {
    let device = options.model_of.unwrap_or(&H200);
    let products = products(problem)?;
    eprintln!(
        "{}, ranked for {} by the time model: {} (seed {seed})",
        space.describe(),
        device.name,
        device.source
    );
    let mut out = std::io::stdout().lock();
    for one in products {
        let limit = limit(options, time / products.len() as u32, seed);
        let ranked = rank(space, one.size, device, limit)?;
        eprintln!("{} classes of specs simulated", ranked.len());
        let size = one.to_string();
        let row = |(nth, predicted): (usize, &PredictedSpec)| RankingRow {
            size: &size,
            rank: nth + 1,
            spec: predicted.spec.to_string(),
            predicted_ms: predicted.time,
            rate: one.flops() / predicted.time / 1e6,
            bound: predicted.bound.to_string(),
            device: device.name,
        };
        let rows: Vec<RankingRow<'_>> =
            ranked.iter().take(options.finalists).enumerate().map(row).collect();
        if options.json {
            rows.iter().try_for_each(|row| write_line(&mut out, row))?;
            continue;
        }
        let mut table = Table::new([
            number(""),
            number("predicted"),
            number("GFLOP/s"),
            text("bound by"),
            text("spec").wrapping(),
        ]);
        for row in rows {
            let rate = format!("{:.0}", row.rate);
            table.add([
                row.rank.to_string(),
                table::time(row.predicted_ms),
                rate,
                row.bound,
                row.spec,
            ]);
        }
        let name = device.name;
        writeln!(
            out,
            "\nThe first at {size} by the model of {name}; registers are estimated\n\n{}",
            table.text()
        )?;
    }
    Ok(Outcome::Right)
}

/// Returns the points with which a search begins. They are empty if the model is not requested.
///
/// # Errors
/// Returns the errors of [`print`].
pub fn first(
    space: &Space,
    problem: &TuneProblem,
    options: &TuneOptions,
    limits: &SearchLimits,
) -> Result<Vec<Point>, Failure> {
    let Some(device) = options.model_of else { return Ok(Vec::new()) };
    let products = products(problem)?;
    let mut first = Vec::new();
    for one in products {
        let time = limits.time.mul_f64(SHARE) / products.len() as u32;
        let ranked = rank(space, one.size, device, limit(options, time, limits.seed))?;
        first.extend(ranked.into_iter().take(FIRST).map(|predicted| predicted.point));
    }
    Ok(first)
}
