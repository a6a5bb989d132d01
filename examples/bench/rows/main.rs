//! Measures reductions of whole arrays, rows, columns and segments, with the kernels of the shipped
//! table, against PyTorch and CUB in the same run.
//!
//! ```text
//! cargo run --release -p gemm-bench --example rows                    everything
//! cargo run --release -p gemm-bench --example rows -- --only rows --op sum,argmax --json rows.json
//! ```
//!
//! The exit code is 1 if a result is wrong, and 2 if the work failed.

mod bench;
mod table;

use bench::ReductionBench;
use clap::Parser;
use gemm_bench::cli::{Failure, Outcome, device_label, exit, seed_or_new, write_json};
use gemm_bench::progress;
use gemm_bench::rows::options::RowsOptions;
use gemm_bench::rows::report::{ReductionReport, ReductionRow, behind, means};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    exit(run(&RowsOptions::parse()))
}

fn run(options: &RowsOptions) -> Result<Outcome, Failure> {
    let device = options.device.open()?;
    let tables = options.tables(device.is_simulator())?;
    let seed = seed_or_new(options.seed);
    let mut bench = ReductionBench::new(&device, options.peers, seed)?;
    let name = device_label(&device);
    say(&bench.title(&name))?;

    let mut rows = Vec::new();
    for (kind, problems) in &tables {
        let bar = progress::bar(problems.len());
        let start = rows.len();
        for problem in problems {
            bar.set_message(problem.to_string());
            let (row, complaints) = bench.measure(problem)?;
            for complaint in &complaints {
                bar.suspend(|| eprintln!("{complaint}"));
            }
            rows.push(row);
            bar.inc(1);
        }
        bar.finish_and_clear();
        let rows = &rows[start..];
        say(&format!(
            "\n{}\n",
            table::table(*kind, rows, bench.read_rate(), bench.peers()).text()
        ))?;
        for path in options.plots(*kind, tables.len()) {
            table::draw(*kind, rows, &name, bench.read_rate(), &path)?;
        }
    }
    if bench.read_rate().is_some() {
        summary(&rows)?;
    }
    let right = rows.iter().all(|row| row.ok != Some(false));
    if let Some(path) = &options.json {
        let peers = bench.peers().iter().map(|(_, name)| name.clone()).collect();
        let (read_gb_s, means) = (bench.read_rate(), means(&rows));
        write_json(path, &ReductionReport { device: name, seed, read_gb_s, peers, rows, means })?;
    }
    Ok(if right { Outcome::Right } else { Outcome::Wrong })
}

/// Prints the means of all tables, and the rows that are slower than a peer or than expected.
fn summary(rows: &[ReductionRow]) -> Result<(), Failure> {
    let means = means(rows);
    if !means.is_empty() {
        say(&format!("{}\n", table::means(&means).text()))?;
    }
    let (peers, reading) = behind(rows);
    for (title, lines) in
        [("Slower than a peer", peers), ("Slower than expected for its memory traffic", reading)]
    {
        if !lines.is_empty() {
            say(&format!("{title}:\n  {}\n", lines.join("\n  ")))?;
        }
    }
    Ok(())
}

fn say(text: &str) -> Result<(), Failure> {
    Ok(writeln!(io::stdout(), "{text}")?)
}
