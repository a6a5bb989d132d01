//! Multiplication of a tile by tensor cores with `mma.sync`. The lanes of a warp convert elements
//! of A and B to the 32-bit words of fragments. The instruction adds the products to accumulators
//! that are distributed over the lanes.
//!
//! The result does not depend on the assignment of k indices to lanes. The assignment must be the
//! same for A and B, and must not move an index to the other half of an instruction's K. Of each
//! eight consecutive k, lane t of a group of four takes k = t and k = t + 4. At these positions,
//! 4-byte loads and `ldmatrix` are free of bank conflicts. If an earlier launch has converted A and
//! B, `ldmatrix` loads the words of fragments in the instruction's own order.
//!
//! FP32 emulation splits a value into several values of a smaller format, the largest first. Each
//! split is the rounded remainder after the previous splits. Tensor cores truncate when they
//! accumulate. They therefore sum only a short extent of K in a fresh accumulator, which an IEEE
//! addition then adds to the main one.

mod fragments;
mod recompute;
mod words;

pub(crate) use recompute::{recompute, seen_by_slices};

use super::common::accumulators::{
    EXCHANGE, MmaAccumulators, UnrepresentableBits, exchange_column,
};
use super::common::loops::over;
use super::common::mma_layout::{FragmentSource, MmaCounts, WarpMma};
use super::common::split_products::{products_comment, promotion_comment};
use super::common::tile::Tiled;
use crate::ir::{Access, BufferId, Expr, KernelBuilder, Mma};
use fragments::FragmentLoader;
use words::WordReader;

impl MmaAccumulators {
    /// Declares the accumulators, all zero.
    pub fn declare(b: &mut KernelBuilder, tiled: &Tiled<'_>, of: &WarpMma) -> Self {
        let dims = || [of.counts.rows.into(), of.counts.cols.into(), (Mma::OF_D as i32).into()];
        b.comment("acc[i][j] is this lane's fragment of mma tile (i, j) of the warp tile.");
        let elem = tiled.frame.plan.types().acc;
        let sums = b.zeroed_registers("acc", elem, dims(), "");
        let several = of.counts.plan.promote_steps().is_some_and(|steps| steps > 1);
        if several {
            promotion_comment(b, "each run of PROMOTE K steps");
        }
        let meaning = "accumulators since the last promotion";
        let fresh = several.then(|| b.zeroed_registers("fresh", elem, dims(), meaning));
        // With flags, the kernel that computes the splits has seen all values.
        let if_by_lanes = of.counts.plan.arith().is_emulation() && tiled.frame.flags.is_none();
        let unrepresentable = if_by_lanes.then(|| UnrepresentableBits::declare(b, tiled));
        let exchanges = of.counts.plan.exchanges();
        Self { sums, fresh, unrepresentable, exchanges }
    }

    /// Exchanges accumulators between pairs of lanes, if the plan says so.
    pub fn exchange(&self, b: &mut KernelBuilder, tiled: &Tiled<'_>, of: &WarpMma) {
        if !self.exchanges {
            return;
        }
        b.comment(EXCHANGE);
        let is_even = Expr::from(b.let_("is_even", (tiled.frame.tid % 2).equals(0)));
        let counts = &of.counts;
        over(b, "i", counts.rows.into(), counts.plan.rows(), |b, i| {
            over(b, "j", counts.cols.into(), counts.plan.cols(), |b, j| {
                b.unrolled("e", 2, |b, e| {
                    let at = |row: i32| [i.clone(), j.clone(), Expr::I32(row * 2) + e];
                    exchange_column(b, &is_even, |row| Access::new(self.sums, at(row)));
                });
            });
        });
    }

    /// Adds the fresh accumulators to the main ones, and clears them.
    fn promote(&self, b: &mut KernelBuilder, counts: &MmaCounts, fresh: BufferId) {
        over(b, "i", counts.rows.into(), counts.plan.rows(), |b, i| {
            over(b, "j", counts.cols.into(), counts.plan.cols(), |b, j| {
                b.unrolled("e", Mma::OF_D as i32, |b, e| {
                    let of = |sums| Access::new(sums, [i.clone(), j.clone(), e.into()]);
                    b.store(of(self.sums), of(self.sums).load() + of(fresh).load());
                    b.store(of(fresh), 0.0);
                });
            });
        });
    }
}

