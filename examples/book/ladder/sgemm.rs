//! Ladder of GEMMs: runs, checks and times its stages.

mod table;

use crate::output::Output;
use crate::stage::{ROUNDS, StageOutcome};
use gemm_bench::cli::{Failure, Outcome, device_label};
use gemm_bench::ladder::options::{SgemmInput, SgemmJob, select};
use gemm_bench::operands::Operands;
use gemm_bench::products::Products;
use gemm_bench::report::{CounterRow, ProductRow, StageRow, registers};
use gemm_bench::timing::{Fusion, GemmBench, KernelTimes};
use gemm_bench::{data, npy, progress};
use gemm_dsl::stages::Stage;
use gemm_oracle::product::{Size, Verdict};
use gemm_runtime::sim::Counters;
use gemm_runtime::spec::Batch;
use gemm_runtime::{ByName, Device, Error, Sgemm, SgemmSpec};
use indicatif::ProgressBar;

/// Default sizes. A run takes well under a minute.
const SIMULATOR_SIZES: [usize; 1] = [256];
const GPU_SIZES: [usize; 4] = [512, 1024, 2048, 4096];
/// Default sizes of the GEMMs of a batch.
const SIMULATOR_BATCH_SIZES: [usize; 1] = [32];
const GPU_BATCH_SIZES: [usize; 4] = [16, 32, 64, 128];

/// Returns the stages that the job selects.
pub fn stages(job: &SgemmJob) -> Vec<Stage<SgemmSpec>> {
    let mut stages = gemm_bench::ladder::variants::stages(&job.blocks);
    if job.batch.is_some() {
        stages.iter_mut().for_each(|stage| stage.spec.batch = Some(Batch::Strided));
    }
    stages
}

type SgemmRows = Vec<(Stage<SgemmSpec>, StageOutcome<SgemmResult>)>;

/// Outcomes of all stages at one size.
struct Rung {
    products: Products,
    rows: SgemmRows,
}

struct SgemmResult {
    verdict: Verdict,
    counters: Option<Counters>,
    registers: Vec<u32>,
    times: Option<KernelTimes>,
    /// Cost of the epilogue, if the stage has one and times are measured.
    fusion: Option<Fusion>,
}

/// Operands A and B on the host, of one GEMM or of a batch.
struct SgemmProblem {
    a: Vec<f32>,
    b: Vec<f32>,
    products: Products,
    origin: String,
}

/// Runs every stage at every size.
///
/// # Errors
/// Returns an error that affects all stages.
pub fn run(
    job: &SgemmJob,
    device: &Device,
    seed: u64,
    output: &mut Output,
) -> Result<Outcome, Failure> {
    let mut stages = stages(job);
    select(&mut stages, &job.stages)?;
    for stage in &stages {
        stage.spec.plan()?;
    }
    let bench = GemmBench::new(device)?;
    let name = device_label(device);
    let mut rungs = Vec::new();
    for problem in problems(job, device, seed) {
        let problem = problem?;
        let what = match problem.products.batch {
            None => "GEMM",
            Some(_) => "GEMMs",
        };
        output.say(&format!("{what} of {} on {name} ({})", problem.products, problem.origin))?;
        let bar = progress::bar(stages.len());
        let rung = rung(&stages, &problem, device, bench.as_ref(), output, &bar);
        bar.finish_and_clear();
        let rung = rung?;
        match &bench {
            None => output.table(&table::counters(&rung))?,
            Some(bench) => output.table(&table::times(&rung, bench.fma_rate))?,
        }
        rungs.push(rung);
    }
    if let Some(bench) = &bench {
        output.say(&format!("multiply-adds only: {:.0} GFLOP/s", bench.fma_rate))?;
    }
    for path in &job.plots {
        table::save_picture(&rungs, &name, bench.is_some(), path)?;
    }
    let mut all = rungs.iter().flat_map(|rung| &rung.rows);
    let right = all.all(|(_, ran)| ran.ok(|done| done.verdict.ok) != Some(false));
    Ok(if right { Outcome::Right } else { Outcome::Wrong })
}

