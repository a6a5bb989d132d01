//! Scaling of A's rows and B's columns by powers of two. After scaling, the maximum magnitude of
//! each row or column is at least 2^13 and below 2^14, which suits a small format. The first launch
//! computes the maxima, the kernel that splits A and B scales the values, and the GEMM undoes the
//! scaling in its accumulators.
//!
//! A maximum is stored as the bits of its magnitude, which have the same order as the magnitudes. A
//! line is a row of A or a column of B. It is not representable if it contains infinities or NaN.
//! It is not representable either if its maximum is so small that its scale factor or the inverse
//! is not a normal `f32`.

use crate::ir::program::{Program, Slot, TempFill};
use crate::ir::{
    Access, AtomicOp, BufferId, Change, Const, Elem, Expr, For, Intrinsic, IrError, KernelBuilder,
    KernelFamily, MemoryOrder, Operand, Scope, Special, Unroll, Var, VerifiedKernel,
};
use crate::lower::sgemm::common::problem::{GemmProblem, TakenMatrices};
use crate::lower::sgemm::common::schedule::Origin;
use crate::lower::sgemm::common::splits::FactorExtents;
use crate::lower::sgemm::common::unrepresentable::magnitude;
use crate::lower::sgemm::common::workspace::ROW_MAX;
use crate::lower::sgemm::splitting::factor_tiles::{FactorTile, FactorTiles};
use crate::plan::SgemmPlan;
use crate::spec::Factor;
use crate::target::FloatLayout;
use crate::target::arch::WARP;

/// Extent of K over which a block computes maxima.
const TERMS: i32 = 256;
/// Binary exponent of the maximum of a line after scaling.
const SCALED: u32 = 13;
const BIAS: u32 = FloatLayout::BINARY32.bias() as u32;
const MANTISSA: u32 = FloatLayout::BINARY32.fraction;

/// Arrays of maxima in a program. They are temporaries that are zero before and after each run, or
/// the caller passes them with the splits.
pub(crate) fn slots(
    program: &mut Program,
    lines: [&Expr; 2],
    counts: [Option<&Expr>; 2],
    given: [bool; 2],
) -> [(Operand, Slot); 2] {
    Factor::BOTH.map(|factor| {
        let nth = factor.index();
        let name = ["row maxima of A", "column maxima of B"][nth];
        let dims: Vec<Expr> = counts[nth].into_iter().chain([lines[nth]]).cloned().collect();
        match given[nth] {
            true => program.input(ROW_MAX[nth], name, Elem::U32, dims),
            false => (ROW_MAX[nth], program.temp_of(name, Elem::U32, dims, TempFill::Kept)),
        }
    })
}

/// Maxima of A and of B in a kernel; `None` for those that the kernel does not take.
#[derive(Clone, Copy)]
pub(crate) struct RowMax([Option<BufferId>; 2]);

impl RowMax {
    /// Declares the parameters, after those of the problem.
    pub fn parameters(b: &mut KernelBuilder, problem: &GemmProblem) -> Self {
        Self::declare(b, problem, [true; 2])
    }

    /// Declares the parameters for the maxima of A, of B, or of both, as `takes` selects.
    pub fn declare(b: &mut KernelBuilder, problem: &GemmProblem, takes: [bool; 2]) -> Self {
        let names = ["row_max_a", "col_max_b"];
        match takes {
            [true, true] => b.title(
                "row_max_a and col_max_b hold the maximum magnitude of each row of A and column of \
                 B, as bits.",
            ),
            [true, false] => {
                b.title("row_max_a holds the maximum magnitude of each row of A, as bits.");
            }
            [false, true] => {
                b.title("col_max_b holds the maximum magnitude of each column of B, as bits.");
            }
            [false, false] => {}
        }
        Self(Factor::BOTH.map(|factor| {
            let (nth, lines) = (factor.index(), problem.lines_of(factor));
            if !takes[nth] {
                return None;
            }
            let buffer = b.global(names[nth], Elem::U32, ROW_MAX[nth]);
            let batch = problem.count_of(factor).map(Expr::from);
            let apart = problem.distinct.map(|_| lines.into());
            b.shape(
                buffer,
                batch.into_iter().chain([lines.into()]),
                apart.into_iter().chain([1.into()]),
            );
            Some(buffer)
        }))
    }

