//! Selection of the k best elements of each result.
//!
//! Each warp keeps its best elements in registers, sorted. An element that beats the worst of the k
//! best is a candidate. The lanes append their candidates to a buffer of the warp in shared memory;
//! a ballot gives each its place. As soon as the buffer has 32, the warp sorts them by a bitonic
//! network and merges them into its best. The warps of a block merge by a tree.
//!
//! The order of the elements is total: value first, then index. So the selection depends neither on
//! the order of merges nor on the number of threads or blocks.

mod merge;

use super::WARP;
use super::expressions::Expressions;
use super::fold::{Fold, FoldPart, LoadedElements};
use super::params::Params;
use super::place::FoldPlace;
use super::reader::{Consumer, ElementReader};
use super::role::Role;
use super::team::{load, store};
use crate::ir::{
    Access, BufferId, BufferLayout, Change, Const, Elem, Expr, For, Intrinsic, KernelBuilder,
    Unroll, Var,
};
use crate::plan::ReducePlan;

/// Inputs for the kernels of a selection.
pub(super) struct Selection<'s> {
    pub(super) plan: &'s ReducePlan,
    pub(super) fold: &'s Fold,
    pub(super) expressions: &'s Expressions,
    pub(super) place: &'s FoldPlace,
    pub(super) params: &'s Params,
    /// Value that replaces a missing element.
    pub(super) missing: Expr,
    pub(super) wide: bool,
}

/// Best elements of a warp, and the buffer for its candidates.
struct WarpBest<'s> {
    fold: &'s Fold,
    /// Value, and index if there is one, that every element beats or equals.
    identity: Vec<Expr>,
    /// Number of elements that a result consists of.
    k: Const,
    /// Rank of the last of these elements.
    last: i32,
    /// Number of elements that a lane keeps, 1 or 2.
    slots: i32,
    /// The same as a constant of the kernel.
    all_slots: Const,
    /// Index of the lane in its warp.
    lane: Expr,
    /// Index of the warp in its block; `None` if a block is one warp.
    warp: Option<Expr>,
    /// Number of warps; `None` if a block is one warp.
    all_warps: Option<Expr>,
    /// Register arrays, one for each part. Slot s of lane l has the element of rank 32 s + l.
    best: Vec<BufferId>,
    /// Arrays in shared memory, one for each part.
    buffer: Vec<BufferId>,
}

/// State of a warp that reads elements.
struct Candidates<'s> {
    of: &'s WarpBest<'s>,
    /// Number of elements that a lane compares between two merges.
    chunk: u32,
    /// Mask of the lanes below the lane.
    below: Var,
    /// Element of rank k, which a candidate beats.
    worst: Vec<Var>,
    /// Number of candidates in the buffer.
    count: Var,
}

