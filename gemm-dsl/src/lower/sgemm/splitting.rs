//! Kernel that splits A and B for tensor cores. Each value is rounded, or split into several. The
//! first split is the rounded value, and each further split is the rounded remainder after the
//! previous ones. A launch before the GEMM stores the splits K-major for every layout of A and B.
//! Later kernels therefore do not depend on these layouts.

mod factor_tiles;
pub(crate) mod row_scale;

use super::common::problem::{GemmProblem, TakenMatrices};
use super::common::split_products::number;
use super::common::splits::{FactorExtents, Pads, Splits, TERMS, literal_pads, name, padding};
use super::common::tf32::{tf32_bits, to_tf32, to_tf32_or_nan};
use super::common::unrepresentable::{TileFlags, UnrepresentableFlag, bits_lost_in_tf32};
use super::common::workspace::SPLITS;
use crate::ir::Elem::{F32, U32};
use crate::ir::{
    Access, AtomicOp, BufferId, BufferLayout, Const, Expr, IrError, KernelBuilder, KernelFamily,
    MemoryOrder, Scalar, Scope, Special, Var, VerifiedKernel,
};
use crate::plan::{SgemmPlan, SplitsPlan};
use crate::spec::{Arith, Copies, Factor};
use crate::target::Format;
use factor_tiles::{FactorTile, FactorTiles};
use row_scale::RowMax;

/// Minimum number of resident blocks per SM. The kernel is bound by memory, and more blocks keep
/// more loads in flight.
const RESIDENT: u32 = 6;

/// Builds the kernel that computes the splits.
pub(crate) fn kernel(plan: &SgemmPlan, of: &SplitsPlan) -> Result<VerifiedKernel, IrError> {
    let mut b = KernelBuilder::new(format!("{}_splits", plan.kernel_name()));
    b.family(KernelFamily::Gemm);
    let format = of.format().name();
    match of.count() {
        1 => b.title(format!("Converts A and B to {format} for a GEMM on tensor cores.")),
        splits => b.title(format!(
            "Splits each element of A and B into {} {format} values whose sum approximates it, for \
             a GEMM on tensor cores.",
            number(splits),
        )),
    }
    b.title(format!("In the results K is contiguous, and each row is {} with zeros.", padding(of)));
    b.title(format!("Generated from {}!({})", plan.types().macro_name(), plan.spec()));
    if plan.spec().blocks_per_sm.is_some() {
        b.title(
            "The key blocks_per_sm is for the GEMM, not for this kernel, which is memory-bound.",
        );
    }
    let problem = GemmProblem::declare(&mut b, plan, TakenMatrices::Factors).with_distinct(&mut b);
    let buffers =
        Factor::BOTH.map(|factor| b.global(name(factor), of.elem(), SPLITS[factor.index()]));
    let emulates = of.arith().is_emulation();
    let unrepresentable =
        (emulates && !of.are_whole_tiles()).then(|| UnrepresentableFlag::parameter(&mut b));
    let flags = (emulates && of.are_whole_tiles()).then(|| TileFlags::parameters(&mut b));
    let row_max = of.arith().is_scaled().then(|| RowMax::parameters(&mut b, &problem));
    let pads = pads(&mut b, of);
    let extents = FactorExtents::padded(&problem, of, &pads);
    let sides = FactorTiles::declare(&mut b, &problem, &extents, TERMS, Some(RESIDENT));
    if let Some(flags) = flags {
        flags.shape(&mut b, &problem, &extents, [sides.lines, sides.terms]);
    }
    let splits = Splits::shape(&mut b, of, &pads, buffers, &problem, Copies::Threads);
    let tid = b.let_("tid", Special::ThreadX);
    let tile = b.shared(
        "tile",
        F32,
        [sides.lines.into(), sides.terms.into()],
        BufferLayout::Array { order: vec![0, 1], pad: 1.into(), swizzle: None },
        "tile of A or of B",
    );
    let of_block = sides.of_block(&mut b, plan, problem, extents);
    let flags = flags.map(|flags| {
        let meaning = "set if the splits cannot represent every value of the tile";
        let word = b.shared("lost_of_tile", U32, [], BufferLayout::row_major(0), meaning);
        (flags, Access::new(word, []))
    });
    let bits = emulates.then(|| {
        b.comment(
            "bits becomes nonzero if the splits cannot represent every value of this thread.",
        );
        b.mut_("bits", Expr::U32(0))
    });
    let scaled = row_max.map(|row_max| {
        let meaning = "power-of-two scale of each row or column";
        let layout = BufferLayout::row_major(1);
        (row_max, b.shared("factor", F32, [sides.lines.into()], layout, meaning))
    });
    let body = SplitKernel { of, sides, terms: problem.k, splits, tile, tid, scaled, flags, bits };
    of_block.each(&mut b, |b, side| body.matrix(b, side));
    if let (Some(unrepresentable), Some(bits)) = (unrepresentable, bits) {
        unrepresentable.tell(&mut b, bits.into());
    }
    b.finish()
}

