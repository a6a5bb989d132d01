//! Measures the time that a GPU saves if the operands of GEMMs are split in advance. The GEMMs are
//! compared with cuBLAS in `f32`.
//!
//! GEMMs with few and with many rows multiply by the same weights B. There are three variants: each
//! launch splits both operands, B is split once in advance, or both are split once in advance.
//!
//! ```text
//! cargo run --release --example prepared
//! cargo run --release --example prepared -- --rows 16,4096 --size 8192 \
//!     --line "tile: 128x128x64, arith: bf16x6, mma: wgmma"
//! ```
//!
//! All variants and cuBLAS run in turns on the same random matrices, in CUDA graphs of back-to-back
//! launches. Every result is compared with `f64`, and all variants must compute the same bits. The
//! exit code is 1 if a result is wrong.

use clap::Parser;
use cudarc::driver::CudaSlice;
use gemm_bench::cli::{
    Failure, Outcome, count, device_label, exit, open_gpu, seed_or_new, write_json,
};
use gemm_bench::data;
use gemm_bench::gpu::{
    BEHIND, Blas, Gpu, Product, Timer, Verifier, Work, failed, medians_in_graphs,
};
use gemm_bench::grid::arena::elements;
use gemm_bench::grid::repeats;
use gemm_bench::grid::repeats::Pace;
use gemm_bench::products::Products;
use gemm_bench::shapes::GemmShape;
use gemm_bench::table::{Table, number, text, time};
use gemm_dsl::plan::SgemmPlan;
use gemm_dsl::spec::{GemmLayout, SgemmSpec};
use gemm_oracle::product::Size;
use gemm_runtime::bounds::AsMatrixOf;
use gemm_runtime::error::SpecErrors;
use gemm_runtime::{Device, Error, MatrixMut, MatrixRef, SgemmKernel, SplitMatrix};
use serde::Serialize;
use std::cell::RefCell;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Default specs: stages of the ladder.
const STAGES: [&str; 2] = ["wgmma_bf16x6", "wgmma_f16x3"];

/// Compare GEMMs that split their operands in each launch with GEMMs whose operands are split in
/// advance
#[derive(Debug, Parser)]
#[command(name = "prepared")]
struct PreparedOptions {
    /// Rows of A and C
    #[arg(long, value_delimiter = ',', value_parser = count, default_values = ["16", "256", "1024",
        "4096"])]
    rows: Vec<usize>,
    /// Rows and columns of the weights, B
    #[arg(long, value_delimiter = ',', value_parser = count, default_values = ["4096", "8192"])]
    size: Vec<usize>,
    /// Spec with `mma: wgmma`, instead of stages of the ladder
    #[arg(long)]
    line: Vec<String>,
    /// Write the results to a file, as one JSON object
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Seed of the elements; random by default
    #[arg(long)]
    seed: Option<u64>,
}

impl PreparedOptions {
    fn specs(&self) -> Result<Vec<SgemmSpec>, Failure> {
        if self.line.is_empty() {
            let stages = gemm_dsl::stages::sgemm().into_iter();
            let ours = stages.filter(|stage| STAGES.contains(&stage.name));
            return Ok(ours.map(|stage| stage.spec).collect());
        }
        let spec = |line: &String| {
            let named = |reason: String| Failure::Usage(format!("--line \"{line}\": {reason}"));
            let failed = |faults: SpecErrors| named(faults.to_string());
            let plan: SgemmPlan = line.parse().map_err(failed)?;
            let spec = plan.spec();
            match plan.program_with_splits([true, true]).map_err(failed)? {
                Some(_) if spec.operands().is_empty() && spec.layout == GemmLayout::Nn => {
                    Ok(spec.clone())
                }
                Some(_) => Err(named("its epilogue has operands, or it has a layout".to_owned())),
                None => Err(named(
                    "it does not split its operands in advance. Add `mma: wgmma`".to_owned(),
                )),
            }
        };
        self.line.iter().map(spec).collect()
    }

    fn shapes(&self) -> Result<Vec<GemmShape>, Failure> {
        if self.rows.iter().chain(&self.size).any(|extent| *extent == 0) {
            let nothing = "--rows and --size: there is nothing to measure. Give at least 1";
            return Err(Failure::Usage(nothing.to_owned()));
        }
        let of = |n: &usize| self.rows.iter().map(move |&m| Size::new(m, *n, *n)).collect();
        let sizes: Vec<Vec<Size>> = self.size.iter().map(of).collect();
        let shapes = sizes.concat().into_iter();
        Ok(shapes.map(|size| GemmShape { size, layout: GemmLayout::Nn }).collect())
    }
}

