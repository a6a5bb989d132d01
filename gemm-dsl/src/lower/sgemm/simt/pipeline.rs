//! The main loop over the tiles of K: how the next tile comes in while one is used.
//!
//! Every pipeline has the same frame. The first tile is brought in before the loop, and where K is
//! no multiple of BK it is the first tile that is ragged and filled up with zeros (of a pitched A that
//! is read by vectors the last, see `edge`), so that the loop itself needs no guard along K. A round of the loop multiplies
//! one tile and brings in the next.

use super::fragment::{Accumulators, multiply};
use super::load::Loads;
use crate::ir::{BufferId, Change, Expr, For, KernelBuilder, Var};
use crate::lower::sgemm::shared::edge::{bring_in, edge_comment, width_of_first};
use crate::lower::sgemm::shared::tile::Tiled;
use crate::lower::sgemm::simt::multistage;
use crate::plan::Pipeline;

/// Multiplies all tiles.
pub(crate) fn main_loop(k: &mut KernelBuilder, tiled: &Tiled<'_>) -> Accumulators {
    match tiled.t.pipeline() {
        Pipeline::Single => synchronous(k, tiled, Next::Direct),
        Pipeline::Prefetch => synchronous(k, tiled, Next::Registers),
        Pipeline::DoubleBuffer => synchronous(k, tiled, Next::OtherBuffer),
        Pipeline::Async { stages, spread } => multistage::asynchronous(k, tiled, stages, spread),
    }
}

/// How a synchronous pipeline brings in the next tile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Straight into the one buffer, after everybody has used it.
    Direct,
    /// Into registers before the multiplication, from there into the one buffer.
    Registers,
    /// Into registers before the multiplication, from there into the other of two buffers.
    OtherBuffer,
}

fn synchronous(k: &mut KernelBuilder, tiled: &Tiled<'_>, next: Next) -> Accumulators {
    let acc = Accumulators::declare(k, tiled);
    let first = width_of_first(k, tiled);
    edge_comment(k, [tiled.t.a().edge(), tiled.t.b().edge()]);
    let loads = (Loads::declare(k, &tiled.a), Loads::declare(k, &tiled.b));
    let (a, b) = (&loads.0, &loads.1);
    let zero = Expr::I32(0);
    bring_in(k, tiled, &zero, Some(&first), |k, limit| {
        a.to_shared(k, &zero, &zero, limit);
        b.to_shared(k, &zero, &zero, limit);
    });
    k.barrier();

    match next {
        Next::Direct => k.comment("Multiply a tile, then bring in the next one."),
        Next::Registers => {
            k.comment("The next tile is on its way to registers while one is multiplied.");
        }
        Next::OtherBuffer => {
            k.comment(
                "The next tile is on its way to registers while one is multiplied; it then goes",
            );
            k.comment("to the other buffer, which nobody reads: one barrier a tile.");
        }
    }
    let buffer = (next == Next::OtherBuffer).then(|| k.mut_("buffer", 0));
    let slot = buffer.map_or(zero, Expr::from);
    let end = tiled.depth() + tiled.bk;
    k.loop_("k0", For::below(first, end).change(Change::Add(tiled.bk.into())), |k, k0| {
        let more = Expr::from(k0).lt(tiled.depth());
        let k0 = Expr::from(k0);
        if next == Next::Direct {
            multiply(k, tiled, &acc, &slot);
            k.if_(more, |k| {
                k.barrier();
                bring_in(k, tiled, &k0, None, |k, limit| {
                    a.to_shared(k, &slot, &k0, limit);
                    b.to_shared(k, &slot, &k0, limit);
                });
                k.barrier();
            });
            return;
        }
        let held = (a.registers(k), b.registers(k));
        k.if_(more.clone(), |k| {
            bring_in(k, tiled, &k0, None, |k, limit| {
                a.to_registers(k, held.0, &k0, limit);
                b.to_registers(k, held.1, &k0, limit);
            });
        });
        multiply(k, tiled, &acc, &slot);
        k.if_(more, |k| hand_over(k, (a, b), held, buffer));
    });
    acc
}

/// The next tile from registers to shared memory.
fn hand_over(
    k: &mut KernelBuilder,
    (a, b): (&Loads<'_>, &Loads<'_>),
    held: (BufferId, BufferId),
    buffer: Option<Var>,
) {
    let slot = match buffer {
        None => {
            k.barrier();
            Expr::I32(0)
        }
        Some(buffer) => {
            k.assign(buffer, Expr::from(buffer).xor(1));
            buffer.into()
        }
    };
    a.registers_to_shared(k, held.0, &slot);
    b.registers_to_shared(k, held.1, &slot);
    k.barrier();
}
