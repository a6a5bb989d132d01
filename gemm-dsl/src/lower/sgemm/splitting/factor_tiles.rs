//! Tiling of kernels that read all of A and then all of B: the kernel that splits them and the
//! kernel that computes row maxima. A line is a row of A or a column of B. A block processes a tile
//! of lines by K, for every layout of the matrix.

use crate::ir::{Access, Const, Expr, Geometry, KernelBuilder, Requirement, Scalar, Special, Var};
use crate::lower::sgemm::common::problem::{GemmProblem, Matrix};
use crate::lower::sgemm::common::splits::{FactorExtents, LINES};
use crate::plan::SgemmPlan;
use crate::spec::Factor;

const THREADS: i32 = 256;

/// Tile extents and threads of such a kernel.
#[derive(Clone, Copy)]
pub(crate) struct FactorTiles {
    pub lines: Const,
    pub terms: Const,
    pub threads: Const,
}

impl FactorTiles {
    /// Declares tiles with `terms_of_tile` elements of K, and the grid of the launch.
    pub fn declare(
        b: &mut KernelBuilder,
        problem: &GemmProblem,
        extents: &FactorExtents,
        terms_of_tile: i32,
        blocks_per_sm: Option<u32>,
    ) -> Self {
        // The end of the last tile must fit in an `int`.
        let tiles = [(problem.m, LINES), (problem.n, LINES), (problem.k, terms_of_tile)];
        for ((scalar, of), unit) in tiles.into_iter().zip(extents.units) {
            let max = (i32::MAX - of) as u64 - u64::from(unit - 1);
            b.require(Requirement::Range { scalar, min: 0, max });
        }
        let lines = b.constant("LINES", LINES, "rows of A, or columns of B, per block");
        let terms = b.constant("BK", terms_of_tile, "extent of a tile along K");
        let threads = b.constant("THREADS", THREADS, "threads per block");
        b.launch_bounds(threads);
        let tiles = |extent: &Expr, of: i32| extent.clone().wide().div_ceil(Expr::U64(of as u64));
        let terms_tiles = || tiles(&extents.terms, terms_of_tile);
        let of = |factor: Factor| {
            let tiles = tiles(&extents.lines[factor.index()], LINES) * terms_tiles();
            match problem.count_of(factor) {
                None => tiles,
                Some(count) => tiles * Expr::from(count).wide(),
            }
        };
        let blocks = of(Factor::A) + of(Factor::B);
        let grid = [blocks, 1u64.into(), 1u64.into()];
        b.geometry(Geometry { block: (THREADS as u32, 1), grid, blocks_per_sm });
        Self { lines, terms, threads }
    }

    /// Computes this block's position among the tiles of A and B.
    pub fn of_block(
        self,
        b: &mut KernelBuilder,
        plan: &SgemmPlan,
        problem: GemmProblem,
        extents: FactorExtents,
    ) -> BlockFactorTile {
        let Self { lines, terms, .. } = self;
        b.comment("Block indices cover the tiles of A, then the tiles of B. K varies fastest.");
        let tiles_k = b.let_("tiles_k", (extents.terms.clone() - 1) / terms + 1);
        // If the splits of an operand already exist, an empty matrix is passed for it.
        let [rows, _] = &extents.lines;
        let tiles_a = b.let_("tiles_a", rows.clone().div_ceil(lines) * tiles_k);
        let block = b.let_("block", Special::BlockX);
        let layout = plan.layout();
        let along_k = [!layout.transposes_a(), layout.transposes_b()];
        BlockFactorTile { sides: self, problem, along_k, tiles_k, tiles_a, extents, block }
    }
}

/// Position of this block among the tiles of A and B.
pub(crate) struct BlockFactorTile {
    sides: FactorTiles,
    problem: GemmProblem,
    along_k: [bool; 2],
    tiles_k: Var,
    /// Number of tiles of one matrix A.
    tiles_a: Var,
    extents: FactorExtents,
    block: Var,
}

impl BlockFactorTile {
    /// Emits `body` twice: for a block with a tile of A, and for a block with a tile of B.
    pub fn each(&self, b: &mut KernelBuilder, body: impl Fn(&mut KernelBuilder, &FactorTile)) {
        let of = |b: &mut KernelBuilder, factor: Factor, tile: Expr| {
            let side = self.side(b, factor, tile);
            body(b, &side);
        };
        let of_a = match self.problem.count_of(Factor::A) {
            None => self.tiles_a.into(),
            Some(count) => count * self.tiles_a,
        };
        b.if_else(
            Expr::from(self.block).lt(of_a.clone()),
            |b| of(b, Factor::A, self.block.into()),
            |b| of(b, Factor::B, self.block - of_a),
        );
    }

    fn side(&self, b: &mut KernelBuilder, factor: Factor, tile: Expr) -> FactorTile {
        let (FactorTiles { lines, terms, .. }, problem) = (self.sides, &self.problem);
        let extent = problem.lines_of(factor);
        let padded = &self.extents.lines[factor.index()];
        let (tile, number) = match problem.count_of(factor) {
            None => (b.let_("tile_index", tile), None),
            Some(_) => {
                let tiles = match factor {
                    Factor::A => self.tiles_a,
                    Factor::B => {
                        let tiles = padded.clone().div_ceil(lines) * self.tiles_k;
                        b.let_("tiles_b", tiles)
                    }
                };
                let number = b.let_("batch", tile.clone() / tiles);
                (b.let_("tile_index", tile % tiles), Some(number))
            }
        };
        let first_line = b.let_("first_line", tile / self.tiles_k * lines);
        let first_term = b.let_("k0", tile % self.tiles_k * terms);
        let matrix = problem.factor_for(b, factor, number);
        let along_k = self.along_k[factor.index()];
        let lines = padded.clone();
        FactorTile { factor, matrix, number, extent, lines, along_k, first_line, first_term }
    }
}

/// Tile of A or of B.
pub(crate) struct FactorTile {
    pub factor: Factor,
    matrix: Matrix,
    /// Index of the matrix, if a batch has several.
    number: Option<Var>,
    /// Number of lines (rows of A or columns of B) of the matrix.
    pub extent: Scalar,
    /// This number, including the padding of the splits.
    pub lines: Expr,
    /// True if the matrix is K-major.
    pub along_k: bool,
    pub first_line: Var,
    pub first_term: Var,
}

impl FactorTile {
    /// Index of the matrix, if a batch has several.
    pub fn number(&self) -> Option<Expr> {
        self.number.map(Expr::from)
    }

    pub fn at(&self, line: impl Into<Expr>, term: impl Into<Expr>) -> Access {
        match self.factor {
            Factor::A => self.matrix.at(line, term),
            Factor::B => self.matrix.at(term, line),
        }
    }
}
