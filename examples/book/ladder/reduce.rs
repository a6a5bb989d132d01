//! Ladder of reductions: runs, checks and times its stages.

mod table;

use crate::output::Output;
use crate::stage::{ROUNDS, StageOutcome};
use gemm_bench::cli::{Failure, Outcome, device_label};
use gemm_bench::gpu::{Gpu, Timer, read_rate};
use gemm_bench::ladder::options::{ReduceInput, ReduceJob, select};
use gemm_bench::plot;
use gemm_bench::report::{CounterRow, StageRow, registers};
use gemm_bench::{data, npy, progress};
use gemm_dsl::plan::ReducePlan;
use gemm_dsl::stages::{self, Stage};
use gemm_oracle::reduction::{Truth, Verdict};
use gemm_runtime::sim::Counters;
use gemm_runtime::spec::{Over, ReduceSpec};
use gemm_runtime::{Buffer, Device, Error, ReduceKernel};

/// Default lengths. A run takes well under a minute.
const SIMULATOR_LENGTH: usize = 1 << 20;
const GPU_LENGTH: usize = 1 << 28;

/// Returns the stages that reduce a whole array, with the operator and block of the job. The
/// example `rows` measures the other stages.
///
/// # Errors
/// As [`select`].
fn stages(job: &ReduceJob) -> Result<Vec<Stage<ReduceSpec>>, Failure> {
    let mut stages = catalogue(job);
    stages.retain(|stage| stage.spec.over == Over::All);
    select(&mut stages, &job.stages)?;
    Ok(stages)
}

/// Returns all stages. Stages that reduce a whole array get the operator and block of the job.
pub fn catalogue(job: &ReduceJob) -> Vec<Stage<ReduceSpec>> {
    let mut stages = stages::reduce();
    for stage in stages.iter_mut().filter(|stage| stage.spec.over == Over::All) {
        stage.spec.op = job.op;
        stage.spec.block = job.block.unwrap_or(stage.spec.block);
    }
    stages
}

type ReduceRows = [(Stage<ReduceSpec>, StageOutcome<ReduceResult>)];

struct ReduceResult {
    value: f32,
    verdict: Verdict,
    counters: Option<Counters>,
    registers: Vec<u32>,
    time_ms: Option<f64>,
}

/// Timer of a GPU, and the rate for comparison.
struct ReduceBench<'d> {
    timer: Timer<'d>,
    /// Bandwidth of a kernel that only reads, in 10^9 bytes/s.
    read_rate: f64,
}

/// Runs every stage.
///
/// # Errors
/// Returns an error that affects all stages.
pub fn run(
    job: &ReduceJob,
    device: &Device,
    seed: u64,
    output: &mut Output,
) -> Result<Outcome, Failure> {
    let stages = planned(job, output)?;
    let default = if device.is_simulator() { SIMULATOR_LENGTH } else { GPU_LENGTH };
    let random = |n| {
        let n = data::elements(&[n])?;
        Ok::<_, Failure>((data::for_reduction(seed, n, job.op), format!("seed {seed}")))
    };
    let (elements, origin) = match &job.input {
        ReduceInput::File(path) => (npy::read_vector(path)?, path.display().to_string()),
        ReduceInput::Random(n) => random(*n)?,
        ReduceInput::Default => random(default)?,
    };
    let truth = Truth::of(job.op, &elements).map_err(|e| Failure::Usage(e.to_string()))?;
    let n = elements.len();
    let name = device_label(device);
    output.say(&format!("{} of {n} values on {name} ({origin})", job.op))?;

    let bench = match Gpu::new(device) {
        None => None,
        Some(gpu) => {
            let timer = Timer::new(gpu)?;
            let read_rate = read_rate(gpu, &timer)?;
            Some(ReduceBench { timer, read_rate })
        }
    };
    let input = device.upload(&elements)?;
    let bar = progress::bar(stages.len());
    let mut rows = Vec::new();
    for (stage, plan) in stages {
        bar.set_message(stage.name);
        let ran =
            StageOutcome::from(reduce(&stage, &plan, device, &input, &truth, bench.as_ref()))?;
        bar.inc(1);
        if let Some(message) = ran.message() {
            bar.suspend(|| eprintln!("{}: {message}", stage.name));
        }
        output.row(&row(&stage, &ran, &name, n, &truth))?;
        rows.push((stage, ran));
    }
    bar.finish_and_clear();
    match &bench {
        None => output.table(&table::counters(&rows))?,
        Some(bench) => {
            output.table(&table::times(&rows, n, bench))?;
            output.say(&format!("reading only: {:.0} GB/s", bench.read_rate))?;
        }
    }
    for path in &job.plots {
        plot::save(&table::picture(&rows, n, &name, bench.as_ref()), path)?;
    }
    let right = rows.iter().all(|(_, ran)| ran.ok(|done| done.verdict.ok) != Some(false));
    Ok(if right { Outcome::Right } else { Outcome::Wrong })
}

