//! State that the builders of a staged kernel share: constants, the position of a thread, and the
//! locations of both operands' elements.

use super::accumulator_tile::{AccumulatorTile, all_epilogue_threads};
use super::copy::TileCopy;
use super::elements::Elements;
use super::mma_layout::WarpMma;
use super::problem::{GemmProblem, Matrix};
use super::schedule::{BlockProduct, KRange, Origin};
use super::shared_tile::{SharedTile, by_row};
use super::slices::TileSlices;
use super::splits::Splits;
use super::unrepresentable::TileFlags;
use crate::ir::{Access, BufferId, Const, Expr, KernelBuilder, Scalar, Var};
use crate::plan::{OperandPlan, SgemmPlan, TiledPlan};
use crate::spec::Factor;

/// State that the builders of a staged kernel share.
pub(crate) struct Tiled<'p> {
    pub plan: &'p SgemmPlan,
    pub t: &'p TiledPlan,
    pub problem: GemmProblem,
    pub bm: Const,
    pub bn: Const,
    pub bk: Const,
    pub tm: Const,
    pub tn: Const,
    /// Number of threads that compute one GEMM; `tid` is this thread's index among them.
    pub threads: Const,
    pub tid: Var,
    /// Number of threads with final accumulators of a tile; `epilogue_thread` is this thread's
    /// index among them.
    pub epilogue_threads: Const,
    pub epilogue_thread: Var,
    /// Slices, if there are several.
    pub slices: Option<TileSlices>,
    /// Warp tile for tensor cores, if they are used.
    pub mma: Option<WarpMma>,
    /// Flags of values that the splits cannot represent, if an earlier launch computes the splits.
    pub flags: Option<TileFlags>,
    /// Index of the thread's GEMM, if the block computes several.
    pub part: Option<BlockProduct>,
    /// Range of K that the block accumulates; `None` for all of K.
    pub range: Option<KRange>,
    pub origin: Origin,
    /// This thread's elements of the tile along the rows of C; `cols` are those along the columns.
    pub rows: Elements,
    pub cols: Elements,
    pub a: StagedFactor,
    pub b: StagedFactor,
}

/// Part of a tile of B, with one column for each thread along N.
pub(crate) struct PartOfB {
    pub factor: StagedFactor,
    /// Index of the thread's element in the part, along N.
    pub n: Expr,
}

/// Operand A or B: its plan, and the locations of its elements.
#[derive(Clone)]
pub(crate) struct StagedFactor {
    pub plan: OperandPlan,
    /// Matrix in `f32`; `None` if the kernel reads only its splits.
    pub matrix: Option<Matrix>,
    /// Splits that are copied in place of the matrix, and the problem that selects them.
    pub splits: Option<(Splits, GemmProblem)>,
    /// First row of A or column of B of the block; `extent` is the matrix's extent along this axis.
    pub origin: Var,
    pub extent: Scalar,
    pub shared: SharedTile,
    /// Extent of the tile along the axis that the operand shares with C.
    pub tile: Const,
    /// The thread's share of the copies of a tile.
    pub copy: TileCopy,
    /// Elements that the thread multiplies.
    pub own: Elements,
    /// First k that the block accumulates; `None` for 0.
    pub begin: Option<Var>,
}

impl StagedFactor {
    /// Element of the matrix, given its row of A or column of B, and its k relative to the block's
    /// range.
    pub fn at(&self, free: Expr, k: Expr) -> Access {
        let [row, col] = by_row(&self.plan, free, self.term(k));
        self.matrix().at(row, col)
    }

    /// Element that is copied to the tile of a split, at the same position.
    pub fn source(&self, split: &Expr, free: Expr, k: Expr) -> Access {
        match &self.splits {
            None => self.at(free, k),
            Some((splits, problem)) => {
                splits.at(problem, self.factor(), [split.clone(), free, self.term(k)])
            }
        }
    }

    /// Array from which tiles are copied.
    pub fn source_buffer(&self) -> BufferId {
        match &self.splits {
            None => self.matrix().buffer,
            Some((splits, _)) => splits.buffers[self.factor().index()],
        }
    }

    /// Distance between the lines of this array, in elements.
    pub fn source_stride(&self) -> Scalar {
        match &self.splits {
            None => self.matrix().stride,
            Some((splits, _)) => splits.pitch(),
        }
    }

    /// Distance between the splits of the matrix, in elements; `None` if there is one split.
    pub fn apart(&self) -> Option<Expr> {
        let (splits, _) = self.splits.as_ref().filter(|(splits, _)| splits.count.is_some())?;
        let lines = Expr::from(self.extent).div_ceil(self.tile) * self.tile;
        Some(lines.wide() * Expr::from(splits.pitch()).wide())
    }

    /// Constant for the number of splits of a value, if there are several.
    pub fn split_count(&self) -> Option<Const> {
        self.splits.as_ref().and_then(|(splits, _)| splits.count)
    }

    /// Emits `body` for each split, or once if the matrix itself is copied.
    pub fn each_split(&self, b: &mut KernelBuilder, body: impl FnOnce(&mut KernelBuilder, Expr)) {
        match &self.splits {
            None => body(b, 0.into()),
            Some((splits, _)) => splits.each(b, body),
        }
    }

    fn factor(&self) -> Factor {
        self.plan.free().factor()
    }

    fn matrix(&self) -> Matrix {
        self.matrix
            .unwrap_or_else(|| unreachable!("body: a kernel takes the matrices that it reads"))
    }

    /// Position in K of a term of the block's range.
    fn term(&self, k: Expr) -> Expr {
        match self.begin {
            None => k,
            Some(begin) => begin + k,
        }
    }
}

impl<'p> Tiled<'p> {
    /// Block tile of the accumulators. The threads of the first slice have the final ones.
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

    /// Emits the first column of part `n` of the tile of B, and returns the part.
    pub fn part_of_b(&self, b: &mut KernelBuilder, n: Var) -> PartOfB {
        let origin = b.let_("part_col", self.origin.col + n * self.cols.threads);
        PartOfB { factor: StagedFactor { origin, ..self.b.clone() }, n: n.into() }
    }

    /// Number of steps of a tile that each thread multiplies.
    pub fn steps(&self) -> Const {
        let of_tile = self.mma.map_or(self.bk, |mma| mma.counts.steps);
        self.slices.map_or(of_tile, |slices| slices.steps)
    }

    /// First k of the thread's i-th step, relative to the tile.
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

    /// Extent of the part of K that the block accumulates.
    pub fn depth(&self) -> Expr {
        match self.range {
            None => self.problem.k.into(),
            Some(range) => range.depth.into(),
        }
    }
}
