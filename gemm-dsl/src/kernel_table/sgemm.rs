//! Tables of products: what a row is chosen for.

use super::{KernelTable, Rows, Tabled};
use crate::error::SpecErrors;
use crate::parse;
use crate::spec::{Layout, SgemmSpec};
use crate::value::{Environment, Facts, SGEMM_TABLE};

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
    pub const H200: Target = Target { arch: 90, sms: 132 };
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
    /// How A and B lie.
    pub layout: Layout,
    /// Whether something lies between the rows of a matrix, or the columns of one that lies in those.
    pub padded: bool,
    /// Whether the first element of each row of A, B and C, or column, lies on 16 bytes; without this it follows
    /// from the extents, as of packed matrices.
    pub aligned: Option<bool>,
}

impl From<(usize, usize, usize)> for SgemmShape {
    fn from((m, n, k): (usize, usize, usize)) -> Self {
        let [m, n, k] = [m, n, k].map(|extent| extent as u64);
        Self { m, n, k, batch: 1, layout: Layout::Nn, padded: false, aligned: None }
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
    pub fn layout(self, layout: Layout) -> Self {
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

    /// Whether all rows begin on 16 bytes: what was said of it, or else follows from the extents.
    pub fn is_aligned(&self) -> bool {
        let Self { m, n, k, batch, layout, .. } = *self;
        let packed = |rows: u64, cols: u64, by_column: bool| {
            let (lines, line) = if by_column { (cols, rows) } else { (rows, cols) };
            lines_take_vectors((lines, line), (batch, lines.saturating_mul(line)))
        };
        self.aligned.unwrap_or_else(|| {
            packed(m, k, layout.transposes_a())
                && packed(k, n, layout.transposes_b())
                && packed(m, n, false)
        })
    }
}

/// Whether all lines begin on 16 bytes where the first one does: `lines` of them a `pitch` apart, in each of some
/// matrices a distance apart, in elements.
pub fn lines_take_vectors((lines, pitch): (u64, u64), (count, distance): (u64, u64)) -> bool {
    let steps = |count: u64, step: u64| count <= 1 || step.is_multiple_of(4);
    steps(lines, pitch) && steps(count, distance)
}

/// A product on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SgemmProblem {
    /// What is multiplied.
    pub shape: SgemmShape,
    /// Where.
    pub target: Target,
}

impl Tabled for SgemmSpec {
    type Problem = SgemmProblem;

    fn read_table(text: &str) -> Result<KernelTable<Self>, SpecErrors> {
        parse::table_from_text(text)
    }

    fn facts(SgemmProblem { shape, target }: &SgemmProblem) -> Facts {
        let layouts = [Layout::Nn, Layout::Nt, Layout::Tn, Layout::Tt];
        let [nn, nt, tn, tt] = layouts.map(|layout| shape.layout == layout);
        Facts::new(
            [shape.m, shape.n, shape.k, shape.batch, target.sms.into(), target.arch.into()],
            [nn, nt, tn, tt, shape.padded, shape.is_aligned()],
        )
    }

    /// The tiles that cover C, the last ones of a row or column not always whole, times the products, over the
    /// multiprocessors.
    fn waves(SgemmProblem { shape, target }: &SgemmProblem, (m, n): (u32, u32)) -> Option<f64> {
        let tiles = [shape.m.div_ceil(m.into()), shape.n.div_ceil(n.into()), shape.batch];
        let [rows, cols, batch] = tiles;
        // Of 64 bits the same, and sooner.
        let tiles = match rows.checked_mul(cols).and_then(|tiles| tiles.checked_mul(batch)) {
            Some(tiles) => tiles as f64,
            None => tiles.into_iter().map(u128::from).fold(1, u128::saturating_mul) as f64,
        };
        Some(tiles / f64::from(target.sms))
    }
}

/// What is computed of A, B and the operands. How the matrices lie, `layout` and `pitched`, is what a row is for.
impl Rows for SgemmSpec {
    const CONDITION: &'static Environment = &SGEMM_TABLE;

    const LINE: &'static str = "tile: 64x64x16, thread: 8x8";

    const VARIES: Option<fn(&Self) -> Option<&'static str>> = Some(Self::splits_sums);
}