/// Plans the stages, and leaves out stages that do not support the block size.
fn planned(
    job: &ReduceJob,
    output: &mut Output,
) -> Result<Vec<(Stage<ReduceSpec>, ReducePlan)>, Failure> {
    let mut planned = Vec::new();
    let mut refused = None;
    for stage in stages(job)? {
        match stage.spec.plan() {
            Ok(plan) => planned.push((stage, plan)),
            Err(faults) => {
                if !planned.is_empty() {
                    output.say(&format!("{} is skipped: {faults}", stage.name))?;
                }
                refused = Some(faults);
            }
        }
    }
    match refused {
        Some(faults) if planned.is_empty() => Err(faults.into()),
        _ => Ok(planned),
    }
}

fn reduce(
    stage: &Stage<ReduceSpec>,
    plan: &ReducePlan,
    device: &Device,
    input: &Buffer,
    truth: &Truth,
    bench: Option<&ReduceBench<'_>>,
) -> Result<ReduceResult, Error> {
    let kernel = ReduceKernel::new(stage.spec.clone())?;
    // If the kernel does not write the result, it remains NaN.
    let mut value = device.upload(&[f32::NAN])?;
    let launched = kernel.launch(device, input, &mut value)?;
    let result = device.download(&value)?.first().copied().unwrap_or(f32::NAN);
    let time_ms = match bench {
        None => None,
        Some(bench) => {
            let mut launch = || kernel.launch(device, input, &mut value).map(drop);
            bench.timer.medians(ROUNDS, &mut [&mut launch])?.first().copied()
        }
    };
    let (counters, registers) = (launched.counters().copied(), registers(&launched));
    let verdict = truth.judge(plan, result);
    Ok(ReduceResult { value: result, verdict, counters, registers, time_ms })
}

fn rate(time_ms: Option<f64>, n: usize) -> Option<f64> {
    Some((n * size_of::<f32>()) as f64 / time_ms? / 1e6)
}

fn row(
    stage: &Stage<ReduceSpec>,
    ran: &StageOutcome<ReduceResult>,
    device: &str,
    n: usize,
    truth: &Truth,
) -> StageRow {
    let done = ran.done();
    let time_ms = done.and_then(|done| done.time_ms);
    StageRow {
        ladder: "reduce",
        index: stage.index,
        stage: stage.name,
        spec: stage.spec.to_string(),
        device: device.to_owned(),
        n,
        result: done.map(|done| f64::from(done.value)),
        reference: Some(truth.value),
        rel_err: done.map(|done| done.verdict.error),
        ok: ran.ok(|done| done.verdict.ok),
        time_ms,
        gb_s: rate(time_ms, n),
        registers: done.map(|done| done.registers.clone()).unwrap_or_default(),
        counters: done.and_then(|done| done.counters.as_ref()).map(CounterRow::from),
        product: None,
    }
}
