//! Splits of A and B for tensor cores, as parameters of kernels and arrays of programs.
//!
//! The splits of one matrix are contiguous. In a batch, they follow the splits of the previous
//! matrix. Tensor maps require rows that are padded to a multiple of 16 bytes. Rows are also padded
//! to a multiple of 8 elements. The padding is zero.

use super::batch_axes::{Distances, axes_of};
use super::problem::GemmProblem;
use super::workspace::SPLITS;
use crate::ir::program::{Program, Slot};
use crate::ir::{
    Access, BufferId, Const, Expr, Extent, KernelBuilder, Operand, Requirement, Scalar, Source,
    TensorMap, Ty, VECTOR_BYTES, Var,
};
use crate::plan::{SgemmPlan, SplitsPlan, WgmmaPlan};
use crate::spec::{Copies, Factor};

/// Rows of A, or columns of B, in a tile of the kernel that computes the splits.
pub(crate) const LINES: i32 = 64;
/// Extent of such a tile along K.
pub(crate) const TERMS: i32 = 64;

/// Extents of A and B that are covered by the tiles of a kernel which reads all of A and B.
pub(crate) struct FactorExtents {
    /// Rows of A, and columns of B.
    pub lines: [Expr; 2],
    pub terms: Expr,
    /// Units to which M, N and K are padded.
    pub units: [u32; 3],
}

/// Units to which M, N and K are padded, as literals or constants of a kernel.
pub(crate) type Pads = [Expr; 3];

/// Units of the plan as literals.
pub(crate) fn literal_pads(of: &SplitsPlan) -> Pads {
    let [rows, columns] = of.lines();
    [rows, columns, of.terms()].map(|unit| Expr::I32(unit as i32))
}

impl FactorExtents {
    /// Extents of A and B themselves.
    pub fn unpadded(problem: &GemmProblem) -> Self {
        let [m, n, terms] = [problem.m, problem.n, problem.k].map(Expr::from);
        Self { lines: [m, n], terms, units: [1; 3] }
    }

    /// Extents of the splits.
    pub fn padded(problem: &GemmProblem, of: &SplitsPlan, pads: &Pads) -> Self {
        let lines = Factor::BOTH.map(|factor| {
            let nth = factor.index();
            padded(problem.lines_of(factor).into(), of.lines()[nth], &pads[nth])
        });
        let ([rows, columns], terms) = (of.lines(), of.terms());
        let of_tiles = padded(problem.k.into(), covered(of), &pads[2]);
        Self { lines, terms: of_tiles, units: [rows, columns, terms] }
    }
}

/// Unit to which K is rounded up before tiles are counted. It is 1 if tiles consist of whole units
/// of padding: they then cover the padding of any K.
fn covered(of: &SplitsPlan) -> u32 {
    if (TERMS as u32).is_multiple_of(of.terms()) { 1 } else { of.terms() }
}

/// Numbers of tiles of a matrix along its lines and along K, in the kernel that computes the
/// splits, for a program.
pub(crate) fn tile_counts(
    of: &SplitsPlan,
    factor: Factor,
    lines: &Expr,
    terms: &Expr,
) -> [Expr; 2] {
    let literal = |number: u32| Expr::U64(number.into());
    let pad = |extent: &Expr, unit: u32| padded(extent.clone(), unit, &literal(unit));
    let (lines, terms) = (pad(lines, of.lines()[factor.index()]), pad(terms, covered(of)));
    [lines.div_ceil(literal(LINES as u32)), terms.div_ceil(literal(TERMS as u32))]
}

/// Extents of the splits of `count` matrices. Each matrix has `lines` lines (rows of A or columns
/// of B) of `terms` elements.
pub(crate) fn dims(
    of: &SplitsPlan,
    factor: Factor,
    lines: &Expr,
    terms: &Expr,
    count: Option<&Expr>,
) -> Vec<Expr> {
    let splits = (of.count() > 1).then(|| Expr::U64(of.count().into()));
    let unit = of.lines()[factor.index()];
    let lines = padded(lines.clone(), unit, &Expr::U64(unit.into()));
    let splits = in_all(count.cloned(), splits);
    splits.into_iter().chain([lines, pitch(of, terms)]).collect()
}

