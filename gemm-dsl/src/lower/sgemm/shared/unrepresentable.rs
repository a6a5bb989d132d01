//! `f32` values that the splits cannot represent: infinities, NaN, and magnitudes out of range. The
//! kernel that splits A and B detects them and sets a flag in global memory. If the flag is set,
//! the tensor-core GEMM stores nothing, and the `f32` fallback that is launched next computes C.
//! Both are always launched, so the host never reads the flag.

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

/// Adds the flag and its ticket counter to a program. Only the fallback takes the ticket counter.
pub(crate) fn slots(program: &mut Program) -> [(Operand, Slot); 2] {
    let word = program.temp_of("unrepresentable", Elem::U32, [1u64.into()], TempFill::Kept);
    [(UNREPRESENTABLE, word), (UNREPRESENTABLE_TICKETS, tickets::slot(program, 1u64.into()))]
}

/// Range of magnitudes, as bits, that two `tf32` values represent up to rounding. Below 2^-112 the
/// remainder may be subnormal. The end of the range is the smallest magnitude that rounds to
/// infinity.
const HELD_BY_TF32: Range<u32> = {
    let single = FloatLayout::BINARY32;
    ((single.bias() - 112) as u32) << single.fraction..single.infinity() - HALF
};

/// Flag for values that the splits cannot represent, as a kernel's parameter.
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

    /// Sets the flag if `bits` is nonzero, which reports a value that the splits cannot represent.
    pub fn tell(self, b: &mut KernelBuilder, bits: Expr) {
        b.comment(
            "Flag values that the split cannot represent, for the kernels launched after this one.",
        );
        b.if_(bits.any_bit(), |b| {
            let (one, order) = (Expr::U32(1), MemoryOrder::Relaxed);
            b.atomic_only(AtomicOp::Max, self.word(), one, order, Scope::Device);
        });
    }

    /// Returns true if the flag is clear, so that the splits represent all values.
    pub fn none(self, b: &mut KernelBuilder) -> Expr {
        b.comment(
            "If the split cannot represent all values, this kernel computes nothing; the f32 \
             fallback after it computes C.",
        );
        let unrepresentable = b.let_("needs_fallback", self.word().load());
        Expr::from(unrepresentable).equals(Expr::U32(0))
    }
}

/// Returns the magnitude bits of an `f32` if two `tf32` values cannot represent it up to rounding,
/// else 0.
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

/// Magnitude of an `f32` as bits. The bits have the same order as the magnitudes.
pub(crate) fn magnitude(value: Expr) -> Expr {
    value.bitcast(Elem::U32) & Expr::U32(0x7fff_ffff)
}

/// Parameters of the `f32` fallback for a tensor-core kernel.
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

    /// Emits `body` under the condition that the flag is set, or that K = 0, in which case nothing
    /// is split. The last block then clears the flag.
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
                b.comment("Last ticket: all blocks have read the flag.");
                b.if_(first_thread(), |b| b.store(self.unrepresentable.word(), Expr::U32(0)));
            });
        });
    }
}
