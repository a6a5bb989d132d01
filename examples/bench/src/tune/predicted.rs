//! Ranking of a search space by the time model, without a GPU.
//!
//! The model ignores the order of a thread's multiplications, the spread of copies over steps, and
//! the cost of row strides as parameters. Specs that differ only in these keys form a class, which
//! is simulated once. A class is represented by the spec whose keys were the fastest in
//! measurements. First, classes are drawn at random. Then neighbours of the best classes are drawn.

#[cfg(test)]
mod tests;

use crate::cli::Failure;
use crate::predict::counts;
use crate::tune::space::{Point, Space};
use gemm_dsl::spec::{Order, SgemmSpec};
use gemm_oracle::product::Size;
use gemm_perf::{Bound, DeviceModel, LaunchLoad, predict_program};
use gemm_runtime::internal::estimated_registers;
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Spec with its predicted time.
#[derive(Clone, Debug)]
pub struct PredictedSpec {
    pub point: Point,
    pub spec: SgemmSpec,
    /// Predicted milliseconds of a launch.
    pub time: f64,
    /// Largest part of the predicted time.
    pub bound: Bound,
}

/// Share of the limit that is used for classes drawn at random.
const RANDOM_SHARE: f64 = 0.4;
/// Number of classes that are simulated between two checks of the limit.
const BATCH: usize = 8;
/// Number of best specs whose neighbours are tried.
const PARENTS: usize = 6;
/// Share of a tile's steps over which copies are spread in the fastest specs.
const SPREAD: f64 = 0.75;
/// Draws without a new class after which the space counts as exhausted.
const DRAWS: usize = 4_000;
/// Maximum ratio of the times of two specs that count as equally fast.
const ALIKE: f64 = 1.01;
/// Pipeline stages of the fastest specs.
const STAGES: u32 = 3;

/// Limits of a ranking. It ends when the first limit is reached.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub time: Duration,
    /// Maximum number of simulated classes. A ranking that reaches this number, or exhausts the
    /// space, is the same on every machine.
    pub classes: usize,
    /// Seed of the random draws.
    pub seed: u64,
}

/// Ranks the classes of a space for GEMMs of one size. One class of each kind is first, then all
/// others follow.
///
/// # Errors
/// Returns the errors of the simulator, and faults if the space contains no valid spec.
pub fn rank(
    space: &Space,
    size: Size,
    device: &DeviceModel,
    limit: Limit,
) -> Result<Vec<PredictedSpec>, Failure> {
    let start = Instant::now();
    // True if a share of the limit is used up.
    let passed = |share: f64, classes: usize| {
        start.elapsed() > limit.time.mul_f64(share)
            || classes as f64 >= share * limit.classes as f64
    };
    let mut random = fastrand::Rng::with_seed(limit.seed);
    let mut known: HashSet<String> = HashSet::new();
    // Prevents that invalid points and points of known classes are parsed repeatedly.
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
        // A space may contain invalid combinations, but it must contain a valid one.
        Some(faults) if known.is_empty() => return Err(faults.into()),
        _ => {}
    }
    Ok(varied(found).into_iter().map(|one| preferred(space, one)).collect())
}

/// Moves one spec of each kind to the front. Specs with the same block tile and thread tile are of
/// one kind.
///
/// The model cannot reliably distinguish the pipelines of a kind. The spec moved to the front is
/// therefore the one whose pipeline was the fastest in measurements.
fn varied(found: Vec<PredictedSpec>) -> Vec<PredictedSpec> {
    let kind = |one: &PredictedSpec| format!("{:?} {:?}", one.spec.tile, one.spec.thread);
    let from_best = |one: &PredictedSpec| one.spec.stages.map_or(u32::MAX, |n| n.abs_diff(STAGES));
    // For each kind: the time of the best spec, and the position of its representative.
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

/// Returns the keys that the specs of a class share.
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
    let registers = estimated_registers(&plan);
    let counted = counts::product(&spec, size, device.sms)?;
    let with = |launch: LaunchLoad| LaunchLoad { registers, ..launch };
    let launches: Vec<LaunchLoad> = counted.into_iter().map(|one| with(one.launch)).collect();
    Ok(predict_program(device, &launches).and_then(|(parts, time)| {
        let longest = parts.iter().max_by(|a, b| a.cycles().total_cmp(&b.cycles()))?;
        Some(PredictedSpec { point, spec, time, bound: longest.bound() })
    }))
}

/// Returns the spec that represents a class.
///
/// On an H200, the fastest specs had serpentine orders, and copies spread over three quarters of a
/// tile's steps. Row strides as parameters slowed small GEMMs by 5 %.
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

/// Rates the keys that the model ignores. A lower rating is better.
fn rank_of(spec: &SgemmSpec) -> f64 {
    let order = match spec.order {
        Order::ColumnSerpentine | Order::RowSerpentine => 0.0,
        _ => 1.0,
    };
    // In the fastest specs, a thread multiplies along the longer side of its tile first.
    let along = match (spec.order, spec.thread.m >= spec.thread.n) {
        (Order::ColumnSerpentine, true) | (Order::RowSerpentine, false) => 0.25,
        _ => 0.0,
    };
    let depth = f64::from(spec.tile.map_or(1, |tile| tile.k));
    let pitches = if spec.pitched { 0.5 } else { 0.0 };
    order + along + pitches + (f64::from(spec.spread) / depth - SPREAD).abs()
}
