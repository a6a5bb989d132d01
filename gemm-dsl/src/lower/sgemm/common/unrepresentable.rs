//! `f32` values that the splits cannot represent: infinities, NaN, and magnitudes out of range. The
//! kernel that splits A and B detects them and sets a flag in global memory. If the flag is set,
//! the tensor-core GEMM stores nothing, and the `f32` fallback that is launched next computes C.
//! Both are always launched, so the host never reads the flag.
//!
//! If the splits are padded to whole tiles, each tile of A and B has its own flag instead. The GEMM
//! then recomputes the sums to which such values contribute.

use crate::ir::program::{Program, Slot, TempFill};
use crate::ir::{
    Access, AtomicOp, BufferId, Const, Elem, Expr, KernelBuilder, MemoryOrder, Operand, Scope,
    Special, Var,
};
use crate::lower::sgemm::common::problem::GemmProblem;
use crate::lower::sgemm::common::splits::{self, FactorExtents, LINES, TERMS};
use crate::lower::sgemm::common::tf32::HALF;
use crate::lower::sgemm::common::workspace::{
    TILE_FLAGS, UNREPRESENTABLE, UNREPRESENTABLE_TICKETS,
};
use crate::lower::tickets::{self, Tickets};
use crate::plan::SplitsPlan;
use crate::spec::Factor;
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
        b.title(
            "unrepresentable[0] is nonzero if the splits cannot represent every value of A and B.",
        );
        Self(word)
    }

    fn word(self) -> Access {
        Access::new(self.0, [0.into()])
    }

    /// Sets the flag if `bits` is nonzero, which reports a value that the splits cannot represent.
    pub fn tell(self, b: &mut KernelBuilder, bits: Expr) {
        b.comment(
            "Flag values that the splits cannot represent, for the kernels launched after this \
             one.",
        );
        b.if_(bits.any_bit(), |b| {
            let (one, order) = (Expr::U32(1), MemoryOrder::Relaxed);
            b.atomic_only(AtomicOp::Max, self.word(), one, order, Scope::Device);
        });
    }

    /// Returns true if the flag is clear, so that the splits represent all values.
    pub fn none(self, b: &mut KernelBuilder) -> Expr {
        b.comment(
            "If the splits cannot represent every value, k_tiles is 0 and nothing is stored; the \
             f32 fallback after this kernel computes C.",
        );
        let unrepresentable = b.let_("needs_fallback", self.word().load());
        Expr::from(unrepresentable).equals(Expr::U32(0))
    }
}

/// Flags of tiles of A and B with values that the splits cannot represent. Their tiles are those of
/// the kernel that computes the splits. It writes all flags, so they need no reset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileFlags([BufferId; 2]);

/// Extents of a flagged tile as constants of a GEMM kernel.
#[derive(Clone, Copy)]
pub(crate) struct FlaggedTile {
    pub lines: Const,
    pub terms: Const,
}

impl FlaggedTile {
    pub fn declare(b: &mut KernelBuilder) -> Self {
        let lines = "rows of A, or columns of B, of a flagged tile";
        Self {
            lines: b.constant("FLAG_LINES", LINES, lines),
            terms: b.constant("FLAG_K", TERMS, "extent of a flagged tile along K"),
        }
    }

    pub fn extents(self) -> [Const; 2] {
        [self.lines, self.terms]
    }
}

/// Adds the flags of the tiles of `counts` matrices to a program.
pub(crate) fn tile_flags(
    program: &mut Program,
    of: &SplitsPlan,
    lines: [&Expr; 2],
    terms: &Expr,
    counts: [Option<&Expr>; 2],
) -> [(Operand, Slot); 2] {
    Factor::BOTH.map(|factor| {
        let nth = factor.index();
        let tiles = splits::tile_counts(of, factor, lines[nth], terms);
        let dims: Vec<Expr> = counts[nth].cloned().into_iter().chain(tiles).collect();
        let name = ["flags of tiles of A", "flags of tiles of B"][nth];
        (TILE_FLAGS[nth], program.temp(name, Elem::U32, dims))
    })
}

impl TileFlags {
    /// Declares the parameters, after those of the problem.
    pub fn parameters(b: &mut KernelBuilder) -> Self {
        b.title(format!(
            "lost_a has one word per {LINES} x {TERMS} tile of A, and lost_b one per {TERMS} x \
             {LINES} tile of B.",
        ));
        b.title("A word is nonzero if the splits cannot represent every value of its tile.");
        Self(Factor::BOTH.map(|factor| {
            let nth = factor.index();
            b.global(["lost_a", "lost_b"][nth], Elem::U32, TILE_FLAGS[nth])
        }))
    }

    /// Sets the shapes, given the extents of the splits and those of a tile.
    pub fn shape(
        self,
        b: &mut KernelBuilder,
        problem: &GemmProblem,
        extents: &FactorExtents,
        [of_strip, of_tile]: [Const; 2],
    ) {
        let along = extents.terms.clone().div_ceil(of_tile);
        for (factor, buffer) in Factor::BOTH.into_iter().zip(self.0) {
            let strips = extents.lines[factor.index()].clone().div_ceil(of_strip);
            let batch = problem.count_of(factor).map(Expr::from);
            let apart = batch.as_ref().map(|_| strips.clone().wide() * along.clone().wide());
            b.shape(
                buffer,
                batch.into_iter().chain([strips, along.clone()]),
                apart.into_iter().chain([along.clone(), 1.into()]),
            );
        }
    }

    /// Flag of a tile, given the index of its matrix in a batch, and the indices of the tile along
    /// the lines and along K.
    pub fn at(self, factor: Factor, matrix: Option<Expr>, tile: [Expr; 2]) -> Access {
        Access::new(self.0[factor.index()], matrix.into_iter().chain(tile))
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
        b.title("It and tickets[0] are 0 before the first launch, and each launch resets them.");
        Self { unrepresentable, tickets }
    }

    /// Emits `body` under the condition that the flag is set or K = 0. For K = 0 nothing is split.
    /// The last block then clears the flag.
    pub fn run(
        self,
        b: &mut KernelBuilder,
        terms: Expr,
        blocks: Expr,
        body: impl FnOnce(&mut KernelBuilder),
    ) {
        b.comment(
            "The fallback computes C if K is 0, or if the splits cannot represent every value. \
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
