//! Independent reference for the order of additions in a GEMM with `lanes: k`, `partials`,
//! `fold_tiles`, `slices`, `split_k` or `stream_k`.

use crate::arith::Cores;
use crate::product::Size;
use gemm_dsl::plan::{self, KernelKind, SgemmPlan};
use gemm_dsl::spec::{GemmLayout, Lanes, SgemmSpec, SplitK};

/// Number of SMs of the simulated device.
pub const SIMULATED: usize = 132;

/// Specs with every way to share sums between blocks, each with its name in tests. They include
/// kernels with and without tiles in shared memory, sums in shared memory and in registers,
/// epilogue operands, in-place results, and batches.
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
        "tile: 32x32x16, thread: 4x4, slices: 2, epilogue: |acc, bias[n], c[m, n]| acc + bias - \
         0.5 * c, stream_k",
    ),
    ("direct", "block: 4x16, thread: 2x4, float4, slices: 2, split_k: 3"),
    ("direct_of_lanes", "block: 4x4, lanes: k, thread: 8x8, scaled, split_k: auto"),
    ("direct_without_slices", "block: 16x16, thread: 2x2, unroll: 4, split_k: auto"),
];

/// Partition of the sums of a launch over its blocks.
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    /// Rows, columns and K extent of a tile, tile rows of a raster group, and GEMMs per block.
    tile: Size,
    raster: usize,
    products: usize,
    /// Number of tiles along each axis; at least one along K.
    tiles: Size,
    terms: usize,
    way: Way,
    /// Number of thread groups, lanes per group, and consecutive K elements per lane.
    slices: usize,
    lanes: usize,
    step: usize,
    /// Number of partial sums of each lane.
    partials: usize,
    /// True if the partial sums are added after every K tile.
    folds_tiles: bool,
    ragged: Ragged,
    /// Summation on tensor cores, if they are used.
    cores: Option<Cores>,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    /// Split-K with this many K tiles per partition.
    Ranges(usize),
    /// Stream-K, with the number of blocks and the number of all tiles.
    Stream { blocks: usize, all: usize },
}

