//! The main loop over the tiles of K: how the next tile comes in while one is used.
//!
//! Every pipeline has the same frame. The first tile is brought in before the loop, and where K is
//! no multiple of BK it is the first tile that is ragged and filled up with zeros, so that the loop
//! itself needs no guard along K. A round of the loop multiplies one tile and brings in the next.

use super::copy::Share;
use super::fragment::{Accumulators, FragmentPair, multiply};
use super::tile::Tiled;
use crate::ir::{BufferId, Expr, KernelBuilder, Step, Stmt, Unroll, Var};
use crate::plan::Pipeline;

/// Where the ragged tile of K is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ragged {
    /// There is none: K is a multiple of BK.
    Nowhere,
    /// The first tile.
    First,
    /// The last tile. Only if it is the last does every other tile of a pitched A start on 16 bytes.
    Last,
}

impl Ragged {
    fn of(tiled: &Tiled<'_>) -> Self {
        match (tiled.plan.guarded(), tiled.plan.pitched() && tiled.t.a_global_vector()) {
            (false, _) => Ragged::Nowhere,
            (true, false) => Ragged::First,
            (true, true) => Ragged::Last,
        }
    }
}

/// The k at which the second tile starts.
fn width_of_first(k: &mut KernelBuilder, tiled: &Tiled<'_>, ragged: Ragged) -> Expr {
    if ragged != Ragged::First {
        return tiled.bk.into();
    }
    let depth = Expr::from(tiled.problem.k);
    let first = depth.clone().gt(0).select((depth - 1) % tiled.bk + 1, 0);
    k.comment("The first tile is narrower where BK does not divide K; zeros fill it up.");
    k.let_("first", first).into()
}

/// Brings in the tile at `k0` by `copy`, which is told how many k of it exist where that is not
/// certain.
fn bring_in(
    k: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    ragged: Ragged,
    k0: &Expr,
    first: Option<&Expr>,
    copy: impl Fn(&mut KernelBuilder, Option<&Expr>),
) {
    match (ragged, first) {
        (Ragged::First, Some(width)) => copy(k, Some(width)),
        (Ragged::First, None) | (Ragged::Nowhere, _) => copy(k, None),
        (Ragged::Last, _) => {
            let left = Expr::from(tiled.problem.k) - k0.clone();
            let whole = (k0.clone() + tiled.bk).le(tiled.problem.k);
            k.if_else(whole, |k| copy(k, None), |k| copy(k, Some(&left)));
        }
    }
}

