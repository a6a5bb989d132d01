//! Measures the cost of further results of an epilogue, a second matrix and a fold of each row, and
//! of epilogues over pairs of columns, SwiGLU and rotary position embeddings.
//!
//! ```text
//! cargo run --release --example epilogue_results
//! cargo run --release --example epilogue_results -- --size 1024,4096
//! ```
//!
//! The tuned kernel with `relu(acc + bias)` is the baseline. The GEMM without an epilogue is
//! measured, too. All variants run in turns on the same random matrices, in CUDA graphs of
//! back-to-back launches.

use clap::Parser;
use gemm_bench::cli::{Failure, Outcome, count, device_label, exit, open_gpu, seed_or_new};
use gemm_bench::data;
use gemm_bench::gpu::{Gpu, Timer, Work, captured, failed};
use gemm_bench::grid::repeats;
use gemm_bench::grid::repeats::Pace;
use gemm_bench::table::{Table, number, text, time};
use gemm_runtime::{Device, Epilogue, Error, MN, N, Out, OutM, epilogue, sgemm};
use std::cell::RefCell;
use std::io::{self, Write};
use std::process::ExitCode;

const ONE: Epilogue<(N,)> = epilogue!(|acc, bias[n]| relu(acc + bias));
const TWO: Epilogue<(N, Out)> = epilogue!(|acc, bias[n]| { let t = acc + bias; (relu(t), t) });
const FOLD: Epilogue<(N, OutM)> =
    epilogue!(|acc, bias[n]| { let y = relu(acc + bias); (y, sum(y * y)) });
const FOLDS: Epilogue<(N, OutM, OutM)> =
    epilogue!(|acc, bias[n]| { let y = relu(acc + bias); (y, max(y), sum(exp(y))) });

const SWIGLU: Epilogue<(N,)> =
    epilogue!(|acc, bias[n]| { let t = acc + bias; t * sigmoid(t) * next(t) });
const ROTARY: Epilogue<(MN,)> = epilogue!(|acc, rotor[m, n]| pair(
    acc * rotor - next(acc) * next(rotor),
    acc * next(rotor) + next(acc) * rotor
));

/// Number of measured epilogues, with the GEMM that has none.
const VARIANTS: usize = 7;

/// Measure the cost of further results of an epilogue, and of pairs of columns
#[derive(Debug, Parser)]
#[command(name = "epilogue_results")]
struct ResultsOptions {
    /// Rows and columns of all matrices
    #[arg(long, value_delimiter = ',', value_parser = count, default_values = ["512", "1024",
        "2048", "4096", "8192"])]
    size: Vec<usize>,
    /// Seed of the elements; random by default
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    exit(run(&ResultsOptions::parse()))
}

fn run(options: &ResultsOptions) -> Result<Outcome, Failure> {
    let seed = seed_or_new(options.seed);
    let device = open_gpu()?;
    let gpu = Gpu::new(&device);
    let gpu = gpu.ok_or_else(|| Failure::Missing("GEMMs are timed on a GPU".to_owned()))?;
    let gpu = gpu.without_events();
    let timer = Timer::new(gpu)?;
    let mut table = Table::new([
        text("m = n = k"),
        number("one result ms"),
        number("two results"),
        number("sum of squares"),
        number("max and sum of exp"),
        number("none"),
        number("SwiGLU"),
        number("rotary"),
    ]);
    for &size in &options.size {
        let ms = measure(&device, gpu, &timer, size, seed)?;
        let over = |nth: usize| format!("{:+.1} %", (ms[nth] / ms[0] - 1.0) * 100.0);
        let mut cells = vec![size.to_string(), time(ms[0])];
        cells.extend((1..VARIANTS).map(over));
        table.add(cells);
    }
    let device = device_label(&device);
    writeln!(io::stdout(), "{device} (seed {seed})\n{}", table.text())?;
    Ok(Outcome::Right)
}

/// Milliseconds of a launch with each epilogue.
fn measure(
    device: &Device,
    gpu: Gpu<'_>,
    timer: &Timer<'_>,
    size: usize,
    seed: u64,
) -> Result<[f64; VARIANTS], Failure> {
    let elements = |nth: u64, len| data::uniform(seed.wrapping_add(nth), len, -1.0, 1.0);
    let a = device.upload_matrix(&elements(0, size * size), size, size)?;
    let b = device.upload_matrix(&elements(1, size * size), size, size)?;
    let bias = device.upload(&elements(2, size))?;
    let c = RefCell::new(device.alloc_matrix(size, size)?);
    let other = RefCell::new(device.alloc_matrix(size, size)?);
    let gated = RefCell::new(device.alloc_matrix(size, size / 2)?);
    let rotor = device.upload_matrix(&elements(3, size * size), size, size)?;
    let sums = RefCell::new((device.alloc(size)?, device.alloc(size)?));
    let mut one = || -> Result<(), Error> {
        let mut c = c.borrow_mut();
        sgemm(&a, &b, &mut *c).epilogue(ONE).operands(&bias).run(device).map(drop)
    };
    let mut two = || {
        let (mut c, mut other) = (c.borrow_mut(), other.borrow_mut());
        let call = sgemm(&a, &b, &mut *c).epilogue(TWO).operands((&bias, &mut *other));
        call.run(device).map(drop)
    };
    let mut fold = || {
        let (mut c, mut sums) = (c.borrow_mut(), sums.borrow_mut());
        let call = sgemm(&a, &b, &mut *c).epilogue(FOLD).operands((&bias, &mut sums.0));
        call.run(device).map(drop)
    };
    let mut folds = || {
        let (mut c, mut sums) = (c.borrow_mut(), sums.borrow_mut());
        let (first, second) = &mut *sums;
        let call = sgemm(&a, &b, &mut *c).epilogue(FOLDS).operands((&bias, first, second));
        call.run(device).map(drop)
    };
    let mut none = || sgemm(&a, &b, &mut *c.borrow_mut()).run(device).map(drop);
    let mut swiglu = || -> Result<(), Error> {
        let mut gated = gated.borrow_mut();
        sgemm(&a, &b, &mut *gated).epilogue(SWIGLU).operands(&bias).run(device).map(drop)
    };
    let mut rotary = || -> Result<(), Error> {
        let mut c = c.borrow_mut();
        sgemm(&a, &b, &mut *c).epilogue(ROTARY).operands(&rotor).run(device).map(drop)
    };
    let mut variants: [&mut Work<'_>; VARIANTS] =
        [&mut one, &mut two, &mut fold, &mut folds, &mut none, &mut swiglu, &mut rotary];
    for variant in &mut variants {
        variant()?;
    }
    let once = timer.medians(1, &mut variants[..1])?;
    let us = once.first().map_or(f64::NAN, |ms| ms * 1e3);
    let Pace { launches, replays } = repeats::benchmark(us);
    let mut graphs = Vec::new();
    for variant in &mut variants {
        graphs.push(captured(gpu, variant, launches)?);
    }
    let mut work: Vec<_> = graphs
        .iter()
        .map(|graph| move || graph.launch().map_err(failed("launching a graph")))
        .collect();
    let mut work: Vec<&mut Work<'_>> = work.iter_mut().map(|work| work as &mut Work<'_>).collect();
    let times = timer.medians(replays.max(21), &mut work)?;
    device.synchronize()?;
    let mut per_launch = times.into_iter().map(|ms| ms / launches as f64);
    Ok([(); VARIANTS].map(|()| per_launch.next().unwrap_or(f64::NAN)))
}
