//! Tables of products: what a row is chosen for.

use super::{Rounds, RuleSpec, TableFamily};
use crate::error::SpecErrors;
use crate::expr::{ExprScope, Facts, SGEMM_TABLE};
use crate::ir::Elem;
use crate::plan::SgemmPlan;
use crate::spec::{GemmLayout, GemmTypes, SgemmSpec};
use crate::target::device;

/// The GPU that a row is chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Its architecture: 90 is `sm_90`.
    pub arch: u32,
    /// Its multiprocessors.
    pub sms: u32,
}

impl Target {
    /// An H200, for which the simulator stands too.
    pub const H200: Target = Target { arch: device::H200.arch, sms: device::H200.sms };
}

/// How large the matrices of a product are, and how they lie: C\[M,N\] = A\[M,K\]·B\[K,N\]. One of extents alone,
/// `(m, n, k).into()`, is a single product of packed matrices that lie row by row and begin on 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SgemmShape {
    /// Rows of A and C.
    pub m: u64,
    /// Columns of B and C.
    pub n: u64,
    /// Columns of A, rows of B.
    pub k: u64,
    /// Products; 1 of what is no batch.
    pub batch: u64,
    /// How A and B lie; of a matrix of one row or column see [`SgemmShape::lies`].
    pub layout: GemmLayout,
    /// Whether something lies between the rows of a matrix, or the columns of one that lies in those.
    pub padded: bool,
    /// Whether the first element of each row of A, B and C, or column, lies on 16 bytes; without this it follows
    /// from the extents, as of packed matrices.
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
    /// So many products.
    #[must_use]
    pub fn batch(self, batch: u64) -> Self {
        Self { batch, ..self }
    }

    /// Matrices that lie so.
    #[must_use]
    pub fn layout(self, layout: GemmLayout) -> Self {
        Self { layout, ..self }
    }

    /// Matrices with something between their rows, or without.
    #[must_use]
    pub fn padded(self, padded: bool) -> Self {
        Self { padded, ..self }
    }

    /// Whether rows begin on 16 bytes.
    #[must_use]
    pub fn aligned(self, aligned: bool) -> Self {
        Self { aligned: Some(aligned), ..self }
    }

    /// How A and B are taken to lie: a packed row or column lies both ways, and is read as one line. Where something is
    /// `padded`, as `layout` says.
    pub fn lies(&self) -> GemmLayout {
        let Self { m, n, k, layout, padded, .. } = *self;
        if padded {
            return layout;
        }
        // The lines of a matrix of one line and of one element each are alike.
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

    /// Whether all rows begin on 16 bytes: what was said of it, or else follows from the extents.
    pub fn is_aligned(&self) -> bool {
        let Self { m, n, k, batch, .. } = *self;
        let layout = self.lies();
        let packed = |elem: Elem, rows: u64, cols: u64, by_column: bool| {
            let (lines, line) = if by_column { (cols, rows) } else { (rows, cols) };
            lines_take_vectors(
                elem,
                Strided { count: lines, stride: line },
                Strided { count: batch, stride: lines.saturating_mul(line) },
            )
        };
        self.aligned.unwrap_or_else(|| {
            let GemmTypes { a, b, c, .. } = GemmTypes::F32;
            packed(a, m, k, layout.transposes_a())
                && packed(b, k, n, layout.transposes_b())
                && packed(c, m, n, false)
        })
    }
}

/// Some things of a kind that lie the same number of elements apart, such as lines of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strided {
    /// How many.
    pub count: u64,
    /// Elements from one to the next.
    pub stride: u64,
}

/// Whether all lines of all matrices of these elements begin on 16 bytes where the first one does.
pub fn lines_take_vectors(elem: Elem, lines: Strided, matrices: Strided) -> bool {
    let lanes = u64::from(elem.vector_lanes());
    let aligned = |of: Strided| of.count <= 1 || of.stride.is_multiple_of(lanes);
    aligned(lines) && aligned(matrices)
}

/// A product on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SgemmProblem {
    /// What is multiplied.
    pub shape: SgemmShape,
    /// Where.
    pub target: Target,
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

    /// The tiles that cover C, the last ones of a row or column not always whole, times the products, over the
    /// multiprocessors.
    fn waves(SgemmProblem { shape, target }: &SgemmProblem, tile: (u32, u32)) -> Option<f64> {
        let (m, n) = tile;
        let tiles = [shape.m.div_ceil(m.into()), shape.n.div_ceil(n.into()), shape.batch];
        let [rows, cols, batch] = tiles;
        // Of 64 bits the same, and sooner.
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

/// How matrices lie in a layout, and whether something is between their lines.
fn lies(layout_index: usize) -> (GemmLayout, bool) {
    (GemmLayout::ALL[layout_index / 2], !layout_index.is_multiple_of(2))
}

impl SgemmSpec {
    /// The same for matrices that lie otherwise: `transpose`, and the paddings beside it, of those that lie along K
    /// alone, and `float4` where something can be moved so.
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

    /// The same but for `float4`.
    fn in_layout(self, layout: GemmLayout, padded: bool) -> Self {
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

/// Whether nothing is wrong but that `float4` has nothing to move.
fn has_idle_vectors(faults: &SpecErrors) -> bool {
    faults.iter().all(|fault| fault.is_idle("float4"))
}

/// What is computed of A, B and the operands.
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

    const ROUNDS: Option<Rounds<Self>> = Some(("arith", |spec| spec.arith.accuracy()));
}
