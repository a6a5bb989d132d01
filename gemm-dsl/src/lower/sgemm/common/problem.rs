//! Operands and extents of a GEMM as kernel parameters, and the launch requirements for them.

mod requirements;

use super::batch_axes::{BatchAxes, BatchIndex, axes_of, batched, declare_axes, distance_name};
use super::fold_parts::FoldParts;
use super::groups::Groups;
use super::sharing::TileDistribution;
use crate::ir::{Access, BufferId, Expr, Extent, KernelBuilder, Operand, Scalar, Source, Ty, Var};
use crate::plan::{KernelKind, SgemmPlan};
use crate::spec::{Batch, Factor, Pairs, Sharing};

/// Matrix in global memory. Element (row, column) has the offset `row * stride + column`, or
/// `row + column * stride` if the matrix is column-major. In a batch, the offset is relative to the
/// start of the GEMM's matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix {
    pub buffer: BufferId,
    /// Leading dimension of the matrix, in elements.
    pub stride: Scalar,
    /// Index of the matrix in a batch; empty until the schedule sets it.
    pub batch: BatchIndex,
}

impl Matrix {
    pub(crate) fn at(&self, row: impl Into<Expr>, col: impl Into<Expr>) -> Access {
        Access::new(self.buffer, self.batch.axes().chain([row.into(), col.into()]))
    }
}

/// Extents and strides of a row-major matrix with one column for each pair of the columns in
/// `dims`. `stride` is the leading dimension of a pitched matrix, and otherwise the number of
/// columns.
pub(super) fn halved([rows, cols]: [Scalar; 2], stride: Scalar) -> ([Expr; 2], [Expr; 2]) {
    let half = Expr::from(cols) / 2;
    let stride = if stride == cols { half.clone() } else { stride.into() };
    ([rows.into(), half], [stride, 1.into()])
}

/// Selection of the matrices A, B and C that a kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakenMatrices {
    All,
    /// A and B, for a kernel that splits them.
    Factors,
    /// C, for a kernel that also takes the splits of A and B.
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

/// Operands and extents of a GEMM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GemmProblem {
    /// A, B and C; `None` for a matrix that the kernel does not take.
    matrices: [Option<Matrix>; 3],
    pub m: Scalar,
    pub n: Scalar,
    pub k: Scalar,
    /// Axes of a batch.
    pub batch: Option<BatchAxes>,
    /// Maximum number of split-K partitions, if it is a launch parameter.
    partitions: Option<Scalar>,
    /// Distribution of the tiles among blocks, under `stream_k` or `persistent`.
    pub distribution: Option<TileDistribution>,
    /// True if A, B and C are lists of pointers.
    pub listed: bool,
    /// Index of the GEMM in a batch; `None` until it is known.
    pub product: Option<Var>,
    /// This index along each axis of the batch.
    pub item: BatchIndex,
    /// Groups of rows that have a B each.
    pub groups: Option<Groups>,
    /// Row after the last one of the tile's group.
    pub end_of_group: Option<Var>,
    /// Numbers of distinct matrices A and B in a batch, for kernels that take splits.
    pub distinct: Option<[Scalar; 2]>,
    /// Parts of the epilogue's folds over rows.
    pub folds: Option<FoldParts>,
    /// True if kernels with other tiles may store the same parts, so that all store all of them.
    pub shares_folds: bool,
}

/// Names and operands of A, B and C.
const MATRICES: [(&str, Operand); 3] =
    [("A", Operand::Input(0)), ("B", Operand::Input(1)), ("C", Operand::Output(0))];

