//! Load of the launches of a GEMM that is too large to simulate.
//!
//! Blocks with whole tiles do equal work, and so do all K tiles except the first few and the last
//! few. Each counter of a launch is therefore linear in each extent, if the remainder of the last
//! tile is fixed. The counts at a large shape are extrapolated from a few small shapes with the
//! same remainders.

use super::operands::TrialOperands;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::report::{LaunchReport, StepReport};
use gemm_dsl::Plan as _;
use gemm_dsl::ir::VerifiedProgram;
use gemm_dsl::plan::{KernelKind, Pipeline, SgemmPlan};
use gemm_dsl::spec::{Copies, Factor, SgemmSpec, SplitK};
use gemm_dsl::tables::{SgemmShape, Target};
use gemm_dsl::target::arch::{LARGEST, LINE_SECTORS, SECTOR_BYTES, THREAD_REGISTERS, WARP};
use gemm_perf::{DEVICES, DeviceModel, H200, LaunchLoad, Reads, Waits, Work, predict_program};
use std::time::Duration;

/// Minimum row length of a sample in elements. Two shorter rows could be in one cache line, which
/// is counted once.
const LINE: u64 = 32;

/// Bytes of a machine instruction.
const INSTRUCTION: f64 = 16.0;

/// Number of K steps after which all further steps of a kernel without tiles cost the same.
const NAIVE_DEPTH: u64 = 64;

/// Registers of a thread for addresses and counters, in addition to accumulators and fragments.
const OTHER_REGISTERS: u32 = 40;

/// Load of one kernel launch. Its register count is unknown until the kernel is compiled.
#[derive(Clone, Debug, PartialEq)]
pub struct CountedLaunch {
    /// Name of the kernel.
    pub kernel: String,
    /// Load, with 0 registers.
    pub launch: LaunchLoad,
}

impl CountedLaunch {
    /// Load of a program's kernel, with all counts 0.
    pub fn new(program: &VerifiedProgram, name: &str) -> Self {
        let kernel = program.kernels().iter().find(|kernel| kernel.name == name);
        let launch = LaunchLoad {
            threads: kernel.map_or(0, |kernel| kernel.geometry.threads()),
            shared_bytes: kernel.map_or(0, |kernel| kernel.shared_bytes()),
            ..LaunchLoad::default()
        };
        Self { kernel: name.to_owned(), launch }
    }
}

/// Predicts the time of a GEMM on a GPU, or on the nearest GPU that the model knows.
///
/// # Errors
/// Returns the errors of [`gemm_loads`]. [`Error::Internal`] if the model has no prediction.
pub(super) fn predict(spec: &SgemmSpec, shape: &SgemmShape, target: Target) -> Result<Duration> {
    let registers = estimated_registers(&spec.plan()?);
    let counted = gemm_loads(spec, shape, target.sms)?;
    let with = |one: CountedLaunch| LaunchLoad { registers, ..one.launch };
    let launches: Vec<LaunchLoad> = counted.into_iter().map(with).collect();
    let predicted = predict_program(&model_of(target), &launches);
    let time = predicted.and_then(|(_, ms)| Duration::try_from_secs_f64(ms / 1e3).ok());
    time.ok_or_else(|| Error::Internal(format!("the time model has no prediction of `{spec}`")))
}

/// Model of a GPU: that of a GPU with this architecture and number of SMs, else of another GPU with
/// this architecture, else of an H200.
fn model_of(target: Target) -> DeviceModel {
    let Target { arch, sms } = target;
    let same_arch = |model: &&DeviceModel| model.multiprocessor.arch == arch;
    let exact = DEVICES.iter().find(|model| same_arch(model) && model.sms == sms);
    let model = exact.or_else(|| DEVICES.iter().find(same_arch)).unwrap_or(&H200);
    DeviceModel { sms, ..*model }
}

/// Estimates the registers that the compiler assigns to a thread: those for accumulators, for two
/// fragments of each operand, and a constant. The estimate is at most the block's limit.
pub fn estimated_registers(plan: &SgemmPlan) -> u32 {
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
    let warps = u64::from(plan.threads().div_ceil(WARP) * plan.blocks_per_sm());
    wanted.min(LARGEST.registers_per_thread(warps))
}