/// Units to which M, N and K are padded, as constants if a tile of this kernel may be padding.
fn pads(b: &mut KernelBuilder, of: &SplitsPlan) -> Pads {
    let [of_m, of_n, of_k] = literal_pads(of);
    let mut named = |name: &str, unit: Expr, is_used: bool, what: &str| match is_used {
        false => unit,
        true => {
            let meaning = format!("{what} are padded to a multiple of this number");
            b.constant(name, unit, meaning).into()
        }
    };
    let whole = of.are_whole_tiles();
    let beyond = whole && !(TERMS as u32).is_multiple_of(of.terms());
    [
        named("PAD_M", of_m, whole, "rows of A"),
        named("PAD_N", of_n, whole, "columns of B"),
        named("PAD_K", of_k, beyond, "both along K"),
    ]
}

/// State of the builder of the kernel that splits A and B.
struct SplitKernel<'p> {
    of: &'p SplitsPlan,
    sides: FactorTiles,
    terms: Scalar,
    splits: Splits,
    tile: BufferId,
    tid: Var,
    /// Maxima, and the shared array for the scale factors of this block's lines, if lines are
    /// scaled.
    scaled: Option<(RowMax, BufferId)>,
    /// Flags of tiles, and the shared word of this block's tile, if each tile has a flag.
    flags: Option<(TileFlags, Access)>,
    /// This thread's bits that report values that the splits cannot represent.
    bits: Option<Var>,
}