/// Parameters of A, B or C while the kernel declares them.
struct DeclaredArray {
    /// Array; `None` if the kernel does not take the matrix.
    buffer: Option<BufferId>,
    name: String,
    operand: Operand,
    /// Elements of a 16-byte vector.
    lanes: u8,
    /// Numbers of rows and columns.
    dims: [Scalar; 2],
    /// True for a column-major matrix.
    by_col: bool,
    /// True if the last vector of a row or column may be read beyond its end, into the padding. The
    /// padding must be long enough, even after the last row or column. C's padding is never
    /// written.
    overhangs: bool,
    /// True if the matrix has half as many columns as `dims` says, one for each pair.
    halves: bool,
    /// Leading dimension of a pitched matrix, in elements.
    stride: Scalar,
    /// Distance between the matrices of a strided batch along each axis, in elements.
    apart: Vec<Scalar>,
}

impl DeclaredArray {
    /// Adds a parameter for the leading dimension. `outer` is the number of dimensions before the
    /// rows.
    fn declare_stride(&mut self, b: &mut KernelBuilder, outer: usize) {
        if self.buffer.is_some() {
            let (operand, dim) = (self.operand, outer + usize::from(self.by_col));
            let name = format!("ld{}", self.name);
            self.stride = b.scalar(&name, Ty::I32, Source::Stride { operand, dim });
        }
    }

    /// Adds a parameter for each axis of a strided batch: the distance between neighbouring
    /// matrices.
    fn declare_distances(&mut self, b: &mut KernelBuilder, axes: usize) {
        if self.buffer.is_none() {
            return;
        }
        for dim in 0..axes {
            let stride = Source::Stride { operand: self.operand, dim };
            let name = distance_name(&format!("stride_{}", self.name), dim, axes);
            self.apart.push(b.scalar(&name, Ty::U64, stride));
        }
    }

    /// Sets the extents and strides of the array, or of each array of a list.
    fn shape(&self, b: &mut KernelBuilder, batch: Option<BatchAxes>, listed: Option<Scalar>) {
        let Some(buffer) = self.buffer else { return };
        let readable = |extent: Scalar| {
            let lanes = i32::from(self.lanes);
            match self.overhangs {
                true => (extent + (lanes - 1)) / lanes * lanes,
                false => extent.into(),
            }
        };
        let ([rows, cols], stride) = (self.dims, self.stride);
        let (dims, strides): ([Expr; 2], [Expr; 2]) = match self.by_col {
            _ if self.halves => halved(self.dims, stride),
            false => ([rows.into(), readable(cols)], [stride.into(), 1.into()]),
            true => ([readable(rows), cols.into()], [1.into(), stride.into()]),
        };
        match listed {
            Some(count) => b.list(buffer, count.into(), dims, strides),
            None => batched(b, buffer, batch, &self.apart, dims, strides),
        }
    }

