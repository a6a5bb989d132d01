//! Main loop over the tiles of K. The plan's pipeline determines how loads and computation overlap.
//!
//! All pipelines except [`Pipeline::Parts`] have the same structure. The first tile is loaded
//! before the loop, and each iteration multiplies one tile and loads the next. If BK does not
//! divide K, one tile is ragged and filled with zeros. If possible this is the first tile, so that
//! the loop needs no guard along K; otherwise it is the last (see [`Ragged`](crate::plan::Ragged)).

use super::fragment::{accumulators, multiply, multiply_part, of_tile};
use super::load::Loads;
use super::multistage;
use crate::ir::{BufferId, Change, Expr, For, KernelBuilder, Var};
use crate::lower::sgemm::common::accumulators::Accumulators;
use crate::lower::sgemm::common::edge::{bring_in, edge_comment, width_of_first};
use crate::lower::sgemm::common::tile::{StagedFactor, Tiled};
use crate::plan::{Axis, Pipeline, Ragged};

/// Comment on the barrier after the stores of a tile.
const VISIBLE: &str = "After this barrier all threads see the tile.";
/// Comment on the barrier before the stores of the next tile to the same buffer.
const READ: &str = "All threads must have read the tile before the next one overwrites it.";

/// Emits the main loop of the plan's pipeline.
pub(crate) fn main_loop(b: &mut KernelBuilder, tiled: &Tiled<'_>) -> Accumulators {
    match tiled.frame.t.pipeline() {
        Pipeline::Single => synchronous(b, tiled, NextTileCopy::Direct),
        Pipeline::Parts { .. } => in_parts(b, tiled),
        Pipeline::Prefetch => synchronous(b, tiled, NextTileCopy::Registers),
        Pipeline::DoubleBuffer => synchronous(b, tiled, NextTileCopy::OtherBuffer),
        Pipeline::Async { stages, spread } => multistage::asynchronous(b, tiled, stages, spread),
    }
}

/// Path of the next tile to shared memory in a synchronous pipeline.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextTileCopy {
    /// Directly to the only buffer, after all threads have used it.
    Direct,
    /// To registers before the multiplication, then to the only buffer.
    Registers,
    /// To registers before the multiplication, then to the second of two buffers.
    OtherBuffer,
}

fn synchronous(b: &mut KernelBuilder, tiled: &Tiled<'_>, next: NextTileCopy) -> Accumulators {
    let acc = accumulators(b, tiled);
    let first = width_of_first(b, tiled);
    edge_comment(b, [tiled.frame.t.a().edge(), tiled.frame.t.b().edge()]);
    let loads = (Loads::declare(b, &tiled.a), Loads::declare(b, &tiled.b));
    let (a_loads, b_loads) = (&loads.0, &loads.1);
    first_copies_comment(b, tiled);
    let zero = Expr::I32(0);
    bring_in(b, tiled, &zero, Some(&first), |b, limit| {
        a_loads.to_shared(b, &zero, &zero, limit);
        b_loads.to_shared(b, &zero, &zero, limit);
    });
    b.comment(VISIBLE);
    b.barrier();

    match next {
        NextTileCopy::Direct => {
            b.comment("Main loop: multiply a K tile, then load the next one.");
        }
        NextTileCopy::Registers => {
            b.comment(
                "Main loop: the next K tile is loaded to registers while the current one is \
                 multiplied.",
            );
        }
        NextTileCopy::OtherBuffer => {
            b.comment(
                "Main loop: the next K tile is loaded to registers while the current one is \
                 multiplied,",
            );
            b.comment("then stored to the other buffer, which nobody reads: one barrier per tile.");
        }
    }
    b.comment(
        "k0 is the offset of the next tile. In the last iteration k0 >= K, and nothing is left to \
         load.",
    );
    let buffer = (next == NextTileCopy::OtherBuffer).then(|| b.mut_("buffer", 0));
    let slot = buffer.map_or(zero, Expr::from);
    let end = tiled.depth() + tiled.frame.bk;
    b.loop_("k0", For::below(first, end).change(Change::Add(tiled.frame.bk.into())), |b, k0| {
        let more = Expr::from(k0).lt(tiled.depth());
        let k0 = Expr::from(k0);
        if next == NextTileCopy::Direct {
            multiply(b, tiled, &acc, &slot);
            b.if_(more, |b| {
                b.comment(READ);
                b.barrier();
                bring_in(b, tiled, &k0, None, |b, limit| {
                    a_loads.to_shared(b, &slot, &k0, limit);
                    b_loads.to_shared(b, &slot, &k0, limit);
                });
                b.comment(VISIBLE);
                b.barrier();
            });
            return;
        }
        let held = [a_loads.registers(b), b_loads.registers(b)];
        b.if_(more.clone(), |b| {
            bring_in(b, tiled, &k0, None, |b, limit| {
                a_loads.to_registers(b, held[0], &k0, limit);
                b_loads.to_registers(b, held[1], &k0, limit);
            });
        });
        multiply(b, tiled, &acc, &slot);
        b.if_(more, |b| hand_over(b, [a_loads, b_loads], held, buffer));
    });
    acc
}