/// Multiplies all tiles.
pub(super) fn main_loop(k: &mut KernelBuilder, tiled: &Tiled<'_>) -> Accumulators {
    match tiled.t.pipeline() {
        Pipeline::Single => synchronous(k, tiled, Next::Direct),
        Pipeline::Prefetch => synchronous(k, tiled, Next::Registers),
        Pipeline::DoubleBuffer => synchronous(k, tiled, Next::OtherBuffer),
        Pipeline::Async { stages, spread } => asynchronous(k, tiled, stages as i32, spread as i32),
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
    let ragged = Ragged::of(tiled);
    let acc = Accumulators::declare(k, tiled);
    let first = width_of_first(k, tiled, ragged);
    let copies = &tiled.copies;
    let zero = Expr::I32(0);
    bring_in(k, tiled, ragged, &zero, Some(&first), |k, limit| {
        copies.a.to_shared(k, tiled, &zero, &zero, limit);
        copies.b.to_shared(k, tiled, &zero, &zero, limit);
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
    let step = Step::Add(tiled.bk.into());
    let end = tiled.problem.k + tiled.bk;
    k.loop_(
        "k0",
        first,
        |k0| Expr::from(k0).lt(end),
        step,
        Unroll::Auto,
        |k, k0| {
            let more = Expr::from(k0).lt(tiled.problem.k);
            let k0 = Expr::from(k0);
            if next == Next::Direct {
                multiply(k, tiled, &acc, &slot);
                k.if_(more, |k| {
                    k.barrier();
                    bring_in(k, tiled, ragged, &k0, None, |k, limit| {
                        copies.a.to_shared(k, tiled, &slot, &k0, limit);
                        copies.b.to_shared(k, tiled, &slot, &k0, limit);
                    });
                    k.barrier();
                });
                return;
            }
            let (a, b) = (copies.a.registers(k), copies.b.registers(k));
            k.if_(more.clone(), |k| {
                bring_in(k, tiled, ragged, &k0, None, |k, limit| {
                    copies.a.to_registers(k, tiled, a, &k0, limit);
                    copies.b.to_registers(k, tiled, b, &k0, limit);
                });
            });
            multiply(k, tiled, &acc, &slot);
            k.if_(more, |k| hand_over(k, tiled, (a, b), buffer));
        },
    );
    acc
}

/// The next tile from registers to shared memory.
fn hand_over(
    k: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    (a, b): (BufferId, BufferId),
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
    tiled.copies.a.from_registers(k, tiled, a, &slot);
    tiled.copies.b.from_registers(k, tiled, b, &slot);
    k.barrier();
}

/// A ring of shared buffers that asynchronous copies fill; fragments are double-buffered in
/// registers. One barrier a tile, in its last k step: it publishes the next tile and tells that the
/// buffer to be filled next has been read.
fn asynchronous(
    k: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    stages: i32,
    spread: i32,
) -> Accumulators {
    let ragged = Ragged::of(tiled);
    let (depth, bk, zero) = (tiled.problem.k, tiled.bk, Expr::I32(0));
    let ring = k.constant("STAGES", stages, "tiles in shared memory, in use or on their way");
    let spread_name = k.constant("SPREAD", spread, "k steps over which a tile's copies are issued");
    let acc = Accumulators::declare(k, tiled);
    let pair = FragmentPair::declare(k, tiled);
    let first = width_of_first(k, tiled, ragged);
    let start =
        |k: &mut KernelBuilder, share: &Share, slot: &Expr, k0: &Expr, limit: Option<&Expr>| {
            tiled.copies.a.start(k, tiled, share, slot, k0, limit);
            tiled.copies.b.start(k, tiled, share, slot, k0, limit);
        };

    k.comment("Fill all buffers but one.");
    bring_in(k, tiled, ragged, &zero, Some(&first), |k, limit| {
        start(k, &Share::All, &zero, &zero, limit);
    });
    k.push(Stmt::CopyCommit);
    if stages > 2 {
        let step = Step::Add(1.into());
        let end = ring - 1;
        k.loop_(
            "s",
            1,
            |s| Expr::from(s).lt(end),
            step,
            Unroll::Full,
            |k, s| {
                let k0 = Expr::from(k.let_("k0", first.clone() + (s - 1) * bk));
                k.if_(k0.clone().lt(depth), |k| {
                    bring_in(k, tiled, ragged, &k0, None, |k, limit| {
                        start(k, &Share::All, &s.into(), &k0, limit);
                    });
                });
                k.push(Stmt::CopyCommit);
            },
        );
    }
    let pending = stages as u32 - 2;
    k.push(Stmt::CopyWait { pending });
    k.barrier();
    pair.load(k, tiled, 0.into(), &zero, &zero);

    k.comment("Each k step multiplies one pair of fragments while the next one is read; the first");
    k.comment("SPREAD steps issue the copies of the tile that comes STAGES - 1 tiles later.");
    let read = k.mut_("read", 0);
    let write = k.mut_("write", ring - 1);
    let advance = |k: &mut KernelBuilder, slot: Var| {
        let next = slot + 1;
        k.assign(slot, next.clone().equals(ring).select(0, next));
    };
    let from = first + (ring - 2) * bk;
    let end = depth + (ring - 1) * bk;
    k.loop_(
        "k0",
        from,
        |k0| Expr::from(k0).lt(end),
        Step::Add(bk.into()),
        Unroll::By(1),
        |k, k0| {
            k.unrolled("k", bk, |k, i| {
                let next = |k: &mut KernelBuilder, at: Expr| {
                    pair.load(k, tiled, (i + 1) % 2, &read.into(), &at);
                };
                // The last step turns to the next tile, if there is one.
                let more = Expr::from(k0).lt(depth + (ring - 2) * bk);
                k.if_else(
                    Expr::from(i).lt(bk - 1),
                    |k| next(k, i + 1),
                    |k| {
                        k.push(Stmt::CopyWait { pending });
                        k.barrier();
                        advance(k, read);
                        k.if_(more, |k| next(k, 0.into()));
                    },
                );
                k.if_(Expr::from(i).lt(spread_name).and(Expr::from(k0).lt(depth)), |k| {
                    bring_in(k, tiled, ragged, &k0.into(), None, |k, limit| {
                        let share = if spread == 1 {
                            Share::All
                        } else {
                            Share::Part { k: i, parts: spread_name }
                        };
                        start(k, &share, &write.into(), &k0.into(), limit);
                    });
                });
                k.if_(Expr::from(i).equals(spread_name - 1), |k| k.push(Stmt::CopyCommit));
                pair.multiply(k, tiled, &acc, i % 2);
            });
            advance(k, write);
        },
    );
    acc
}
