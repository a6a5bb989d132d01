//! What all builders of a kernel that stages block tiles of A and B in shared memory know: its
//! constants, the position of a thread, and of both operands all places where their elements lie.

use super::accumulator_tile::{AccumulatorTile, all_epilogue_threads};
use super::copy::TileCopy;
use super::elements::Elements;
use super::mma_layout::WarpMma;
use super::problem::{GemmProblem, Matrix};
use super::schedule::{BlockProduct, KRange, Origin};
use super::shared_tile::{SharedTile, by_row};
use super::slices::TileSlices;
use crate::ir::{Access, Const, Expr, Scalar, Var};
use crate::plan::{OperandPlan, SgemmPlan, TiledPlan};

/// What every builder of a tiled kernel knows.
pub(crate) struct Tiled<'p> {
    pub plan: &'p SgemmPlan,
    pub t: &'p TiledPlan,
    pub problem: GemmProblem,
    pub bm: Const,
    pub bn: Const,
    pub bk: Const,
    pub tm: Const,
    pub tn: Const,
    /// The threads of a product, and this thread's number among them.
    pub threads: Const,
    pub tid: Var,
    /// Those that hold the sums of a tile in the end, and this thread's number among them.
    pub epilogue_threads: Const,
    pub epilogue_thread: Var,
    /// The slices, where several take turns along K.
    pub slices: Option<TileSlices>,
    /// What tensor cores multiply, if they do.
    pub mma: Option<WarpMma>,
    /// The thread's own product, where the block computes several.
    pub part: Option<BlockProduct>,
    /// The terms that the block sums, where that is not all of K.
    pub range: Option<KRange>,
    pub origin: Origin,
    /// This thread's elements of the tile, along the rows and along the columns of C.
    pub rows: Elements,
    pub cols: Elements,
    pub a: StagedFactor,
    pub b: StagedFactor,
}

/// One of the two factors of the product: its plan, and where its elements lie.
pub(crate) struct StagedFactor {
    pub plan: OperandPlan,
    /// In global memory.
    pub matrix: Matrix,
    /// The block's first row of A or column of B, and how many there are in all.
    pub origin: Var,
    pub extent: Scalar,
    pub shared: SharedTile,
    /// What a thread copies.
    pub copy: TileCopy,
    /// What a thread multiplies.
    pub own: Elements,
    /// The first of the terms that the block sums, where that is not the first of all.
    pub begin: Option<Var>,
}

impl StagedFactor {
    /// An element in global memory, by its row of A or column of B, and k among the terms of the block.
    pub fn at(&self, free: Expr, k: Expr) -> Access {
        let k = match self.begin {
            None => k,
            Some(begin) => begin + k,
        };
        let [row, col] = by_row(&self.plan, free, k);
        self.matrix.at(row, col)
    }
}

impl<'p> Tiled<'p> {
    /// The accumulators of the block: each thread of the first slice holds a part.
    pub fn accumulator_tile(&self) -> AccumulatorTile<'p> {
        let is_zero = |var: Var| Expr::from(var).equals(0);
        let first_slice = self.slices.map(|slices| is_zero(slices.of_block.slice));
        let product = self.part.map(|part| is_zero(part.product));
        let first = first_slice.iter().cloned().chain(product);
        AccumulatorTile {
            plan: self.plan,
            epilogue: self.t.epilogue(),
            problem: self.problem,
            origin: self.origin,
            bm: self.bm.into(),
            bn: self.bn.into(),
            rows: self.rows,
            cols: self.cols,
            epilogue_thread: match self.part {
                None => self.epilogue_thread.into(),
                Some(part) => part.product * self.epilogue_threads + self.epilogue_thread,
            },
            epilogue_threads: all_epilogue_threads(self.epilogue_threads, self.part),
            thread: match self.part {
                None => (self.tid.into(), self.threads.into()),
                Some(part) => {
                    (part.product * self.threads + self.tid, part.products * self.threads)
                }
            },
            first_thread: first.fold(is_zero(self.epilogue_thread), Expr::and),
            in_epilogue: first_slice,
            meet: None,
        }
    }

    /// The steps of a tile that a thread multiplies.
    pub fn steps(&self) -> Const {
        let of_tile = self.mma.map_or(self.bk, |mma| mma.counts.steps);
        self.slices.map_or(of_tile, |slices| slices.steps)
    }

    /// The first term of the i-th of them among those of the tile.
    pub fn step(&self, i: Expr) -> Expr {
        let step = match self.slices {
            None => i,
            Some(slices) => slices.step(i),
        };
        match self.mma {
            None => step,
            Some(mma) => step * mma.counts.terms,
        }
    }

    /// How many terms the block sums.
    pub fn depth(&self) -> Expr {
        match self.range {
            None => self.problem.k.into(),
            Some(range) => range.depth.into(),
        }
    }
}
