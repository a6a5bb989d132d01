//! Measures GEMMs and sums that are distributed over several GPUs or simulated devices, and
//! compares their efficiency with the prediction.
//!
//! ```text
//! # On all GPUs of this machine; simulated if there are none.
//! cargo run --release --example scale
//! cargo run --release --example scale -- --simulated 8
//! cargo run --release --example scale -- --ranks 1,2,4 --size 8192,16384 --sum 4294967296 \
//!     --plot scale.svg
//! # Prediction for machines that were not measured.
//! cargo run --release --example scale -- --predict 8,64,512
//! # Four processes, as `torchrun` starts them.
//! for rank in 0 1 2 3; do RANK=$rank WORLD_SIZE=4 MASTER_ADDR=localhost MASTER_PORT=29500 \
//!     cargo run --release --example scale & done; wait
//! ```
//!
//! A is distributed by rows, B and C by columns. Elements are random. The baseline of a GEMM is a
//! single GPU that has all of A and multiplies its own part of B. Each part of C must equal the
//! baseline's result bit for bit. The baseline of a sum is one device with all elements. Each rank
//! must compute the same result. The exit code is 1 if a result is wrong.
//!
//! For GEMMs the hidden share is reported. The ranks must gather A. If they gather all of A before
//! the GEMM, the total time increases. The hidden share is the part of this increase that
//! overlapping saves.

mod measure;

use clap::Parser;
use gemm_bench::cli::{Failure, Outcome, exit};
use gemm_bench::scale::memory;
use gemm_bench::scale::options::ScaleOptions;
use gemm_bench::scale::table;
use gemm_bench::scale::table::ScaleRow;
use gemm_runtime::Device;
use gemm_world::{Error, World, WorldError};
use std::process::ExitCode;

fn main() -> ExitCode {
    exit(run(&ScaleOptions::parse()))
}

fn run(options: &ScaleOptions) -> Result<Outcome, Failure> {
    let kernels = &measure::Kernels::from_options(options)?;
    let mut rows: Vec<ScaleRow> = Vec::new();
    if !options.predict.is_empty() {
        options.check_predictions()?;
        options.check_files()?;
        for ranks in &options.predict {
            rows.extend(table::predicted(options, *ranks)?);
        }
    } else if let Some((world, device)) = options.job()? {
        let own: Vec<_> = world.own().map(|rank| (rank, device.clone())).collect();
        rows.extend(measured(options, world, &own, kernels)?);
    } else {
        for ranks in options.ranks()? {
            let own = options.devices(ranks)?;
            rows.extend(measured(options, options.world(own.clone())?, &own, kernels)?);
        }
    }
    table::print(options, &rows)?;
    Ok(if rows.iter().all(ScaleRow::is_right) { Outcome::Right } else { Outcome::Wrong })
}

/// Measures everything in a world. Only the process of rank 0 returns rows and prints them.
fn measured(
    options: &ScaleOptions,
    world: World,
    own: &[(usize, Device)],
    kernels: &measure::Kernels,
) -> Result<Vec<ScaleRow>, Failure> {
    let speaks = world.own().any(|rank| rank == 0);
    let (sizes, sums) = (&options.sizes()?, &options.sums()?);
    let cannot = (if speaks { options.check_files() } else { Ok(()) })
        .and_then(|()| memory::check_all(sizes, sums, options.weak, world.ranks(), own));
    let found = world.run(|rank| match &cannot {
        Ok(()) => measure::all(options, rank, sizes, sums, kernels),
        // If this process cannot take part, the others receive the reason.
        Err(failure) => Err(Error::World(WorldError::Impossible {
            what: "this measurement".to_owned(),
            need: failure.to_string(),
        })),
    });
    cannot?;
    let rows = found?.into_iter().next().unwrap_or_default();
    Ok(if speaks { rows } else { Vec::new() })
}
