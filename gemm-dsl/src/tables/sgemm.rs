//! Tables of GEMMs: shapes, targets and the facts of conditions.

use super::{KernelTable, Rounds, RuleSpec, TableFamily};
use crate::error::SpecErrors;
use crate::expr::{ExprScope, Facts, SGEMM_TABLE};
use crate::ir::Elem;
use crate::plan::SgemmPlan;
use crate::spec::{Accuracy, Batch, GemmLayout, GemmTypes, SgemmSpec};
use crate::target::device;

/// GPU for which a rule is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Architecture: 90 for `sm_90`.
    pub arch: u32,
    /// Number of SMs.
    pub sms: u32,
}

impl Target {
    /// An H200, the GPU whose figures the simulator uses as well.
    pub const H200: Target = Target { arch: device::H200.arch, sms: device::H200.sms };
}

/// Shape of a GEMM, C\[M,N\] = A\[M,K\]·B\[K,N\]: extents, layouts and alignment.
/// `(m, n, k).into()` is a single GEMM of packed, row-major matrices whose addresses are aligned to
/// 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SgemmShape {
    /// Rows of A and C.
    pub m: u64,
    /// Columns of B and C.
    pub n: u64,
    /// Columns of A, rows of B.
    pub k: u64,
    /// Number of GEMMs; 1 without a batch.
    pub batch: u64,
    /// Layouts of A and B. For matrices with one row or column, see [`SgemmShape::lies`].
    pub layout: GemmLayout,
    /// True if a matrix has padding between its rows, or between its columns if it is column-major.
    pub padded: bool,
    /// True if the first element of each row of A, B and C is aligned to 16 bytes. In a
    /// column-major matrix, this applies to each column. `None` derives the value from the extents,
    /// for packed matrices.
    pub aligned: Option<bool>,
}

impl From<(usize, usize, usize)> for SgemmShape {
    fn from(extents: (usize, usize, usize)) -> Self {
        let (m, n, k) = extents;
        let [m, n, k] = [m, n, k].map(|extent| extent as u64);
        Self { m, n, k, batch: 1, layout: GemmLayout::Nn, padded: false, aligned: None }
    }
}

impl SgemmShape {
    /// Sets the number of GEMMs.
    #[must_use]
    pub fn batch(self, batch: u64) -> Self {
        Self { batch, ..self }
    }

    /// Sets the layouts of A and B.
    #[must_use]
    pub fn layout(self, layout: GemmLayout) -> Self {
        Self { layout, ..self }
    }

    /// Declares padding between rows or columns.
    #[must_use]
    pub fn padded(self, padded: bool) -> Self {
        Self { padded, ..self }
    }

    /// Declares that every row or column is aligned to 16 bytes, or is not.
    #[must_use]
    pub fn aligned(self, aligned: bool) -> Self {
        Self { aligned: Some(aligned), ..self }
    }

    /// Returns the layouts for the choice of a rule. A packed row or column is row-major and
    /// column-major at once, and counts as one contiguous line. With `padded`, the field `layout`
    /// decides.
    pub fn lies(&self) -> GemmLayout {
        let Self { m, n, k, layout, padded, .. } = *self;
        if padded {
            return layout;
        }
        // A matrix with a single element also has both layouts.
        let by_column = |rows: u64, cols: u64, by_column| match (rows, cols) {
            (1, _) => false,
            (_, 1) => true,
            _ => by_column,
        };
        GemmLayout::from_columns([
            by_column(m, k, layout.transposes_a()),
            by_column(k, n, layout.transposes_b()),
        ])
    }

    /// Derives the alignment of matrices with these element types from the extents, unless it is
    /// declared.
    #[must_use]
    pub fn of_types(self, types: GemmTypes) -> Self {
        self.aligned(self.is_aligned_in(types))
    }

    /// Returns true if every row or column is aligned to 16 bytes, as declared or derived from the
    /// extents, for matrices of `f32`.
    pub fn is_aligned(&self) -> bool {
        self.is_aligned_in(GemmTypes::F32)
    }

    /// Returns true if every row or column of matrices with these element types is aligned to 16
    /// bytes, as declared or derived from the extents.
    pub fn is_aligned_in(&self, types: GemmTypes) -> bool {
        let Self { m, n, k, batch, .. } = *self;
        let layout = self.lies();
        let packed = |elem: Elem, rows: u64, cols: u64, by_column: bool| {
            let (lines, line) = if by_column { (cols, rows) } else { (rows, cols) };
            lines_take_vectors(
                elem,
                StridedItems { count: lines, stride: line },
                StridedItems { count: batch, stride: lines.saturating_mul(line) },
            )
        };
        self.aligned.unwrap_or_else(|| {
            let GemmTypes { a, b, c, .. } = types;
            packed(a, m, k, layout.transposes_a())
                && packed(b, k, n, layout.transposes_b())
                && packed(c, m, n, false)
        })
    }
}

/// Items at a fixed stride, such as the rows of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StridedItems {
    pub count: u64,
    /// Distance from one item to the next, in elements.
    pub stride: u64,
}

/// Returns true if all lines (rows or columns) of all matrices are aligned to 16 bytes, provided
/// that the first line is.
pub fn lines_take_vectors(elem: Elem, lines: StridedItems, matrices: StridedItems) -> bool {
    let lanes = u64::from(elem.vector_lanes());
    let aligned = |of: StridedItems| of.count <= 1 || of.stride.is_multiple_of(lanes);
    aligned(lines) && aligned(matrices)
}

/// Problem for a table of GEMMs: a shape on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SgemmProblem {
    pub shape: SgemmShape,
    pub target: Target,
}

