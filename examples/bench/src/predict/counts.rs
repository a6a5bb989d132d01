//! Counts of a GEMM that is too large to simulate.
//!
//! Blocks with whole tiles do equal work, and so do all K tiles except the first few and the last
//! few. Each counter of a launch is therefore linear in each extent, if the remainder of the last
//! tile is fixed. The counts at a large shape are extrapolated from a few small shapes with the
//! same remainders.

use super::LaunchCounts;
use crate::cli::Failure;
use crate::data;
use crate::epilogue::launch_once;
use crate::sample::compiled;
use gemm_dsl::Plan;
use gemm_dsl::ir::VerifiedProgram;
use gemm_dsl::plan::{KernelKind, Pipeline, SgemmPlan};
use gemm_dsl::spec::{Copies, Factor, SgemmSpec, SplitK};
use gemm_dsl::target::Format;
use gemm_dsl::target::arch::{LINE_SECTORS, SECTOR_BYTES, WARP};
use gemm_oracle::product::Size;
use gemm_perf::{LaunchLoad, Reads, Waits, Work};
use gemm_runtime::{Device, Error, LaunchReport, StepReport};

/// Seed of the operands; counts do not depend on the elements.
const SEED: u64 = 1;

/// Minimum row length of a sample in elements. Two shorter rows could be in one cache line, which
/// is counted once.
const LINE: usize = 32;

/// Bytes of a machine instruction.
const INSTRUCTION: f64 = 16.0;

/// Number of K steps after which all further steps of a kernel without tiles cost the same.
const NAIVE_DEPTH: usize = 64;

/// Simulated extents that replace a large extent, each with its weight.
type ExtentSamples = Vec<(usize, f64)>;

/// Replaces an extent with two smaller ones, weighted for a linear extrapolation.
pub(super) fn line(extent: usize, [first, second]: [usize; 2]) -> ExtentSamples {
    if extent <= second {
        return vec![(extent, 1.0)];
    }
    let at = (extent - first) as f64 / (second - first) as f64;
    vec![(first, 1.0 - at), (second, at)]
}

/// Returns the samples for rows or columns: whole tiles, and the remainder.
///
/// If the program has one launch, all blocks with whole tiles have equal counts, and one block
/// represents all of them.
fn along_tiles(extent: usize, tile: usize, alone: bool) -> ExtentSamples {
    let whole = tile * LINE.div_ceil(tile);
    let left = extent % whole;
    if alone && left == 0 && extent > 0 {
        return vec![(whole, (extent / whole) as f64)];
    }
    line(extent, [left + whole, left + 2 * whole])
}

/// Returns the samples for K. They start at the extent at which all pipeline stages are full.
fn along_depth(extent: usize, plan: &SgemmPlan) -> ExtentSamples {
    let depth = plan.k_step() as usize;
    let (depth, first) = match plan.kind() {
        KernelKind::Naive(_) => (depth * NAIVE_DEPTH, 1),
        KernelKind::Direct(_) => (depth, 2),
        KernelKind::Tiled(tiled) => match tiled.pipeline() {
            Pipeline::Async { stages, .. } => (depth, 2 * stages as usize),
            Pipeline::Single
            | Pipeline::Parts { .. }
            | Pipeline::Prefetch
            | Pipeline::DoubleBuffer => (depth, 4),
        },
        KernelKind::Wgmma(_) => (depth, 2 * plan.spec().stages.unwrap_or(1) as usize),
    };
    let left = extent % depth;
    line(extent, [left + first * depth, left + 2 * first * depth])
}

