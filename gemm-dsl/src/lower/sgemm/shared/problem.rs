//! The operands and extents of a product, as a kernel takes them, and what a launch must satisfy for them.

use super::sharing::{MOST_RANGES, SharedTiles, TileSharers, most_columns};
use crate::ir::{
    Access, BufferId, Expr, Extent, KernelBuilder, Operand, Requirement, Scalar, Source, Ty, Var,
    Variant,
};
use crate::plan::{KernelKind, Pipeline, SgemmPlan};
use crate::spec::{Batch, Factor, Sharing};

/// A matrix in global memory: element (row, column) lies at `row * stride + column`, or, column by
/// column, at `row + column * stride`; of a batch behind the first of the product's matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix {
    pub buffer: BufferId,
    /// Elements from one row, or column, to the next.
    pub stride: Scalar,
    /// Which matrix of a batch it is, once the schedule has said so.
    pub batch: Option<Var>,
}

impl Matrix {
    pub(crate) fn at(&self, row: impl Into<Expr>, col: impl Into<Expr>) -> Access {
        let batch = self.batch.map(Expr::from);
        Access::new(self.buffer, batch.into_iter().chain([row.into(), col.into()]))
    }
}

/// Which of A, B and C a kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakenMatrices {
    All,
    /// A and B, of which it makes planes.
    Factors,
    /// C, beside planes.
    Result,
}

impl TakenMatrices {
    fn has(self, nth: usize) -> bool {
        match self {
            Self::All => true,
            Self::Factors => nth < 2,
            Self::Result => nth == 2,
        }
    }
}

/// The operands and extents of a product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GemmProblem {
    /// A, B and C, those that the kernel takes.
    matrices: [Option<Matrix>; 3],
    pub m: Scalar,
    pub n: Scalar,
    pub k: Scalar,
    /// The number of products, of a batch.
    pub batch: Option<Scalar>,
    /// The most ranges of K, where the launch says how many.
    ranges: Option<Scalar>,
    /// How blocks share all tiles, where they do.
    pub shared: Option<SharedTiles>,
    /// Whether A, B and C are lists of matrices.
    pub listed: bool,
    /// Which product of a batch it is, once that is known.
    pub product: Option<Var>,
    /// How many matrices are the A, and the B, of products of a batch, in kernels that know of planes.
    pub distinct: Option<[Scalar; 2]>,
}

/// What A, B and C are called and bound to.
const MATRICES: [(&str, Operand); 3] =
    [("A", Operand::Input(0)), ("B", Operand::Input(1)), ("C", Operand::Output(0))];

impl GemmProblem {
    pub fn a(&self) -> Matrix {
        self.matrix(0)
    }

    pub fn b(&self) -> Matrix {
        self.matrix(1)
    }

    pub fn c(&self) -> Matrix {
        self.matrix(2)
    }

    fn matrix(&self, nth: usize) -> Matrix {
        self.matrices[nth]
            .unwrap_or_else(|| unreachable!("a builder asks for what its kernel takes"))
    }

    /// The most ranges of K under `split_k: auto`.
    pub fn auto_ranges(&self) -> Scalar {
        self.ranges.unwrap_or_else(|| unreachable!("declare: the launch says how many"))
    }

    /// The problem of one product of a batch.
    pub fn for_product(self, b: &mut KernelBuilder, product: Option<Var>) -> Self {
        if self.listed && product.is_some() {
            b.comment("The matrices of this product.");
        }
        let own = |nth: usize| self.matrices[nth].map(|_| self.matrix_for(b, nth, product));
        Self { matrices: [0, 1, 2].map(own), product, ..self }
    }

    /// The same that knows which matrices are shared, of a batch: two more parameters.
    pub fn with_distinct(self, b: &mut KernelBuilder) -> Self {
        let of = [("BATCH_A", Extent::BATCH_A), ("BATCH_B", Extent::BATCH_B)];
        let distinct = self.batch.map(|_| of.map(|(name, of)| b.extent(name, Ty::I32, of)));
        Self { distinct, ..self }
    }

    /// How many lines A or B has: its rows, or its columns.
    pub fn lines_of(&self, factor: Factor) -> Scalar {
        match factor {
            Factor::A => self.m,
            Factor::B => self.n,
        }
    }

    /// How many matrices A or B is.
    pub fn count_of(&self, factor: Factor) -> Option<Scalar> {
        self.distinct.map(|of| of[factor.index()])
    }

    /// Which of these is that of a product.
    pub fn matrix_of(&self, factor: Factor, product: Option<Var>) -> Option<Expr> {
        let found = product.zip(self.count_of(factor));
        found.map(|(product, count)| Expr::from(product).min(count - 1))
    }