impl Selection<'_> {
    pub(super) fn build(&self, b: &mut KernelBuilder, role: Role) {
        let warps = self.plan.block() as i32 / WARP;
        let best = self.declare(b, warps, role);
        if role.reads() {
            let candidates = Candidates::new(b, &best, self.plan.chunk());
            let reader = ElementReader {
                plan: self.plan,
                fold: self.fold,
                expressions: self.expressions,
                place: self.place,
                round: "ROUND",
                missing: self.missing.clone(),
                wide: self.wide,
            };
            reader.rounds(b, self.params, &candidates);
            b.comment("Merge the remaining candidates.");
            let count = candidates.count;
            b.if_(Expr::from(count).gt(0), |b| candidates.merge(b, 0.into(), count.into()));
        } else {
            self.merge_partials(b, &best, warps);
        }
        let by_block = self.plan.group() == self.plan.block() && warps > 1;
        if by_block {
            best.merge_warps(b, role);
        }
        self.store(b, &best, role, by_block);
    }

    fn declare(&self, b: &mut KernelBuilder, warps: i32, role: Role) -> WarpBest<'_> {
        let (Some(kept), Some(k)) = (self.plan.topk(), self.params.k) else {
            unreachable!("rounds: a selection has `topk`")
        };
        let slots = kept.div_ceil(WARP as u32) as i32;
        let last = kept as i32 - 1;
        let tid = self.place.tid.clone();
        let (lane, warp) = match warps {
            1 => (tid, None),
            _ => {
                let warp = b.let_("warp", tid.clone() / WARP).into();
                (b.let_("lane", tid % WARP).into(), Some(warp))
            }
        };
        let mut dims = Vec::new();
        if warps > 1 {
            dims.push(b.constant("WARPS", warps, "warps per block").into());
        }
        let all_warps = dims.first().cloned();
        let (name, size, meaning) = match role.reads() {
            true => {
                let size = WARP * (self.plan.chunk() as i32 + 1);
                ("CANDIDATES", size, "size of a warp's buffer of candidates")
            }
            false => ("KEPT", WARP * slots, "size of a warp's buffer"),
        };
        dims.push(b.constant(name, size, meaning).into());
        let parts = self.fold.parts();
        let buffer = parts.iter().map(|part| {
            let of = if part.plural == "indices" { "their indices" } else { "elements" };
            let meaning =
                if role.reads() { "candidates of each warp" } else { "best of each warp" };
            let layout = BufferLayout::row_major(dims.len());
            b.shared(part.plural, part.elem, dims.clone(), layout, format!("{meaning}: {of}"))
        });
        let buffer = buffer.collect();
        let all_slots = b.constant("SLOTS", slots, "elements that a lane keeps");
        b.comment(
            "The warp keeps its best elements sorted: slot s of lane l has the element of rank \
             32 s + l.",
        );
        let best =
            parts.iter().map(|part| b.registers(part.name, part.elem, [all_slots.into()], ""));
        let best: Vec<BufferId> = best.collect();
        let identity = |(n, part): (usize, &FoldPart)| match n {
            0 => self.missing.clone(),
            _ => part.identity.clone(),
        };
        let identity: Vec<Expr> = parts.iter().enumerate().map(identity).collect();
        b.unrolled("s", all_slots, |b, s| store(b, &best, &[s.into()], identity.clone()));
        WarpBest {
            fold: self.fold,
            identity,
            k,
            last,
            slots,
            all_slots,
            lane,
            warp,
            all_warps,
            best,
            buffer,
        }
    }

    /// Merges the selections of the blocks of a result. Each is sorted, so no candidates are
    /// collected.
    fn merge_partials(&self, b: &mut KernelBuilder, best: &WarpBest<'_>, warps: i32) {
        let Some(split) = &self.place.split else {
            unreachable!("BlockShare::new: kernels with partials have a share")
        };
        b.comment("Each warp merges the selections of some blocks, one after another.");
        let from = best.warp.clone().unwrap_or(Expr::I32(0)).wide();
        let all = best.all_warps.clone().map_or(Expr::U64(1), Expr::wide);
        let step = Change::Add(all);
        b.loop_("block", For::below(from, split.partials.clone()).change(step), |b, block| {
            b.comment("Read the other selection backwards, worst first.");
            best.merge_sorted(b, warps > 1, |b, rank| {
                let is_there = rank.clone().lt(best.k);
                let index = self.place.partial(block.into(), None);
                let index: Vec<Expr> = index.into_iter().chain([rank]).collect();
                let others = load(&self.params.partials, &index);
                let others = others.into_iter().zip(&best.identity).zip(self.fold.parts());
                let others = others.map(|((other, identity), part)| {
                    let other = is_there.clone().select(other, identity.clone());
                    b.let_(&format!("other_{}", part.name), other).into()
                });
                others.collect()
            });
        });
    }

    fn store(&self, b: &mut KernelBuilder, best: &WarpBest<'_>, role: Role, by_block: bool) {
        let arrays = if role.finishes() { &self.params.outputs } else { &self.params.partials };
        let index = match (&self.place.split, role.finishes()) {
            (Some(split), false) => self.place.partial(split.block.clone(), None),
            _ => self.place.selected(),
        };
        let first = by_block.then(|| self.place.tid.clone().lt(WARP));
        let has = match (first, self.place.inside()) {
            (Some(first), Some(inside)) => Some(first.and(inside)),
            (first, inside) => first.or(inside),
        };
        let stores = |b: &mut KernelBuilder| {
            b.unrolled("s", best.all_slots, |b, s| {
                let rank = b.let_("rank", best.rank(s));
                b.if_(Expr::from(rank).lt(best.k), |b| {
                    let elements = load(&best.best, &[s.into()]);
                    let made = match role.finishes() {
                        true => {
                            let values = self.fold.values(b, &elements);
                            let n = self.place.n.clone();
                            self.expressions.results(values, &self.params.numbers, n)
                        }
                        false => elements,
                    };
                    let index: Vec<Expr> = index.iter().cloned().chain([rank.into()]).collect();
                    store(b, arrays, &index, made);
                });
            });
        };
        match has {
            None => stores(b),
            Some(has) => b.if_(has, stores),
        }
    }
}