/// Emits a main loop that loads and multiplies the tile of B in parts. Part n holds the columns of
/// output n of all threads.
fn in_parts(b: &mut KernelBuilder, tiled: &Tiled<'_>) -> Accumulators {
    let acc = accumulators(b, tiled);
    // No tile is loaded before the loop.
    width_of_first(b, tiled);
    edge_comment(b, [tiled.frame.t.a().edge(), tiled.frame.t.b().edge()]);
    let a_loads = Loads::declare(b, &tiled.a);
    let slot = Expr::I32(0);
    b.comment(
        "Main loop: load a K tile of A, then load and multiply the K tile of B in parts. Part n \
         has the columns of output n of all threads.",
    );
    b.loop_(
        "k0",
        For::below(0, tiled.depth()).change(Change::Add(tiled.frame.bk.into())),
        |b, k0| {
            let k0 = Expr::from(k0);
            bring_in(b, tiled, &k0, None, |b, limit| a_loads.to_shared(b, &slot, &k0, limit));
            of_tile(b, tiled, &acc, |b, acc| {
                b.unrolled("n", tiled.frame.tn, |b, n| {
                    let part = tiled.part_of_b(b, n);
                    let b_loads = Loads::declare(b, &part.factor);
                    bring_in(b, tiled, &k0, None, |b, limit| {
                        b_loads.to_shared(b, &slot, &k0, limit)
                    });
                    b.comment(
                        "After this barrier all threads see the tile of A and the part of B.",
                    );
                    b.barrier();
                    multiply_part(b, tiled, acc, &slot, Some(&part));
                    b.comment(
                        "All threads must have read both before the next copies overwrite them.",
                    );
                    b.barrier();
                });
            });
        },
    );
    acc
}

/// Emits a comment on the copies of the first tiles by vectors.
fn first_copies_comment(b: &mut KernelBuilder, tiled: &Tiled<'_>) {
    let factors = [&tiled.a, &tiled.b];
    let one = factors.iter().all(|factor| factor.copy.only.is_some() && factor.plan.width() == 4);
    let along_k = |factor: &&StagedFactor| {
        factor.plan.width() == 4 && factor.plan.contiguous() == Axis::K && !factor.plan.straddles()
    };
    let whole = tiled.frame.t.ragged() == Ragged::First && factors.iter().any(along_k);
    let texts = [
        one.then_some("Each thread copies one float4 of each tile."),
        whole.then_some(
            "first_depth is a multiple of 4, so a vector along K is wholly inside or outside.",
        ),
    ];
    let texts: Vec<&str> = texts.into_iter().flatten().collect();
    if !texts.is_empty() {
        b.comment(texts.join(" "));
    }
}

/// Stores the next tile from registers to shared memory.
fn hand_over(
    b: &mut KernelBuilder,
    [a_loads, b_loads]: [&Loads<'_>; 2],
    registers: [BufferId; 2],
    buffer: Option<Var>,
) {
    let slot = match buffer {
        None => {
            b.comment(READ);
            b.barrier();
            Expr::I32(0)
        }
        Some(buffer) => {
            b.assign(buffer, Expr::from(buffer).xor(1));
            buffer.into()
        }
    };
    a_loads.registers_to_shared(b, registers[0], &slot);
    b_loads.registers_to_shared(b, registers[1], &slot);
    b.comment(VISIBLE);
    b.barrier();
}
