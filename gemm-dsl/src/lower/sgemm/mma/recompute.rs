//! Fallback for values that the splits cannot represent, and for sums that leave the range of
//! `f32`. All accumulators to which such a value contributes, or which are not finite, are
//! recomputed in `f32`.
//!
//! A product of remainders may overflow with another sign than the product of the values. A sum of
//! part of K may overflow while the sum over all of K is in range.
//!
//! Three `bf16` values represent every `f32` except infinities, NaN, values that round to an
//! infinity, and values so small that the remainder after two splits underflows. In these cases the
//! remainder after the third split is nonzero or NaN. Two `tf32` values are used only for
//! magnitudes at which their error stays at rounding level.

use crate::ir::{
    Access, AtomicOp, BufferLayout, Change, Elem, Expr, For, FunctionId, Intrinsic, KernelBuilder,
    MemoryOrder, Scope, Ty, Unroll, Var,
};
use crate::lower::sgemm::common::accumulators::{Accumulators, UnrepresentableBits, is_finite};
use crate::lower::sgemm::common::copy::name_of;
use crate::lower::sgemm::common::edge;
use crate::lower::sgemm::common::loops::over;
use crate::lower::sgemm::common::tile::{StagedFactor, Tiled};
use crate::lower::sgemm::common::unrepresentable::{
    FlaggedTile, TileFlags, is_held_by_tf32, magnitude,
};
use crate::plan::Edge;
use crate::spec::Factor;
use crate::target::Format;
use crate::target::arch::WARP;

impl UnrepresentableBits {
    pub(super) fn declare(b: &mut KernelBuilder, tiled: &Tiled<'_>) -> Self {
        let format = tiled.mma.map_or(Format::Bf16, |of| of.counts.plan.format());
        b.comment("Bits of the remainders that the splits cannot represent.");
        let bits = b.mut_("remainder_bits", Expr::U32(0));
        let of_block = tiled.frame.slices.map(|_| {
            let meaning = "set if a slice finds a value that the splits cannot represent";
            let word =
                b.shared("lost_of_block", Elem::U32, [], BufferLayout::row_major(0), meaning);
            let word = Access::new(word, []);
            let first_thread = tiled.accumulator_tile().first_thread;
            b.if_(first_thread, |b| b.store(word.clone(), Expr::U32(0)));
            word
        });
        Self { bits, of_block, format }
    }

    /// Records the bits of the remainders of two values.
    pub(super) fn see(&self, b: &mut KernelBuilder, rests: [Expr; 2]) {
        let [rest_a, rest_b] = rests;
        b.assign(self.bits, self.bits | (rest_a | rest_b));
    }

    /// Records the bits of the remainder of one value.
    pub(super) fn see_one(&self, b: &mut KernelBuilder, value: Expr) {
        let rest = rest(b, self.format).apply([value]);
        b.assign(self.bits, self.bits | rest);
    }
}

/// Keeps only the bits that show a loss. For `bf16`, these are the lower 16 bits of the remainder
/// after two splits, which are zero if the third split represents it.
fn counted(format: Format, bits: Expr) -> Expr {
    if format == Format::Tf32 { bits } else { bits & Expr::U32(0xffff) }
}

/// Declares the device function that returns the remainder of a value after two splits, as
/// bits. For `tf32`, it returns 1 if the value is not representable, else 0.
fn rest(b: &mut KernelBuilder, format: Format) -> FunctionId {
    let params = [("x", Ty::F32)];
    match format {
        Format::Tf32 => {
            let meaning = ["1 if two tf32 values cannot represent x up to rounding, else 0."];
            b.function("remainder", &meaning, &params, |b, params| {
                let size = b.let_("size", magnitude(params[0].into()));
                is_held_by_tf32(size).select(Expr::U32(0), Expr::U32(1))
            })
        }
        _ => {
            let meaning = [
                "Remainder of x after two bf16 splits, as bits: the lower half is zero if a \
                 third bf16",
                "represents it.",
            ];
            b.function("remainder", &meaning, &params, |b, params| {
                let rounded = |x: Var| Expr::from(x).cast(Elem::Bf16).cast(Elem::F32);
                let x = params[0];
                let first = b.let_("first", x - rounded(x));
                (first - rounded(first)).bitcast(Elem::U32)
            })
        }
    }
}

/// Returns true if some slice of the block has met a value that the splits cannot represent; `None`
/// without slices. All threads of the block take part.
pub(crate) fn seen_by_slices(b: &mut KernelBuilder, acc: &Accumulators) -> Option<Var> {
    let unrepresentable = acc.mma()?.unrepresentable.as_ref()?;
    let word = unrepresentable.of_block.as_ref()?;
    b.comment(
        "The first slice recomputes if any slice met a value that the splits cannot represent.",
    );
    let counted = counted(unrepresentable.format, unrepresentable.bits.into());
    b.if_(counted.any_bit(), |b| {
        let (one, order) = (Expr::U32(1), MemoryOrder::Relaxed);
        b.atomic_only(AtomicOp::Max, word.clone(), one, order, Scope::Block);
    });
    b.barrier();
    Some(b.let_("seen", word.clone().load().any_bit()))
}