/// Warp tile and accumulators of a warp's `mma` instructions.
#[derive(Clone, Copy)]
pub(crate) struct MmaContext<'a> {
    pub warp: &'a WarpMma,
    pub accumulators: &'a MmaAccumulators,
}

/// Multiplies step `i` of the tile in buffer `slot`.
pub(crate) fn step(
    b: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    context: MmaContext<'_>,
    slot: &Expr,
    i: &Expr,
) {
    let MmaContext { warp: of, accumulators: mma } = context;
    let at = tiled.step(i.clone());
    let fragments = StepFragments::declare(b, tiled, of, slot, &at);
    let b_words = fragments.of_b(b, context, slot);
    let counts = &of.counts;
    over(b, "i", counts.rows.into(), counts.plan.rows(), |b, i| {
        let row = MmaRow { a: fragments.of_a(b, context, slot, &i), b: b_words, warp: of };
        let of_row = |sums| move |j: &Expr, e: Expr| Access::new(sums, [i.clone(), j.clone(), e]);
        match (mma.fresh, counts.plan.promote_steps()) {
            (Some(fresh), _) => row.multiply(b, &row.all(), of_row(fresh)),
            (None, None) => row.multiply(b, &row.all(), of_row(mma.sums)),
            (None, Some(_)) => {
                promotion_comment(b, "each K step");
                row.each_part(b, |b, part| {
                    let dims = [part.count.clone(), (Mma::OF_D as i32).into()];
                    let fresh = b.zeroed_registers("fresh", tiled.frame.plan.types().acc, dims, "");
                    let own = move |j: &Expr, e| Access::new(fresh, [j.clone(), e]);
                    row.multiply(b, &part, own);
                    row.add(b, &part, of_row(mma.sums), own);
                });
            }
        }
    });
    if let (Some(fresh), Some(steps)) = (mma.fresh, counts.plan.promote_steps()) {
        let meaning = "K steps between promotions of fresh accumulators";
        let together = b.constant("PROMOTE", steps as i32, meaning);
        let last = ((i.clone() + 1) % together).equals(0);
        b.if_(last, |b| mma.promote(b, counts, fresh));
    }
}

