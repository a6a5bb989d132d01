//! Searches the space of specs for the fastest, on a GPU.
//!
//! ```text
//! cargo run --release --example tune -- --preset large --size 4096,8192 --seconds 300
//! cargo run --release --example tune -- --size 1024 --space \
//!     "tile: 64x64x8 | 64x64x16, thread: 4x4, float4, transpose, double_buffer | stages: 3 | 4"
//! cargo run --release --example tune -- --size 16 --batch 4096 --space \
//!     "tile: 16x16x16, thread: 2x4, float4, pad_a: 4 | tile: 8x8x8, thread: 1x2"
//! ```
//!
//! The space is a spec with alternatives, see [`gemm_bench::tune::space`]. First, random specs are
//! compiled in parallel, checked, and timed against cuBLAS in a few launches. Then the neighbours
//! of the best specs follow, which differ in one entry. Finally, the best specs are timed again
//! thoroughly and printed. Reductions are compared with the rate of a kernel that only reads.
//!
//! ```text
//! cargo run --release --example tune -- --table table.rs --times h200.times --random 100 \
//!     --seed 7 --limit 1200
//! ```
//!
//! ```text
//! cargo run --release --example tune -- --device simulator --for h200 --preset small --size 1024
//! cargo run --release --example tune -- --for h200 --preset small --size 1024 --seconds 30
//! ```
//!
//! The time model ranks a space without a GPU. With a GPU and `--for`, the search begins with the
//! first specs of the ranking.
//!
//! With `--table` nothing is searched. Specs are timed over a grid of shapes, and a table of the
//! fastest specs is written, see [`gemm_bench::tune::table`]. Times are kept in a file. A later run
//! adds times to the file, or fits a table to the times without a GPU.

mod finals;
mod limits;
mod measure;
mod predicted;
mod reduce;
mod search;
mod sgemm;
mod table;

use clap::Parser;
use gemm_bench::cli::{DeviceChoice, Failure, Outcome, exit, open_gpu, seed_or_new};
use gemm_bench::tune::options::{TuneOptions, TuneProblem};
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    exit(run(&TuneOptions::parse()))
}

fn run(options: &TuneOptions) -> Result<Outcome, Failure> {
    let seed = seed_or_new(options.seed);
    // Options are checked before the GPU is opened.
    if let Some(task) = options.table.task(seed)? {
        return table::run(&task, seed);
    }
    let (space, problem) = (options.space()?, options.problem()?);
    if options.device == DeviceChoice::Simulator {
        let time = Duration::from_secs(options.seconds);
        return predicted::print(&space, &problem, options, time, seed);
    }
    let device = open_gpu()?;
    eprintln!("{} on {} (seed {seed})", space.describe(), device.name());
    let limits = limits::SearchLimits {
        start: Instant::now(),
        time: Duration::from_secs(options.seconds),
        seed,
        finalists: options.sample.unwrap_or(options.finalists),
        sample: options.sample,
    };
    let first = predicted::first(&space, &problem, options, &limits)?;
    match problem {
        TuneProblem::Products(products) => {
            let problems = sgemm::Problems::new(&products, seed);
            let mut target = sgemm::Sgemm::new(&device, &problems)?;
            search::run(&mut target, &space, first, &limits, options.json)
        }
        TuneProblem::Arrays(lengths) => {
            let data = reduce::data(&lengths, seed);
            let mut target = reduce::Reduce::new(&device, &data)?;
            search::run(&mut target, &space, first, &limits, options.json)
        }
    }
}
