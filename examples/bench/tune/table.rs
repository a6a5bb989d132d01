//! Measurement of candidate specs over a grid of shapes, and fitting of a table to the times.

use crate::measure;
use gemm_bench::cli::{Failure, Outcome, named, open_gpu};
use gemm_bench::shapes::GemmShape;
use gemm_bench::table_source::read;
use gemm_bench::tune::table::fit;
use gemm_bench::tune::table::fit::{Comparison, Rule};
use gemm_bench::tune::table::options::Task;
use gemm_bench::tune::table::samples::FitSamples;
use gemm_bench::tune::table::times::{CUBLAS, Time, TimesFile};
use gemm_bench::tune::table::tree::TreeLimits;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Measures unknown times, if there is a GPU, and writes the table.
pub fn run(task: &Task, seed: u64) -> Result<Outcome, Failure> {
    let (times, outcome) = times(task, seed)?;
    let samples = FitSamples::new(&times, task.accuracy);
    for line in &samples.unknown {
        eprintln!("note: `{line}` is not a spec of a table; its times are skipped");
    }
    if samples.shapes.is_empty() {
        return Err(Failure::Usage("no spec has a time, so no table is written".to_owned()));
    }
    let limits = TreeLimits::of_rows(task.rows);
    let usage = |reason: String| Failure::Usage(format!("--first: {reason}"));
    let rows = task.first.then_fitted(&samples, &limits).map_err(usage)?;
    let internal = |reason: String| {
        Failure::from(gemm_runtime::Error::Internal(format!("the table: {reason}")))
    };
    let table = read(&fit::text(&rows)).map_err(internal)?;
    let regret = fit::regret(&table, &samples).map_err(internal)?;
    let mut about = vec![
        summary(&times, &samples, &rows, task.first.count()),
        said_regret("at these shapes", &regret),
    ];
    let drawn = |shape: &GemmShape| !shape.is_of_grid();
    let unseen = fit::unseen(&samples, &task.first, &limits, drawn).map_err(internal)?;
    if unseen.count > 0 {
        let of = format!("at {} drawn shapes, by cross-validated tables", unseen.count);
        about.push(said_regret(&of, &unseen));
    }
    let cublas = |shape: &GemmShape| times.get(shape, CUBLAS).and_then(Time::us);
    let beside = fit::over_cublas(&table, &samples, cublas).map_err(internal)?;
    if let Some((least, shape)) = beside.least {
        about.push(format!(
            "cuBLAS time over that of the table: {:.3} in the geometric mean, at least \
             {least:.3}, at {shape}",
            beside.mean
        ));
    }
    let written = std::fs::write(&task.table, fit::source(&rows, &about));
    written.map_err(|error| named(&task.table, &error))?;
    let mut out = io::stdout().lock();
    about.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(outcome)
}

/// Measures unknown times, if there is a GPU, and returns all known times.
fn times(task: &Task, seed: u64) -> Result<(TimesFile, Outcome), Failure> {
    let kept =
        task.times.as_ref().filter(|path| std::fs::metadata(path).is_ok_and(|file| file.len() > 0));
    match (kept, open_gpu()) {
        (Some(path), _) if task.limit == 0 => Ok((TimesFile::open(path)?, Outcome::Right)),
        (_, Ok(device)) => measure::run(task, &device, seed),
        (Some(path), Err(failure)) => {
            eprintln!("note: nothing was measured: {failure}");
            Ok((TimesFile::open(path)?, Outcome::Right))
        }
        (None, Err(failure)) => Err(failure),
    }
}

fn summary(times: &TimesFile, samples: &FitSamples, rows: &[Rule], by_hand: usize) -> String {
    let kernels: BTreeSet<&String> = rows.iter().map(|row| &row.line).collect();
    let by_hand = match by_hand {
        0 => String::new(),
        count => format!(", the first {count} by hand,"),
    };
    format!(
        "{} rules{by_hand} of {} specs, from the times of {} specs at {} shapes on {}",
        rows.len(),
        kernels.len(),
        samples.lines.len(),
        samples.shapes.len(),
        times.head.device
    )
}

/// Describes the slowdown of the table's choices.
fn said_regret(of: &str, regret: &Comparison) -> String {
    let percent = |ratio: f64| format!("{:.1} %", 100.0 * (ratio - 1.0));
    let worst = regret.most.map_or(String::new(), |(ratio, shape)| {
        format!(", at most {}, at {shape}", percent(ratio))
    });
    format!(
        "slower than the best spec, {of}: {} in the geometric mean{worst}",
        percent(regret.mean)
    )
}
