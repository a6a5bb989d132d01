//! The ladder of reductions.

use crate::options::{ReduceInput, ReduceJob};
use crate::output::Output;
use crate::stage::{ROUNDS, Ran, mark, speed_up};
use gemm_dsl::plan::ReducePlan;
use gemm_dsl::stages::{self, Stage};
use gemm_examples::change::{Quantity, describe, number};
use gemm_examples::cli::{Failure, Outcome, device_label};
use gemm_examples::gpu::{Gpu, Timer, read_rate};
use gemm_examples::plot::{self, Bars};
use gemm_examples::reduction::{Truth, Verdict};
use gemm_examples::report::{CounterRow, Row};
use gemm_examples::{data, npy, progress, show};
use gemm_runtime::spec::ReduceSpec;
use gemm_runtime::{Buffer, Counters, Device, Error, ReduceKernel};

/// Lengths that take well under a minute.
const SIMULATOR_LENGTH: usize = 1 << 20;
const GPU_LENGTH: usize = 1 << 28;

/// Changes that a row names.
const CHANGES: usize = 3;

/// The catalogue with the job's operator and block.
pub fn stages(job: &ReduceJob) -> Vec<Stage<ReduceSpec>> {
    let mut stages = stages::reduce();
    for stage in &mut stages {
        stage.spec.op = job.op;
        stage.spec.block = job.block.unwrap_or(stage.spec.block);
    }
    stages
}

/// The result of a stage.
struct Reduced {
    value: f32,
    verdict: Verdict,
    counters: Option<Counters>,
    time_ms: Option<f64>,
}

/// What the times of a GPU are taken with and compared with.
struct Bench<'d> {
    timer: Timer<'d>,
    /// 10^9 bytes a second.
    read_rate: f64,
}

/// Runs every stage.
///
/// # Errors
/// What keeps all stages from running.
pub fn run(
    job: &ReduceJob,
    device: &Device,
    seed: u64,
    output: &mut Output,
) -> Result<Outcome, Failure> {
    let stages = planned(job, output)?;
    let default = if device.is_simulator() { SIMULATOR_LENGTH } else { GPU_LENGTH };
    let (elements, origin) = match &job.input {
        ReduceInput::File(path) => (npy::read_vector(path)?, path.display().to_string()),
        ReduceInput::Random(n) => (data::for_reduction(seed, *n, job.op), format!("seed {seed}")),
        ReduceInput::Default => {
            (data::for_reduction(seed, default, job.op), format!("seed {seed}"))
        }
    };
    let truth = Truth::of(job.op, &elements).map_err(|e| Failure::Usage(e.to_string()))?;
    let n = elements.len();
    let name = device_label(device);
    output.say(&format!("{} of {n} values on {name} ({origin})", job.op))?;

    let bench = match Gpu::of(device) {
        None => None,
        Some(gpu) => {
            let timer = Timer::new(gpu)?;
            let read_rate = read_rate(gpu, &timer)?;
            Some(Bench { timer, read_rate })
        }
    };
    let input = device.upload(&elements)?;
    let bar = progress::bar(stages.len());
    let mut rows = Vec::new();
    for (stage, plan) in stages {
        bar.set_message(stage.name);
        let ran = Ran::from(reduce(&stage, &plan, device, &input, &truth, bench.as_ref()))?;
        bar.inc(1);
        if let Some(message) = ran.message() {
            bar.suspend(|| eprintln!("{}: {message}", stage.name));
        }
        output.row(&row(&stage, &ran, &name, n, &truth))?;
        rows.push((stage, ran));
    }
    bar.finish_and_clear();
    match &bench {
        None => output.table(&counter_table(&rows))?,
        Some(bench) => {
            output.table(&time_table(&rows, n, bench))?;
            output.say(&format!("reading alone: {:.0} GB/s", bench.read_rate))?;
        }
    }
    if let Some(path) = &job.plot {
        plot::save(&picture(&rows, n, &name, bench.as_ref()), path)?;
    }
    let right = rows.iter().all(|(_, ran)| ran.ok(|done| done.verdict.ok) != Some(false));
    Ok(if right { Outcome::Right } else { Outcome::Wrong })
}

