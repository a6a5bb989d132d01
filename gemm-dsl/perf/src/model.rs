//! Implementation of the model. The documentation of the crate describes its steps.

use super::occupancy::{Block, occupancy};
use super::{DeviceModel, LaunchLoad};
use gemm_dsl::target::arch::{self, WARP};
use std::fmt;

/// Unit of an SM, or unit that all SMs share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// Instruction issue. Per cycle it issues four instructions of different warps, but only as
    /// many multiply-adds as there are units for them.
    Issue,
    /// Wavefronts of shared memory and of the L1 cache, one per cycle.
    Shared,
    Tensor,
    /// Data from the L2 cache.
    Cache,
    /// Data from memory, which all SMs share.
    Memory,
}

impl Unit {
    pub const ALL: [Self; 5] = [Self::Issue, Self::Shared, Self::Tensor, Self::Cache, Self::Memory];
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Issue => "instruction issue",
            Self::Shared => "shared memory and L1",
            Self::Tensor => "tensor cores",
            Self::Cache => "L2 cache",
            Self::Memory => "memory",
        })
    }
}

/// Part of a prediction that limits the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The unit with the longest busy time.
    Unit(Unit),
    /// Blocks wait for data, for one another, or for the completion of their last instruction.
    Waiting,
    /// SMs without a block.
    Tail,
    Launch,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit(unit) => unit.fmt(f),
            Self::Waiting => f.write_str("waiting"),
            Self::Tail => f.write_str("the tail"),
            Self::Launch => f.write_str("the launch"),
        }
    }
}

/// Predicted time of a launch in cycles, as a sum of five parts: busy, waiting, idle, memory and
/// launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Busy time of each unit in the order of [`Unit::ALL`], averaged over SMs.
    pub units: [f64; 5],
    /// Time of all units together without waits, if the work is evenly distributed over SMs.
    pub busy: f64,
    /// Additional time in which blocks wait and too few other blocks are resident.
    pub waiting: f64,
    /// Additional time in which the last blocks leave SMs idle.
    pub tail: f64,
    /// Additional time if memory takes longer than all of these.
    pub memory: f64,
    pub launch: f64,
    /// Number of blocks that can be resident on an SM.
    pub resident: u32,
    /// Number of times that blocks fill all SMs.
    pub waves: f64,
    pub hertz: f64,
}

impl Prediction {
    /// Returns the total in cycles.
    pub fn cycles(&self) -> f64 {
        self.busy + self.waiting + self.tail + self.memory + self.launch
    }

    /// Returns the total in milliseconds.
    pub fn milliseconds(&self) -> f64 {
        self.cycles() / self.hertz * 1e3
    }

    /// Returns the largest part. If it is the units' busy time, returns the busiest unit.
    pub fn bound(&self) -> Bound {
        if self.memory > 0.0 {
            return Bound::Unit(Unit::Memory);
        }
        let most = |a: &(f64, Bound), b: &(f64, Bound)| a.0.total_cmp(&b.0);
        let units = self.units.into_iter().zip(Unit::ALL.map(Bound::Unit));
        let unit = units.max_by(most).map_or(Bound::Waiting, |(_, unit)| unit);
        let parts = [
            (self.waiting, Bound::Waiting),
            (self.tail, Bound::Tail),
            (self.launch, Bound::Launch),
            (self.busy, unit),
        ];
        parts.into_iter().max_by(most).map_or(unit, |(_, bound)| bound)
    }
}

/// Returns the time of concurrent work on units that contend with one another.
fn together(sharing: f64, cycles: &[f64]) -> f64 {
    let most = cycles.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return 0.0;
    }
    most * cycles.iter().map(|c| (c / most).powf(sharing)).sum::<f64>().powf(1.0 / sharing)
}

/// Predicts the time of a launch.
///
/// `None` if no block fits on an SM, if there are no blocks or no SMs, or if the load has a
/// negative, infinite or NaN value.
pub fn predict(device: &DeviceModel, launch: &LaunchLoad) -> Option<Prediction> {
    let block = Block {
        threads: launch.threads,
        registers: launch.registers,
        shared_bytes: launch.shared_bytes,
    };
    let fit = occupancy(&device.multiprocessor, block).blocks;
    let sms = f64::from(device.sms);
    let blocks = launch.blocks;
    if fit == 0 || device.sms == 0 || blocks <= 0.0 || !launch.is_countable() {
        return None;
    }
    let resident = f64::from(fit).min((blocks / sms).ceil());
    let (moved, missed) = memory(device, launch, resident * sms);

    let (work, times) = (&launch.work, &device.calibration);
    let rates = device.reached();
    let code = Code::new(device, launch);
    let returned = work.shared_load_bytes / times.returned;
    let units = [
        (work.instructions / SCHEDULERS).max(work.fma * f64::from(WARP) / rates.fma),
        work.shared_wavefronts.max(returned) + work.lines,
        work.mma_flops / rates.mma_flops + work.wgmma_flops / rates.wgmma_flops,
        SECTOR * work.sectors / rates.l2_bytes,
    ];
    let warps = f64::from(launch.threads.div_ceil(WARP).max(1));
    // The scheduler with the most warps of the resident blocks determines the time.
    let of_block = |beside: f64| {
        let warps = beside * warps;
        let [issue, others @ ..] = units;
        let uneven = (warps / SCHEDULERS).ceil() * SCHEDULERS / warps;
        together(times.sharing, &[[issue * uneven].as_slice(), &others].concat()) / blocks
    };
    let alone = alone(device, launch, of_block(1.0).max(code.cycles), missed);
    let fetched = |blocks: f64| blocks * code.fetched / times.code_of_all;
    let group = |blocks: f64| (blocks * of_block(blocks)).max(alone).max(fetched(blocks));
    let of_block = of_block(resident);

    let slots = resident * sms;
    let whole = (blocks / slots).floor();
    let last = blocks - whole * slots;
    let last = if last > 0.0 { group((last / sms).ceil()) } else { 0.0 };
    let computed = whole * group(resident) + last;
    let busy = of_block * blocks / sms;
    let even = blocks / slots * group(resident);
    let of_memory = moved / rates.memory * device.hertz();
    let [issue, shared, tensor, cache] = units.map(|unit| unit / sms);
    Some(Prediction {
        units: [issue, shared, tensor, cache, of_memory],
        busy,
        waiting: even - busy,
        tail: (computed - even).max(0.0),
        memory: (of_memory - computed.max(even)).max(0.0),
        launch: times.launch * device.clock_mhz,
        resident: fit,
        waves: blocks / (f64::from(fit) * sms),
        hertz: device.hertz(),
    })
}