/// Source of the fragments of a step.
enum StepFragments<'t> {
    /// Lanes convert the words of fragments.
    Words([WordReader<'t>; 2]),
    /// Tiles hold the words of fragments.
    Loaded([FragmentLoader<'t>; 2]),
}

impl<'t> StepFragments<'t> {
    fn declare(
        b: &mut KernelBuilder,
        tiled: &'t Tiled<'_>,
        warp: &'t WarpMma,
        slot: &'t Expr,
        at: &Expr,
    ) -> Self {
        let loader = |factor, line| FragmentLoader { factor, warp, line, slot, at: at.clone() };
        match warp.from {
            [FragmentSource::Ldmatrix(of_a), FragmentSource::Ldmatrix(of_b)]
                if warp.counts.plan.converted() =>
            {
                Self::Loaded([loader(&tiled.a, of_a), loader(&tiled.b, of_b)])
            }
            _ => Self::Words(WordReader::declare(b, tiled, warp, at)),
        }
    }

    fn of_b(&self, b: &mut KernelBuilder, context: MmaContext<'_>, slot: &Expr) -> BufferId {
        match self {
            Self::Words([_, words]) => words.all(b, context, slot),
            Self::Loaded([_, loader]) => loader.of_b(b),
        }
    }

    /// Fragment of A for row `i` of instructions.
    fn of_a(
        &self,
        b: &mut KernelBuilder,
        context: MmaContext<'_>,
        slot: &Expr,
        i: &Expr,
    ) -> BufferId {
        match self {
            Self::Words([words, _]) => words.one(b, context, slot, i),
            Self::Loaded([loader, _]) => loader.of_a(b, i),
        }
    }
}

/// Row of `mma` instructions: one fragment of A, and the fragments of all columns of B.
struct MmaRow<'c> {
    a: BufferId,
    b: BufferId,
    warp: &'c WarpMma,
}

/// Adjacent instructions of a row.
struct RowPart {
    /// Index of the first instruction; `None` for 0.
    first: Option<Expr>,
    /// Number of instructions, as an expression and as a value.
    count: Expr,
    number: u32,
}

impl RowPart {
    /// Index in the row of instruction `j` of the part.
    fn column(&self, j: &Expr) -> Expr {
        self.first.iter().fold(j.clone(), |j, first| first.clone() + j)
    }

    /// Emits `body` for each instruction of the part, with its index in the part.
    fn each(&self, b: &mut KernelBuilder, body: impl FnOnce(&mut KernelBuilder, &Expr)) {
        over(b, "j", self.count.clone(), self.number, |b, j| body(b, &j));
    }
}

impl MmaRow<'_> {
    /// All instructions of the row.
    fn all(&self) -> RowPart {
        let counts = &self.warp.counts;
        RowPart { first: None, count: counts.cols.into(), number: counts.plan.cols() }
    }

    /// Emits `body` for each part of the row whose fresh accumulators exist at once.
    fn each_part(&self, b: &mut KernelBuilder, body: impl FnOnce(&mut KernelBuilder, RowPart)) {
        let (counts, number) = (&self.warp.counts, self.warp.counts.plan.together());
        if number == counts.plan.cols() {
            return body(b, self.all());
        }
        let meaning = "mma instructions along N with fresh accumulators at once";
        let together = b.constant("TOGETHER", number as i32, meaning);
        b.unrolled("part", counts.cols / together, |b, part| {
            let first = Some(part * together);
            body(b, RowPart { first, count: together.into(), number });
        });
    }

    /// Accumulates the products of all splits. Consecutive instructions use different columns,
    /// because instructions on the same accumulator depend on each other.
    fn multiply(
        &self,
        b: &mut KernelBuilder,
        part: &RowPart,
        sums: impl Fn(&Expr, Expr) -> Access,
    ) {
        let plan = self.warp.counts.plan;
        let format = plan.format();
        products_comment(b, plan.arith());
        let product = |b: &mut KernelBuilder, [of_a, of_b]: [Option<Expr>; 2]| {
            let a_words = Access::new(self.a, of_a.into_iter().chain([0.into()]));
            part.each(b, |b, j| {
                let column = part.column(j);
                let column = match plan.converted() {
                    true => fragments::column(self.warp, &column),
                    false => vec![column],
                };
                let index = of_b.clone().into_iter().chain(column).chain([0.into()]);
                let b_words = Access::new(self.b, index);
                b.mma(Mma { format, d: sums(j, 0.into()), a: a_words.clone(), b: b_words });
            });
        };
        if self.warp.counts.splits.is_none() {
            return product(b, [None, None]);
        }
        for [of_a, of_b] in plan.arith().products() {
            let meaning = "Adds split `of_a` of A times split `of_b` of B.";
            let params = [("of_a", Expr::I32(*of_a as i32)), ("of_b", Expr::I32(*of_b as i32))];
            b.section("multiply", meaning, params, |b, [of_a, of_b]| {
                product(b, [Some(of_a.into()), Some(of_b.into())]);
            });
        }
    }

    /// Adds fresh accumulators to the main ones.
    fn add(
        &self,
        b: &mut KernelBuilder,
        of: &RowPart,
        to: impl Fn(&Expr, Expr) -> Access,
        sums: impl Fn(&Expr, Expr) -> Access,
    ) {
        of.each(b, |b, j| {
            b.unrolled("e", Mma::OF_D as i32, |b, e| {
                let to = to(&of.column(j), e.into());
                b.store(to.clone(), to.load() + sums(j, e.into()).load());
            });
        });
    }
}