/// Counts the launches of a GEMM on `sms` SMs, without their registers.
///
/// Of the fix-up of `stream_k`, only the traffic of the partial tiles is counted.
///
/// # Errors
/// Returns the errors of the simulator.
pub fn product(spec: &SgemmSpec, size: Size, sms: u32) -> Result<Vec<LaunchCounts>, Failure> {
    let plan = spec.plan().map_err(Error::from)?;
    let (rows, cols) = plan.block_tile();
    let (rows, cols) = (rows as usize * plan.cluster() as usize, cols as usize);
    let tiles = (size.m.div_ceil(rows) * size.n.div_ceil(cols)) as f64;
    let slots = f64::from(sms * plan.blocks_per_sm());
    let mut simulated = spec.clone();
    // The number of split-K partitions depends on the number of tiles, and the samples have fewer
    // tiles.
    if simulated.split_k == SplitK::Auto {
        simulated.split_k = SplitK::Partitions(((slots / tiles) as u32).max(1));
    }
    simulated.stream_k = false;
    let program = simulated.plan().and_then(|plan| plan.program()).map_err(Error::from)?;
    let alone = program.launched().count() == 1 && spec.batch.is_none();
    let along = [
        along_tiles(size.m, rows, alone),
        along_tiles(size.n, cols, alone),
        along_depth(size.k, &plan),
    ];
    let device = Device::simulator_compiled();
    let mut all: Vec<LaunchCounts> = Vec::new();
    for &(m, of_m) in &along[0] {
        for &(n, of_n) in &along[1] {
            for &(k, of_k) in &along[2] {
                let a = data::uniform(SEED, m * k, -1.0, 1.0);
                let b = data::uniform(SEED + 1, k * n, -1.0, 1.0);
                let launched = launch_once(&device, &simulated, &a, &b, Size { m, n, k })?;
                add(&mut all, &program, &launched, of_m * of_n * of_k)?;
            }
        }
    }
    let flops = |launch: &LaunchLoad| launch.work.mma_flops + launch.work.wgmma_flops;
    let by_flops = |a: &&mut LaunchCounts, b: &&mut LaunchCounts| {
        flops(&a.launch)
            .total_cmp(&flops(&b.launch))
            .then(a.launch.work.fma.total_cmp(&b.launch.work.fma))
    };
    for other in &mut all {
        other.launch.reads.once = f64::from(SECTOR_BYTES) * other.launch.work.sectors;
    }
    // The counters do not depend on the format, but the model's rates are those of 16-bit formats.
    let relative_time = spec.arith.format().map_or(1.0, Format::relative_time);
    for other in &mut all {
        let work = &mut other.launch.work;
        work.mma_flops *= relative_time;
        work.wgmma_flops *= relative_time;
    }
    if let Some(product) = all.iter_mut().max_by(by_flops) {
        of_product(&mut product.launch, &plan, size);
        if plan.persistent() {
            let launch = &mut product.launch;
            launch.waits.rounds *= tiles / launch.blocks.min(slots);
            launch.blocks = launch.blocks.min(slots);
        }
        if spec.stream_k {
            shared_evenly(&mut product.launch, (rows * cols) as f64, tiles, slots, size.k);
        }
    }
    Ok(all)
}

/// Models the blocks of `stream_k`. There is one for each slot, or fewer if there are too few tiles
/// for all slots.
///
/// A block that does not finish a tile writes its partial accumulators, and another block reads
/// them.
fn shared_evenly(launch: &mut LaunchLoad, sums: f64, tiles: f64, slots: f64, terms: usize) {
    let worth =
        (1..14).fold(1.0, |root, log| if terms >> (3 + 2 * log) > 0 { 2.0 * root } else { root });
    let blocks = if tiles < slots { tiles * (slots / tiles).floor().min(worth) } else { slots };
    let parts = if (tiles / blocks).fract() > 0.0 { blocks } else { 0.0 };
    launch.waits.rounds *= tiles / blocks;
    launch.blocks = blocks;
    launch.waits.part_bytes = 4.0 * sums;
    launch.waits.parts = match parts > 0.0 {
        true => (blocks / tiles).max(2.0),
        false => 0.0,
    };
    let bytes = 2.0 * launch.waits.part_bytes * parts;
    launch.work.sectors += bytes / f64::from(SECTOR_BYTES);
    launch.work.lines += bytes / f64::from(LINE_SECTORS * SECTOR_BYTES);
}

