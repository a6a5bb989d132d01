//! What the simulator counts at a small shape, and which unit of the GPU that keeps busiest.

use gemm_dsl::plan::{ReducePlan, SgemmPlan, Shape};
use gemm_examples::change::number;
use gemm_examples::cli::Failure;
use gemm_examples::data;
use gemm_examples::show::percent;
use gemm_runtime::{Counters, Device, ReduceKernel, SgemmKernel};

/// The operands are random; the counters do not depend on them.
const SEED: u64 = 1;

/// Blocks of the reduction that is simulated.
const BLOCKS: usize = 8;
/// Block tiles of the product that is simulated, along rows and columns, and tiles along K.
const TILES: usize = 2;
const DEPTH: usize = 8;
/// The terms of each sum where there is no tile.
const NAIVE_DEPTH: usize = 64;

/// What a large GPU does in a cycle of one of its multiprocessors: warp instructions issued,
/// wavefronts of shared memory, sectors from the L2 cache, and bytes from memory.
const ISSUED: f64 = 4.0;
const WAVEFRONTS: f64 = 1.0;
const SECTORS: f64 = 2.0;
const MEMORY_BYTES: f64 = 16.0;

/// Wasted shares that are worth a word.
const WORTH_NAMING: f64 = 0.05;

/// Counters in words.
pub struct Counted {
    /// The shape.
    pub shape: String,
    /// Names and values.
    pub lines: Vec<(&'static str, String)>,
    /// What they say about the limits of the kernel.
    pub limits: Vec<String>,
}

/// Simulates a reduction of a few blocks.
///
/// # Errors
/// What the simulator finds.
pub fn reduce(plan: &ReducePlan) -> Result<Counted, Failure> {
    let n = BLOCKS * usize::try_from(plan.elements_per_block()).unwrap_or(usize::MAX / BLOCKS);
    let device = Device::simulator();
    let input = device.upload(&data::for_reduction(SEED, n, plan.op()))?;
    let mut output = device.alloc(1)?;
    let kernel = ReduceKernel::new(plan.spec().clone())?;
    let launched = kernel.launch(&device, &input, &mut output)?;
    let shape = format!("{n} elements (first pass)");
    Ok(count(shape, launched.counters().copied().unwrap_or_default(), 0.0, n))
}

/// Simulates a product of a few tiles.
///
/// # Errors
/// What the simulator finds.
pub fn product(plan: &SgemmPlan) -> Result<Counted, Failure> {
    let (rows, cols) = plan.block_tile();
    let k = match plan.shape() {
        Shape::Naive(_) => NAIVE_DEPTH,
        Shape::Tiled(tiled) => DEPTH * tiled.bk() as usize,
    };
    let (m, n) = (TILES * rows as usize, TILES * cols as usize);
    let device = Device::simulator();
    let a = device.upload_matrix(&data::uniform(SEED, m * k, -1.0, 1.0), m, k)?;
    let b = device.upload_matrix(&data::uniform(SEED + 1, k * n, -1.0, 1.0), k, n)?;
    let (mut packed, mut pitched) = (device.alloc(m * n)?, device.alloc_matrix(m, n)?);
    let kernel = SgemmKernel::new(plan.spec().clone())?;
    let launched = if plan.pitched() {
        kernel.launch(&device, &a, &b, &mut pitched, (m, n, k))?
    } else {
        kernel.launch(&device, a.buffer(), b.buffer(), &mut packed, (m, n, k))?
    };
    let flops = 2.0 * m as f64 * n as f64 * k as f64;
    let shape = format!("m = {m}, n = {n}, k = {k}");
    let elements = m * k + k * n + m * n;
    Ok(count(shape, launched.counters().copied().unwrap_or_default(), flops, elements))
}

fn count(shape: String, c: Counters, flops: f64, elements: usize) -> Counted {
    let per = |a: u64, b: u64| number(a as f64 / b as f64);
    let mut lines = vec![
        ("blocks", number(c.blocks as f64)),
        ("warp instructions", number(c.instructions as f64)),
        ("block barriers", format!("{} a block", c.block_barriers)),
        ("warp barriers", format!("{} a block", c.warp_barriers)),
        ("divergent branches", number(c.divergent_branches as f64)),
        ("global sectors", sectors(&c)),
        ("shared wavefronts", number(c.shared_wavefronts as f64)),
        ("bank conflicts", number(c.shared_bank_conflicts as f64)),
    ];
    if flops > 0.0 {
        let share = percent(c.fma as f64 / c.instructions as f64);
        lines.push(("multiply-adds", format!("{share} of the instructions")));
        lines.push(("FMAs per sector", per(c.fmas, c.global_sectors)));
        lines.push(("FMAs per shared load", per(c.fma, c.shared_loads)));
        let intensity = number(flops / c.global_bytes() as f64);
        lines.push(("arithmetic intensity", format!("{intensity} FLOP per global byte")));
    }
    Counted { shape, lines, limits: limits(&c, elements) }
}

fn sectors(c: &Counters) -> String {
    format!("{} in {} requests", number(c.global_sectors as f64), number(c.global_requests as f64))
}

/// The busiest unit, then what is wasted. Each of the elements comes from memory at least once.
fn limits(c: &Counters, elements: usize) -> Vec<String> {
    let bytes = (elements * size_of::<f32>()) as f64;
    let mut cycles = [
        (c.instructions as f64 / ISSUED, "issuing instructions"),
        (c.shared_wavefronts as f64 / WAVEFRONTS, "shared memory"),
        (c.global_sectors as f64 / SECTORS, "reading from the L2 cache"),
        (bytes / MEMORY_BYTES, "reading from memory"),
    ];
    cycles.sort_by(|a, b| b.0.total_cmp(&a.0));
    let most = cycles[0].0;
    let all: Vec<String> =
        cycles.iter().map(|(n, unit)| format!("{unit} {}", number(*n))).collect();
    let mut limits = vec![
        format!("{} keeps a multiprocessor busy longest", cycles[0].1),
        format!("  (cycles at least: {})", all.join(", ")),
    ];
    let conflicts = c.shared_bank_conflicts as f64;
    if conflicts > WORTH_NAMING * c.shared_wavefronts as f64 {
        let share = percent(conflicts / c.shared_wavefronts as f64);
        limits.push(format!("bank conflicts: {share} of the wavefronts of shared memory"));
    }
    let used = c.global_bytes() as f64 / (32.0 * c.global_sectors as f64);
    if used < 1.0 - WORTH_NAMING {
        let bytes = number(32.0 * used);
        limits.push(format!("uncoalesced accesses: of a sector's 32 bytes, {bytes} are asked for"));
    }
    if c.divergent_branches as f64 > WORTH_NAMING * c.branch as f64 {
        let share = percent(c.divergent_branches as f64 / c.branch as f64);
        limits.push(format!("divergence: the lanes of a warp part at {share} of the branches"));
    }
    let multiply_adds = c.fma as f64 / ISSUED;
    if c.fma > 0 && multiply_adds < most {
        let share = percent(multiply_adds / most);
        limits.push(format!("so multiply-adds reach at most {share} of their rate"));
    }
    limits
}