/// Row stride of the splits in elements, including padding.
pub(crate) fn pitch(of: &SplitsPlan, terms: &Expr) -> Expr {
    padded(terms.clone(), of.terms(), &Expr::U64(of.terms().into()))
}

/// Number of splits of all matrices; `None` if there is one matrix with one split.
fn in_all(matrices: Option<Expr>, splits: Option<Expr>) -> Option<Expr> {
    match (matrices, splits) {
        (Some(matrices), Some(splits)) => Some(matrices * splits),
        (only, None) | (None, only) => only,
    }
}

/// Number of A's rows, number of B's columns, and extent of K.
pub(crate) struct Lines<'e> {
    pub counts: [&'e Expr; 2],
    pub terms: &'e Expr,
}

/// Splits of A and B in a program: temporaries, or inputs if the caller passes them.
pub(crate) fn slots(
    program: &mut Program,
    of: &SplitsPlan,
    lines: Lines<'_>,
    counts: [Option<&Expr>; 2],
    given: [bool; 2],
) -> [(Operand, Slot); 2] {
    Factor::BOTH.map(|factor| {
        let nth = factor.index();
        let name = ["splits of A", "splits of B"][nth];
        let dims = dims(of, factor, lines.counts[nth], lines.terms, counts[nth]);
        match given[nth] {
            true => program.input(SPLITS[nth], name, of.elem(), dims),
            false => (SPLITS[nth], program.temp(name, of.elem(), dims)),
        }
    })
}

/// Phrase on the row length for head comments, such as `padded to a multiple of 16 bytes`.
pub(crate) fn padding(of: &SplitsPlan) -> String {
    format!("padded to a multiple of {} bytes", of.terms() * of.elem().size())
}

/// Rounds an extent up to a multiple of `unit`, whose expression is `pad`.
fn padded(extent: Expr, unit: u32, pad: &Expr) -> Expr {
    match unit {
        1 => extent,
        _ => extent.div_ceil(pad.clone()) * pad.clone(),
    }
}

/// Name of the splits of A or B in the kernel.
pub(crate) fn name(factor: Factor) -> &'static str {
    match factor {
        Factor::A => "splits_a",
        Factor::B => "splits_b",
    }
}

/// Splits of A and B in a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Splits {
    /// Buffer of A's splits, and buffer of B's splits.
    pub buffers: [BufferId; 2],
    /// Number of splits per value, if more than one.
    pub count: Option<Const>,
    /// Row stride in elements, including padding; `None` if threads do not compute addresses.
    pitch: Option<Scalar>,
    /// Problem to which the splits belong.
    problem: GemmProblem,
    /// Distances between the matrices of a batch of A and of B, if the kernel reads these
    /// themselves.
    apart: [Distances; 2],
}

impl Splits {
    /// Declares the parameters of the splits for a kernel whose threads read them, before those of
    /// the problem.
    pub fn arrays(b: &mut KernelBuilder, of: &SplitsPlan) -> [BufferId; 2] {
        Factor::BOTH.map(|factor| b.global(name(factor), of.elem(), SPLITS[factor.index()]))
    }

