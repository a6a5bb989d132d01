//! In which order the terms of a product's sums are added, said from scratch: by `lanes: k`, `slices`,
//! `split_k` and `stream_k`.

use crate::arith::Cores;
use crate::product::Size;
use gemm_dsl::plan::{self, KernelKind, SgemmPlan};
use gemm_dsl::spec::{GemmLayout, Lanes, SgemmSpec, SplitK};

/// Multiprocessors of the device that the simulator stands for.
pub const SIMULATED: usize = 132;

/// Kernels of every way to share, with what tests call them: staged and not, with what is added in shared memory and
/// in registers, with operands, in place and of a batch.
pub const LINES: [(&str, &str); 9] = [
    ("split_k", "tile: 32x32x16, thread: 4x4, float4, double_buffer, scaled, split_k: 3"),
    ("split_k_of_a_batch", "tile: 16x16x16, thread: 2x4, float4, batch: strided, split_k: 4"),
    ("auto", "tile: 64x64x16, thread: 8x4, float4, stages: 3, scaled, split_k: auto"),
    (
        "auto_of_slices",
        "tile: 32x32x64, thread: 4x4, float4, transpose, pad_a: 4, stages: 3, slices: 8, \
         epilogue: |acc, bias[n]| relu(acc + bias), split_k: auto",
    ),
    ("stream_k", "tile: 64x64x16, thread: 8x8, float4, stages: 3, raster: 2, scaled, stream_k"),
    (
        "stream_k_of_slices",
        "tile: 32x32x16, thread: 4x4, slices: 2, epilogue: |acc, bias[n], c[m, n]| acc + bias - 0.5 * c, stream_k",
    ),
    ("direct", "block: 4x16, thread: 2x4, float4, slices: 2, split_k: 3"),
    ("direct_of_lanes", "block: 4x4, lanes: k, thread: 8x8, scaled, split_k: auto"),
    ("direct_without_slices", "block: 16x16, thread: 2x2, unroll: 4, split_k: auto"),
];

/// How the blocks of a launch share the terms of its sums.
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    /// Rows, columns and terms of a tile, the tile rows that are visited together, and products of a block.
    tile: Size,
    raster: usize,
    products: usize,
    /// Tiles along each axis; along K one at the least.
    tiles: Size,
    terms: usize,
    way: Way,
    /// Groups of threads, and lanes of each, that take so many terms after the other.
    slices: usize,
    lanes: usize,
    step: usize,
    ragged: Ragged,
    /// Tensor cores, where they sum.
    cores: Option<Cores>,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    /// So many tiles of K each.
    Ranges(usize),
    /// So many blocks, all tiles.
    Stream { blocks: usize, all: usize },
}

impl Sharing {
    /// Of a kernel for so many products of a size, on a device with so many multiprocessors.
    pub fn new(spec: &SgemmSpec, Size { m, n, k }: Size, count: usize, sms: usize) -> Self {
        let plan = spec.plan().unwrap_or_else(|faults| panic!("`{spec}`: {faults}"));
        let ((rows, cols), bk) = (plan.block_tile(), plan.depth() as usize);
        let tile = Size { m: rows as usize, n: cols as usize, k: bk };
        let products = spec.products as usize;
        let tiles = Size { m: m.div_ceil(tile.m), n: n.div_ceil(tile.n), k: k.div_ceil(bk).max(1) };
        let all = tiles.m * tiles.n * count.div_ceil(products);
        let resident = sms * spec.blocks_per_sm as usize;
        // The root of an eighth of K, rounded down to a power of two.
        let root = (0..14).map(|log| 1 << log).rfind(|root| 8 * root * root <= k).unwrap_or(1);
        let most = match spec.split_k {
            SplitK::Ranges(most) => most as usize,
            SplitK::Auto => (resident / all.max(1)).clamp(1, root),
        };
        let way = match spec.stream_k {
            true if all < resident => {
                Way::Stream { blocks: resident.min(all * root.min(tiles.k)).max(1), all }
            }
            true => Way::Stream { blocks: resident, all },
            false => Way::Ranges(tiles.k.div_ceil(most)),
        };
        let raster = spec.raster.map_or(1, |rows| rows as usize);
        let is_staged = spec.tile.is_some();
        let lanes = if !is_staged && spec.lanes == Lanes::K { 32 } else { 1 };
        // Where a matrix that lies along K is read by fours, lanes and slices take four terms after the other.
        let step = if spec.float4 && spec.layout != GemmLayout::Tn && !is_staged { 4 } else { 1 };
        let (slices, ragged) = (spec.slices as usize, Ragged::of(&plan));
        let cores = Cores::of(spec);
        Self { tile, raster, products, tiles, terms: k, way, slices, lanes, step, ragged, cores }
    }

    /// The same with so many blocks, of `stream_k`.
    #[must_use]
    pub fn by_blocks(self, blocks: usize) -> Self {
        let way = match self.way {
            Way::Stream { all, .. } => Way::Stream { blocks, all },
            ranges => ranges,
        };
        Self { way, ..self }
    }

