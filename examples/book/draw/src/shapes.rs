//! Small problem shapes for the simulation of a spec. The blocks are just enough to show the
//! kernel's behaviour.

use gemm_dsl::plan::{Blocks, KernelKind, ReducePlan, SgemmPlan};
use gemm_dsl::spec::{Bounds, Over, newer_word};

/// Maximum number of blocks that share a result of a simulated reduction, and of rounds of a block.
const PARTS: u32 = 4;
const ROUNDS: u64 = 2;
/// Number of block tiles along M and along N of a simulated GEMM, and number of K tiles.
const TILES: usize = 2;
const DEPTH: usize = 8;
/// Extent of K for a kernel without tiles.
const NAIVE_DEPTH: usize = 64;

/// Upper bounds of a simulated problem.
#[derive(Clone, Copy, Debug)]
pub struct SimulationLimits {
    /// Elements of all operands together.
    pub elements: u64,
    pub fmas: u64,
}

/// Shape of the input arrays of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrays {
    /// Extents (outer, length, inner). For segments, their number and length.
    pub size: (usize, usize, usize),
    /// Elements of each input array.
    pub elements: usize,
}

impl Arrays {
    /// Describes the shape in words.
    pub fn in_words(self, over: Over) -> String {
        let (outer, len, inner) = self.size;
        match over {
            Over::All => format!("{len} elements"),
            Over::Rows => format!("{outer} rows of {len} elements"),
            Over::Columns => format!("{inner} columns of {len} elements"),
            Over::Middle => format!("{outer} matrices of {inner} columns of {len} elements"),
            Over::Segments => format!("{outer} segments of {len} elements"),
            over => newer_word(over),
        }
    }
}

/// Returns a shape for eight blocks with several rounds each. If this shape exceeds the limits, it
/// has fewer blocks or rounds.
///
/// # Errors
/// Returns a message if a single block exceeds the limit.
pub fn arrays(plan: &ReducePlan, most: SimulationLimits) -> Result<Arrays, String> {
    // Number of elements that a block reduces in one step, and number of such steps for a result.
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
            over => newer_word(over),
        };
        let elements = outer.checked_mul(len)?.checked_mul(inner)?;
        let size = (outer as usize, len as usize, inner as usize);
        let elements = usize::try_from(elements).ok().filter(|n| *n as u64 <= most.elements)?;
        Some(Arrays { size, elements })
    });
    fitting.ok_or_else(|| {
        let (elements, most) = (part.max(plan.elements_per_block()), most.elements);
        format!(
            "the block is too large to simulate: it reduces {elements} elements, and the limit is \
             {most}"
        )
    })
}

/// Number of GEMMs in a launch. It is 1, unless a block computes several GEMMs of a batch. In that
/// case one block is full. If blocks may be partially filled, a second block lacks one GEMM.
pub fn products(plan: &SgemmPlan) -> usize {
    let of_block = plan.products() as usize;
    let must_be_full = of_block == 1 || plan.spec().bounds == Bounds::Aligned;
    if must_be_full { of_block } else { 2 * of_block - 1 }
}

/// Returns the extents (m, n, k) of each of the [products]. They are multiples of the tile, several
/// tiles if the limits allow it.
///
/// # Errors
/// Returns a message if a single tile exceeds the limits.
pub fn extents(plan: &SgemmPlan, most: SimulationLimits) -> Result<(usize, usize, usize), String> {
    let (rows, cols) = plan.block_tile();
    let (step, steps) = match plan.kind() {
        KernelKind::Naive(_) => (1, NAIVE_DEPTH),
        KernelKind::Direct(_) | KernelKind::Tiled(_) | KernelKind::Wgmma(_) => {
            (plan.k_step() as usize, DEPTH)
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
        let each = if products > 1 { " of each GEMM" } else { "" };
        format!(
            "the block is too large to simulate: it computes {rows} x {cols} elements of C{each}, \
             and the limits are {elements} elements and {fmas} multiply-adds"
        )
    })
}
