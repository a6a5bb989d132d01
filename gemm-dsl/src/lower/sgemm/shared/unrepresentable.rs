//! `f32` values that the split cannot represent: infinities, NaN, and magnitudes out of range. The
//! split kernel detects them and sets a flag in global memory. The tensor-core GEMM then does not
//! store C, and an `f32` fallback launched after it does. The launches are always the same, so the
//! host never has to read the flag.

use crate::ir::program::{Program, Slot, TempFill};
use crate::ir::{
    Access, AtomicOp, BufferId, Elem, Expr, KernelBuilder, MemoryOrder, Operand, Scope, Special,
    Var,
};
use crate::lower::sgemm::shared::tf32::HALF;
use crate::lower::sgemm::shared::workspace::{UNREPRESENTABLE, UNREPRESENTABLE_TICKETS};
use crate::lower::tickets::{self, Tickets};
use crate::target::FloatLayout;
use std::ops::Range;

/// Adds the flag and its ticket counter to a program. The kernels before the fallback take only the
/// flag.
pub(crate) fn slots(program: &mut Program) -> [(Operand, Slot); 2] {
    let word = program.temp_of("unrepresentable", Elem::U32, [1u64.into()], TempFill::Kept);
    [(UNREPRESENTABLE, word), (UNREPRESENTABLE_TICKETS, tickets::slot(program, 1u64.into()))]
}

/// Range of magnitudes, as bits, that two `tf32` values represent up to rounding. Below 2^-112 the
/// remainder may be subnormal; the end is the least magnitude that rounds to infinity.
const HELD_BY_TF32: Range<u32> = {
    let single = FloatLayout::BINARY32;
    ((single.bias() - 112) as u32) << single.fraction..single.infinity() - HALF
};

/// Flag for unrepresentable values in a kernel.
#[derive(Clone, Copy)]
pub(crate) struct UnrepresentableFlag(BufferId);

impl UnrepresentableFlag {
    pub fn parameter(b: &mut KernelBuilder) -> Self {
        let word = b.global("unrepresentable", Elem::U32, UNREPRESENTABLE);
        b.shape(word, [1.into()], [1.into()]);
        Self(word)
    }

    fn word(self) -> Access {
        Access::new(self.0, [0.into()])
    }

    /// Sets the flag if any bit reports an unrepresentable value.
    pub fn tell(self, b: &mut KernelBuilder, bits: Expr) {
        b.comment(
            "Flag values that the split cannot represent, for the kernels launched after this one.",
        );
        b.if_(bits.any_bit(), |b| {
            let (one, order) = (Expr::U32(1), MemoryOrder::Relaxed);
            b.atomic_only(AtomicOp::Max, self.word(), one, order, Scope::Device);
        });
    }

    /// Returns true if the flag is clear, so that all values are representable.
    pub fn none(self, b: &mut KernelBuilder) -> Expr {
        b.comment(
            "If the split cannot represent all values, this kernel computes nothing; the f32 \
             fallback after it computes C.",
        );
        let unrepresentable = b.let_("needs_fallback", self.word().load());
        Expr::from(unrepresentable).equals(Expr::U32(0))
    }
}

/// Magnitude bits of an `f32` that two `tf32` values cannot represent up to rounding; 0 if they
/// can.
pub(crate) fn bits_lost_in_tf32(b: &mut KernelBuilder, value: Expr) -> Expr {
    let size = b.let_("size", magnitude(value));
    is_held_by_tf32(size).select(Expr::U32(0), size)
}

/// Returns true if two `tf32` values represent an `f32` of this magnitude up to rounding.
pub(crate) fn is_held_by_tf32(magnitude: Var) -> Expr {
    let span = HELD_BY_TF32.end - HELD_BY_TF32.start;
    let above = magnitude - Expr::U32(HELD_BY_TF32.start);
    let is_zero = Expr::from(magnitude).equals(Expr::U32(0));
    is_zero.or(above.lt(Expr::U32(span)))
}

/// Magnitude of an `f32` as bits, which are ordered as the magnitudes are.
pub(crate) fn magnitude(value: Expr) -> Expr {
    value.bitcast(Elem::U32) & Expr::U32(0x7fff_ffff)
}

/// Parameters of the `f32` fallback of a tensor-core kernel.
#[derive(Clone, Copy)]
pub(crate) struct Fallback {
    unrepresentable: UnrepresentableFlag,
    tickets: BufferId,
}

impl Fallback {
    /// Declares the parameters, after those of the GEMM.
    pub fn parameters(b: &mut KernelBuilder) -> Self {
        let unrepresentable = UnrepresentableFlag::parameter(b);
        let tickets = tickets::parameter(b, UNREPRESENTABLE_TICKETS);
        tickets::shape(b, tickets, 1.into());
        Self { unrepresentable, tickets }
    }

    /// Emits `body` for a set flag, or for K = 0, where nothing is split. The last block then
    /// clears the flag.
    pub fn run(
        self,
        b: &mut KernelBuilder,
        terms: Expr,
        blocks: Expr,
        body: impl FnOnce(&mut KernelBuilder),
    ) {
        b.comment(
            "The fallback computes C if K is 0, or if the split cannot represent some value. \
             Otherwise C has",
        );
        b.comment("already been stored.");
        let is_lost = terms.clone().gt(0).and(self.unrepresentable.word().load().any_bit());
        let is_lost = Expr::from(b.let_("needs_fallback", is_lost));
        b.if_(terms.equals(0).or(is_lost.clone()), body);
        let is_last = tickets::flag(b);
        b.comment("The last block clears the flag for the next launch.");
        b.if_(is_lost, |b| {
            let first_thread = || Expr::from(Special::ThreadX).equals(0);
            let blocks = b.let_("blocks", blocks.cast(Elem::U32));
            let word = Access::new(self.tickets, [0.into()]);
            let tickets = Tickets::new(word, is_last, blocks.into(), first_thread());
            tickets.take_for_all(b);
            tickets.by_last(b, |b| {
                b.if_(first_thread(), |b| b.store(self.unrepresentable.word(), Expr::U32(0)));
            });
        });
    }
}
