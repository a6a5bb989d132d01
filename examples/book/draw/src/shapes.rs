//! Small shapes at which a spec is simulated: as few blocks as show what each does.

use gemm_dsl::plan::{Blocks, KernelKind, ReducePlan, SgemmPlan};
use gemm_dsl::spec::{Bounds, Over};

/// Of the reduction that is simulated: the most blocks that fold a result together, and rounds of a block.
const PARTS: u32 = 4;
const ROUNDS: u64 = 2;
/// Block tiles of the product that is simulated, along rows and columns, and tiles along K.
const TILES: usize = 2;
const DEPTH: usize = 8;
/// The terms of each sum where there is no tile.
const NAIVE_DEPTH: usize = 64;

/// The most that is simulated.
#[derive(Clone, Copy, Debug)]
pub struct SimulationLimits {
    /// Elements of all operands.
    pub elements: u64,
    /// Multiply-adds.
    pub fmas: u64,
}

/// What a reduction folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrays {
    /// Arrays as (outer, length, inner), of segments how many and how long.
    pub size: (usize, usize, usize),
    /// Elements of each array.
    pub elements: usize,
}

impl Arrays {
    /// As it is said.
    pub fn in_words(self, over: Over) -> String {
        let (outer, len, inner) = self.size;
        match over {
            Over::All => format!("{len} elements"),
            Over::Rows => format!("{outer} rows of {len} elements"),
            Over::Columns => format!("{inner} columns of {len} elements"),
            Over::Middle => format!("{outer} matrices of {inner} columns of {len} elements"),
            Over::Segments => format!("{outer} segments of {len} elements"),
        }
    }
}

/// Eight blocks of a reduction, each with a few rounds, or fewer of either.
///
/// # Errors
/// Says that a single one is too large.
pub fn arrays(plan: &ReducePlan, most: SimulationLimits) -> Result<Arrays, String> {
    // What a block folds before it goes on, if it does, and how many of that a result has.
    let (part, parts) = match plan.blocks() {
        Blocks::One => (plan.elements_per_round(), ROUNDS),
        Blocks::InTurn(most) => (plan.elements_per_round(), ROUNDS.max(most.min(PARTS).into())),
        Blocks::Runs(run) => (run.into(), PARTS.into()),
    };
    let per_block = u64::from(plan.results_per_block());
    let mut sizes = [parts, 1].into_iter().flat_map(|n| [8, 4, 2, 1].map(|blocks| (blocks, n)));
    let fitting = sizes.find_map(|(blocks, parts)| {
        let len = part.checked_mul(parts)?;
        let (outer, len, inner) = match plan.spec().over {
            Over::All => (1, part.checked_mul(blocks)?, 1),
            Over::Rows | Over::Segments => (per_block * blocks, len, 1),
            Over::Columns => (1, len, per_block * blocks),
            Over::Middle => (blocks.min(2), len, per_block * blocks.div_ceil(2)),
        };
        let elements = outer.checked_mul(len)?.checked_mul(inner)?;
        let size = (outer as usize, len as usize, inner as usize);
        let elements = usize::try_from(elements).ok().filter(|n| *n as u64 <= most.elements)?;
        Some(Arrays { size, elements })
    });
    fitting.ok_or_else(|| {
        let (elements, most) = (part.max(plan.elements_per_block()), most.elements);
        format!(
            "a block is too large to simulate: it reduces {elements} elements, and at most \
             {most} are taken here"
        )
    })
}

/// The products of a launch: one, or where a block computes several of a batch as many as fill it, and another one but for one product
/// where it need not be full.
pub fn products(plan: &SgemmPlan) -> usize {
    let of_block = plan.products() as usize;
    let must_be_full = of_block == 1 || plan.spec().bounds == Bounds::Aligned;
    if must_be_full { of_block } else { 2 * of_block - 1 }
}

/// The extents (m, n, k) of [products] of whole tiles that are not too large, as large as shows what a kernel does if they
/// can be.
///
/// # Errors
/// Says that one tile is too large.
pub fn extents(plan: &SgemmPlan, most: SimulationLimits) -> Result<(usize, usize, usize), String> {
    let (rows, cols) = plan.block_tile();
    let (step, steps) = match plan.kind() {
        KernelKind::Naive(_) => (1, NAIVE_DEPTH),
        KernelKind::Direct(_) | KernelKind::Tiled(_) | KernelKind::Wgmma(_) => {
            (plan.depth() as usize, DEPTH)
        }
    };
    let products = products(plan) as u64;
    let depths = std::iter::successors(Some(steps), |depth| Some(depth / 2));
    let depths = depths.take_while(|depth| *depth > 0).map(|depth| (1, depth));
    let fitting = std::iter::once((TILES, steps)).chain(depths).find_map(|(tiles, depth)| {
        let (m, n, k) = (tiles * rows as usize, tiles * cols as usize, depth * step);
        let elements = [(m, k), (k, n), (m, n)].map(|(a, b)| products * a as u64 * b as u64);
        let fits = elements.iter().sum::<u64>() <= most.elements
            && elements[2].saturating_mul(k as u64) <= most.fmas;
        fits.then_some((m, n, k))
    });
    fitting.ok_or_else(|| {
        let SimulationLimits { elements, fmas } = most;
        let each = if products > 1 { " of each product" } else { "" };
        format!(
            "a block is too large to simulate: it computes {rows} x {cols} elements of C{each}, and at \
             most {elements} elements and {fmas} multiply-adds are taken here"
        )
    })
}
