//! A ranking of a space without a GPU, by the model of time.
//!
//! The model does not see in which order a thread multiplies, nor over how many steps copies are spread, nor what it costs that
//! pitches are parameters of their own: specs that differ in these alone make a class, which is simulated once. Of a class one stands for all: the one whose keys are those that were
//! fastest wherever they were measured. Classes are drawn at random, then around the best ones.

#[cfg(test)]
mod tests;

use crate::cli::Failure;
use crate::predict::counts;
use crate::tune::space::{Point, Space};
use gemm_dsl::plan::{KernelKind, Pipeline, SgemmPlan};
use gemm_dsl::spec::{Order, SgemmSpec};
use gemm_dsl::target::arch::THREAD_REGISTERS;
use gemm_oracle::product::Size;
use gemm_perf::{Bound, DeviceModel, LaunchLoad, predict_program};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// A spec with how long it takes by the model.
#[derive(Clone, Debug)]
pub struct PredictedSpec {
    /// Where the space has it.
    pub point: Point,
    /// What it is.
    pub spec: SgemmSpec,
    /// Milliseconds.
    pub time: f64,
    /// What takes most of them.
    pub bound: Bound,
}

/// The share of the limit in which classes are drawn at random.
const RANDOM_SHARE: f64 = 0.4;
/// Classes that are simulated between two looks at the clock.
const BATCH: usize = 8;
/// The best whose neighbours are tried.
const PARENTS: usize = 6;
/// The share of the steps of a tile over which copies are best spread.
const SPREAD: f64 = 0.75;
/// Points drawn for one whose class is new, before the space counts as exhausted.
const DRAWS: usize = 4_000;
/// Times are alike where one is at most so many times the other.
const ALIKE: f64 = 1.01;
/// Stages of the pipelines that were fastest.
const STAGES: u32 = 3;
/// Registers of a thread beside its sums and fragments: addresses, counters.
const OTHER_REGISTERS: u32 = 40;

/// How far a ranking goes.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// How long it may take.
    pub time: Duration,
    /// Classes that are simulated, if the time is enough for them. A ranking that ends here, or with its space, is the same on
    /// every machine.
    pub classes: usize,
    /// The seed of what is drawn.
    pub seed: u64,
}

/// Ranks the classes of a space for products of a size: of each kind the best one, best first, then all others.
///
/// # Errors
/// What the simulator finds, and the faults of a space none of whose combinations is a spec.
pub fn rank(
    space: &Space,
    size: Size,
    device: &DeviceModel,
    limit: Limit,
) -> Result<Vec<PredictedSpec>, Failure> {
    let start = Instant::now();
    // Whether a share of the limit is reached.
    let passed = |share: f64, classes: usize| {
        start.elapsed() > limit.time.mul_f64(share)
            || classes as f64 >= share * limit.classes as f64
    };
    let mut random = fastrand::Rng::with_seed(limit.seed);
    let mut known: HashSet<String> = HashSet::new();
    // Unsound points and those of known classes are drawn again and again.
    let mut seen: HashSet<Point> = HashSet::new();
    let mut found: Vec<PredictedSpec> = Vec::new();
    let mut faults = None;
    loop {
        let around = passed(RANDOM_SHARE, known.len());
        let most = BATCH.min(limit.classes - known.len());
        let mut batch = Vec::new();
        let mut take = |point: Point, batch: &mut Vec<(Point, SgemmSpec)>| {
            if !seen.insert(point.clone()) {
                return;
            }
            match space.line(&point).parse::<SgemmSpec>() {
                Ok(spec) if known.insert(class(&spec)) => batch.push((point, spec)),
                Ok(_) => {}
                Err(of_point) => faults = Some(of_point),
            }
        };
        if around {
            for parent in found.iter().take(PARENTS) {
                for point in space.neighbours(&parent.point) {
                    if batch.len() < most {
                        take(point, &mut batch);
                    }
                }
            }
        }
        for _ in 0..DRAWS {
            if batch.len() >= most {
                break;
            }
            take(space.random(&mut random), &mut batch);
        }
        if batch.is_empty() {
            break;
        }
        let predicted: Result<Vec<_>, Failure> =
            batch.into_par_iter().map(|(point, spec)| predict(point, spec, size, device)).collect();
        found.extend(predicted?.into_iter().flatten());
        found.sort_by(|a, b| a.time.total_cmp(&b.time));
        if passed(1.0, known.len()) {
            break;
        }
    }
    match faults {
        // Of a space some combinations have faults; not all of one that means anything.
        Some(faults) if known.is_empty() => return Err(faults.into()),
        _ => {}
    }
    Ok(varied(found).into_iter().map(|one| preferred(space, one)).collect())
}

