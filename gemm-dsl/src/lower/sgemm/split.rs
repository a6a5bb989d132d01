//! Where several blocks sum the terms of a tile: each leaves its sums, and the last of them adds those of all in the
//! order of K, and stores.
//!
//! Sums lie as threads hold them, those of one place in all threads that hold some next to one another: whatever the
//! fragment, neighbours write and read neighbours, and the edge of C is the epilogue's business alone.

use super::Problem;
use super::block_tile::{BlockTile, Parts};
use super::fragment::{Accumulators, each};
use super::schedule::{self, Ranges};
use super::stream_k::{self, Segment};
use crate::ir::program::{Program, Slot};
use crate::ir::{
    Access, BufferId, Change, Elem, Expr, For, KernelBuilder, Layout, Operand, Unroll, Var,
};
use crate::lower::tickets::{self, Tickets};
use crate::plan::{SgemmPlan, Shape};
use crate::spec::Sharing;

/// What the length of these arrays depends on, in a program and in a kernel.
pub(super) struct Sizes {
    /// Tiles of C.
    pub tiles: Expr,
    /// The most ranges of K.
    pub ranges: Expr,
    /// Blocks that share all tiles.
    pub blocks: Expr,
}

/// Who leaves sums: the tiles and the ranges of each, or the blocks and the tiles that each has but a part of;
/// and how many tiles are made of parts.
fn extents(sharing: Sharing, of: Sizes) -> Option<([Expr; 2], Expr)> {
    match sharing {
        Sharing::Whole => None,
        Sharing::Ranges(_) | Sharing::AutoRanges => Some(([of.tiles.clone(), of.ranges], of.tiles)),
        Sharing::Stream => {
            let left = u64::from(stream_k::LEFT);
            Some(([of.blocks.clone(), left.into()], of.blocks * left))
        }
    }
}

/// The arrays of a program by which its blocks share sums.
pub(super) fn slots(program: &mut Program, plan: &SgemmPlan, sizes: Sizes) -> Vec<(Operand, Slot)> {
    let held = match plan.shape() {
        // Each has a sum of its own, and no other block adds to it.
        Shape::Naive(_) => None,
        Shape::Direct(d) => Some([d.tm() * d.tn(), d.holders()]),
        Shape::Tiled(t) => Some([t.tm() * t.tn(), t.holders()]),
    };
    let (Some(held), Some((parts, words))) = (held, extents(plan.sharing(), sizes)) else {
        return Vec::new();
    };
    // The sums of each part by place in a thread, and thread that holds some.
    let dims = parts.into_iter().chain(held.map(|n| u64::from(n).into()));
    let partials = program.temp("partials", Elem::F32, dims);
    let tickets = tickets::slot(program, words);
    vec![(Operand::Temp(0), partials), (Operand::Temp(1), tickets)]
}

/// The sums of a block: how many a thread holds, and how many threads hold some.
pub(super) struct Held {
    pub places: Expr,
    pub holders: Expr,
    /// Whether these are all threads.
    pub by_all: bool,
}

/// The sums of all blocks.
pub(super) struct Split {
    partials: BufferId,
    tickets: BufferId,
    is_last: Access,
    /// Where all threads of a block leave what they have added, if not all hold sums.
    added: Option<BufferId>,
}

/// The parts of one tile.
struct Shared {
    /// The word in which the blocks that share it count, and how many these are.
    word: Access,
    count: Expr,
    /// Where this block leaves its part, and where those of all lie in the order of K: the first one, and the n-th.
    own: [Expr; 2],
    first: [Expr; 2],
    other: Box<dyn Fn(Expr) -> [Expr; 2]>,
}

impl Split {
    /// Declares the arrays, behind the parameters of the product.
    pub(super) fn declare(
        k: &mut KernelBuilder,
        plan: &SgemmPlan,
        problem: &Problem,
        Held { places, holders, by_all }: Held,
    ) -> Option<Self> {
        let wide = |scalar| Expr::from(scalar).wide();
        let size = [problem.m, problem.n].map(wide);
        let sizes = Sizes {
            tiles: schedule::tiles(plan, size, problem.batch.map(wide)),
            ranges: schedule::most_ranges(k, plan, problem).wide(),
            blocks: problem.stream.map_or(1u64.into(), |stream| wide(stream.blocks)),
        };
        let ([outer, inner], words) = extents(plan.sharing(), sizes)?;
        let partials = k.global("partials", Elem::F32, Operand::Temp(0));
        let tickets = tickets::parameter(k, Operand::Temp(1));
        let of_part = places.clone() * holders.clone();
        let strides = [inner.clone() * of_part.clone(), of_part, holders.clone(), 1.into()];
        k.shape(partials, [outer, inner, places.clone().wide(), holders.clone().wide()], strides);
        tickets::shape(k, tickets, words);
        let is_last = tickets::flag(k);
        let added = (!by_all).then(|| {
            let meaning = "sums of all parts";
            k.shared("all_parts", Elem::F32, [places, holders], Layout::row_major(2), meaning)
        });
        Some(Self { partials, tickets, is_last, added })
    }