impl SplitKernel<'_> {
    /// Splits a tile of A or B: loads it to shared memory, then stores its splits.
    fn matrix(&self, b: &mut KernelBuilder, side: &FactorTile) {
        let Self { tid, sides: FactorTiles { lines, terms, threads }, .. } = *self;
        let FactorTile { factor, extent, first_line, first_term, .. } = *side;
        if let Some((row_max, factors)) = self.scaled {
            b.comment(
                "Scale factors that bring the maximum of each row or column into the range of f16.",
            );
            b.if_(Expr::from(tid).lt(lines), |b| {
                let at = (first_line + tid).min(extent - 1);
                let most = b.let_("largest", row_max.at(factor, side.number(), at).load());
                let (factor, none) = row_scale::factor(b, most);
                b.store(Access::new(factors, [tid.into()]), factor);
                if let Some(bits) = self.bits {
                    b.if_(none, |b| b.assign(bits, Expr::U32(1)));
                }
            });
        }
        b.comment(format!(
            "Adjacent threads load adjacent elements of {factor}, and zeros past its edge."
        ));
        b.unrolled("i", lines * terms / threads, |b, i| {
            let at = tid + i * threads;
            let (line, term) = match side.along_k {
                true => (at.clone() / terms, at % terms),
                false => (at.clone() % lines, at / lines),
            };
            let line = b.let_("line", line);
            let term = b.let_("k", term);
            let [at, k_at] = [first_line + line, first_term + term].map(Expr::from);
            let is = at.clone().lt(extent).and(k_at.clone().lt(self.terms));
            let value = is.select(side.at(at, k_at).load(), 0.0);
            b.store(Access::new(self.tile, [line.into(), term.into()]), value);
        });
        let first_thread = || Expr::from(tid).equals(0);
        if let Some((_, word)) = &self.flags {
            b.if_(first_thread(), |b| b.store(word.clone(), Expr::U32(0)));
        }
        b.barrier();
        self.split(b, side);
        if let (Some((flags, word)), Some(bits)) = (&self.flags, self.bits) {
            b.comment("Flag this tile for the GEMM if some value is not representable.");
            b.if_(Expr::from(bits).any_bit(), |b| {
                let (one, order) = (Expr::U32(1), MemoryOrder::Relaxed);
                b.atomic_only(AtomicOp::Max, word.clone(), one, order, Scope::Block);
            });
            b.barrier();
            b.if_(first_thread(), |b| {
                let at = [first_line / lines, first_term / terms];
                b.store(flags.at(factor, side.number(), at), word.clone().load());
            });
        }
    }

    /// Computes and stores the splits of the values in the shared tile.
    fn split(&self, b: &mut KernelBuilder, side: &FactorTile) {
        let Self { tid, sides: FactorTiles { lines, terms, threads }, .. } = *self;
        let FactorTile { factor, first_line, first_term, .. } = *side;
        let elem = self.of.elem();
        let lanes = i32::from(elem.vector_lanes());
        let format = self.of.format().name();
        let unit = b.constant("UNIT", lanes, format!("{format} elements in 16 bytes"));
        let rounds = lines * terms / unit / threads;
        b.comment(match self.of.count() {
            1 => format!(
                "In each iteration, a thread converts elements adjacent along K to 16 bytes of \
                 {format}."
            ),
            _ => "In each iteration, a thread splits elements adjacent along K into 16 bytes of \
                  each split."
                .to_owned(),
        });
        b.unrolled("i", rounds, |b, i| {
            let of_line = terms / unit;
            let at = tid + i * threads;
            let line = b.let_("line", at.clone() / of_line.clone());
            let term = b.let_("k", at % of_line * unit);
            let [row, column] = [first_line + line, first_term + term].map(Expr::from);
            let is = row.clone().lt(side.lines.clone()).and(column.clone().lt(self.splits.pitch()));
            b.if_(is, |b| {
                let value = b.registers("value", F32, [unit.into()], "");
                b.unrolled("j", unit, |b, j| {
                    let from = Access::new(self.tile, [line.into(), term + j]).load();
                    let number = match self.scaled {
                        None => from,
                        Some((_, factors)) => from * Access::new(factors, [line.into()]).load(),
                    };
                    b.store(Access::new(value, [j.into()]), number);
                });
                self.split_numbers(b, value, unit, |b, split, words| {
                    let split = self.splits.of_matrix(side.number(), split);
                    let at = split.into_iter().chain([row.clone(), column.clone()]);
                    let to = Access::new(self.splits.buffers[factor.index()], at).vector();
                    b.store(to, Access::new(words, [0.into()]).vector().load());
                });
            });
        });
    }

    /// Computes the splits of `unit` values and passes each split to `store`. It replaces the
    /// values by their remainders.
    fn split_numbers(
        &self,
        b: &mut KernelBuilder,
        value: BufferId,
        unit: Const,
        store: impl FnOnce(&mut KernelBuilder, Expr, BufferId),
    ) {
        let (plan, elem) = (self.of, self.of.elem());
        let of = |array: BufferId, j: Var| Access::new(array, [j.into()]);
        if let (Some(bits), Arith::Tf32x3) = (self.bits, plan.arith()) {
            b.unrolled("j", unit, |b, j| {
                let left = bits_lost_in_tf32(b, of(value, j).load());
                b.assign(bits, bits | left);
            });
        }
        let several = plan.count() > 1;
        let round = |b: &mut KernelBuilder, split: Expr| {
            let words = b.registers("word", elem, [unit.into()], "");
            b.unrolled("j", unit, |b, j| {
                let number = of(value, j).load();
                let rounded = match plan.format() {
                    Format::Tf32 if several => tf32_bits(to_tf32(number.clone())).bitcast(F32),
                    Format::Tf32 => to_tf32_or_nan(number.clone()).bitcast(F32),
                    _ => number.clone().cast(elem),
                };
                b.store(of(words, j), rounded);
                if several {
                    b.store(of(value, j), number - of(words, j).load().cast(F32));
                }
            });
            store(b, split, words);
        };
        self.splits.each(b, round);
        if let (Some(bits), Format::Bf16) = (self.bits, plan.format()) {
            b.comment("A nonzero remainder shows that the splits do not represent the value.");
            b.unrolled("j", unit, |b, j| {
                b.assign(bits, bits | of(value, j).load().bitcast(U32));
            });
        }
    }
}
