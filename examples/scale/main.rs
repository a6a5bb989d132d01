//! Products and sums of matrices that are dealt out to several GPUs, or to simulated devices: how fast each GPU is beside one
//! that multiplies its part alone, with everything there, and what was predicted of that.
//!
//! ```text
//! cargo run --release --example scale                                # on all GPUs of this machine, else simulated
//! cargo run --release --example scale -- --simulated 8
//! cargo run --release --example scale -- --ranks 1,2,4 --size 8192,16384 --sum 4294967296 --plot scale.svg
//! cargo run --release --example scale -- --predict 8,64,512          # of what nobody has measured here
//! for rank in 0 1 2 3; do RANK=$rank WORLD_SIZE=4 MASTER_ADDR=localhost MASTER_PORT=29500 \
//!     cargo run --release --example scale & done; wait               # four processes, as `torchrun` starts them
//! ```
//!
//! A is dealt out by rows, B and C by columns. Elements are random. Each part of C is compared, bit by bit, with the product that
//! its rank makes with all of A there, and each sum with that of what the ranks make of their shards alone, which is near; the exit
//! code is 1 where one is wrong.

mod measure;
mod options;
mod table;

use clap::Parser;
use gemm_examples::cli::{Failure, Outcome, exit};
use gemm_runtime::world::World;
use gemm_runtime::{ReduceKernel, SgemmKernel};
use options::Options;
use std::process::ExitCode;
use table::Row;

fn main() -> ExitCode {
    exit(run(&Options::parse()))
}

fn run(options: &Options) -> Result<Outcome, Failure> {
    let kernels = &(options.kernel()?, options.sum_kernel()?);
    let mut rows: Vec<Row> = Vec::new();
    for ranks in &options.predict {
        rows.extend(
            options
                .sizes()
                .iter()
                .map(|n| table::predicted(options, *ranks, *n))
                .collect::<Result<Vec<_>, _>>()?,
        );
    }
    if options.predict.is_empty() {
        if let Some(world) = options.job()? {
            rows.extend(measured(options, world, kernels)?);
        } else {
            for ranks in options.ranks()? {
                rows.extend(measured(options, options.world(ranks)?, kernels)?);
            }
        }
    }
    table::print(options, &rows)?;
    Ok(if rows.iter().all(Row::is_right) { Outcome::Right } else { Outcome::Wrong })
}

/// What is measured on a world; nothing where this process has not got rank 0, which speaks for all.
fn measured(
    options: &Options,
    world: World,
    kernels: &(SgemmKernel, ReduceKernel),
) -> Result<Vec<Row>, Failure> {
    let speaks = world.own().any(|rank| rank == 0);
    let found = world.run(|rank| measure::all(options, rank, kernels))?;
    Ok(if speaks { found.into_iter().next().unwrap_or_default() } else { Vec::new() })
}