/// The same, those first that differ in what the model is good at: of specs with one tile and one part of a thread, which it tells
/// apart by less than it is off, the one alone whose pipeline was fastest wherever it was measured.
fn varied(found: Vec<PredictedSpec>) -> Vec<PredictedSpec> {
    let kind = |one: &PredictedSpec| format!("{:?} {:?}", one.spec.tile, one.spec.thread);
    let from_best = |one: &PredictedSpec| one.spec.stages.map_or(u32::MAX, |n| n.abs_diff(STAGES));
    // By kind: the time of the best, and the place of the one that stands for it.
    let mut kinds: HashMap<String, (f64, usize)> = HashMap::new();
    for (place, one) in found.iter().enumerate() {
        let (best, chosen) = kinds.entry(kind(one)).or_insert((one.time, place));
        if one.time <= *best * ALIKE && from_best(one) < from_best(&found[*chosen]) {
            *chosen = place;
        }
    }
    let chosen: HashSet<usize> = kinds.into_values().map(|(_, place)| place).collect();
    let placed = found.into_iter().enumerate();
    let (first, others): (Vec<_>, Vec<_>) = placed.partition(|(place, _)| chosen.contains(place));
    first.into_iter().chain(others).map(|(_, one)| one).collect()
}

/// What a class has in common.
fn class(spec: &SgemmSpec) -> String {
    let mut common = spec.clone().order(Order::Row).spread(1);
    common.pitched = false;
    common.to_string()
}

fn predict(
    point: Point,
    spec: SgemmSpec,
    size: Size,
    device: &DeviceModel,
) -> Result<Option<PredictedSpec>, Failure> {
    let plan = spec.plan().map_err(gemm_runtime::Error::from)?;
    let registers = registers(&plan);
    let counted = counts::product(&spec, size, device.sms)?;
    let with = |launch: LaunchLoad| LaunchLoad { registers, ..launch };
    let launches: Vec<LaunchLoad> = counted.into_iter().map(|one| with(one.launch)).collect();
    Ok(predict_program(device, &launches).and_then(|(parts, time)| {
        let longest = parts.iter().max_by(|a, b| a.cycles().total_cmp(&b.cycles()))?;
        Some(PredictedSpec { point, spec, time, bound: longest.bound() })
    }))
}

/// About how many registers the compiler gives a thread: sums, two fragments of each side, and some more, within what its block
/// leaves it.
fn registers(plan: &SgemmPlan) -> u32 {
    let thread = plan.spec().thread;
    let wanted = match plan.kind() {
        KernelKind::Naive(_) => OTHER_REGISTERS,
        KernelKind::Direct(_) | KernelKind::Tiled(_) => {
            let staged = match plan.kind() {
                KernelKind::Tiled(tiled) if !matches!(tiled.pipeline(), Pipeline::Async { .. }) => {
                    8
                }
                _ => 0,
            };
            thread.m * thread.n + 2 * (thread.m + thread.n) + staged + OTHER_REGISTERS
        }
        KernelKind::Wgmma(_) => THREAD_REGISTERS,
    };
    let warps = u64::from(plan.threads().div_ceil(32) * plan.blocks_per_sm());
    wanted.min(gemm_dsl::target::arch::LARGEST.registers_per_thread(warps))
}

/// The spec of a class that is tried first. On an H200 orders that turn back at the ends of rows or columns were the fastest, and
/// copies spread over three quarters of the steps of a tile; with pitches of their own small products took 5 % longer.
fn preferred(space: &Space, mut best: PredictedSpec) -> PredictedSpec {
    let class_of_all = class(&best.spec);
    loop {
        let better = space.neighbours(&best.point).into_iter().filter_map(|point| {
            let spec: SgemmSpec = space.line(&point).parse().ok()?;
            (class(&spec) == class_of_all && rank_of(&spec) < rank_of(&best.spec))
                .then_some((point, spec))
        });
        let next = better.min_by(|a, b| rank_of(&a.1).total_cmp(&rank_of(&b.1)));
        match next {
            Some((point, spec)) => best = PredictedSpec { point, spec, ..best },
            None => return best,
        }
    }
}

/// Less is better.
fn rank_of(spec: &SgemmSpec) -> f64 {
    let order = match spec.order {
        Order::ColumnSerpentine | Order::RowSerpentine => 0.0,
        _ => 1.0,
    };
    // Each thread goes along its longer side, as in the fastest lines of either shape.
    let along = match (spec.order, spec.thread.m >= spec.thread.n) {
        (Order::ColumnSerpentine, true) | (Order::RowSerpentine, false) => 0.25,
        _ => 0.0,
    };
    let depth = f64::from(spec.tile.map_or(1, |tile| tile.k));
    let pitches = if spec.pitched { 0.5 } else { 0.0 };
    order + along + pitches + (f64::from(spec.spread) / depth - SPREAD).abs()
}
