//! Numbers that planes do not hold though these stand for numbers of `f32`: infinities, none, and those so small or so
//! great that something of them is left. Who makes planes sees them and leaves a word in global memory; the product that
//! tensor cores compute is then not stored, and one in `f32` behind it is: what is launched is the same, and no host
//! asks.

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

/// Both in a program; the word is what the kernels before the one in `f32` take.
pub(crate) fn slots(program: &mut Program) -> [(Operand, Slot); 2] {
    let word = program.temp_of("lost", Elem::U32, [1u64.into()], TempFill::Kept);
    [(UNREPRESENTABLE, word), (UNREPRESENTABLE_TICKETS, tickets::slot(program, 1u64.into()))]
}

/// The magnitudes of `f32` that two numbers of `tf32` hold but for rounding, as bits: from 2^-112 on, below which what is
/// left may be subnormal, to the greatest that does not round to an infinity.
const HELD_BY_TF32: Range<u32> = {
    let single = FloatLayout::BINARY32;
    ((single.bias() - 112) as u32) << single.fraction..single.infinity() - HALF
};

/// The word in a kernel.
#[derive(Clone, Copy)]
pub(crate) struct UnrepresentableFlag(BufferId);

impl UnrepresentableFlag {
    /// Declares the parameter.
    pub fn parameter(b: &mut KernelBuilder) -> Self {
        let word = b.global("lost", Elem::U32, UNREPRESENTABLE);
        b.shape(word, [1.into()], [1.into()]);
        Self(word)
    }

    fn word(self) -> Access {
        Access::new(self.0, [0.into()])
    }

    /// Tells all kernels behind this one, where some bit says that a number has been lost.
    pub fn tell(self, b: &mut KernelBuilder, bits: Expr) {
        b.comment("Tell the kernels behind this one of numbers that planes do not hold.");
        b.if_(bits.any_bit(), |b| {
            let (one, order) = (Expr::U32(1), MemoryOrder::Relaxed);
            b.atomic_only(AtomicOp::Max, self.word(), one, order, Scope::Device);
        });
    }

    /// Whether all numbers are in their planes.
    pub fn none(self, b: &mut KernelBuilder) -> Expr {
        b.comment("Where planes do not hold all numbers, nothing is multiplied: a kernel behind this one does it.");
        let unrepresentable = b.let_("is_lost", self.word().load());
        Expr::from(unrepresentable).equals(Expr::U32(0))
    }
}

/// The bits of a number of `f32` that two of `tf32` do not hold but for rounding; 0 of one that they hold.
pub(crate) fn bits_lost_in_tf32(b: &mut KernelBuilder, value: Expr) -> Expr {
    let size = b.let_("size", magnitude(value));
    is_held_by_tf32(size).select(Expr::U32(0), size)
}

/// Whether two numbers of `tf32` hold one of `f32` but for rounding, of which this is the magnitude.
pub(crate) fn is_held_by_tf32(magnitude: Var) -> Expr {
    let span = HELD_BY_TF32.end - HELD_BY_TF32.start;
    let above = magnitude - Expr::U32(HELD_BY_TF32.start);
    let is_zero = Expr::from(magnitude).equals(Expr::U32(0));
    is_zero.or(above.lt(Expr::U32(span)))
}

/// The magnitude of a number of `f32`, as bits: in their order lie the magnitudes.
pub(crate) fn magnitude(value: Expr) -> Expr {
    value.bitcast(Elem::U32) & Expr::U32(0x7fff_ffff)
}

/// What a kernel in `f32` asks that stands in for one of tensor cores.
#[derive(Clone, Copy)]
pub(crate) struct Fallback {
    unrepresentable: UnrepresentableFlag,
    tickets: BufferId,
}

impl Fallback {
    /// Declares the parameters, behind those of the product.
    pub fn parameters(b: &mut KernelBuilder) -> Self {
        let unrepresentable = UnrepresentableFlag::parameter(b);
        let tickets = tickets::parameter(b, UNREPRESENTABLE_TICKETS);
        tickets::shape(b, tickets, 1.into());
        Self { unrepresentable, tickets }
    }

    /// Does what `body` says where a number is lost, or where there are no terms and so no planes. The last block then
    /// sets the word back.
    pub fn run(
        self,
        b: &mut KernelBuilder,
        terms: Expr,
        blocks: Expr,
        body: impl FnOnce(&mut KernelBuilder),
    ) {
        b.comment("This kernel computes what has no planes: nothing, or numbers that they do not hold. Else C has been");
        b.comment("stored.");
        let is_lost = terms.clone().gt(0).and(self.unrepresentable.word().load().any_bit());
        let is_lost = Expr::from(b.let_("is_lost", is_lost));
        b.if_(terms.equals(0).or(is_lost.clone()), body);
        let is_last = tickets::flag(b);
        b.comment("The last block says to the next launch that nothing is lost.");
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
