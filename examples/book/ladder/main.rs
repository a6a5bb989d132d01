//! Runs the two ladders of kernels. Each stage is checked against `f64` and compared with the
//! previous stage, by times on a GPU and by counters on the simulator.
//!
//! ```text
//! cargo run --release --example ladder                       both ladders
//! cargo run --release --example ladder -- reduce --block 128 --op max
//! cargo run --release --example ladder -- sgemm --size 512,1024,2048 --plot products.svg
//! ```
//!
//! The exit code is 1 if a result is wrong, and 2 if the work could not be done.

mod book;
mod output;
mod reduce;
mod sgemm;
mod source;
mod stage;

use clap::Parser;
use gemm_bench::cli::{Failure, Outcome, exit, seed_or_new};
use gemm_bench::ladder::options::LadderOptions;
use output::Output;
use std::process::ExitCode;

fn main() -> ExitCode {
    exit(run(LadderOptions::parse()))
}

fn run(options: LadderOptions) -> Result<Outcome, Failure> {
    if let Some(folder) = &options.html {
        return book::write(folder);
    }
    let jobs = options.jobs()?;
    if let Some(stage) = &options.source {
        return source::print(stage, &jobs);
    }
    let device = options.device.open()?;
    let seed = seed_or_new(options.seed);
    let mut output = Output::new(options.json);
    let mut outcome = Outcome::Right;
    if let Some(job) = &jobs.reduce
        && reduce::run(job, &device, seed, &mut output)? == Outcome::Wrong
    {
        outcome = Outcome::Wrong;
    }
    if let Some(job) = &jobs.sgemm
        && sgemm::run(job, &device, seed, &mut output)? == Outcome::Wrong
    {
        outcome = Outcome::Wrong;
    }
    Ok(outcome)
}