    /// Stores the sums of a tile: those of this block where no other has a part of it; else the block leaves its
    /// sums, and the last one stores those of all.
    pub(super) fn gather(
        &self,
        k: &mut KernelBuilder,
        (block, parts): (&BlockTile<'_>, &Parts),
        acc: Accumulators,
        store: impl FnOnce(&mut KernelBuilder, &Accumulators),
    ) {
        match parts {
            Parts::Ranges(ranges) => {
                let shared = self.ranges(ranges);
                let tickets = self.leave(k, block, &shared, &acc);
                tickets.by_last(k, |k| {
                    self.add_by_all(k, block, &shared);
                    block.by_holders(k, |k| {
                        let all = Accumulators::sums(k, block);
                        self.take(k, block, &shared, &all);
                        store(k, &all);
                    });
                });
            }
            Parts::Segment(segment) => self.segment(k, (block, segment), acc, store),
        }
    }

    /// As [`gather`](Self::gather), where a block has all of most tiles: the sums are stored at one place of the
    /// text.
    fn segment(
        &self,
        k: &mut KernelBuilder,
        (block, segment): (&BlockTile<'_>, &Segment),
        acc: Accumulators,
        store: impl FnOnce(&mut KernelBuilder, &Accumulators),
    ) {
        let all = acc.in_one(k, block);
        let stores = k.mut_("stores", Expr::from(segment.is_whole).select(1, 0));
        k.if_(Expr::from(segment.is_whole).negated(), |k| {
            let shared = self.segments(k, *segment);
            let tickets = self.leave(k, block, &shared, &all);
            tickets.by_last(k, |k| {
                self.add_by_all(k, block, &shared);
                block.by_holders(k, |k| self.take(k, block, &shared, &all));
                k.assign(stores, 1);
            });
        });
        k.if_(Expr::from(stores).equals(1), |k| block.by_holders(k, |k| store(k, &all)));
    }

    fn ranges(&self, ranges: &Ranges) -> Shared {
        let [tile, range] = schedule::tile_and_range();
        let of_tile = tile.clone();
        Shared {
            word: Access::new(self.tickets, [tile.clone()]),
            count: ranges.count.into(),
            own: [tile.clone(), range],
            first: [tile, 0.into()],
            other: Box::new(move |nth| [of_tile.clone(), nth]),
        }
    }

    /// A block leaves but one part that begins inside a tile, its first one, and but one that begins a tile.
    fn segments(&self, k: &mut KernelBuilder, segment: Segment) -> Shared {
        let [first, count] = segment.blocks(k);
        let begins = Expr::from(segment.from).equals(0).select(1, 0);
        Shared {
            word: Access::new(self.tickets, [segment.nth.into()]),
            count: count.into(),
            own: [schedule::block(), begins],
            first: [first.into(), 1.into()],
            other: Box::new(move |nth| [Expr::from(first) + nth, 0.into()]),
        }
    }

    /// An element of a part.
    fn at(&self, block: &BlockTile<'_>, [outer, inner]: [Expr; 2], m: &Expr, n: &Expr) -> Access {
        let place = m.clone() * block.cols.name + n.clone();
        Access::new(self.partials, [outer, inner, place, block.holder.clone()])
    }

    /// Leaves the sums of this block, and takes its ticket.
    fn leave(
        &self,
        k: &mut KernelBuilder,
        block: &BlockTile<'_>,
        shared: &Shared,
        acc: &Accumulators,
    ) -> Tickets {
        k.comment("Leave the sums of this part of K, as threads hold them.");
        block.by_holders(k, |k| {
            each(k, block.elements(), |k, m, n| {
                k.store(self.at(block, shared.own.clone(), m, n), acc.value(m, n));
            });
        });
        let tickets = Tickets::new(
            (shared.word.clone(), self.is_last.clone()),
            shared.count.clone(),
            block.first_thread.clone(),
        );
        tickets.take_for_all(k);
        tickets
    }

    /// Where only some threads hold sums: adds what all blocks have left by all threads of this one, which is
    /// quicker, into shared memory.
    fn add_by_all(&self, k: &mut KernelBuilder, block: &BlockTile<'_>, shared: &Shared) {
        let Some(added) = &self.added else { return };
        let places = block.rows.name * block.cols.name;
        let (thread, threads) = block.thread.clone();
        let holders = block.holders.clone();
        k.comment(
            "All threads of the block add, each for sums of its own: all parts in the order of K.",
        );
        let all = For::below(thread, places * holders.clone());
        k.loop_("i", all.change(Change::Add(threads)).unroll(Unroll::By(1)), |k, i| {
            let at = [Expr::from(i) / holders.clone(), Expr::from(i) % holders.clone()];
            let [place, holder] =
                [k.let_("place", at[0].clone()), k.let_("holder", at[1].clone())].map(Expr::from);
            let part = |[outer, inner]: [Expr; 2]| {
                let at = [outer, inner, place.clone(), holder.clone()];
                Access::new(self.partials, at).load()
            };
            let sum = k.mut_("added", part(shared.first.clone()));
            let load = |nth: Expr, _: &Expr, _: &Expr| part((shared.other)(nth));
            let add = |k: &mut KernelBuilder, _: &Expr, _: &Expr, other| k.assign(sum, sum + other);
            others(k, shared, (AT_ONCE, None), load, add);
            k.store(Access::new(*added, [place, holder]), Expr::from(sum));
        });
        k.barrier();
    }

    /// Sets a thread's sums to those of all parts, in the order of K.
    fn take(
        &self,
        k: &mut KernelBuilder,
        block: &BlockTile<'_>,
        shared: &Shared,
        all: &Accumulators,
    ) {
        if let Some(added) = self.added {
            return each(k, block.elements(), |k, m, n| {
                let place = m.clone() * block.cols.name + n.clone();
                all.set(k, (m, n), Access::new(added, [place, block.holder.clone()]).load());
            });
        }
        k.comment("Add the sums of all parts in the order of K.");
        each(k, block.elements(), |k, m, n| {
            all.set(k, (m, n), self.at(block, shared.first.clone(), m, n).load());
        });
        // As many loads under way as fit in registers beside the sums.
        let at_once = AT_ONCE / (block.rows.count * block.cols.count).max(1);
        let load = |nth: Expr, m: &Expr, n: &Expr| self.at(block, (shared.other)(nth), m, n).load();
        let add = |k: &mut KernelBuilder, m: &Expr, n: &Expr, other| {
            all.set(k, (m, n), all.value(m, n) + other);
        };
        others(k, shared, (at_once, Some(block)), load, add);
    }
}

/// Loads of a thread under way at once.
const AT_ONCE: u32 = 16;

/// Adds all parts but the first in their order, so many under way at once: of each element of a thread, or of one
/// sum. What is added where there are no more is -0, which changes no sum.
fn others(
    k: &mut KernelBuilder,
    shared: &Shared,
    (at_once, elements): (u32, Option<&BlockTile<'_>>),
    load: impl Fn(Expr, &Expr, &Expr) -> Expr,
    mut add: impl FnMut(&mut KernelBuilder, &Expr, &Expr, Expr),
) {
    let none = Expr::I32(0);
    let over_all = |k: &mut KernelBuilder,
                    body: &mut dyn FnMut(&mut KernelBuilder, &Expr, &Expr)| {
        match elements {
            None => body(k, &none, &none),
            Some(block) => each(k, block.elements(), body),
        }
    };
    let rest = For::below(1, shared.count.clone()).unroll(Unroll::By(1));
    if at_once <= 1 {
        return k.loop_("other", rest, |k, other: Var| {
            over_all(k, &mut |k, m, n| add(k, m, n, load(other.into(), m, n)));
        });
    }
    let at_once = k.constant("PARTS", at_once as i32, "parts that are read at once");
    let rest = rest.change(Change::Add(at_once.into()));
    k.loop_("other", rest, |k, other: Var| {
        let own = elements.map(|block| [block.rows.name, block.cols.name].map(Expr::from));
        let dims = [at_once.into()].into_iter().chain(own.into_iter().flatten());
        let parts = k.registers("parts", Elem::F32, dims, "");
        let at = |u: Expr, m: &Expr, n: &Expr| {
            let own = elements.map(|_| [m.clone(), n.clone()]);
            Access::new(parts, [u].into_iter().chain(own.into_iter().flatten()))
        };
        k.unrolled("u", at_once, |k, u| {
            over_all(k, &mut |k, m, n| {
                let is = (other + u).lt(shared.count.clone());
                let value = is.select(load(other + u, m, n), Expr::F32(-0.0));
                k.store(at(u.into(), m, n), value);
            });
        });
        k.unrolled("u", at_once, |k, u| {
            over_all(k, &mut |k, m, n| add(k, m, n, at(u.into(), m, n).load()));
        });
    });
}