    /// The same for an element of C whose row of A and column of B have these greatest magnitudes.
    #[must_use]
    pub fn of_lines(self, greatest: [f32; 2]) -> Self {
        Self { cores: self.cores.map(|cores| cores.of_lines(greatest)), ..self }
    }

    /// What tensor cores make of the sums, if they do.
    #[must_use]
    pub fn cores(&self) -> Option<&Cores> {
        self.cores.as_ref()
    }

    /// Of how many parts the sum of an element of C of the n-th product is made.
    pub fn parts(&self, nth: usize, at: (usize, usize)) -> usize {
        self.ends(nth, at).len()
    }

    /// The number of the tile of an element of C of the n-th product.
    fn number(&self, nth: usize, (row, col): (usize, usize)) -> usize {
        let (row, col) = (row / self.tile.m, col / self.tile.n);
        let group = row / self.raster;
        let rows = self.raster.min(self.tiles.m - group * self.raster);
        let of_product = self.tiles.m * self.tiles.n;
        let before = group * self.raster * self.tiles.n;
        nth / self.products * of_product + before + col * rows + row % self.raster
    }

    /// Where the parts of the sum of an element of C of the n-th product end, in the order of K.
    fn ends(&self, nth: usize, at: (usize, usize)) -> Vec<usize> {
        let steps = self.tiles.k;
        let ends: Vec<usize> = match self.way {
            Way::Ranges(tiles) => (0..steps).step_by(tiles).map(|from| from + tiles).collect(),
            Way::Stream { blocks, all } => {
                let mut rounds = all / blocks;
                if !all.is_multiple_of(blocks) {
                    rounds = rounds.saturating_sub(1);
                }
                let left = all - rounds * blocks;
                match self.number(nth, at).checked_sub(rounds * blocks) {
                    None => vec![steps],
                    Some(streamed) => {
                        let share = (left * steps).div_ceil(blocks);
                        let first = streamed * steps;
                        let mut ends: Vec<usize> = (first + 1..first + steps)
                            .filter(|step| step.is_multiple_of(share))
                            .map(|step| step - first)
                            .collect();
                        ends.push(steps);
                        ends
                    }
                }
            }
        };
        ends.into_iter().map(|end| self.terms.min(end * self.tile.k)).collect()
    }

    /// The sum of an element of C of the n-th product: of each part, slice and lane from +0 on in ascending order, one
    /// rounding a term; then lanes by a tree, the slices of a part in their order, and the parts in theirs.
    pub fn sum(&self, nth: usize, at: (usize, usize), term: impl Fn(usize) -> (f32, f32)) -> f32 {
        let mut from = 0;
        let mut part = |end: usize| {
            if let Some(cores) = &self.cores {
                let terms: Vec<(f32, f32)> = (from..end).map(&term).collect();
                from = end;
                return cores.sum(&terms);
            }
            let mut sums = vec![0.0; self.slices * self.lanes];
            let shares = sums.len();
            for k in from..end {
                let (a, b) = term(k);
                let place = self.place(k - from, end - from);
                let sum = &mut sums[place / self.step % shares];
                *sum = f32::mul_add(a, b, *sum);
            }
            from = end;
            let slices = sums.chunks_mut(self.lanes).map(by_tree);
            slices.reduce(|all, next| all + next).unwrap_or(0.0)
        };
        let parts: Vec<f32> = self.ends(nth, at).into_iter().map(&mut part).collect();
        parts.into_iter().reduce(|all, next| all + next).unwrap_or(0.0)
    }

    /// Where in its tile the n-th of so many terms lies.
    fn place(&self, nth: usize, terms: usize) -> usize {
        let bk = self.tile.k;
        let first = (terms - 1) % bk + 1;
        match self.ragged {
            Ragged::FirstAtEnd if nth < first => bk - first + nth,
            Ragged::FirstAtEnd | Ragged::First if nth >= first => (nth - first) % bk,
            _ => nth % bk,
        }
    }
}

/// Which tile of a part has fewer terms than the others, and where they are.
#[derive(Clone, Copy, Debug)]
enum Ragged {
    First,
    FirstAtEnd,
    Last,
}

impl Ragged {
    fn of(plan: &SgemmPlan) -> Self {
        match plan.kind() {
            KernelKind::Tiled(t) if t.ragged() == plan::Ragged::First => match plan.spec().stages {
                Some(_) => Self::FirstAtEnd,
                None => Self::First,
            },
            _ => Self::Last,
        }
    }
}

/// The sum of lanes, the upper half added to the lower, again and again.
fn by_tree(mut lanes: &mut [f32]) -> f32 {
    while let [_, _, ..] = lanes {
        let (below, above) = lanes.split_at_mut(lanes.len() / 2);
        below.iter_mut().zip(above).for_each(|(sum, above)| *sum += *above);
        lanes = below;
    }
    lanes[0]
}