/// Models the waits and the reads of the blocks in the launch that multiplies.
fn of_product(launch: &mut LaunchLoad, plan: &SgemmPlan, size: Size) {
    let [m, n, k] = [size.m, size.n, size.k].map(|extent| extent as f64);
    let (rows, cols) = plan.block_tile();
    let (rows, cols) = (f64::from(rows), f64::from(cols));
    let spec = plan.spec();
    let (ahead, barriers) = match plan.kind() {
        KernelKind::Tiled(tiled) => match tiled.pipeline() {
            Pipeline::Single => (0, 2.0),
            Pipeline::Parts { parts } => (0, 2.0 * f64::from(parts)),
            Pipeline::Prefetch | Pipeline::DoubleBuffer => (1, 1.0),
            Pipeline::Async { stages, .. } => (stages - 1, 1.0),
        },
        KernelKind::Wgmma(_) if spec.copy == Copies::Tma => (spec.stages.unwrap_or(1) - 1, 1.0),
        KernelKind::Naive(_) | KernelKind::Direct(_) | KernelKind::Wgmma(_) => (0, 2.0),
    };
    let staged = matches!(plan.kind(), KernelKind::Tiled(_) | KernelKind::Wgmma(_));
    if staged {
        let tiles = (m / rows).ceil() * (n / cols).ceil();
        let ranges = (launch.blocks / tiles).max(1.0);
        let rounds = (k / f64::from(plan.k_step()) / ranges).ceil();
        launch.waits = Waits { rounds, ahead: f64::from(ahead), barriers, ..Waits::default() };
        if matches!(plan.kind(), KernelKind::Tiled(_)) {
            let warps = launch.blocks * f64::from(launch.threads.div_ceil(WARP));
            let unrolled = plan.unroll().map_or(1.0, |by| f64::from(by) / f64::from(plan.k_step()));
            let of_round = launch.work.instructions / warps / rounds;
            launch.waits.code = INSTRUCTION * of_round * unrolled.min(1.0);
        }
    } else {
        // If threads of a block read the same data, all but the first hit the L1 cache.
        let once = launch.blocks * (rows + cols) * k / 8.0 + m * n / 8.0;
        launch.work.sectors = launch.work.sectors.min(once);
    }
    let [of_a, of_b] = Factor::BOTH.map(|factor| f64::from(spec.staged_bytes(factor)));
    launch.reads = Reads {
        tiles: [(m / rows).ceil(), (n / cols).ceil()],
        strips: [rows * k * of_a, cols * k * of_b],
        raster: f64::from(plan.raster().unwrap_or(1)),
        once: 4.0 * m * n,
    };
}

/// Returns the work of a launch, from the counters of the compiled kernel.
pub(super) fn work(step: &StepReport<'_>) -> Result<Work, Error> {
    let (text, compiled) = compiled(step)?;
    Ok(Work::compiled(text, compiled))
}

/// Adds the counts of a sample, with its weight.
fn add(
    all: &mut Vec<LaunchCounts>,
    program: &VerifiedProgram,
    launched: &LaunchReport,
    times: f64,
) -> Result<(), Error> {
    for (nth, step) in launched.steps().enumerate() {
        if all.len() <= nth {
            all.push(LaunchCounts::new(program, step.kernel()));
        }
        let counted = &mut all[nth];
        counted.launch.blocks += times * step.grid().iter().map(|n| f64::from(*n)).product::<f64>();
        counted.launch.work += work(&step)? * times;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The strips of A and B contain all components of the split of an element, in the bytes of
    /// their format.
    #[test]
    fn strips_have_the_bytes_of_their_format() {
        let bytes = |arith: &str| {
            let line = format!("tile: 64x128x32, mma: wgmma, arith: {arith}");
            let plan: SgemmPlan = line.parse().expect("a sound spec");
            let mut launch =
                LaunchLoad { blocks: 4.0, threads: plan.threads(), ..LaunchLoad::default() };
            of_product(&mut launch, &plan, Size { m: 128, n: 256, k: 96 });
            launch.reads.strips.map(|strip| strip / 96.0)
        };
        assert_eq!(bytes("bf16"), [64.0 * 2.0, 128.0 * 2.0]);
        assert_eq!(bytes("tf32"), [64.0 * 4.0, 128.0 * 4.0]);
        assert_eq!(bytes("tf32x3"), [64.0 * 8.0, 128.0 * 8.0]);
        assert_eq!(bytes("bf16x6"), [64.0 * 6.0, 128.0 * 6.0]);
    }
}