    fn matrix(&self) -> Option<Matrix> {
        self.buffer.map(|buffer| Matrix {
            buffer,
            stride: self.stride,
            batch: BatchIndex::default(),
        })
    }
}

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

    /// Matrix A or B, if the kernel takes it.
    pub fn factor(&self, factor: Factor) -> Option<Matrix> {
        self.matrices[factor.index()]
    }

    fn matrix(&self, nth: usize) -> Matrix {
        self.matrices[nth].unwrap_or_else(|| {
            unreachable!("TakenMatrices: the kernel takes the matrices that it uses")
        })
    }

    /// Maximum number of split-K partitions under `split_k: auto`.
    pub fn auto_partitions(&self) -> Scalar {
        self.partitions
            .unwrap_or_else(|| unreachable!("declare: the kernel has a parameter `RANGES`"))
    }

    /// Selects one GEMM of a batch.
    pub fn for_product(self, b: &mut KernelBuilder, product: Option<Var>) -> Self {
        if self.listed && product.is_some() {
            b.comment("Matrices of this GEMM.");
        }
        let item = self.index(b, product);
        let own = |nth: usize| self.matrices[nth].map(|_| self.matrix_for(b, nth, product, item));
        // Groups share A, C and the operands of their shape.
        let of_c = if self.groups.is_some() { BatchIndex::default() } else { item };
        Self { matrices: [0, 1, 2].map(own), product, item: of_c, ..self }
    }

    /// Position of the GEMM's A or B in the batch. Groups have a B each.
    pub fn index_of(&self, factor: Factor) -> BatchIndex {
        match (self.groups, factor) {
            (Some(_), Factor::B) => BatchIndex::of_one_axis(self.product),
            _ => self.item,
        }
    }

    /// Limits the rows to those of a group, which ends at this row.
    pub fn in_group(self, end_of_group: Option<Var>) -> Self {
        Self { end_of_group, ..self }
    }

    /// Row after the last one that the tile may have.
    pub fn end_of_rows(&self) -> Expr {
        self.end_of_group.map_or(self.m.into(), Expr::from)
    }

    /// Adds two parameters for the numbers of distinct matrices A and B in a batch.
    pub fn with_distinct(self, b: &mut KernelBuilder) -> Self {
        let of = [("BATCH_A", Extent::BATCH_A), ("BATCH_B", Extent::BATCH_B)];
        let distinct = self.batch.map(|_| of.map(|(name, of)| b.extent(name, Ty::I32, of)));
        Self { distinct, ..self }
    }

    /// Marks the kernel as one of several that may store the parts of folds.
    pub fn sharing_folds(self) -> Self {
        Self { shares_folds: true, ..self }
    }

    /// Drops A and B, which builders of the result do not select.
    pub fn without_factors(self) -> Self {
        let [_, _, c] = self.matrices;
        Self { matrices: [None, None, c], ..self }
    }

    /// Extent of A along M, or of B along N.
    pub fn lines_of(&self, factor: Factor) -> Scalar {
        match factor {
            Factor::A => self.m,
            Factor::B => self.n,
        }
    }

    /// Number of distinct matrices A or B in a batch; `None` if the kernel has no such parameter.
    pub fn count_of(&self, factor: Factor) -> Option<Scalar> {
        self.distinct.map(|of| of[factor.index()])
    }

    /// Index of the GEMM's matrix A or B among the distinct ones. GEMMs beyond the number of
    /// distinct matrices use the last one.
    pub fn matrix_of(&self, factor: Factor, product: Option<Var>) -> Option<Expr> {
        let found = product.zip(self.count_of(factor));
        found.map(|(product, count)| Expr::from(product).min(count - 1))
    }

    /// Index of a GEMM along each axis of the batch.
    fn index(&self, b: &mut KernelBuilder, product: Option<Var>) -> BatchIndex {
        let found = self.batch.zip(product);
        found.map_or(BatchIndex::default(), |(batch, product)| batch.index(b, product))
    }

    /// Matrix A or B of a GEMM in the batch.
    pub fn factor_for(
        &self,
        b: &mut KernelBuilder,
        factor: Factor,
        product: Option<Var>,
    ) -> Matrix {
        let item = self.index(b, product);
        self.matrix_for(b, factor.index(), product, item)
    }

    /// Matrices A and B of the GEMM that another problem selects.
    pub fn factors_of(&self, b: &mut KernelBuilder, of: &Self) -> [Matrix; 2] {
        Factor::BOTH.map(|factor| self.matrix_for(b, factor.index(), of.product, of.item))
    }

    /// Matrix A (`nth` = 0), B (1) or C (2) of a GEMM in the batch.
    fn matrix_for(
        &self,
        b: &mut KernelBuilder,
        nth: usize,
        product: Option<Var>,
        item: BatchIndex,
    ) -> Matrix {
        let mut matrix = self.matrix(nth);
        match product.filter(|_| self.listed) {
            Some(product) => {
                let name = MATRICES[nth].0.to_lowercase();
                matrix.buffer = b.choose(&name, matrix.buffer, product);
            }
            None if self.groups.is_some() && nth != Factor::B.index() => {}
            None => matrix.batch = item,
        }
        matrix
    }

    /// Declares the parameters of the matrices that the kernel takes, in the order `A, B, C, M, N,
    /// K[, lda, ldb, ldc][, BATCH[, BATCH_1[, BATCH_2]][, stride_a, stride_b, stride_c]][,
    /// offsets][, RANGES][, TILES, BLOCKS | CLUSTERS]`. With several batch axes, each matrix has a
    /// stride for each.
    pub fn declare(b: &mut KernelBuilder, plan: &SgemmPlan, takes: TakenMatrices) -> Self {
        let elems = plan.types().matrices();
        let buffers = [0, 1, 2].map(|nth| {
            let (name, operand) = MATRICES[nth];
            takes.has(nth).then(|| b.global(name, elems[nth], operand))
        });
        let m = b.extent("M", Ty::I32, Extent::M);
        let n = b.extent("N", Ty::I32, Extent::N);
        let depth = b.extent("K", Ty::I32, Extent::K);
        let layout = plan.layout();
        let [a_overhangs, b_overhangs] = match plan.kind() {
            KernelKind::Naive(_) | KernelKind::Wgmma(_) => [false; 2],
            KernelKind::Direct(d) => [d.a().overhangs(), d.b().overhangs()],
            KernelKind::Tiled(t) => [t.a().overhangs(), t.b().overhangs()],
        };
        let array = |nth: usize, dims: [Scalar; 2], by_col: bool, overhangs: bool| {
            let (name, operand) = MATRICES[nth];
            DeclaredArray {
                buffer: buffers[nth],
                name: name.to_lowercase(),
                operand,
                lanes: elems[nth].vector_lanes(),
                dims,
                by_col,
                overhangs: overhangs && plan.pitched(),
                halves: nth == 2 && plan.spec().pairs() == Pairs::One,
                stride: dims[usize::from(!by_col)],
                apart: Vec::new(),
            }
        };
        let mut arrays = [
            array(0, [m, depth], layout.transposes_a(), a_overhangs),
            array(1, [depth, n], layout.transposes_b(), b_overhangs),
            array(2, [m, n], false, false),
        ];
        if plan.pitched() {
            for (nth, array) in arrays.iter_mut().enumerate() {
                array.declare_stride(b, axes_of(plan, nth));
            }
        }
        let batch = plan.batch().map(|batch| declare_axes(b, batch));
        for (nth, array) in arrays.iter_mut().enumerate() {
            array.declare_distances(b, axes_of(plan, nth));
        }
        let groups = batch.and_then(|batch| Groups::declare(b, plan, batch.count, m));
        let listed = batch.map(|batch| batch.count);
        let listed = listed.filter(|_| plan.batch() == Some(Batch::Pointers));
        arrays.iter().for_each(|array| array.shape(b, batch, listed));
        let matrices = arrays.each_ref().map(DeclaredArray::matrix);
        let (listed, product) = (listed.is_some(), None);
        let (partitions, distribution) = match takes {
            TakenMatrices::Factors => (None, None),
            TakenMatrices::All | TakenMatrices::Result => {
                let is_auto = plan.sharing() == Sharing::AutoPartitions;
                let partitions = is_auto.then(|| b.extent("RANGES", Ty::I32, Extent::PARTITIONS));
                (partitions, TileDistribution::declare(b, plan))
            }
        };
        let folds = match takes {
            TakenMatrices::Factors => None,
            TakenMatrices::All | TakenMatrices::Result => {
                let has_folds = plan.epilogue().is_some_and(|epilogue| epilogue.folds_rows());
                let rows = batch.map_or(m.into(), |batch| {
                    Expr::from(batch.count).wide() * Expr::from(m).wide()
                });
                has_folds.then(|| FoldParts::declare(b, plan, rows))
            }
        };
        let problem = Self {
            matrices,
            m,
            n,
            k: depth,
            batch,
            partitions,
            distribution,
            listed,
            product,
            item: BatchIndex::default(),
            groups,
            end_of_group: None,
            distinct: None,
            folds,
            shares_folds: plan.splits().is_some(),
        };
        problem.requirements(b, plan, &arrays);
        problem
    }
}