impl<'s> Candidates<'s> {
    fn new(b: &mut KernelBuilder, of: &'s WarpBest<'s>, chunk: u32) -> Self {
        let one = Expr::U32(1);
        let below = b.let_("lanes_below", (one.clone() << of.lane.clone().cast(Elem::U32)) - one);
        let parts = of.fold.parts().iter().zip(&of.identity);
        let worst = parts.map(|(part, identity)| {
            let name = if part.plural == "indices" { "worst_at" } else { "worst" };
            b.mut_(name, identity.clone())
        });
        let worst = worst.collect();
        let count = b.mut_("count", 0);
        Self { of, chunk, below, worst, count }
    }

    /// Compares elements that the lane has loaded, and collects those that may be among the best.
    fn compare(&self, b: &mut KernelBuilder, elements: &[Vec<Expr>]) {
        let worst: Vec<Expr> = self.worst.iter().map(|var| (*var).into()).collect();
        let wins = |element: &Vec<Expr>| self.of.fold.wins(element, &worst);
        let ballot = |wins: Expr| Expr::Call(Intrinsic::Ballot, vec![wins]);
        let named = elements.iter().enumerate().map(|(n, element)| {
            let name = match elements.len() {
                1 => "is_candidate".to_owned(),
                _ => format!("is_candidate_{n}"),
            };
            b.let_(&name, wins(element))
        });
        let named: Vec<Var> = named.collect();
        let any = named.iter().map(|var| Expr::from(*var)).reduce(Expr::or);
        let Some(any) = any else { unreachable!("ReducePlan::chunk: it is at least 1") };
        let collect = |b: &mut KernelBuilder, votes: Expr, wins: Var, element: &Vec<Expr>| {
            let before = Expr::Call(Intrinsic::CountOnes, vec![votes.clone() & self.below]);
            b.if_(wins.into(), |b| {
                let to = b.let_("to", Expr::from(self.count) + before);
                store(b, &self.of.buffer, &self.of.at(to.into()), element.clone());
            });
            let all = Expr::Call(Intrinsic::CountOnes, vec![votes]);
            b.assign(self.count, Expr::from(self.count) + all);
        };
        let votes = b.let_("votes", ballot(any));
        b.if_(Expr::from(votes).differs(Expr::U32(0)), |b| {
            for (n, (wins, element)) in named.iter().zip(elements).enumerate() {
                let votes = match elements.len() {
                    1 => votes.into(),
                    _ => b.let_(&format!("votes_{n}"), ballot((*wins).into())).into(),
                };
                collect(b, votes, *wins, element);
            }
            let left = For::new(self.count, |left| Expr::from(left).ge(WARP));
            let left = left.change(Change::Sub(WARP.into())).unroll(Unroll::By(1));
            b.loop_("left", left, |b, left| {
                self.merge(b, left - WARP, WARP.into());
            });
            b.assign(self.count, Expr::from(self.count) % WARP);
        });
    }
}

impl Consumer for Candidates<'_> {
    fn begin(&self, _: &mut KernelBuilder, _: Expr, _: Expr) {}

    fn absorb(&self, b: &mut KernelBuilder, loaded: &dyn Fn(Option<Expr>) -> LoadedElements) {
        let loaded = loaded(None);
        let (vector, chunk) = (loaded.vector as i32, self.chunk as i32);
        let index_elem = self.of.fold.parts().get(1).map(|part| part.elem);
        let element = |at: Vec<Expr>, index: Expr| -> Vec<Expr> {
            let value = Access::new(loaded.values, at).load();
            [value].into_iter().chain(index_elem.map(|elem| index.cast(elem))).collect()
        };
        // A kernel that keeps no indices needs no variable for them.
        let named = |b: &mut KernelBuilder, name: &str, index: Expr| match index_elem {
            Some(_) => b.let_(name, index).into(),
            None => index,
        };
        b.unrolled("item", loaded.items, |b, item| {
            let first = (loaded.first)(item.into());
            if vector == 1 {
                let first = named(b, "at", loaded.position(first));
                return self.compare(b, &[element(vec![item.into()], first)]);
            }
            let first: Expr = named(b, "first", first);
            let compare = |b: &mut KernelBuilder, from: Expr| {
                let elements = (0..chunk).map(|j| {
                    let j = from.clone() + j;
                    element(vec![item.into(), j.clone()], first.clone() + j)
                });
                let elements: Vec<Vec<Expr>> = elements.collect();
                self.compare(b, &elements);
            };
            if vector == chunk {
                return compare(b, 0.into());
            }
            let chunks = For::below(0, vector).change(Change::Add(chunk.into()));
            b.loop_("j", chunks.unroll(Unroll::Full), |b, j| compare(b, j.into()));
        });
    }
}
