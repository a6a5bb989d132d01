//! What the simulator counts at a small shape, and which unit of a GPU the text asks most of.

use gemm_dsl::plan::{ReducePlan, SgemmPlan, Shape};
use gemm_examples::beside::launch_once;
use gemm_examples::change::number;
use gemm_examples::cli::Failure;
use gemm_examples::data;
use gemm_examples::rows::launch::{Chosen, Inputs, Launch};
use gemm_examples::show::percent;
use gemm_reference::product::Size;
use gemm_runtime::spec::Over;
use gemm_runtime::{Counters, Device};

/// The operands are random; the counters do not depend on them.
const SEED: u64 = 1;

/// Of the reduction that is simulated: the most blocks that fold a result together, and rounds of a block.
const PARTS: u32 = 4;
const ROUNDS: u64 = 2;
/// Block tiles of the product that is simulated, along rows and columns, and tiles along K.
const TILES: usize = 2;
const DEPTH: usize = 8;
/// The terms of each sum where there is no tile.
const NAIVE_DEPTH: usize = 64;

/// The most that is simulated: elements of all operands, and multiply-adds.
const MOST_ELEMENTS: u64 = 1 << 25;
const MOST_FMAS: u64 = 1 << 27;

/// What a large GPU does in a cycle of one of its multiprocessors: warp instructions issued,
/// wavefronts of shared memory, sectors from the L2 cache, and bytes from memory.
const ISSUED: f64 = 4.0;
const WAVEFRONTS: f64 = 1.0;
const SECTORS: f64 = 2.0;
const MEMORY_BYTES: f64 = 16.0;

/// And the multiplications and additions of its tensor cores, by bits of what they multiply.
const MATRIX_FLOPS: [(u32, f64, &str); 2] =
    [(16, 4096.0, "4096 FLOPs a cycle"), (32, 2048.0, "2048 FLOPs a cycle")];

/// Wasted shares that are worth a word.
const WORTH_NAMING: f64 = 0.05;

/// What came of counting.
pub enum Sample {
    Counted(Counted),
    /// Why nothing was counted.
    TooLarge(String),
}