/// Predicts the launches of a program, one after the other, and their total time in milliseconds.
pub fn predict_program(
    device: &DeviceModel,
    launches: &[LaunchLoad],
) -> Option<(Vec<Prediction>, f64)> {
    let predictions: Option<Vec<Prediction>> = launches
        .iter()
        .enumerate()
        .map(|(nth, launch)| {
            let mut prediction = predict(device, launch)?;
            if nth > 0 {
                prediction.launch = device.calibration.next_launch * device.clock_mhz;
            }
            Some(prediction)
        })
        .collect();
    let predictions = predictions?;
    let time = predictions.iter().map(Prediction::milliseconds).fold(0.0, |sum, one| sum + one);
    Some((predictions, time))
}

const SCHEDULERS: f64 = arch::SCHEDULERS as f64;
/// Size of a global-memory sector in bytes.
const SECTOR: f64 = arch::SECTOR_BYTES as f64;

/// Instruction fetches of a block, if a round has more machine code than an SM caches.
struct Code {
    fetched: f64,
    /// Minimum number of cycles for the fetches.
    cycles: f64,
}

impl Code {
    fn new(device: &DeviceModel, launch: &LaunchLoad) -> Self {
        let times = &device.calibration;
        let fetched = match launch.waits.code > times.code_kept {
            true => launch.waits.code * launch.waits.rounds,
            false => 0.0,
        };
        let [rate, of_warp] = times.code;
        let rate = if launch.threads > WARP { rate } else { of_warp };
        Self { fetched, cycles: fetched / rate }
    }
}

/// Returns the minimum time of a block that is alone on an SM, in cycles. `of_block` is the time
/// for its work.
fn alone(device: &DeviceModel, launch: &LaunchLoad, of_block: f64, missed: f64) -> f64 {
    let (work, times, waits) = (&launch.work, &device.calibration, &launch.waits);
    let warps = f64::from(launch.threads.div_ceil(WARP).max(1)) * launch.blocks;
    // A warpgroup's matrix instructions run asynchronously to its warps' instructions.
    let chain = if work.wgmma_flops > 0.0 {
        0.0
    } else {
        let other = (work.instructions - work.fma).max(0.0);
        (work.fma * times.fma + other * times.other + work.mma * times.mma) / warps
    };
    let computing = of_block.max(chain);
    let mut waiting = 0.0;
    if waits.rounds > 0.0 {
        let latency = times.cache + times.memory * (2.0 * missed).min(1.0);
        let hidden = waits.ahead * computing / waits.rounds;
        let barriers = waits.barriers * times.barrier;
        waiting = waits.rounds * ((latency - hidden).max(0.0) + barriers);
    }
    // A partial result is requested only after the previous one was added.
    let part = times.cache + waits.part_bytes / device.reached().l2_bytes;
    computing + waiting + waits.parts * part + times.block
}

/// Returns the bytes that memory moves, and the share of the blocks' reads that miss the L2 cache.
///
/// Operands that fit into the L2 cache are in it already. Otherwise, each set of concurrent blocks
/// loads its strips again. The blocks of a set advance along K together, so they share the strips.
fn memory(device: &DeviceModel, launch: &LaunchLoad, at_once: f64) -> (f64, f64) {
    let reads = &launch.reads;
    let [rows, cols] = reads.tiles;
    let operands = rows * reads.strips[0] + cols * reads.strips[1];
    let all = operands + reads.once;
    let capacity = device.l2_capacity * device.calibration.kept;
    if operands.max(if operands > 0.0 { 0.0 } else { all }) <= capacity {
        return (0.0, 0.0);
    }
    if operands <= 0.0 {
        return (all, 1.0);
    }
    let cols_at_once = (at_once / reads.raster.max(1.0)).clamp(1.0, cols.max(1.0));
    let rows_at_once = (at_once / cols_at_once).clamp(1.0, rows.max(1.0));
    let sets = (rows * cols / (rows_at_once * cols_at_once)).max(1.0);
    let again = sets * (rows_at_once * reads.strips[0] + cols_at_once * reads.strips[1]);
    let moved = all.max(again + reads.once);
    (moved, (moved / (SECTOR * launch.work.sectors).max(1.0)).min(1.0))
}
