//! Measures GEMMs of all shapes on a GPU, with the kernels of `sgemm` or of a table, against cuBLAS
//! in the same run.
//!
//! ```text
//! cargo run --release --example grid                             # the grid, about five minutes
//! cargo run --release --example grid -- --layout nn --json grid.json --plot grid.svg,grid.png
//! cargo run --release --example grid -- --random 100 --seed 7
//! cargo run --release --example grid -- --table table.rs
//! cargo run --release --example grid -- --accuracy bound
//! cargo run --release --example grid -- --only 4096x4x32768,256x4x32768
//! ```
//!
//! Our kernel and cuBLAS run in turns on the same matrices, in CUDA graphs of back-to-back
//! launches. The exit code is 1 if one of our results is wrong, and 2 if the work failed.

mod bench;
mod table;

use bench::GridBench;
use clap::Parser;
use gemm_bench::cli::{Failure, Outcome, device_label, exit, open_gpu, seed_or_new, write_json};
use gemm_bench::grid::options::GridOptions;
use gemm_bench::grid::report::{GridReport, GridRow, means, worst};
use gemm_bench::{plot, progress};
use std::io::{self, Write};
use std::process::ExitCode;

/// Number of listed GEMMs with the smallest ratios to cuBLAS.
const WORST: usize = 10;

fn main() -> ExitCode {
    exit(run(&GridOptions::parse()))
}

fn run(options: &GridOptions) -> Result<Outcome, Failure> {
    let seed = seed_or_new(options.seed);
    // Options are checked before the GPU is opened.
    let (shapes, table) = (options.shapes(seed)?, options.table()?);
    let device = open_gpu()?;
    let mut bench = GridBench::new(&device, table, options.accuracy, &shapes, seed)?;
    let name = device_label(&device);
    say(&format!("{} GEMMs on {name}, {} (seed {seed})", shapes.len(), bench.beside()))?;
    say(&bench.compile(&shapes)?)?;

    let mut rows: Vec<GridRow> = Vec::new();
    let bar = progress::bar(shapes.len());
    for shape in &shapes {
        bar.set_message(shape.to_string());
        let row = bench.measure(*shape)?;
        if let Some(message) = &row.message {
            bar.suspend(|| eprintln!("{shape}: {message}"));
        }
        rows.push(row);
        bar.inc(1);
    }
    bar.finish_and_clear();
    say(&table::table(&rows).text())?;
    if let Some(note) = table::few_launches(&rows) {
        say(&note)?;
    }
    let means = means(&rows);
    if !means.is_empty() {
        say(&format!("\n{}", table::means(&means).text()))?;
    }
    let behind = worst(&rows, WORST);
    if !behind.is_empty() {
        say(&format!("\nSlowest relative to cuBLAS:\n{}", table::table(&behind).text()))?;
    }
    for path in &options.plot {
        plot::save(&table::map(&rows, &name), path)?;
    }
    let right = rows.iter().all(|row| row.ok != Some(false));
    if let Some(path) = &options.json {
        write_json(path, &GridReport { device: name, seed, rows, means })?;
    }
    Ok(if right { Outcome::Right } else { Outcome::Wrong })
}

fn say(text: &str) -> Result<(), Failure> {
    Ok(writeln!(io::stdout(), "{text}")?)
}
