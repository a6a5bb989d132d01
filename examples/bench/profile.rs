//! Launches each stage of the ladders once at each shape, and prints a JSON object for each kernel
//! launch, in order.
//!
//! `examples/bench/peers/profile.py` matches the kernels in a profiler's report with these lines.
//! On the simulator, a line also contains the counters.
//!
//! ```text
//! cargo run --release --example profile -- --product 512,500x516x508 --matrix 1024x1024
//! ```
//!
//! This program does not check results; the program `ladder` does.

use clap::Parser;
use gemm_bench::cli::{DeviceChoice, Failure, Outcome, exit};
use gemm_bench::data;
use gemm_bench::epilogue::launch_once;
use gemm_bench::gpu::Gpu;
use gemm_bench::report::write_line;
use gemm_bench::rows::launch::{Inputs, KernelChoice, ReductionLaunch};
use gemm_dsl::spec::newer_word;
use gemm_dsl::stages;
use gemm_oracle::product::Size;
use gemm_runtime::spec::{DataType, Over};
use gemm_runtime::{Device, LaunchReport};
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Seed of the operands; counts do not depend on the elements.
const SEED: u64 = 1;

/// Launch each stage of the ladders once.
#[derive(Debug, Parser)]
#[command(name = "profile")]
struct ProfileOptions {
    /// Shapes of GEMMs: 512, or 500x516x508 for m, n and k
    #[arg(long, value_delimiter = ',', value_parser = product)]
    product: Vec<Size>,
    /// Shapes of the reduced matrices, such as 1024x1000; reductions of a whole array reduce all
    /// elements of a matrix
    #[arg(long, value_delimiter = ',', value_parser = matrix)]
    matrix: Vec<(usize, usize)>,
    /// Numbers of the stages. Default: all
    #[arg(long, value_delimiter = ',')]
    stage: Vec<u32>,
    /// Device that runs the kernels
    #[arg(long, value_enum, default_value_t)]
    device: DeviceChoice,
    /// On the simulator, also predict instructions and accesses of the compiled kernel
    #[arg(long)]
    compiled: bool,
}

/// Line of the output, for one launch of one kernel.
#[derive(Serialize)]
struct LaunchRow<'a> {
    ladder: &'static str,
    stage: &'static str,
    index: u32,
    shape: String,
    kernel: &'a str,
    /// Counters of the simulator, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<BTreeMap<&'static str, u64>>,
    /// Predicted counters of the compiled kernel, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    compiled: Option<BTreeMap<&'static str, u64>>,
}

fn main() -> ExitCode {
    exit(run(&ProfileOptions::parse()))
}

fn run(options: &ProfileOptions) -> Result<Outcome, Failure> {
    let device = match (options.compiled, options.device) {
        (true, DeviceChoice::Cuda) => {
            let lacks =
                "--compiled: only the simulator predicts compiled kernels. Leave out --device cuda";
            return Err(Failure::Usage(lacks.to_owned()));
        }
        (true, _) => Device::simulator_compiled(),
        (false, device) => device.open()?,
    };
    if options.product.is_empty() && options.matrix.is_empty() {
        let lacks =
            "there is nothing to launch. Give --product 512, or --matrix 1024x1000, or both";
        return Err(Failure::Usage(lacks.to_owned()));
    }
    known(options)?;
    let asked = |index: u32| options.stage.is_empty() || options.stage.contains(&index);
    for &size in &options.product {
        let Size { m, n, k } = size;
        let a = data::uniform(SEED, data::elements(&[m, k])?, -1.0, 1.0);
        let b = data::uniform(SEED + 1, data::elements(&[k, n])?, -1.0, 1.0);
        for stage in stages::sgemm().iter().filter(|stage| asked(stage.index)) {
            let launched = launch_once(&device, &stage.spec, &a, &b, size)?;
            told("sgemm", stage.index, stage.name, &format!("{m}x{n}x{k}"), &launched)?;
        }
    }
    for &(rows, cols) in &options.matrix {
        for stage in stages::reduce().iter().filter(|stage| asked(stage.index)) {
            let launched = reduce(&device, stage.spec.clone(), rows, cols)?;
            told("reduce", stage.index, stage.name, &format!("{rows}x{cols}"), &launched)?;
        }
    }
    Ok(Outcome::Right)
}

/// Refuses a stage number that does not exist in any ladder for which shapes are given.
fn known(options: &ProfileOptions) -> Result<(), Failure> {
    let products = stages::sgemm().into_iter().map(|stage| stage.index);
    let reductions = stages::reduce().into_iter().map(|stage| stage.index);
    let products = products.filter(|_| !options.product.is_empty());
    let known = products.chain(reductions.filter(|_| !options.matrix.is_empty()));
    let known: Vec<u32> = known.collect();
    match options.stage.iter().find(|stage| !known.contains(stage)) {
        None => Ok(()),
        Some(stage) => {
            let last = known.iter().max().copied().unwrap_or(0);
            let lacks = format!("--stage {stage}: no such stage. The numbers are 0 to {last}");
            Err(Failure::Usage(lacks))
        }
    }
}

fn reduce(
    device: &Device,
    spec: gemm_runtime::ReduceSpec,
    rows: usize,
    cols: usize,
) -> Result<LaunchReport, Failure> {
    let elements = data::elements(&[rows, cols])?;
    let size = match spec.over {
        Over::All | Over::Segments => (1, elements, 1),
        Over::Rows => (rows, cols, 1),
        Over::Columns | Over::Middle => (1, rows, cols),
        over => newer_word(over),
    };
    let chosen = KernelChoice::from_spec(spec)?;
    let inputs = Inputs::new(Gpu::new(device), DataType::F32, elements, 1, SEED)?;
    let mut launch = ReductionLaunch::new(device, &chosen, size, None)?;
    let launched = launch.run(&inputs)?;
    launch.results()?;
    Ok(launched)
}

fn told(
    ladder: &'static str,
    index: u32,
    stage: &'static str,
    shape: &str,
    launched: &LaunchReport,
) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for step in launched.steps() {
        let (shape, kernel) = (shape.to_owned(), step.kernel());
        let counters = step.counters().map(|counters| counters.each().collect());
        let compiled = step.compiled_counters().map(|counts| counts.each().collect());
        write_line(
            &mut out,
            &LaunchRow { ladder, stage, index, shape, kernel, counters, compiled },
        )?;
    }
    Ok(())
}

fn extents(text: &str) -> Result<Vec<usize>, String> {
    let extents: Option<Vec<usize>> =
        text.split('x').map(|part| part.parse().ok().filter(|extent| *extent > 0)).collect();
    extents.ok_or_else(|| format!("`{text}` is not a shape. Give extents such as 500x516x508"))
}

fn product(text: &str) -> Result<Size, String> {
    match extents(text)?[..] {
        [n] => Ok(Size::square(n)),
        [m, n, k] => Ok(Size { m, n, k }),
        _ => Err(format!("`{text}` is not a GEMM. Give m, n and k, or one extent for all")),
    }
}

fn matrix(text: &str) -> Result<(usize, usize), String> {
    match extents(text)?[..] {
        [rows, cols] => Ok((rows, cols)),
        _ => Err(format!("`{text}` is not a matrix. Give its rows and columns, as in 1024x1000")),
    }
}
