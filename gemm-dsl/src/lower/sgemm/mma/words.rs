//! Words of the fragments of A and B. A lane loads its values from a tile and converts them to the
//! instruction's format.

use super::MmaContext;
use crate::ir::{
    Access, BufferId, Const, Elem, Expr, For, Intrinsic, KernelBuilder, LoadMatrix, Mma, Unroll,
    Var,
};
use crate::lower::sgemm::common::copy::name_of;
use crate::lower::sgemm::common::loops::over;
use crate::lower::sgemm::common::mma_layout::{FragmentSource, LaneLine, LdmatrixLine, WarpMma};
use crate::lower::sgemm::common::tf32::{tf32_bits, to_tf32, to_tf32_or_nan};
use crate::lower::sgemm::common::tile::{StagedFactor, Tiled};
use crate::target::Format;

/// Distance in K between the two values that share a word.
const APART: i32 = 4;

/// Reads a lane's fragments of one operand for one step.
pub(super) struct WordReader<'t> {
    factor: &'t StagedFactor,
    /// First k of the step in the tile.
    at: Expr,
    /// Number of instructions along the operand's free axis, as a constant and as a value.
    count: (Const, u32),
    source: WordSource,
    /// Number of rows or columns per lane and instruction: two rows of A, or one column of B.
    lines: i32,
    /// Distance between the lane's rows or columns in the tile.
    stride: Const,
}

/// Location of a lane's values in one step.
#[derive(Clone, Copy)]
enum WordSource {
    /// In the tile; `free` is the first row or column, and `term` the first k.
    Tile { free: Var, term: Var },
    /// Loaded by `ldmatrix`, for which the lane supplies the address of this row or column.
    Ldmatrix(LdmatrixLine),
}

/// Location of a lane's values for one instruction.
enum LaneTerms {
    /// In the tile; `free` is the first row or column, and `term` the first k.
    Tile { free: Var, term: Var },
    /// In registers that `ldmatrix` has loaded. There is one row of registers for each half of the
    /// instruction's K, or a single row.
    Loaded(BufferId),
}

impl<'t> WordReader<'t> {
    /// Readers of A and of B for the step whose first k is `at`.
    pub fn declare(
        b: &mut KernelBuilder,
        tiled: &'t Tiled<'_>,
        of: &WarpMma,
        at: &Expr,
    ) -> [Self; 2] {
        // Lanes read the same k of A and of B.
        let lines = of.from.iter().find_map(|from| match from {
            FragmentSource::Tile(line) => Some(line.term),
            FragmentSource::Ldmatrix(_) => None,
        });
        let term = lines.map(|first| b.let_("lane_k", at.clone() + first));
        let source = |from: FragmentSource| match (from, term) {
            (FragmentSource::Ldmatrix(line), _) => WordSource::Ldmatrix(line),
            (FragmentSource::Tile(LaneLine { free, .. }), Some(term)) => {
                WordSource::Tile { free, term }
            }
            (FragmentSource::Tile(_), None) => {
                unreachable!("WordReader::declare: `lane_k` exists for such sources")
            }
        };
        let [of_a, of_b] = of.from.map(source);
        let (rows, cols) = (of.counts.plan.rows(), of.counts.plan.cols());
        let (rows, cols) = ((of.counts.rows, rows), (of.counts.cols, cols));
        let stride = of.mma_n.unwrap_or(of.lanes);
        let at = || at.clone();
        [
            Self {
                factor: &tiled.a,
                at: at(),
                count: rows,
                source: of_a,
                lines: 2,
                stride: of.lanes,
            },
            Self { factor: &tiled.b, at: at(), count: cols, source: of_b, lines: 1, stride },
        ]
    }

    /// Loads the words of all instructions along the operand's free axis.
    pub fn all(&self, b: &mut KernelBuilder, context: MmaContext<'_>, slot: &Expr) -> BufferId {
        let array = self.array(b, context.warp, Some(self.count.0));
        let (count, number) = self.count;
        over(b, "j", count.into(), number, |b, nth| {
            self.read(b, context, slot, &nth, &|split: Option<Expr>, word: Var| {
                Access::new(array, split.into_iter().chain([nth.clone(), word.into()]))
            });
        });
        array
    }

    /// Loads the words of the n-th instruction.
    pub fn one(
        &self,
        b: &mut KernelBuilder,
        context: MmaContext<'_>,
        slot: &Expr,
        nth: &Expr,
    ) -> BufferId {
        let array = self.array(b, context.warp, None);
        self.read(b, context, slot, nth, &|split: Option<Expr>, word: Var| {
            Access::new(array, split.into_iter().chain([word.into()]))
        });
        array
    }

    /// Number of words per lane and instruction.
    fn count_of_words(&self) -> i32 {
        self.lines * Mma::OF_B as i32
    }

    fn array(&self, b: &mut KernelBuilder, of: &WarpMma, count: Option<Const>) -> BufferId {
        let dims = of.counts.splits.into_iter().chain(count).map(Expr::from);
        let dims = dims.chain([self.count_of_words().into()]);
        b.registers(&name_of(&self.factor.plan, "frag"), Elem::U32, dims, "")
    }

    /// Loads the words of the n-th instruction. Each is stored in the register that `place` returns
    /// for its split and word index.
    fn read(
        &self,
        b: &mut KernelBuilder,
        context: MmaContext<'_>,
        slot: &Expr,
        nth: &Expr,
        place: &dyn Fn(Option<Expr>, Var) -> Access,
    ) {
        let of = context.warp;
        let held = match self.source {
            WordSource::Tile { free, term } => LaneTerms::Tile { free, term },
            WordSource::Ldmatrix(line) => LaneTerms::Loaded(self.load(b, of, line, slot, nth)),
        };
        b.unrolled("w", self.count_of_words(), |b, word| {
            let value = |index| self.value(of, &held, slot, nth, word, index);
            let target = |split: Option<Expr>| place(split, word);
            let pack = match of.counts.plan.format() {
                Format::Tf32 => return split_tf32(b, context, value(0), &target),
                Format::Bf16 => Intrinsic::PackBf16,
                Format::F16 => Intrinsic::PackF16,
                other => unreachable!("check: `mma.sync` has no operands in {other:?}"),
            };
            split_halves(b, context, pack, [value(0), value(1)], &target);
        });
    }