/// Returns an iterator that generates each problem when it is requested.
fn problems<'j>(
    job: &'j SgemmJob,
    device: &Device,
    seed: u64,
) -> Box<dyn Iterator<Item = Result<SgemmProblem, Failure>> + 'j> {
    let batch = job.batch;
    let random = move |size: Size| {
        let products = Products { size, batch };
        let [a, b, _] = products.elements()?;
        let a = data::uniform(seed, a, -1.0, 1.0);
        let b = data::uniform(seed.wrapping_add(1), b, -1.0, 1.0);
        Ok(SgemmProblem { a, b, products, origin: format!("seed {seed}") })
    };
    let defaults = match (device.is_simulator(), batch) {
        (true, None) => &SIMULATOR_SIZES[..],
        (false, None) => &GPU_SIZES,
        (true, Some(_)) => &SIMULATOR_BATCH_SIZES,
        (false, Some(_)) => &GPU_BATCH_SIZES,
    };
    match &job.input {
        SgemmInput::Default => Box::new(defaults.iter().map(|&n| Size::square(n)).map(random)),
        SgemmInput::Random(sizes) => Box::new(sizes.iter().copied().map(random)),
        SgemmInput::Files(a, b) => Box::new(std::iter::once_with(move || {
            let origin = format!("{}, {}", a.display(), b.display());
            let (left, right) = (npy::read_matrix(a)?, npy::read_matrix(b)?);
            if left.cols != right.rows {
                return Err(Failure::Usage(format!(
                    "{} is {}x{} and {} is {}x{}: the first must have as many columns as the \
                     second has rows",
                    a.display(),
                    left.rows,
                    left.cols,
                    b.display(),
                    right.rows,
                    right.cols
                )));
            }
            let size = Size { m: left.rows, n: right.cols, k: left.cols };
            let products = Products::single(size);
            Ok(SgemmProblem { a: left.elements, b: right.elements, products, origin })
        })),
    }
}

fn rung(
    stages: &[Stage<SgemmSpec>],
    problem: &SgemmProblem,
    device: &Device,
    bench: Option<&GemmBench<'_>>,
    output: &mut Output,
    bar: &ProgressBar,
) -> Result<Rung, Failure> {
    let products = problem.products;
    let mut operands = Operands::new(device, &problem.a, &problem.b, products)?;
    let mut rows = Vec::new();
    for stage in stages {
        bar.set_message(stage.name);
        let ran = StageOutcome::from(multiply(stage, device, &mut operands, bench))?;
        bar.inc(1);
        if let Some(message) = ran.message() {
            bar.suspend(|| eprintln!("{}: {message}", stage.name));
        }
        output.row(&row(stage, &ran, device, products))?;
        rows.push((stage.clone(), ran));
    }
    if let Some(bench) = bench
        && let Some(verdict) = bench.judge_blas(&operands)?
    {
        output.say(&format!("cuBLAS has an error of {:.1e} at {products}", verdict.error))?;
    }
    Ok(Rung { products, rows })
}

fn multiply(
    stage: &Stage<SgemmSpec>,
    device: &Device,
    operands: &mut Operands<'_>,
    bench: Option<&GemmBench<'_>>,
) -> Result<SgemmResult, Error> {
    let products = operands.products();
    let kernel = Sgemm::<ByName>::new(stage.spec.clone())?;
    operands.bring(device, &stage.spec)?;
    let mut blas_c = operands.blas_c.take();
    let mut launchable = operands.launchable(device, &stage.spec)?;
    let (verdict, launched) = operands.check(&mut launchable, &kernel, device)?;
    let times = match bench {
        None => None,
        Some(_) if products.flops() == 0.0 => None,
        Some(bench) => {
            let peer = operands.product(&stage.spec, blas_c.as_mut());
            Some(bench.times(&kernel, &mut launchable, peer, ROUNDS)?)
        }
    };
    drop(launchable);
    operands.blas_c = blas_c;
    let fusion = match (bench, times) {
        (Some(bench), Some(_)) => bench.fusion(&stage.spec, operands, ROUNDS)?,
        _ => None,
    };
    let (counters, registers) = (launched.counters().copied(), registers(&launched));
    Ok(SgemmResult { verdict, counters, registers, times, fusion })
}

fn gflops(time_ms: f64, products: Products) -> f64 {
    products.flops() / time_ms / 1e6
}

fn row(
    stage: &Stage<SgemmSpec>,
    ran: &StageOutcome<SgemmResult>,
    device: &Device,
    products: Products,
) -> StageRow {
    let done = ran.done();
    let verdict = done.map(|done| done.verdict);
    let times = done.and_then(|done| done.times);
    let fusion = done.and_then(|done| done.fusion);
    let max_err = verdict.map(|verdict| verdict.error);
    StageRow {
        ladder: "sgemm",
        index: stage.index,
        stage: stage.name,
        spec: stage.spec.to_string(),
        device: device_label(device),
        n: products.size.n,
        result: verdict.map(|verdict| verdict.result),
        reference: verdict.map(|verdict| verdict.reference),
        rel_err: max_err,
        ok: ran.ok(|done| done.verdict.ok),
        time_ms: times.map(|times| times.kernel),
        gb_s: times.map(|times| products.bytes() / times.kernel / 1e6),
        registers: done.map(|done| done.registers.clone()).unwrap_or_default(),
        counters: done.and_then(|done| done.counters.as_ref()).map(CounterRow::from),
        product: Some(ProductRow {
            m: products.size.m,
            k: products.size.k,
            batch: products.batch,
            gflops: times.map(|times| gflops(times.kernel, products)),
            vs_cublas: times.and_then(|times| times.vs_blas()),
            plain_ms: fusion.map(|fusion| fusion.plain),
            over_plain_percent: fusion.map(|fusion| 100.0 * fusion.over_plain()),
            separate_ms: fusion.and_then(|fusion| fusion.separate),
            max_err,
        }),
    }
}