/// Recomputes the accumulators to which values contribute that the splits cannot represent, and the
/// accumulators that are not finite. `seen` is the result of [`seen_by_slices`].
pub(crate) fn recompute(
    b: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    acc: &Accumulators,
    seen: Option<Var>,
) {
    let Some((mma, warp)) = acc.mma().zip(tiled.mma.as_ref()) else { return };
    if !warp.counts.plan.arith().is_emulation() {
        return;
    }
    let format = warp.counts.plan.format();
    let (rest, acc_elem) = (rest(b, format), tiled.frame.plan.types().acc);
    b.comment(format!(
        "Recompute accumulators in f32 if they are not finite, or if they depend on a value that \
         SPLITS x {} cannot represent, such as an infinity or a tiny magnitude.",
        format.name(),
    ));
    b.comment("Bits of magnitudes are ordered like the magnitudes, so the greatest tells if all");
    b.comment("accumulators are finite.");
    let not_finite = acc.not_finite(b, [&tiled.rows, &tiled.cols]);
    let of_warp = |bits: Expr| Expr::Call(Intrinsic::OrOfLanes, vec![bits]);
    let seen = match (seen, &mma.unrepresentable) {
        (Some(seen), _) => Expr::from(seen).or(of_warp(not_finite).any_bit()),
        (None, Some(unrepresentable)) => {
            let bits = Expr::from(unrepresentable.bits) | not_finite;
            counted(format, of_warp(bits)).any_bit()
        }
        (None, None) => {
            let flagged = tiled.frame.flags.map(|flags| flagged(b, tiled, flags));
            let bits = flagged.into_iter().fold(not_finite, |bits, flags| bits | flags);
            of_warp(bits).any_bit()
        }
    };
    let rolled = |end: Expr| For::below(0, end).unroll(Unroll::By(1));
    // Measured on an H200: with other unroll factors, ptxas schedules the main loop 1 to 14 %
    // slower.
    let unroll = Unroll::By(if warp.counts.plan.converted() { 4 } else { 2 });
    b.if_(seen, |b| {
        b.loop_("m", rolled(tiled.frame.tm.into()), |b, m| {
            let row = b.let_("row", line(tiled, &tiled.a, tiled.rows.element(m.into())));
            let sums = b.zeroed_registers("sums", acc_elem, [tiled.frame.tn.into()], "");
            let rests = b.zeroed_registers("remainders", Elem::U32, [tiled.frame.tn.into()], "");
            b.loop_("k", For::below(0, tiled.depth()).unroll(unroll), |b, term| {
                let a_value = b.let_("a_value", tiled.a.at(row.into(), term.into()).load());
                let rest_a = b.let_("remainder_a", rest.apply([a_value.into()]));
                over(b, "n", tiled.frame.tn.into(), tiled.frame.t.tn(), |b, n| {
                    let col = line(tiled, &tiled.b, tiled.cols.element(n.clone()));
                    let b_value = b.let_("b_value", tiled.b.at(col, term.into()).load());
                    let [sum, left] = [sums, rests].map(|of| Access::new(of, [n.clone()]));
                    let fma = vec![a_value.into(), b_value.into(), sum.clone().load()];
                    b.store(sum, Expr::Call(Intrinsic::Fma, fma));
                    let rest_b = rest.apply([b_value.into()]);
                    b.store(left.clone(), left.load() | (rest_a | rest_b));
                });
            });
            b.comment("The scan uses constant indices, which keep acc in registers.");
            over(b, "i", tiled.frame.tm.into(), tiled.frame.t.tm(), |b, i| {
                over(b, "n", tiled.frame.tn.into(), tiled.frame.t.tn(), |b, n| {
                    let [sum, left] = [sums, rests].map(|of| Access::new(of, [n.clone()]).load());
                    let place = mma.place(&i, &n);
                    let differs = counted(format, left).any_bit();
                    let differs = differs.or(is_finite(place.clone().load()).negated());
                    let own = i.clone().equals(m).and(differs);
                    b.if_(own, |b| b.store(place, sum));
                });
            });
        });
    });
}

/// Combines the flags of all tiles of A and B that the block multiplies. Each lane reads some of
/// them.
fn flagged(b: &mut KernelBuilder, tiled: &Tiled<'_>, flags: TileFlags) -> Var {
    b.comment(
        "Flags of the tiles of A and B that contain values which the splits cannot represent.",
    );
    let bits = b.mut_("flags", Expr::U32(0));
    let FlaggedTile { lines, terms } = FlaggedTile::declare(b);
    let lane = b.let_("flag_lane", tiled.frame.tid % WARP as i32);
    let problem = &tiled.problem;
    for (factor, staged, extent) in
        [(Factor::A, &tiled.a, tiled.frame.bm), (Factor::B, &tiled.b, tiled.frame.bn)]
    {
        let first = b.let_(&name_of(&staged.plan, "first"), staged.origin / lines * lines);
        // Flags cover whole tiles, also past the edge.
        let end = b.let_(&name_of(&staged.plan, "end"), staged.origin + extent);
        let strips = For::below(first, end).change(Change::Add(lines.into())).unroll(Unroll::By(1));
        b.loop_("line", strips, |b, line| {
            let tiles = For::below(lane * terms, problem.k)
                .change(Change::Add(terms * WARP as i32))
                .unroll(Unroll::By(1));
            b.loop_("k", tiles, |b, term| {
                let matrix = problem.matrix_of(factor, problem.product);
                let at = flags.at(factor, matrix, [line / lines, term / terms]);
                b.assign(bits, bits | at.load());
            });
        });
    }
    bits
}

/// Row of A or column of B to read for index `at`. An index beyond the edge is clamped.
fn line(tiled: &Tiled<'_>, factor: &StagedFactor, at: Expr) -> Expr {
    let edge = if tiled.frame.plan.guarded() { Edge::Last } else { Edge::Exact };
    edge::inside(
        edge,
        tiled.frame.plan.types().factor(factor.plan.free().factor()),
        factor.origin + at,
        factor.extent.clone(),
    )
}