    /// Loads the values of the n-th instruction by `ldmatrix`.
    fn load(
        &self,
        b: &mut KernelBuilder,
        of: &WarpMma,
        line: LdmatrixLine,
        slot: &Expr,
        nth: &Expr,
    ) -> BufferId {
        let mma_k = of.counts.plan.terms() as i32;
        let lines = 8 * self.lines;
        let (name, elem) = (name_of(&self.factor.plan, "raw"), self.factor.plan.elem());
        let from = |half: Expr| {
            let free = line.free + nth.clone() * lines;
            let term = self.at.clone() + half + line.term;
            self.factor.shared.at(slot, [free, term]).vector()
        };
        // One 8x8 matrix of `ldmatrix` contains four 32-bit elements of each of eight rows or
        // columns.
        let count = self.lines * mma_k / 4;
        if count <= 4 {
            let raw = b.registers(&name, elem, [count.into()], "");
            let to = Access::new(raw, [0.into()]);
            let load =
                LoadMatrix { count: count as u8, transposed: false, to, from: from(0.into()) };
            b.load_matrix(load);
            return raw;
        }
        let raw = b.registers(&name, elem, [2.into(), 4.into()], "");
        b.unrolled("h", 2, |b, h| {
            let to = Access::new(raw, [h.into(), 0.into()]);
            let from = from(h * (mma_k / 2));
            b.load_matrix(LoadMatrix { count: 4, transposed: false, to, from });
        });
        raw
    }

    /// Value `index` (0 or 1) of a word of the n-th instruction. A `tf32` word contains only value
    /// 0.
    fn value(
        &self,
        of: &WarpMma,
        held: &LaneTerms,
        slot: &Expr,
        nth: &Expr,
        word: Var,
        index: i32,
    ) -> Expr {
        let mma_k = of.counts.plan.terms() as i32;
        let (line, half) = match self.lines {
            1 => (Expr::I32(0), Expr::from(word)),
            lines => (word % lines, word / lines),
        };
        match held {
            LaneTerms::Tile { free, term } => {
                let free = *free + (nth.clone() * self.lines + line) * self.stride;
                let term = *term + half * (mma_k / 2) + index * APART;
                self.factor.shared.at(slot, [free, term]).load()
            }
            LaneTerms::Loaded(raw) => {
                // Within a half of K, the matrices of its first four elements precede those of its
                // last four. Each has one matrix per row or column of the lane.
                let matrix = line + index * self.lines;
                let register = match (self.lines * mma_k / 4, of.counts.plan.format()) {
                    (8, _) => vec![half, matrix],
                    (_, Format::Tf32) => vec![word.into()],
                    _ => vec![half * 2 + matrix],
                };
                Access::new(*raw, register).load()
            }
        }
    }
}

/// Splits two values, and packs their n-th splits into one word.
fn split_halves(
    b: &mut KernelBuilder,
    context: MmaContext<'_>,
    pack: Intrinsic,
    [low, high]: [Expr; 2],
    target: &dyn Fn(Option<Expr>) -> Access,
) {
    let packed = |low: Expr, high: Expr| Expr::Call(pack, vec![low, high]);
    let Some(splits) = context.warp.counts.splits else {
        return b.store(target(None), packed(low, high));
    };
    if pack != Intrinsic::PackBf16 {
        unreachable!("plan: `mma: sync` splits only into bf16 or tf32")
    }
    let (low, high) = (b.mut_("low", low), b.mut_("high", high));
    let last = splits - 1;
    b.loop_("p", For::below(0, last.clone()).unroll(Unroll::Full), |b, p| {
        let word = b.let_("word", packed(low.into(), high.into()));
        b.store(target(Some(p.into())), word);
        b.assign(low, low - lower(word.into()));
        b.assign(high, high - upper(word.into()));
    });
    if let Some(unrepresentable) = &context.accumulators.unrepresentable {
        unrepresentable.see(b, [low.into(), high.into()].map(|rest: Expr| rest.bitcast(Elem::U32)));
    }
    b.store(target(Some(last)), packed(low.into(), high.into()));
}

/// Splits a value into `tf32` words, one per split.
fn split_tf32(
    b: &mut KernelBuilder,
    context: MmaContext<'_>,
    value: Expr,
    target: &dyn Fn(Option<Expr>) -> Access,
) {
    let value = b.let_("value", value);
    if context.warp.counts.splits.is_none() {
        return b.store(target(None), to_tf32_or_nan(value.into()));
    }
    let large = b.let_("large", to_tf32(value.into()));
    b.store(target(Some(0.into())), large);
    if let Some(unrepresentable) = &context.accumulators.unrepresentable {
        unrepresentable.see_one(b, value.into());
    }
    let rest = value - tf32_bits(large.into()).bitcast(Elem::F32);
    b.store(target(Some(1.into())), to_tf32(rest));
}

/// Lower `bf16` of a word, as an `f32`.
pub(super) fn lower(word: Expr) -> Expr {
    (word << Expr::U32(16)).bitcast(Elem::F32)
}

/// Upper `bf16` of a word, as an `f32`.
pub(super) fn upper(word: Expr) -> Expr {
    (word & Expr::U32(0xffff_0000)).bitcast(Elem::F32)
}