    /// Declares the parameters of the splits for a kernel with warpgroups, before those of the
    /// problem.
    pub fn read(b: &mut KernelBuilder, plan: &SgemmPlan, t: &WgmmaPlan) -> [BufferId; 2] {
        let bk = t.bk();
        let splits = t.splits().count();
        if t.copies() == Copies::Tma {
            let per_split = if splits > 1 { " x SPLITS" } else { "" };
            let lines_of_b = if plan.cluster() == 1 { "BN" } else { "PART" };
            let of_b = if plan.cluster() == 1 { per_split } else { "" };
            let a = match t.is_mn_major(Factor::A) {
                true => "SLAB_M x BK".to_owned(),
                false => format!("BK x BM{per_split}"),
            };
            let b_box = match t.is_mn_major(Factor::B) {
                true => "SLAB_N x BK".to_owned(),
                false => format!("BK x {lines_of_b}{of_b}"),
            };
            b.title(format!("The tensor maps set the box of a copy: {a} of A, {b_box} of B."));
        }
        let are_matrices = t.splits().are_matrices();
        let has_outer = splits > 1 || plan.batch().is_some();
        let splits = (has_outer && !are_matrices).then_some(splits);
        let from = |factor: Factor| match are_matrices {
            true => (["A", "B"][factor.index()], Operand::Input(factor.index())),
            false => (name(factor), SPLITS[factor.index()]),
        };
        Factor::BOTH.map(|factor| match t.copies() {
            Copies::Threads => b.global(name(factor), t.factor(factor), SPLITS[factor.index()]),
            Copies::Tma => {
                let (splits, lines) = match (factor, plan.cluster()) {
                    (Factor::A, _) => (splits, t.bm()),
                    (Factor::B, 1) => (splits, t.bn()),
                    // A block of a cluster loads its part of B for one split at a time.
                    (Factor::B, blocks) => (splits.map(|_| 1), t.bn() / blocks),
                };
                let of_split = match t.slabs()[factor.index()] {
                    0 => [lines, bk],
                    slab => [bk, slab],
                };
                let axes = if are_matrices { axes_of(plan, factor.index()) } else { 0 };
                let tile = splits.into_iter().chain(std::iter::repeat_n(1, axes));
                let tile = tile.chain(of_split).collect();
                let map = TensorMap { tile, swizzle: t.swizzle(factor) };
                let (name, operand) = from(factor);
                b.tensor_map(name, t.factor(factor), operand, map)
            }
        })
    }

    /// Sets the shapes of A and B themselves, which a kernel reads instead of splits. Adds
    /// parameters for the leading dimensions of a pitched kernel, and for the distances between the
    /// matrices of a batch.
    pub fn of_matrices(
        b: &mut KernelBuilder,
        plan: &SgemmPlan,
        buffers: [BufferId; 2],
        problem: &GemmProblem,
    ) -> Self {
        let layout = plan.layout();
        let by_column = [layout.transposes_a(), layout.transposes_b()];
        let apart = Factor::BOTH.map(|factor| {
            let (nth, letter) = (factor.index(), factor.letter().to_ascii_lowercase());
            let operand = Operand::Input(nth);
            let extents = match factor {
                Factor::A => [problem.m, problem.k],
                Factor::B => [problem.k, problem.n],
            };
            // The array has the columns of a column-major matrix as rows.
            let [outer, inner] = if by_column[nth] { [1, 0] } else { [0, 1] };
            let axes = axes_of(plan, nth);
            let stride = match plan.pitched() {
                true => {
                    let stride = Source::Stride { operand, dim: axes + outer };
                    b.scalar(&format!("ld{letter}"), Ty::I32, stride)
                }
                false => extents[inner],
            };
            let apart = Distances::declare(b, &letter.to_string(), operand, axes);
            let dims = [extents[outer], extents[inner]].map(Expr::from);
            let dims = apart.distinct(problem.batch).into_iter().chain(dims);
            let strides = apart.each().map(Expr::from);
            b.shape(buffers[nth], dims, strides.chain([stride.into(), 1.into()]));
            if by_column[nth] {
                b.transposed(buffers[nth]);
            }
            let of = plan.types().factor(factor).vector_lanes().into();
            b.require(Requirement::Aligned { operand, bytes: VECTOR_BYTES });
            for scalar in std::iter::once(stride).chain(apart.each()) {
                b.require(Requirement::Multiple { scalar, of });
            }
            apart
        });
        Self { buffers, count: None, pitch: None, problem: *problem, apart }
    }