    /// A or B of a product.
    pub fn factor_for(
        &self,
        b: &mut KernelBuilder,
        factor: Factor,
        product: Option<Var>,
    ) -> Matrix {
        self.matrix_for(b, factor.index(), product)
    }

    /// A, 0, B, 1, or C, 2, of a product.
    fn matrix_for(&self, b: &mut KernelBuilder, nth: usize, product: Option<Var>) -> Matrix {
        let mut matrix = self.matrix(nth);
        match product.filter(|_| self.listed) {
            Some(product) => {
                let name = MATRICES[nth].0.to_lowercase();
                matrix.buffer = b.choose(&name, matrix.buffer, product);
            }
            None => matrix.batch = product,
        }
        matrix
    }

    /// Declares the parameters in the order `A, B, C, M, N, K[, lda, ldb, ldc][, BATCH[, stride_a,
    /// stride_b, stride_c]][, RANGES][, TILES, BLOCKS | CLUSTERS]`, of the matrices that the kernel takes.
    pub fn declare(b: &mut KernelBuilder, plan: &SgemmPlan, takes: TakenMatrices) -> Self {
        let taken = |nth: usize| takes.has(nth).then(|| MATRICES[nth]);
        let elems = plan.types().matrices();
        let buffers = [0, 1, 2]
            .map(|nth| taken(nth).map(|(name, operand)| b.global(name, elems[nth], operand)));
        let m = b.extent("M", Ty::I32, Extent::M);
        let n = b.extent("N", Ty::I32, Extent::N);
        let depth = b.extent("K", Ty::I32, Extent::K);
        let by_col = [plan.layout().transposes_a(), plan.layout().transposes_b(), false];
        let dims = [[m, depth], [depth, n], [m, n]];
        let outer = usize::from(plan.batch() == Some(Batch::Strided));
        let strides = [0, 1, 2].map(|nth| {
            let packed = dims[nth][usize::from(!by_col[nth])];
            match taken(nth).filter(|_| plan.pitched()) {
                None => packed,
                Some((name, operand)) => {
                    let dim = outer + usize::from(by_col[nth]);
                    let name = format!("ld{}", name.to_lowercase());
                    b.scalar(&name, Ty::I32, Source::Stride { operand, dim })
                }
            }
        });
        // The last vector of a pitched line may read past the line's end, into its padding. That much
        // of the padding must exist, behind the last line too; C's is never written.
        let readable = |nth: usize, extent: Scalar, vector: bool| {
            let lanes = i32::from(elems[nth].vector_lanes());
            match vector && plan.pitched() {
                true => (extent + (lanes - 1)) / lanes * lanes,
                false => extent.into(),
            }
        };
        let overhangs = match plan.kind() {
            KernelKind::Naive(_) | KernelKind::Wgmma(_) => [false; 3],
            KernelKind::Direct(d) => [d.a().overhangs(), d.b().overhangs(), false],
            KernelKind::Tiled(t) => [t.a().overhangs(), t.b().overhangs(), false],
        };
        let batch = plan.batch().map(|_| b.extent("BATCH", Ty::I32, Extent::BATCH));
        let strided = batch.filter(|_| plan.batch() == Some(Batch::Strided));
        let apart = [0, 1, 2].map(|nth| {
            let (name, operand) = taken(nth).filter(|_| strided.is_some())?;
            let name = format!("stride_{}", name.to_lowercase());
            Some(b.scalar(&name, Ty::U64, Source::Stride { operand, dim: 0 }))
        });
        let listed = batch.filter(|_| plan.batch() == Some(Batch::Pointers));
        for (nth, buffer) in buffers.iter().enumerate() {
            let Some(buffer) = *buffer else { continue };
            let ([rows, cols], stride, vector) = (dims[nth], strides[nth], overhangs[nth]);
            let (dims, strides): ([Expr; 2], [Expr; 2]) = match by_col[nth] {
                false => ([rows.into(), readable(nth, cols, vector)], [stride.into(), 1.into()]),
                true => ([readable(nth, rows, vector), cols.into()], [1.into(), stride.into()]),
            };
            match listed {
                Some(count) => b.list(buffer, count.into(), dims, strides),
                None => batched(b, buffer, batch.zip(apart[nth]), dims, strides),
            }
        }
        let matrix = |nth: usize| {
            buffers[nth].map(|buffer| Matrix { buffer, stride: strides[nth], batch: None })
        };
        let matrices = [matrix(0), matrix(1), matrix(2)];
        let (listed, product) = (listed.is_some(), None);
        let (ranges, shared) = match takes {
            TakenMatrices::Factors => (None, None),
            TakenMatrices::All | TakenMatrices::Result => {
                let is_auto = plan.sharing() == Sharing::AutoRanges;
                let ranges = is_auto.then(|| b.extent("RANGES", Ty::I32, Extent::RANGES));
                (ranges, SharedTiles::declare(b, plan))
            }
        };
        let problem = Self {
            matrices,
            m,
            n,
            k: depth,
            batch,
            ranges,
            shared,
            listed,
            product,
            distinct: None,
        };
        problem.requirements(b, plan, apart);
        problem
    }