    /// Maximum of a row of A or column of B, in the given matrix of a batch.
    pub fn at(self, factor: Factor, matrix: Option<Expr>, line: Expr) -> Access {
        let of = self.0[factor.index()];
        let of =
            of.unwrap_or_else(|| unreachable!("RowMax::declare: the kernel takes these maxima"));
        Access::new(of, matrix.into_iter().chain([line]))
    }

    /// Resets the maxima to zero. Blocks in the first column of tiles reset the maxima of their
    /// rows of A. Blocks in the first row of tiles reset those of their columns of B.
    pub fn reset(
        self,
        b: &mut KernelBuilder,
        problem: &GemmProblem,
        origin: &Origin,
        tile: [Const; 2],
        threads: Const,
    ) {
        b.comment("Reset the maxima for the next launch.");
        for (factor, lines) in Factor::BOTH.into_iter().zip(tile) {
            if self.0[factor.index()].is_none() {
                continue;
            }
            let (first, other) = match factor {
                Factor::A => (origin.row, origin.col),
                Factor::B => (origin.col, origin.row),
            };
            let extent = problem.lines_of(factor);
            // If several GEMMs share a matrix, the blocks of the first GEMM reset its maxima.
            let is_first = Expr::from(other).equals(0);
            let own = origin.batch.zip(problem.count_of(factor));
            let is_first = match own {
                None => is_first,
                Some((batch, count)) => is_first.and(Expr::from(batch).lt(count)),
            };
            b.if_(is_first, |b| {
                let lines = Expr::from(lines).min(extent - first);
                let head = For::below(Special::ThreadX, lines).change(Change::Add(threads.into()));
                b.loop_("line", head.unroll(Unroll::By(1)), |b, line| {
                    let matrix = origin.batch.map(Expr::from);
                    b.store(self.at(factor, matrix, first + line), Expr::U32(0));
                });
            });
        }
    }
}

/// Named constants for the computation of scale factors.
struct ScaleNumbers {
    mantissa: Const,
    bias: Const,
    scaled: Const,
}

impl ScaleNumbers {
    fn declare(b: &mut KernelBuilder) -> Self {
        let number = Expr::U32;
        Self {
            mantissa: b.constant("MANTISSA", number(MANTISSA), "mantissa bits of a float"),
            bias: b.constant("BIAS", number(BIAS), "exponent bias of a float"),
            scaled: b.constant(
                "SCALED",
                number(SCALED),
                "exponent of scaled maxima: 2^14 < 65504, the f16 maximum",
            ),
        }
    }

    fn shifted(&self, exponent: Expr) -> Expr {
        (exponent << self.mantissa).bitcast(Elem::F32)
    }

    fn exponent(&self, row_max: Expr) -> Expr {
        row_max >> self.mantissa
    }
}

/// Returns the scale factor of a line with the given maximum, and the condition that the line is
/// not representable. The condition is true if the factor or its inverse would not be normal.
pub(crate) fn factor(b: &mut KernelBuilder, row_max: Var) -> (Expr, Expr) {
    let numbers = ScaleNumbers::declare(b);
    let e = b.let_("exponent", numbers.exponent(row_max.into()));
    let is_zero = Expr::from(row_max).equals(Expr::U32(0));
    let top = Expr::U32(FloatLayout::BINARY32.top());
    let known = Expr::from(e).gt(numbers.scaled).and(Expr::from(e).lt(top));
    let scaled = numbers.shifted(Expr::U32(2) * numbers.bias + numbers.scaled - e);
    let none = is_zero.clone().or(known.clone()).negated();
    (known.select(scaled, Expr::F32(1.0)), none)
}

/// Returns the factor that undoes the scaling of a line.
pub(crate) fn back(b: &mut KernelBuilder, row_max: Expr) -> Expr {
    let numbers = ScaleNumbers::declare(b);
    let e = numbers.exponent(row_max.clone());
    let factor = numbers.shifted(e - numbers.scaled);
    row_max.equals(Expr::U32(0)).select(Expr::F32(1.0), factor)
}

