//! Small shapes at which a spec is simulated: as few blocks as show what each does.

use crate::beside::launch_once;
use crate::cli::Failure;
use crate::data;
use crate::rows::launch::{Chosen, Inputs, Launch};
use gemm_dsl::plan::{ReducePlan, SgemmPlan, Shape};
use gemm_reference::product::Size;
use gemm_runtime::spec::Over;
use gemm_runtime::{Device, Launched, ReduceSpec, SgemmSpec};

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

/// What a reduction folds: arrays as (outer, length, inner), of segments how many and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrays {
    size: (usize, usize, usize),
    elements: usize,
}

/// A launch at a small shape.
pub struct Ran {
    /// The shape, in words.
    pub shape: String,
    /// The launch.
    pub launched: Launched,
    /// Multiplications and additions of a product; 0 of a reduction.
    pub flops: f64,
    /// Bytes of all operands, each once.
    pub bytes: usize,
}

/// Eight blocks of a reduction, each with a few rounds, or fewer of either.
///
/// # Errors
/// Says that a single one is too large.
pub fn arrays(plan: &ReducePlan) -> Result<Arrays, String> {
    let parts = if plan.has_partials() { plan.blocks().min(PARTS) } else { 1 };
    let per_block = u64::from(plan.results_per_block());
    let rounds = [ROUNDS.max(parts.into()), 1].into_iter();
    let mut sizes = rounds.flat_map(|rounds| [8, 4, 2, 1].map(|blocks| (blocks, rounds)));
    let fitting = sizes.find_map(|(blocks, rounds)| {
        let len = plan.elements_per_round().checked_mul(rounds)?;
        let (outer, len, inner) = match plan.spec().over {
            Over::All => (1, plan.elements_per_block().checked_mul(blocks)?, 1),
            Over::Rows | Over::Segments => (per_block * blocks, len, 1),
            Over::Columns => (1, len, per_block * blocks),
            Over::Middle => (blocks.min(2), len, per_block * blocks.div_ceil(2)),
        };
        let elements = outer.checked_mul(len)?.checked_mul(inner)?;
        let size = (outer as usize, len as usize, inner as usize);
        let elements = usize::try_from(elements).ok().filter(|n| *n as u64 <= MOST_ELEMENTS)?;
        Some(Arrays { size, elements })
    });
    fitting.ok_or_else(|| {
        let elements = plan.elements_per_block();
        format!(
            "a block is too large to simulate: it reduces {elements} elements, and at most \
             {MOST_ELEMENTS} are taken here"
        )
    })
}

/// Launches a reduction.
///
/// # Errors
/// Those of the launch.
pub fn reduce(spec: &ReduceSpec, arrays: Arrays, device: &Device) -> Result<Ran, Failure> {
    let Arrays { size: size @ (outer, len, inner), elements } = arrays;
    let chosen = Chosen::of(spec.clone())?;
    let inputs = Inputs::new(None, (spec.element, elements), spec.inputs().len(), SEED)?;
    let (size, offsets) = match spec.over {
        Over::Segments => {
            let offsets = (0..=outer).map(|segment| (segment * len) as u32).collect::<Vec<u32>>();
            ((outer, elements, 1), Some(offsets))
        }
        _ => (size, None),
    };
    let launched = Launch::new(device, &chosen, size, offsets.as_deref())?.run(&inputs)?;
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
    Ok(Ran { shape, launched, flops: 0.0, bytes })
}

/// A product of whole tiles that is not too large, as large as shows what a kernel does if it can be.
///
/// # Errors
/// Says that one tile is too large.
pub fn extents(plan: &SgemmPlan) -> Result<Size, String> {
    let (rows, cols) = plan.block_tile();
    let (step, steps) = match plan.shape() {
        Shape::Naive(_) => (1, NAIVE_DEPTH),
        Shape::Direct(_) | Shape::Tiled(_) | Shape::Tensor(_) => (plan.depth() as usize, DEPTH),
    };
    let depths = std::iter::successors(Some(steps), |depth| Some(depth / 2));
    let depths = depths.take_while(|depth| *depth > 0).map(|depth| (1, depth));
    let fitting = std::iter::once((TILES, steps)).chain(depths).find_map(|(tiles, depth)| {
        let (m, n, k) = (tiles * rows as usize, tiles * cols as usize, depth * step);
        let elements = [(m, k), (k, n), (m, n)].map(|(a, b)| a as u64 * b as u64);
        let fits = elements.iter().sum::<u64>() <= MOST_ELEMENTS
            && elements[2].saturating_mul(k as u64) <= MOST_FMAS;
        fits.then_some(Size { m, n, k })
    });
    fitting.ok_or_else(|| {
        format!(
            "a block is too large to simulate: it computes {rows} x {cols} elements of C, and at \
             most {MOST_ELEMENTS} elements and {MOST_FMAS} multiply-adds are taken here"
        )
    })
}

/// Launches a product.
///
/// # Errors
/// Those of the launch.
pub fn product(spec: &SgemmSpec, size: Size, device: &Device) -> Result<Ran, Failure> {
    let Size { m, n, k } = size;
    let a = data::uniform(SEED, m * k, -1.0, 1.0);
    let b = data::uniform(SEED + 1, k * n, -1.0, 1.0);
    let launched = launch_once(device, spec, (&a, &b), size)?;
    let flops = 2.0 * m as f64 * n as f64 * k as f64;
    let mut shape = format!("m = {m}, n = {n}, k = {k}");
    if let Shape::Tensor(_) = spec.plan()?.shape() {
        shape += &format!(" (the kernel that multiplies, of {} launches)", launched.passes());
    }
    let bytes = (m * k + k * n + m * n) * size_of::<f32>();
    Ok(Ran { shape, launched, flops, bytes })
}