fn main() -> ExitCode {
    exit(run(&PreparedOptions::parse()))
}

fn run(options: &PreparedOptions) -> Result<Outcome, Failure> {
    let (specs, shapes) = (options.specs()?, options.shapes()?);
    let [a, b, c] = elements(&shapes)?;
    let seed = seed_or_new(options.seed);
    let device = open_gpu()?;
    let gpu = Gpu::new(&device);
    let gpu = gpu.ok_or_else(|| Failure::Missing("GEMMs are timed on a GPU".to_owned()))?;
    let gpu = gpu.without_events();
    let host = [(seed, a), (seed.wrapping_add(1), b)]
        .map(|(seed, len)| data::uniform(seed, len, -1.0, 1.0));
    let upload = |values: &[f32]| gpu.stream.clone_htod(values).map_err(failed("copying"));
    let room = gpu.stream.alloc_zeros(c + BEHIND).map_err(failed("allocating a result"))?;
    let mut bench = PreparedBench {
        gpu,
        timer: Timer::new(gpu)?,
        blas: Blas::for_graphs(gpu).map_err(|missing| eprintln!("note: {missing}")).ok(),
        judge: Verifier::new(gpu, c)?,
        a: upload(&host[0])?,
        b: upload(&host[1])?,
        c: room,
        host,
    };
    let mut table = Table::new([
        text("arith"),
        text("m x n x k"),
        number("cuBLAS ms"),
        number("split per call ms"),
        number("of cuBLAS"),
        number("B split once ms"),
        number("of cuBLAS"),
        number("A and B split once ms"),
        number("of cuBLAS"),
        number("error"),
    ]);
    let (mut is_right, mut rows) = (true, Vec::new());
    for spec in &specs {
        for shape in &shapes {
            let found = bench.measure(&device, spec, *shape)?;
            is_right &= found.is_right;
            let [each, of_b, of_both] = found.ms;
            let beside = |ms: f64| {
                let ratio = found.blas.map(|blas| format!("{:.2}", blas / ms));
                [time(ms), ratio.unwrap_or_default()]
            };
            let Size { m, n, k } = shape.size;
            rows.push(PreparedRow::new(spec, shape.size, &found));
            let mut row = vec![spec.arith.to_string(), format!("{m}x{n}x{k}")];
            row.push(found.blas.map(time).unwrap_or_default());
            row.extend([each, of_b, of_both].into_iter().flat_map(beside));
            row.push(format!("{:.1e}", found.error));
            table.add(row);
        }
    }
    let device = device_label(&device);
    writeln!(io::stdout(), "{device} (seed {seed})\n{}", table.text())?;
    if let Some(path) = &options.json {
        write_json(path, &PreparedReport { device, seed, rows })?;
    }
    Ok(if is_right { Outcome::Right } else { Outcome::Wrong })
}

/// Results for `--json`.
#[derive(Serialize)]
struct PreparedReport {
    device: String,
    seed: u64,
    rows: Vec<PreparedRow>,
}

/// Times of a GEMM in milliseconds, and times of cuBLAS over them.
#[derive(Serialize)]
struct PreparedRow {
    arith: String,
    m: usize,
    n: usize,
    k: usize,
    cublas_ms: Option<f64>,
    /// With splits computed by each launch, prepared for B, and prepared for A and B.
    each_ms: f64,
    b_ms: f64,
    both_ms: f64,
    each_ratio: Option<f64>,
    b_ratio: Option<f64>,
    both_ratio: Option<f64>,
    error: f64,
}

impl PreparedRow {
    fn new(spec: &SgemmSpec, size: Size, found: &PreparedTimes) -> Self {
        let Size { m, n, k } = size;
        let [each_ms, b_ms, both_ms] = found.ms;
        let [each_ratio, b_ratio, both_ratio] = found.ms.map(|ms| Some(found.blas? / ms));
        let (arith, cublas_ms, error) = (spec.arith.to_string(), found.blas, found.error);
        Self {
            arith,
            m,
            n,
            k,
            cublas_ms,
            each_ms,
            b_ms,
            both_ms,
            each_ratio,
            b_ratio,
            both_ratio,
            error,
        }
    }
}