    /// What a launch must satisfy: alignment of 16-byte accesses, divisibility of an aligned
    /// kernel, and extents that keep the kernel's index arithmetic inside an `int`.
    fn requirements(&self, b: &mut KernelBuilder, plan: &SgemmPlan, apart: [Option<Scalar>; 3]) {
        let (bm, bn) = plan.cluster_tile();
        // What K must be a multiple of without guards, and how far the loop over it gets.
        let bk = plan.depth();
        let reach = match plan.kind() {
            // It ends at K, however it is unrolled.
            KernelKind::Naive(_) => plan.unroll().unwrap_or(1).max(plan.partials()),
            KernelKind::Direct(_) => bk,
            KernelKind::Tiled(t) => match t.pipeline() {
                Pipeline::Async { stages, .. } => bk * (stages + 1),
                _ => bk * 2,
            },
            KernelKind::Wgmma(t) => bk * (t.stages() + 1),
        };
        // Tiles and rounds are counted in ranges.
        let reach = match plan.sharing() {
            Sharing::Whole | Sharing::Stream => reach,
            Sharing::Ranges(_) | Sharing::AutoRanges => reach + MOST_RANGES,
        };
        let passed = |step: u32| u64::from(i32::MAX as u32 - step);
        let columns = passed(bn).min(most_columns(plan));
        for (scalar, max) in [(self.m, passed(bm)), (self.n, columns), (self.k, passed(reach))] {
            b.require(Requirement::Range { scalar, min: 0, max });
        }
        if let Some(scalar) = self.ranges {
            let max = u64::from(MOST_RANGES);
            b.require(Requirement::Range { scalar, min: 1, max });
        }
        let shared = self.shared.map(SharedTiles::sharers);
        let shared = shared.map(|TileSharers { tiles, sharers }| [tiles, sharers]);
        for scalar in shared.into_iter().flatten() {
            // The number of a round's last tile, and of the next round, are those of an int.
            let max = u64::from(i32::MAX as u32 / 2);
            b.require(Requirement::Range { scalar, min: 0, max });
        }
        if let Some(scalar) = self.batch.filter(|_| plan.products() > 1) {
            // The last block counts to the end of its products.
            b.require(Requirement::Range { scalar, min: 0, max: passed(plan.products()) });
        }
        // Whether M and N are accepted does not depend on which variant the number of terms asks for. K
        // itself may be any where none counts: the one with guards is then given 0.
        if !plan.guarded() || plan.variant() == Variant::Guarded {
            let products = self.batch.map(|batch| (batch, plan.products()));
            for (scalar, of) in
                [(self.m, bm), (self.n, bn), (self.k, bk)].into_iter().chain(products)
            {
                if of > 1 {
                    b.require(Requirement::Multiple { scalar, of: of.into() });
                }
            }
        }
        let [a_width, b_width, c] = match plan.kind() {
            KernelKind::Naive(_) => return,
            KernelKind::Wgmma(t) => [1, 1, t.epilogue().width()],
            KernelKind::Direct(d) => [d.a().width(), d.b().width(), d.epilogue().width()],
            KernelKind::Tiled(t) => [t.a().width(), t.b().width(), t.epilogue().width()],
        };
        for (nth, width) in [a_width, b_width, c].into_iter().enumerate() {
            let Some(matrix) = self.matrices[nth].filter(|_| width > 1) else { continue };
            b.require(Requirement::Aligned { operand: MATRICES[nth].1, bytes: 16 });
            for scalar in [Some(matrix.stride), apart[nth]].into_iter().flatten() {
                b.require(Requirement::Multiple { scalar, of: width.into() });
            }
        }
    }
}

/// Sets the shape of an array, behind the products of a batch: how many, and how far its parts lie apart.
pub(crate) fn batched<const N: usize>(
    b: &mut KernelBuilder,
    buffer: BufferId,
    batch: Option<(Scalar, Scalar)>,
    dims: [Expr; N],
    strides: [Expr; N],
) {
    let (count, apart) = (batch.map(|(n, _)| n.into()), batch.map(|(_, apart)| apart.into()));
    b.shape(buffer, count.into_iter().chain(dims), apart.into_iter().chain(strides));
}