    /// Sets the shapes of the splits. Adds a parameter for the row stride if threads compute
    /// addresses.
    pub fn shape(
        b: &mut KernelBuilder,
        of: &SplitsPlan,
        pads: &Pads,
        buffers: [BufferId; 2],
        problem: &GemmProblem,
        copies: Copies,
    ) -> Self {
        let splits = of.count();
        let meaning = format!("{} values per f32 value", of.format().name());
        let count = (splits > 1).then(|| b.constant("SPLITS", splits as i32, meaning));
        if let (Some(distinct), Some(_)) = (problem.distinct, count) {
            let max = u64::from(i32::MAX as u32 / splits);
            for scalar in distinct {
                b.require(Requirement::Range { scalar, min: 0, max });
            }
        }
        let pitch = (copies == Copies::Threads).then(|| {
            let arrays = match splits {
                1 => format!("{} copies", of.format().name()),
                _ => "splits".to_owned(),
            };
            b.title(format!(
                "pitch is the number of elements per row of the {arrays}, including padding."
            ));
            b.extent("pitch", Ty::I32, Extent::PITCH)
        });
        let row = match pitch {
            Some(pitch) => Expr::from(pitch),
            None => padded(problem.k.into(), of.terms(), &pads[2]),
        };
        let extents = FactorExtents::padded(problem, of, pads);
        for (buffer, factor) in buffers.into_iter().zip(Factor::BOTH) {
            let lines = extents.lines[factor.index()].clone();
            let outer = in_all(problem.count_of(factor).map(Expr::from), count.map(Expr::from));
            let apart = outer.as_ref().map(|_| lines.clone().wide() * row.clone().wide());
            let dims = outer.iter().cloned().chain([lines, row.clone()]);
            b.shape(buffer, dims, apart.into_iter().chain([row.clone(), 1.into()]));
        }
        Self { buffers, count, pitch, problem: *problem, apart: [Distances::default(); 2] }
    }

    /// Row stride in elements, including padding.
    pub fn pitch(&self) -> Scalar {
        self.pitch.unwrap_or_else(|| {
            unreachable!("Splits::shape: `Copies::Threads` declares the row stride")
        })
    }

    /// Multiplies `each` by the number of splits.
    pub fn of_all(&self, each: Expr) -> Expr {
        match self.count {
            None => each,
            Some(count) => count * each,
        }
    }

    /// Emits `body` for each split.
    pub fn each(&self, b: &mut KernelBuilder, body: impl FnOnce(&mut KernelBuilder, Expr)) {
        match self.count {
            None => body(b, 0.into()),
            Some(count) => b.unrolled("p", count, |b, split| body(b, split.into())),
        }
    }

    /// Index of a GEMM's split among all splits of A or B; `None` if there is only one split.
    pub fn of_product(&self, factor: Factor, product: Option<Var>, split: Expr) -> Option<Expr> {
        self.of_matrix(self.problem.matrix_of(factor, product), split)
    }

    /// Indices of a split of the GEMM of `problem`, or of its matrix itself, in the array of A or
    /// B.
    pub fn outer(&self, problem: &GemmProblem, factor: Factor, split: Expr) -> Vec<Expr> {
        let own = self.of_product(factor, problem.product, split);
        let index = problem.index_of(factor).axes();
        own.into_iter().chain(self.apart[factor.index()].index(index)).collect()
    }

    /// Element of a split of A or B in the GEMM of `problem`, given its row of A or column of B and
    /// its k.
    pub fn at(
        &self,
        problem: &GemmProblem,
        factor: Factor,
        [split, line, term]: [Expr; 3],
    ) -> Access {
        let split = self.of_product(factor, problem.product, split);
        Access::new(self.buffers[factor.index()], split.into_iter().chain([line, term]))
    }

    /// Index of a split of a matrix, which is given by its index among the distinct matrices.
    pub fn of_matrix(&self, matrix: Option<Expr>, split: Expr) -> Option<Expr> {
        match (matrix, self.count) {
            (matrix, None) => matrix,
            (None, Some(_)) => Some(split),
            (Some(matrix), Some(count)) => Some(matrix * count + split),
        }
    }
}