/// Counters in words.
pub struct Counted {
    /// The shape.
    pub shape: String,
    /// Names and values.
    pub lines: Vec<(&'static str, String)>,
    /// What the text asks of a multiprocessor.
    pub asked: Vec<String>,
}

/// Simulates a reduction of a few blocks.
///
/// # Errors
/// What the simulator finds.
pub fn reduce(plan: &ReducePlan) -> Result<Sample, Failure> {
    let spec = plan.spec();
    let Some((size @ (outer, len, inner), elements)) = size(plan) else {
        return Ok(Sample::TooLarge(format!(
            "a block is too large to simulate: it reduces {} elements, and at most \
             {MOST_ELEMENTS} are taken here",
            plan.elements_per_block()
        )));
    };
    let (device, chosen) = (Device::simulator(), Chosen::of(spec.clone())?);
    let inputs = Inputs::new(None, (spec.element, elements), spec.inputs().len(), SEED)?;
    let (size, offsets) = match spec.over {
        Over::Segments => {
            let offsets = (0..=outer).map(|segment| (segment * len) as u32).collect::<Vec<u32>>();
            ((outer, elements, 1), Some(offsets))
        }
        _ => (size, None),
    };
    let launched = Launch::new(&device, &chosen, size, offsets.as_deref())?.run(&inputs)?;
    let mut shape = match spec.over {
        Over::All => format!("{len} elements"),
        Over::Rows => format!("{outer} rows of {len} elements"),
        Over::Columns => format!("{inner} columns of {len} elements"),
        Over::Middle => format!("{outer} matrices of {inner} columns of {len} elements"),
        Over::Segments => format!("{outer} segments of {len} elements"),
    };
    if launched.passes() > 1 {
        shape += &format!(" (the first of {} launches)", launched.passes());
    }
    let bytes = elements * spec.inputs().len() * spec.element.elem().size() as usize;
    Ok(count(shape, launched.counters().copied().unwrap_or_default(), (0.0, None), bytes))
}

/// What is simulated as (outer, length, inner), of segments how many and how long, and all its elements: eight
/// blocks, each with a few rounds, or fewer of either; `None` where a single one is too large.
fn size(plan: &ReducePlan) -> Option<((usize, usize, usize), usize)> {
    let parts = if plan.has_partials() { plan.blocks().min(PARTS) } else { 1 };
    let per_block = u64::from(plan.results_per_block());
    let rounds = [ROUNDS.max(parts.into()), 1].into_iter();
    let mut sizes = rounds.flat_map(|rounds| [8, 4, 2, 1].map(|blocks| (blocks, rounds)));
    sizes.find_map(|(blocks, rounds)| {
        let len = plan.elements_per_round().checked_mul(rounds)?;
        let (outer, len, inner) = match plan.spec().over {
            Over::All => (1, plan.elements_per_block().checked_mul(blocks)?, 1),
            Over::Rows | Over::Segments => (per_block * blocks, len, 1),
            Over::Columns => (1, len, per_block * blocks),
            Over::Middle => (blocks.min(2), len, per_block * blocks.div_ceil(2)),
        };
        let elements = outer.checked_mul(len)?.checked_mul(inner)?;
        let size = (outer as usize, len as usize, inner as usize);
        (elements <= MOST_ELEMENTS).then_some((size, elements as usize))
    })
}

/// Simulates a product of a few tiles.
///
/// # Errors
/// What the simulator finds.
pub fn product(plan: &SgemmPlan) -> Result<Sample, Failure> {
    let Some((m, n, k)) = extents(plan) else {
        let (rows, cols) = plan.block_tile();
        return Ok(Sample::TooLarge(format!(
            "a block is too large to simulate: it computes {rows} x {cols} elements of C, and at \
             most {MOST_ELEMENTS} elements and {MOST_FMAS} multiply-adds are taken here"
        )));
    };
    let device = Device::simulator();
    let a = data::uniform(SEED, m * k, -1.0, 1.0);
    let b = data::uniform(SEED + 1, k * n, -1.0, 1.0);
    let launched = launch_once(&device, plan.spec(), (&a, &b), Size { m, n, k })?;
    let flops = 2.0 * m as f64 * n as f64 * k as f64;
    let mut shape = format!("m = {m}, n = {n}, k = {k}");
    if let Shape::Tensor(_) = plan.shape() {
        shape += &format!(" (the kernel that multiplies, of {} launches)", launched.passes());
    }
    let bytes = (m * k + k * n + m * n) * size_of::<f32>();
    let bits = plan.spec().arith.format().map(|format| format.bits());
    Ok(count(shape, launched.counters().copied().unwrap_or_default(), (flops, bits), bytes))
}

/// A shape of whole tiles that is not too large, as large as [`TILES`] and the depths say if it can
/// be; `None` where one tile is too large.
fn extents(plan: &SgemmPlan) -> Option<(usize, usize, usize)> {
    let (rows, cols) = plan.block_tile();
    let (step, steps) = match plan.shape() {
        Shape::Naive(_) => (1, NAIVE_DEPTH),
        Shape::Direct(_) | Shape::Tiled(_) | Shape::Tensor(_) => (plan.depth() as usize, DEPTH),
    };
    let depths = std::iter::successors(Some(steps), |depth| Some(depth / 2));
    let depths = depths.take_while(|depth| *depth > 0).map(|depth| (1, depth));
    std::iter::once((TILES, steps)).chain(depths).find_map(|(tiles, depth)| {
        let (m, n, k) = (tiles * rows as usize, tiles * cols as usize, depth * step);
        let elements = [(m, k), (k, n), (m, n)].map(|(a, b)| a as u64 * b as u64);
        let fits = elements.iter().sum::<u64>() <= MOST_ELEMENTS
            && elements[2].saturating_mul(k as u64) <= MOST_FMAS;
        fits.then_some((m, n, k))
    })
}

/// Counters in words: of a product with its multiplications and additions, and how many bits tensor cores multiply, if they do.
fn count(shape: String, c: Counters, (flops, bits): (f64, Option<u32>), bytes: usize) -> Sample {
    let per = |a: u64, b: u64| number(a as f64 / b as f64);
    let mut lines = vec![
        ("blocks", number(c.blocks as f64)),
        ("warp instructions", number(c.instructions as f64)),
        ("block barriers", format!("up to {} a block", c.block_barriers)),
        ("warp barriers", format!("up to {} a block", c.warp_barriers)),
        ("divergent branches", number(c.divergent_branches as f64)),
        ("global sectors", sectors(&c)),
        ("shared wavefronts", number(c.shared_wavefronts as f64)),
        ("bank conflicts", number(c.shared_bank_conflicts as f64)),
    ];
    let asked_of_memory = (c.global_bytes() + c.bulk_bytes) as f64;
    if c.mma_flops > 0 {
        lines.push(("matrix instructions", number((c.mma + c.wgmma) as f64)));
        let times = number(c.mma_flops as f64 / flops);
        lines.push(("FLOPs of tensor cores", format!("{times} for each of the product's")));
        if c.bulk_copies > 0 {
            let (boxes, bytes) = (number(c.bulk_copies as f64), number(c.bulk_bytes as f64));
            lines.push(("boxes", format!("{boxes}, of {bytes} bytes")));
            lines.push(("waits at barriers", number(c.mbarrier_waits as f64)));
        }
    } else if flops > 0.0 {
        let share = percent(c.fma as f64 / c.instructions as f64);
        lines.push(("multiply-adds", format!("{share} of the instructions")));
        lines.push(("FMAs per sector", per(c.fmas, c.global_sectors)));
        lines.push(("FMAs per shared load", per(c.fma, c.shared_loads)));
    }
    if flops > 0.0 {
        let intensity = number(flops / asked_of_memory);
        lines.push(("arithmetic intensity", format!("{intensity} FLOP per global byte")));
    }
    Sample::Counted(Counted { shape, lines, asked: asked(&c, bits, bytes) })
}

fn sectors(c: &Counters) -> String {
    format!("{} in {} requests", number(c.global_sectors as f64), number(c.global_requests as f64))
}

/// The cycles that one multiprocessor would take for what the text asks of each unit, most first,
/// and what is wasted. These are counts of the text, and no limits of a GPU: the compiler merges
/// loads of neighbouring elements and drops instructions, and caches answer some of the accesses.
fn asked(c: &Counters, bits: Option<u32>, bytes: usize) -> Vec<String> {
    let sectors = c.global_sectors as f64 + c.bulk_bytes as f64 / 32.0;
    let mut units = vec![
        (c.instructions as f64 / ISSUED, "instruction issue", "4 of a warp a cycle"),
        (c.shared_wavefronts as f64 / WAVEFRONTS, "shared memory", "1 wavefront a cycle"),
        (sectors / SECTORS, "L2 cache", "2 sectors a cycle, none cached nearer"),
        (bytes as f64 / MEMORY_BYTES, "memory", "16 bytes a cycle, each element once"),
    ];
    let of_format = MATRIX_FLOPS.into_iter().find(|(of, ..)| Some(*of) == bits);
    units.extend(
        of_format.map(|(_, of_cycle, rate)| (c.mma_flops as f64 / of_cycle, "tensor cores", rate)),
    );
    units.sort_by(|a, b| b.0.total_cmp(&a.0));
    let cycles = |(cycles, unit, rate): &(f64, &str, &str)| {
        format!("{unit:22}{:>6} cycles, at {rate}", number(*cycles))
    };
    let mut lines: Vec<String> = units.iter().map(cycles).collect();
    let (most, unit, _) = units[0];
    if c.fma > 0 {
        let share = percent(c.fma as f64 / ISSUED / most);
        lines.push(format!("issuing the multiply-adds alone takes {share} of the first of these"));
    }
    let conflicts = c.shared_bank_conflicts as f64;
    if conflicts > WORTH_NAMING * c.shared_wavefronts as f64 {
        let share = percent(conflicts / c.shared_wavefronts as f64);
        lines.push(format!("bank conflicts are {share} of the wavefronts of shared memory"));
    }
    let used = c.global_bytes() as f64 / (32.0 * c.global_sectors as f64);
    if used < 1.0 - WORTH_NAMING {
        let bytes = number(32.0 * used);
        lines.push(format!("of the 32 bytes of a global sector {bytes} are asked for, on average"));
    }
    if c.divergent_branches as f64 > WORTH_NAMING * c.branch as f64 {
        let share = percent(c.divergent_branches as f64 / c.branch as f64);
        lines.push(format!("the lanes of a warp part at {share} of the branches"));
    }
    lines.push(String::new());
    lines.push(format!(
        "By its text, {unit} has most to do. A GPU may need less: the compiler merges neighbouring \
         loads."
    ));
    lines
}