/// Undoes the scaling of an accumulator by the factors of its row and column, which are powers of
/// two. If their product is normal, the accumulator is multiplied by the product, so no
/// intermediate result is subnormal. Otherwise it is multiplied by one factor after the other. Only
/// results that overflow then become infinite.
pub(crate) fn scaled_back(b: &mut KernelBuilder, sum: Expr, [of_row, of_col]: [Expr; 2]) -> Expr {
    b.comment("If the product of the factors over- or underflows, apply them one by one.");
    let both = Expr::from(b.let_("both", of_row.clone() * of_col.clone()));
    let is_normal = both.clone().ge(f32::MIN_POSITIVE).and(both.clone().le(f32::MAX));
    let row_first = of_row.clone().lt(of_col.clone());
    let first = row_first.clone().select(of_row.clone(), of_col.clone());
    let then = row_first.select(of_col, of_row);
    is_normal.select(sum.clone() * both, sum * first * then)
}

/// Builds the kernel that computes the maxima.
pub(crate) fn kernel(plan: &SgemmPlan) -> Result<VerifiedKernel, IrError> {
    let mut b = KernelBuilder::new(format!("{}_row_max", plan.kernel_name()));
    b.family(KernelFamily::Gemm);
    b.title("Maximum magnitude of each row of A and of each column of B, as bits.");
    b.title(format!("Generated from {}!({})", plan.types().macro_name(), plan.spec()));
    let problem = GemmProblem::declare(&mut b, plan, TakenMatrices::Factors).with_distinct(&mut b);
    let row_max = RowMax::parameters(&mut b, &problem);
    b.title("All maxima are 0 before the launch.");
    let extents = FactorExtents::unpadded(&problem);
    let sides = FactorTiles::declare(&mut b, &problem, &extents, TERMS, None);
    let FactorTiles { lines, threads, .. } = sides;
    let tid = b.let_("tid", Special::ThreadX);
    let of_block = sides.of_block(&mut b, plan, problem, extents);
    let depth = problem.k;
    of_block.each(&mut b, |b, side| {
        let FactorTile { factor, extent, first_line, first_term, .. } = *side;
        let end = (first_term + sides.terms).min(depth);
        let end = b.let_("end", end);
        let see = |b: &mut KernelBuilder, most: Var, line: Var, term: Var| {
            larger(b, most, magnitude(side.at(line, term).load()));
        };
        let tell = |b: &mut KernelBuilder, line: Var, most: Var| {
            let to = row_max.at(factor, side.number(), line.into());
            b.atomic_only(AtomicOp::Max, to, Expr::from(most), MemoryOrder::Relaxed, Scope::Device);
        };
        if side.along_k {
            b.comment(
                "A warp reads one row or column after the other; its lanes read adjacent elements.",
            );
            let warp = b.let_("warp", tid / WARP as i32);
            let lane = b.let_("lane", tid % WARP as i32);
            let warps = threads / WARP as i32;
            let last = b.let_("last_line", (first_line + lines).min(extent));
            let head = For::below(first_line + warp, last).change(Change::Add(warps));
            b.loop_("line", head.unroll(Unroll::By(1)), |b, line| {
                let most = b.mut_("largest", Expr::U32(0));
                let head =
                    For::below(first_term + lane, end).change(Change::Add((WARP as i32).into()));
                b.loop_("k", head.unroll(Unroll::By(8)), |b, term| see(b, most, line, term));
                let half = For::above(WARP as i32 / 2, 0).change(Change::Div(2.into()));
                b.loop_("s", half.unroll(Unroll::Full), |b, s| {
                    let above = Expr::Call(Intrinsic::ShuffleDown, vec![most.into(), s.into()]);
                    larger(b, most, above);
                });
                b.if_(Expr::from(lane).equals(0), |b| tell(b, line, most));
            });
        } else {
            b.comment(
                "Adjacent threads read adjacent rows or columns, so that their loads are \
                 coalesced.",
            );
            let line = b.let_("line", first_line + tid % lines);
            b.if_(Expr::from(line).lt(extent), |b| {
                let most = b.mut_("largest", Expr::U32(0));
                let every = threads / lines;
                let head = For::below(first_term + tid / lines, end).change(Change::Add(every));
                b.loop_("k", head.unroll(Unroll::By(8)), |b, term| see(b, most, line, term));
                tell(b, line, most);
            });
        }
    });
    b.finish()
}

/// Sets a variable to the larger of its value and `other`.
fn larger(b: &mut KernelBuilder, most: Var, other: Expr) {
    let other = b.let_("other", other);
    b.assign(most, Expr::from(most).lt(Expr::from(other)).select(other, most));
}