impl Sharing {
    /// Partition for `count` GEMMs of a size, on a device with `sms` SMs.
    pub fn new(spec: &SgemmSpec, Size { m, n, k }: Size, count: usize, sms: usize) -> Self {
        let plan = spec.plan().unwrap_or_else(|faults| panic!("`{spec}`: {faults}"));
        let (rows, cols) = plan.block_tile();
        let is_staged = spec.tile.is_some();
        let partials = spec.partials as usize;
        // A thread without a tile takes K one element at a time, for each partial sum in turn.
        let bk = plan.k_step() as usize * if is_staged { 1 } else { partials };
        let tile = Size { m: rows as usize, n: cols as usize, k: bk };
        let products = spec.products as usize;
        let tiles = Size { m: m.div_ceil(tile.m), n: n.div_ceil(tile.n), k: k.div_ceil(bk).max(1) };
        let all = tiles.m * tiles.n * count.div_ceil(products);
        let resident = sms * spec.resident_blocks() as usize;
        // Square root of K / 8, rounded down to a power of two.
        let root = (0..14).map(|log| 1 << log).rfind(|root| 8 * root * root <= k).unwrap_or(1);
        let most = match spec.split_k {
            SplitK::Partitions(most) => most as usize,
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
        let lanes = if !is_staged && spec.lanes == Lanes::K { 32 } else { 1 };
        // If a K-major matrix is read in vectors of four, lanes and slices process four consecutive
        // K elements.
        let step = if spec.float4 && spec.layout != GemmLayout::Tn && !is_staged { 4 } else { 1 };
        let (slices, ragged) = (spec.slices as usize, Ragged::of(&plan));
        Self {
            tile,
            raster,
            products,
            tiles,
            terms: k,
            way,
            slices,
            lanes,
            step,
            partials,
            folds_tiles: spec.fold_tiles,
            ragged,
            cores: Cores::of(spec),
        }
    }

    /// Replaces the number of blocks of `stream_k`.
    #[must_use]
    pub fn by_blocks(self, blocks: usize) -> Self {
        let way = match self.way {
            Way::Stream { all, .. } => Way::Stream { blocks, all },
            ranges => ranges,
        };
        Self { way, ..self }
    }

    /// Sets the scales for an element of C from the largest magnitudes of its row of A and column
    /// of B.
    #[must_use]
    pub fn of_lines(self, greatest: [f32; 2]) -> Self {
        Self { cores: self.cores.map(|cores| cores.of_lines(greatest)), ..self }
    }

    /// Summation on tensor cores, if they are used.
    #[must_use]
    pub fn cores(&self) -> Option<&Cores> {
        self.cores.as_ref()
    }

    /// Number of partial sums of an element of C, in GEMM `nth`.
    pub fn parts(&self, nth: usize, at: (usize, usize)) -> usize {
        self.ends(nth, at).len()
    }

    /// Tile number of an element of C, in GEMM `nth`.
    fn number(&self, nth: usize, (row, col): (usize, usize)) -> usize {
        let (row, col) = (row / self.tile.m, col / self.tile.n);
        let group = row / self.raster;
        let rows = self.raster.min(self.tiles.m - group * self.raster);
        let of_product = self.tiles.m * self.tiles.n;
        let before = group * self.raster * self.tiles.n;
        nth / self.products * of_product + before + col * rows + row % self.raster
    }

    /// Ends along K of the partial sums of an element of C, in GEMM `nth`.
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

    /// Sum of an element of C in GEMM `nth`. Each partial sum of a part, slice and lane is summed
    /// from +0 in ascending order, with one rounding per multiply-add. Then the partial sums of a
    /// lane are added in order, lanes by a tree, slices of a part in order, and parts in order.
    /// Under `fold_tiles`, the total of the partial sums of each tile is added to the lane's sum.
    pub fn sum(&self, nth: usize, at: (usize, usize), term: impl Fn(usize) -> (f32, f32)) -> f32 {
        let mut from = 0;
        let mut part = |end: usize| {
            if let Some(cores) = &self.cores {
                let terms: Vec<(f32, f32)> = (from..end).map(&term).collect();
                from = end;
                return cores.sum(&terms);
            }
            let shares = self.slices * self.lanes;
            let mut partials = vec![vec![0.0_f32; self.partials]; shares];
            let mut of_tiles = vec![0.0; shares];
            for k in from..end {
                let (a, b) = term(k);
                let place = self.place(k - from, end - from);
                let step = place / self.step;
                let sum = &mut partials[step % shares][step / shares % self.partials];
                *sum = f32::mul_add(a, b, *sum);
                let is_last = k + 1 == end || self.place(k + 1 - from, end - from) <= place;
                if self.folds_tiles && is_last {
                    for (sum, partials) in of_tiles.iter_mut().zip(&mut partials) {
                        *sum += total(partials);
                        partials.fill(0.0);
                    }
                }
            }
            from = end;
            let mut sums = match self.folds_tiles {
                true => of_tiles,
                false => partials.iter().map(|partials| total(partials)).collect(),
            };
            let slices = sums.chunks_mut(self.lanes).map(by_tree);
            slices.reduce(|all, next| all + next).unwrap_or(0.0)
        };
        let parts: Vec<f32> = self.ends(nth, at).into_iter().map(&mut part).collect();
        parts.into_iter().reduce(|all, next| all + next).unwrap_or(0.0)
    }

    /// Position of K element `nth` in its tile. The part has `terms` elements.
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

/// Position of the partial K tile of a part, and of the elements in it.
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

/// Total of partial sums, added in order.
fn total(partials: &[f32]) -> f32 {
    partials.iter().copied().reduce(|all, next| all + next).unwrap_or(0.0)
}

/// Sum of lanes: the upper half is added to the lower half, repeatedly.
fn by_tree(mut lanes: &mut [f32]) -> f32 {
    while let [_, _, ..] = lanes {
        let (below, above) = lanes.split_at_mut(lanes.len() / 2);
        below.iter_mut().zip(above).for_each(|(sum, above)| *sum += *above);
        lanes = below;
    }
    lanes[0]
}