/// Simulated extents that replace a large extent, each with its weight.
type ExtentSamples = Vec<(u64, f64)>;

/// Replaces an extent with two smaller ones, weighted for a linear extrapolation.
pub fn samples_along(extent: u64, [first, second]: [u64; 2]) -> ExtentSamples {
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
fn along_tiles(extent: u64, tile: u64, alone: bool) -> ExtentSamples {
    let whole = tile * LINE.div_ceil(tile);
    let left = extent % whole;
    if alone && left == 0 && extent > 0 {
        return vec![(whole, (extent / whole) as f64)];
    }
    samples_along(extent, [left + whole, left + 2 * whole])
}

/// Returns the samples for K. They start at the extent at which all pipeline stages are full.
fn along_depth(extent: u64, plan: &SgemmPlan) -> ExtentSamples {
    let depth = u64::from(plan.k_step());
    let (depth, first) = match plan.kind() {
        KernelKind::Naive(_) => (depth * NAIVE_DEPTH, 1),
        KernelKind::Direct(_) => (depth, 2),
        KernelKind::Tiled(tiled) => match tiled.pipeline() {
            Pipeline::Async { stages, .. } => (depth, 2 * u64::from(stages)),
            Pipeline::Single
            | Pipeline::Parts { .. }
            | Pipeline::Prefetch
            | Pipeline::DoubleBuffer => (depth, 4),
        },
        KernelKind::Wgmma(_) => (depth, 2 * u64::from(plan.spec().stages.unwrap_or(1))),
    };
    let left = extent % depth;
    samples_along(extent, [left + first * depth, left + 2 * first * depth])
}

/// Counts the launches of the GEMMs of a shape on `sms` SMs, without their registers.
///
/// Of the fix-up of `stream_k`, only the traffic of the partial tiles is counted.
///
/// # Errors
/// Returns the errors of the simulator.
pub fn gemm_loads(spec: &SgemmSpec, shape: &SgemmShape, sms: u32) -> Result<Vec<CountedLaunch>> {
    let plan = spec.plan()?;
    let (rows, cols) = plan.block_tile();
    let (rows, cols) = (u64::from(rows * plan.cluster()), u64::from(cols));
    let SgemmShape { m, n, k, batch, .. } = *shape;
    let tiles = m.div_ceil(rows) as f64 * n.div_ceil(cols) as f64 * groups(&plan, batch);
    let slots = f64::from(sms * plan.blocks_per_sm());
    let mut simulated = spec.clone();
    // The number of split-K partitions depends on the number of tiles, and the samples have fewer
    // tiles.
    if simulated.split_k == SplitK::Auto {
        simulated.split_k = SplitK::Partitions(((slots / tiles) as u32).max(1));
    }
    simulated.stream_k = false;
    let program = simulated.plan().and_then(|plan| plan.program())?;
    let alone = program.launched().count() == 1 && spec.batch.is_none();
    // The GEMMs of a batch have equal counts, and so have the groups that a block computes.
    let few = u64::from(plan.products()).min(batch);
    let of_batch = batch as f64 / few.max(1) as f64;
    let along = [along_tiles(m, rows, alone), along_tiles(n, cols, alone), along_depth(k, &plan)];
    let device = Device::simulator_compiled();
    let mut all: Vec<CountedLaunch> = Vec::new();
    for &(m, of_m) in &along[0] {
        for &(n, of_n) in &along[1] {
            for &(k, of_k) in &along[2] {
                let mut sample = shape.batch(few);
                (sample.m, sample.n, sample.k) = (m, n, k);
                let launched = launch_once(&device, &simulated, &sample)?;
                add(&mut all, &program, &launched, of_batch * of_m * of_n * of_k)?;
            }
        }
    }
    let flops = |launch: &LaunchLoad| launch.work.mma_flops + launch.work.wgmma_flops;
    let by_flops = |a: &&mut CountedLaunch, b: &&mut CountedLaunch| {
        flops(&a.launch)
            .total_cmp(&flops(&b.launch))
            .then(a.launch.work.fma.total_cmp(&b.launch.work.fma))
    };
    // The counters do not depend on the format, but the model's rates are those of 16-bit formats.
    let relative_time = spec.formats().map_or(1.0, |[format, _]| format.relative_time());
    for other in &mut all {
        other.launch.reads.once = f64::from(SECTOR_BYTES) * other.launch.work.sectors;
        other.launch.work.mma_flops *= relative_time;
        other.launch.work.wgmma_flops *= relative_time;
    }
    if let Some(product) = all.iter_mut().max_by(by_flops) {
        of_product(&mut product.launch, &plan, shape);
        if plan.persistent() {
            let launch = &mut product.launch;
            launch.waits.rounds *= tiles / launch.blocks.min(slots);
            launch.blocks = launch.blocks.min(slots);
        }
        if spec.stream_k {
            shared_evenly(&mut product.launch, (rows * cols) as f64, tiles, slots, k);
        }
    }
    Ok(all)
}

/// Number of groups of a batch's GEMMs. A block computes one tile of each GEMM of a group.
fn groups(plan: &SgemmPlan, batch: u64) -> f64 {
    batch.div_ceil(plan.products().into()) as f64
}

fn launch_once(device: &Device, spec: &SgemmSpec, shape: &SgemmShape) -> Result<LaunchReport> {
    let program = device.programs().get::<SgemmSpec>(&spec.to_string())?;
    TrialOperands::new(device, spec, shape)?.views()?.launch(&program)
}

/// Models the blocks of `stream_k`. There is one for each slot, or fewer if there are too few tiles
/// for all slots.
///
/// A block that does not finish a tile writes its partial accumulators, and another block reads
/// them.
fn shared_evenly(launch: &mut LaunchLoad, sums: f64, tiles: f64, slots: f64, terms: u64) {
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

/// Models the waits and the reads of the blocks in the launch that multiplies. The tiles of a batch
/// are modelled as rows of tiles.
pub(super) fn of_product(launch: &mut LaunchLoad, plan: &SgemmPlan, shape: &SgemmShape) {
    let [m, n, k, batch] = [shape.m, shape.n, shape.k, shape.batch].map(|extent| extent as f64);
    let groups = groups(plan, shape.batch);
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
        let tiles = groups * (m / rows).ceil() * (n / cols).ceil();
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
        let once = launch.blocks * (rows + cols) * k / 8.0 + batch * m * n / 8.0;
        launch.work.sectors = launch.work.sectors.min(once);
    }
    let [of_a, of_b] = Factor::BOTH.map(|factor| f64::from(spec.staged_bytes(factor)));
    launch.reads = Reads {
        tiles: [groups * (m / rows).ceil(), (n / cols).ceil()],
        strips: [rows * k * of_a, cols * k * of_b],
        raster: f64::from(plan.raster().unwrap_or(1)),
        once: 4.0 * batch * m * n,
    };
}

/// Returns the work of a launch, from the counters of the compiled kernel.
///
/// # Errors
/// [`Error::Internal`] if the simulator did not count both the source and the compiled kernel.
pub fn compiled_work(step: &StepReport<'_>) -> Result<Work> {
    let counted = step.counters().zip(step.compiled_counters());
    let (text, compiled) = counted.ok_or_else(|| {
        Error::Internal("the simulator counted nothing for a kernel as compiled".to_owned())
    })?;
    Ok(Work::compiled(text, compiled))
}

/// Adds the counts of a sample, with its weight.
fn add(
    all: &mut Vec<CountedLaunch>,
    program: &VerifiedProgram,
    launched: &LaunchReport,
    times: f64,
) -> Result<()> {
    for (nth, step) in launched.steps().enumerate() {
        if all.len() <= nth {
            all.push(CountedLaunch::new(program, step.kernel()));
        }
        let counted = &mut all[nth];
        counted.launch.blocks += times * step.grid().iter().map(|n| f64::from(*n)).product::<f64>();
        counted.launch.work += compiled_work(&step)? * times;
    }
    Ok(())
}