impl KernelTable<SgemmSpec> {
    /// Returns the element types of the matrices, which all rules share.
    pub fn types(&self) -> GemmTypes {
        self.rules().first().map_or(GemmTypes::F32, |rule| rule.spec.types())
    }
}

impl TableFamily for SgemmSpec {
    type Problem = SgemmProblem;

    fn facts(SgemmProblem { shape, target }: &SgemmProblem) -> Facts {
        let [nn, nt, tn, tt] = [GemmLayout::Nn, GemmLayout::Nt, GemmLayout::Tn, GemmLayout::Tt]
            .map(|layout| shape.lies() == layout);
        Facts::new(
            [shape.m, shape.n, shape.k, shape.batch, target.sms.into(), target.arch.into()],
            [nn, nt, tn, tt, shape.padded, shape.is_aligned()],
        )
    }

    /// Number of tiles that cover C, including partial tiles at its edges, times the batch size,
    /// divided by the number of SMs.
    fn waves(SgemmProblem { shape, target }: &SgemmProblem, tile: (u32, u32)) -> Option<f64> {
        let (m, n) = tile;
        let tiles = [shape.m.div_ceil(m.into()), shape.n.div_ceil(n.into()), shape.batch];
        let [rows, cols, batch] = tiles;
        // The same computation in 64 bits, which is faster.
        let tiles = match rows.checked_mul(cols).and_then(|tiles| tiles.checked_mul(batch)) {
            Some(tiles) => tiles as f64,
            None => tiles.into_iter().map(u128::from).fold(1, u128::saturating_mul) as f64,
        };
        Some(tiles / f64::from(target.sms))
    }

    const LAYOUTS: usize = GemmLayout::ALL.len() * 2;

    fn layout_index(SgemmProblem { shape, .. }: &SgemmProblem) -> usize {
        shape.lies() as usize * 2 + usize::from(shape.padded)
    }

    fn plan_for_layout(&self, layout_index: usize) -> Result<SgemmPlan, SpecErrors> {
        let (layout, padded) = lies(layout_index);
        let spec = self.clone().in_layout(layout, padded);
        match spec.plan() {
            Err(faults) if has_idle_vectors(&faults) => spec.float4(false).plan(),
            plan => plan,
        }
    }
}

/// Returns the layouts of A and B for a layout index, and true if matrices are padded.
fn lies(layout_index: usize) -> (GemmLayout, bool) {
    (GemmLayout::ALL[layout_index / 2], !layout_index.is_multiple_of(2))
}

impl SgemmSpec {
    /// Adapts the spec to matrices in another layout. `transpose`, with its padding, is kept only
    /// for K-major operands, and `float4` only if some access can be a vector.
    ///
    /// ```
    /// use gemm_dsl::spec::{GemmLayout, SgemmSpec};
    ///
    /// let spec: SgemmSpec = "tile: 64x64x16, thread: 8x8, float4, transpose, pad_a: 4".parse()?;
    /// let turned = spec.for_matrices(GemmLayout::Tn, false);
    /// assert_eq!(turned.to_string(), "layout: tn, tile: 64x64x16, thread: 8x8, float4");
    /// # Ok::<(), gemm_dsl::SpecErrors>(())
    /// ```
    #[must_use]
    pub fn for_matrices(self, layout: GemmLayout, padded: bool) -> Self {
        let spec = self.in_layout(layout, padded);
        let idle = spec.plan().is_err_and(|faults| has_idle_vectors(&faults));
        let float4 = spec.float4 && !idle;
        spec.float4(float4)
    }

    /// Adapts the spec to a layout, without changing `float4`.
    fn in_layout(self, layout: GemmLayout, padded: bool) -> Self {
        // The A of groups is row-major. An A with one column counts as column-major elsewhere.
        let layout = match self.batch {
            Some(Batch::Grouped) => GemmLayout::from_columns([false, layout.transposes_b()]),
            _ => layout,
        };
        let along_k = [!layout.transposes_a(), layout.transposes_b()];
        let mut spec = self.layout(layout).pitched(padded);
        if spec.transpose {
            let [pad_a, pad_b] = [spec.pad_a, spec.pad_b];
            spec = spec.transpose(along_k.contains(&true));
            spec = spec.pad_a(if along_k[0] { pad_a } else { 0 });
            spec = spec.pad_b(if along_k[1] { pad_b } else { 0 });
        }
        spec
    }
}

/// Returns true if the only fault is that `float4` has no effect.
fn has_idle_vectors(faults: &SpecErrors) -> bool {
    faults.iter().all(|fault| fault.is_idle("float4"))
}

impl RuleSpec for SgemmSpec {
    const CONDITION: &'static ExprScope = &SGEMM_TABLE;

    const FOLLOWING: &'static [(&'static str, &'static str)] =
        &[("layout", "`nn`, `nt`, `tn` or `tt`"), ("pitched", "`padded`")];

    fn answers(layout_index: usize) -> Vec<(&'static str, bool)> {
        let (layout, padded) = lies(layout_index);
        let names = ["nn", "nt", "tn", "tt"].into_iter().zip(GemmLayout::ALL);
        names.map(|(name, of)| (name, *of == layout)).chain([("padded", padded)]).collect()
    }

    const LINE: &'static str = "tile: 64x64x16, thread: 8x8";

    const VARIES: Option<fn(&Self) -> Option<&'static str>> = Some(Self::splits_sums);

    // Tensor cores that read A and B round neither.
    const ROUNDS: Option<Rounds<Self>> = Some(("arith", |spec| match spec.reads_matrices() {
        true => Some(Accuracy::Ieee),
        false => spec.arith.accuracy(),
    }));

    const HEADING: &'static [&'static str] = &Self::TYPES;
}