struct PreparedBench<'d> {
    gpu: Gpu<'d>,
    timer: Timer<'d>,
    blas: Option<Blas>,
    judge: Verifier<'d>,
    host: [Vec<f32>; 2],
    a: CudaSlice<f32>,
    b: CudaSlice<f32>,
    c: CudaSlice<f32>,
}

struct PreparedTimes {
    /// Milliseconds of a launch: both operands split by the launch, B split in advance, and both
    /// split in advance.
    ms: [f64; 3],
    blas: Option<f64>,
    error: f64,
    is_right: bool,
}

/// Launch that writes to the given C.
type LaunchFn<'l> = dyn Fn(&mut CudaSlice<f32>) -> Result<(), Error> + 'l;

impl PreparedBench<'_> {
    fn measure(
        &mut self,
        device: &Device,
        spec: &SgemmSpec,
        shape: GemmShape,
    ) -> Result<PreparedTimes, Failure> {
        let Self { gpu, timer, blas, judge, host, a, b, c } = self;
        let Size { m, n, k } = shape.size;
        judge.expect(&*a, &host[0], &*b, &host[1], shape)?;
        let kernel = &SgemmKernel::new(spec.clone())?;
        let (in_a, in_b) = (&MatrixRef::new(a, m, k)?, &MatrixRef::new(b, k, n)?);
        let weights = &device.prepare(spec.arith, in_b)?;
        let turned = device.prepare(spec.arith, &in_a.t())?;
        let given: &SplitMatrix<'_> = &turned.t();
        let each = |c: &mut CudaSlice<f32>| launch(device, kernel, in_a, in_b, c, [m, n]);
        let of_b = |c: &mut CudaSlice<f32>| launch(device, kernel, in_a, weights, c, [m, n]);
        let of_both = |c: &mut CudaSlice<f32>| launch(device, kernel, given, weights, c, [m, n]);
        let launches: [&LaunchFn<'_>; 3] = [&each, &of_b, &of_both];
        let (mut is_right, mut error) = (true, 0_f64);
        let mut first: Option<Vec<u32>> = None;
        for launch in launches {
            judge.poison(c, shape)?;
            launch(c)?;
            let (off, ok) = judge.judge(c, shape, spec.arith)?;
            (is_right, error) = (is_right && ok, error.max(off));
            let found = gpu.stream.clone_dtoh(&c.slice(..m * n)).map_err(failed("copying C"))?;
            let bits: Vec<u32> = found.iter().map(|value| value.to_bits()).collect();
            is_right &= *first.get_or_insert_with(|| bits.clone()) == bits;
        }
        if !is_right {
            eprintln!("{shape}: `{spec}`: wrong result or different bits: error {error:.1e}");
        }
        let (a, b) = (&*a, &*b);
        let c = RefCell::new(c);
        let blas = blas.as_ref();
        let mut by_blas = || match blas {
            None => Ok(()),
            Some(blas) => blas.product(&mut Product {
                a,
                b,
                c: &mut c.borrow_mut(),
                layout: shape.layout,
                factors: [1.0, 0.0],
                products: Products::single(shape.size),
            }),
        };
        let mut ours = launches.map(|launch| || launch(&mut c.borrow_mut()));
        let once = timer.medians(1, &mut [&mut ours[2]])?;
        let us = once.first().map_or(f64::NAN, |ms| ms * 1e3);
        let Pace { launches, replays } = repeats::benchmark(us);
        let mut work: Vec<&mut Work<'_>> =
            ours.iter_mut().map(|work| work as &mut Work<'_>).collect();
        if blas.is_some() {
            work.push(&mut by_blas);
        }
        let times = medians_in_graphs(*gpu, timer, (launches, replays.max(21)), &mut work)?;
        let of = |nth: usize| times.get(nth).copied().unwrap_or(f64::NAN);
        let blas = blas.map(|_| of(3));
        Ok(PreparedTimes { ms: [of(0), of(1), of(2)], blas, error, is_right })
    }
}

fn launch<A, B>(
    device: &Device,
    kernel: &SgemmKernel,
    a: &A,
    b: &B,
    c: &mut CudaSlice<f32>,
    [m, n]: [usize; 2],
) -> Result<(), Error>
where
    A: AsMatrixOf<f32>,
    B: AsMatrixOf<f32>,
{
    let mut c = MatrixMut::new(c, m, n)?;
    kernel.call(device).launch(a, b, &mut c).map(drop)
}
