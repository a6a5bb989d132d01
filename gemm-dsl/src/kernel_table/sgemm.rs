//! Tables of products: what a row is chosen for.

use super::{KernelTable, Rows, Tabled};
use crate::error::SpecErrors;
use crate::parse;
use crate::spec::{Layout, SgemmSpec};
use crate::value::{Environment, Fact, SGEMM_TABLE};

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

    fn is_aligned(&self) -> bool {
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

    fn fact(SgemmProblem { shape, target }: &SgemmProblem, name: &str) -> Option<Fact> {
        Some(match name {
            "m" => Fact::Integer(shape.m),
            "n" => Fact::Integer(shape.n),
            "k" => Fact::Integer(shape.k),
            "batch" => Fact::Integer(shape.batch),
            "sms" => Fact::Integer(target.sms.into()),
            "arch" => Fact::Integer(target.arch.into()),
            "nn" => Fact::Truth(shape.layout == Layout::Nn),
            "nt" => Fact::Truth(shape.layout == Layout::Nt),
            "tn" => Fact::Truth(shape.layout == Layout::Tn),
            "tt" => Fact::Truth(shape.layout == Layout::Tt),
            "padded" => Fact::Truth(shape.padded),
            "aligned" => Fact::Truth(shape.is_aligned()),
            _ => return None,
        })
    }

    /// The tiles that cover C, the last ones of a row or column not always whole, times the products, over the
    /// multiprocessors.
    fn waves(SgemmProblem { shape, target }: &SgemmProblem, (m, n): (u32, u32)) -> Option<f64> {
        let tiles = |extent: u64, tile: u32| u128::from(extent.div_ceil(tile.into()));
        let tiles = tiles(shape.m, m).saturating_mul(tiles(shape.n, n));
        let tiles = tiles.saturating_mul(shape.batch.into());
        // Of 64 bits the same, and sooner.
        let tiles = u64::try_from(tiles).map_or(tiles as f64, |tiles| tiles as f64);
        Some(tiles / f64::from(target.sms))
    }
}

/// What is computed of A, B and the operands. How the matrices lie, `layout` and `pitched`, is what a row is for.
impl Rows for SgemmSpec {
    const CONDITION: &'static Environment = &SGEMM_TABLE;

    const LINE: &'static str = "tile: 64x64x16, thread: 8x8";

    const VARIES: Option<fn(&Self) -> Option<&'static str>> = Some(Self::splits_sums);
}
