//! State that the builders of a staged kernel share: the block's tile, the position of a thread in
//! it, and the locations of both operands' elements.

use super::accumulator_tile::{AccumulatorTile, TileParts, all_epilogue_threads};
use super::copy::TileCopy;
use super::elements::Elements;
use super::frame::{Frame, ThreadSlice};
use super::mma_layout::WarpMma;
use super::problem::{GemmProblem, Matrix};
use super::schedule::{self, KRange, Origin, SplitKPartitions, TileCounts};
use super::shared_tile::{SharedTile, by_row};
use super::splits::Splits;
use crate::ir::{Access, BufferId, Const, Expr, KernelBuilder, Scalar, Var};
use crate::plan::OperandPlan;
use crate::spec::Factor;

/// Tile of a staged kernel: the declarations of its block, the position of this thread, and the
/// locations of both operands' elements.
pub(crate) struct Tiled<'p> {
    pub frame: Frame<'p>,
    /// Problem of the tile's GEMM.
    pub problem: GemmProblem,
    /// Warp tile for tensor cores, if they are used.
    pub mma: Option<WarpMma>,
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
    pub extent: Expr,
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
        let lines = self.extent.clone().div_ceil(self.tile) * self.tile;
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
        let first_slice = self.frame.slices.map(|slices| is_zero(slices.of_block.slice));
        let product = self.frame.part.map(|part| is_zero(part.product));
        let first = first_slice.iter().cloned().chain(product);
        AccumulatorTile {
            plan: self.frame.plan,
            epilogue: self.frame.t.epilogue(),
            problem: self.problem,
            origin: self.origin,
            bm: self.frame.bm.into(),
            bn: self.frame.bn.into(),
            rows: self.rows,
            cols: self.cols,
            epilogue_thread: match self.frame.part {
                None => self.frame.epilogue_thread.into(),
                Some(part) => {
                    part.product * self.frame.epilogue_threads + self.frame.epilogue_thread
                }
            },
            epilogue_threads: all_epilogue_threads(self.frame.epilogue_threads, self.frame.part),
            thread: match self.frame.part {
                None => (self.frame.tid.into(), self.frame.threads.into()),
                Some(part) => (
                    part.product * self.frame.threads + self.frame.tid,
                    part.products * self.frame.threads,
                ),
            },
            first_thread: first.fold(is_zero(self.frame.epilogue_thread), Expr::and),
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
        let of_tile = self.mma.map_or(self.frame.bk, |mma| mma.counts.steps);
        self.frame.slices.map_or(of_tile, |slices| slices.steps)
    }

    /// First k of the thread's i-th step, relative to the tile.
    pub fn step(&self, i: Expr) -> Expr {
        let step = match self.frame.slices {
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

impl<'p> Frame<'p> {
    /// Computes this thread's position in the block's tile.
    pub fn own_tile(&self, b: &mut KernelBuilder) -> (Tiled<'p>, Option<TileParts>) {
        let origin = self.own_origin(b);
        self.tile_at(b, origin)
    }

    /// Computes this thread's position in the tile at `origin`.
    pub fn tile_at(&self, b: &mut KernelBuilder, origin: Origin) -> (Tiled<'p>, Option<TileParts>) {
        let problem = self.problem.for_product(b, origin.batch);
        let problem = problem.in_group(origin.end_of_group);
        let partitions = SplitKPartitions::of_block(b, self.plan, &problem, self.bk);
        let (parts, range) = partitions.map(|(all, own)| (TileParts::Partitions(all), own)).unzip();
        let own = self.own(b);
        (self.at(problem, origin, range, own), parts)
    }

    /// Computes the position in the tile with the given number, for which the block accumulates a
    /// range of K.
    pub fn numbered_tile(
        &self,
        b: &mut KernelBuilder,
        own: ThreadSlice,
        counts: TileCounts,
        number: Var,
        range: KRange,
    ) -> Tiled<'p> {
        let number = Some((number, counts));
        let origin =
            schedule::origin(b, self.plan, &self.problem, self.extents(), self.part, number);
        let problem = self.problem.for_product(b, origin.batch);
        self.at(problem, origin, Some(range), own)
    }

    fn at(
        &self,
        problem: GemmProblem,
        origin: Origin,
        range: Option<KRange>,
        ThreadSlice { rows, cols, mma, copies: [a_copy, b_copy] }: ThreadSlice,
    ) -> Tiled<'p> {
        let Self { t, bm, bn, .. } = *self;
        let begin = range.map(|range| range.begin);
        let splits = self.splits.map(|splits| (splits, problem));
        let a = StagedFactor {
            plan: t.a(),
            matrix: problem.factor(Factor::A),
            splits,
            origin: origin.row,
            extent: problem.end_of_rows(),
            shared: self.shared.0,
            tile: bm,
            copy: a_copy,
            own: rows,
            begin,
        };
        let b = StagedFactor {
            plan: t.b(),
            matrix: problem.factor(Factor::B),
            splits,
            origin: origin.col,
            extent: problem.n.into(),
            shared: self.shared.1,
            tile: bn,
            copy: b_copy,
            own: cols,
            begin,
        };
        Tiled { frame: *self, problem, mma, range, origin, rows, cols, a, b }
    }
}