/// The stages that the block suits.
fn planned(
    job: &ReduceJob,
    output: &mut Output,
) -> Result<Vec<(Stage<ReduceSpec>, ReducePlan)>, Failure> {
    let mut planned = Vec::new();
    let mut refused = None;
    for stage in stages(job) {
        match stage.spec.plan() {
            Ok(plan) => planned.push((stage, plan)),
            Err(faults) => {
                if !planned.is_empty() {
                    output.say(&format!("{} is left out: {faults}", stage.name))?;
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
    bench: Option<&Bench<'_>>,
) -> Result<Reduced, Error> {
    let kernel = ReduceKernel::new(stage.spec.clone())?;
    // What is not written stays a NaN.
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
    let counters = launched.counters().copied();
    Ok(Reduced { value: result, verdict: truth.judge(plan, result), counters, time_ms })
}

fn rate(time_ms: Option<f64>, n: usize) -> Option<f64> {
    Some((n * size_of::<f32>()) as f64 / time_ms? / 1e6)
}

fn row(
    stage: &Stage<ReduceSpec>,
    ran: &Ran<Reduced>,
    device: &str,
    n: usize,
    truth: &Truth,
) -> Row {
    let done = ran.done();
    let time_ms = done.and_then(|done| done.time_ms);
    Row {
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
        counters: done.and_then(|done| done.counters.as_ref()).map(CounterRow::from),
        product: None,
    }
}

type Rows = [(Stage<ReduceSpec>, Ran<Reduced>)];

fn quantities(counters: &Counters) -> Vec<Quantity> {
    [
        ("divergent branches", counters.divergent_branches),
        ("conflicts", counters.shared_bank_conflicts),
        ("block barriers", counters.block_barriers),
        ("wavefronts", counters.shared_wavefronts),
        ("instructions", counters.instructions),
        ("sectors", counters.global_sectors),
    ]
    .map(|(name, value)| Quantity { name, value: value as f64 })
    .to_vec()
}

fn counter_table(rows: &Rows) -> comfy_table::Table {
    let mut table = show::table(&[
        "",
        ">#",
        "stage",
        ">result",
        ">error",
        ">block barriers",
        ">warp barriers",
        ">divergent",
        ">conflicts",
        ">wavefronts",
        ">sectors",
        ">instructions",
        "since the stage before",
    ]);
    let mut before: Option<Vec<Quantity>> = None;
    for (stage, ran) in rows {
        let mut cells = first_cells(stage, ran);
        if let Some(counters) = ran.done().and_then(|done| done.counters.as_ref()) {
            let counts = [
                counters.block_barriers,
                counters.warp_barriers,
                counters.divergent_branches,
                counters.shared_bank_conflicts,
                counters.shared_wavefronts,
                counters.global_sectors,
                counters.instructions,
            ];
            cells.extend(counts.map(|count| number(count as f64)));
            let now = quantities(counters);
            cells.push(before.map(|old| describe(&old, &now, CHANGES)).unwrap_or_default());
            before = Some(now);
        }
        table.add_row(cells);
    }
    table
}

fn time_table(rows: &Rows, n: usize, bench: &Bench<'_>) -> comfy_table::Table {
    let header =
        ["", ">#", "stage", ">result", ">error", ">time", ">GB/s", ">of reading", ">faster by"];
    let mut table = show::table(&header);
    let mut before = None;
    for (stage, ran) in rows {
        let mut cells = first_cells(stage, ran);
        let time = ran.done().and_then(|done| done.time_ms);
        if let (Some(ms), Some(rate)) = (time, rate(time, n)) {
            cells.push(show::time(ms));
            cells.push(format!("{rate:.0}"));
            cells.push(show::percent(rate / bench.read_rate));
            cells.push(speed_up(before, time));
            before = time;
        }
        table.add_row(cells);
    }
    table
}

fn first_cells(stage: &Stage<ReduceSpec>, ran: &Ran<Reduced>) -> Vec<String> {
    let done = ran.done();
    vec![
        mark(ran.ok(|done| done.verdict.ok)).to_owned(),
        stage.index.to_string(),
        stage.name.to_owned(),
        done.map_or_else(|| "–".to_owned(), |done| done.value.to_string()),
        show::error(done.map(|done| done.verdict.error)),
    ]
}

/// Bandwidth on a GPU, instructions on the simulator.
fn picture(rows: &Rows, n: usize, device: &str, bench: Option<&Bench<'_>>) -> Bars {
    let value = |done: &Reduced| match bench {
        Some(_) => rate(done.time_ms, n),
        None => done.counters.map(|c| c.instructions as f64 / n.max(1) as f64),
    };
    let bar = |(stage, ran): &(Stage<ReduceSpec>, Ran<Reduced>)| {
        Some((format!("{} {}", stage.index, stage.name), value(ran.done()?)?))
    };
    let x_label = if bench.is_some() { "GB/s" } else { "warp instructions per element" };
    Bars {
        title: format!("Reductions of {n} values on {device}"),
        x_label: x_label.to_owned(),
        bars: rows.iter().filter_map(bar).collect(),
        ceiling: bench.map(|bench| ("reading alone".to_owned(), bench.read_rate)),
    }
}
