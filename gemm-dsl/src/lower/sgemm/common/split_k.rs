//! Reduction for split-K and stream-K, in which several blocks accumulate different parts of K for
//! one tile. Each block stores its accumulators. The block that finishes last adds them in
//! ascending K and stores C.
//!
//! Partial accumulators are stored in register order, with the thread index as the fastest
//! dimension. Accesses are therefore coalesced for every fragment layout, and only the epilogue
//! handles the edge of C.

use super::accumulator_tile::{AccumulatorCounts, AccumulatorTile, TileParts};
use super::accumulators::Accumulators;
use super::loops::each;
use super::problem::GemmProblem;
use super::schedule::{self, SplitKPartitions};
use super::sharing::TileDistribution;
use super::stream_k::{self, Segment};
use crate::ir::program::{Program, Slot};
use crate::ir::{
    Access, BufferId, BufferLayout, Change, Const, Elem, Expr, For, KernelBuilder, Operand, Unroll,
    Var,
};
use crate::lower::literal::zero_of;
use crate::lower::sgemm::common::workspace::{PARTIALS, TICKETS};
use crate::lower::tickets::{self, Tickets};
use crate::plan::{KernelKind, SgemmPlan, even_registers};
use crate::spec::Sharing;

/// Sizes that determine the lengths of the workspace arrays, both in a program and in a kernel.
pub(crate) struct SplitSizes {
    pub tiles: Expr,
    /// Number of split-K partitions per tile; 1 under stream-K.
    pub partitions: Expr,
    /// Number of blocks under stream-K; 1 under split-K.
    pub blocks: Expr,
    pub terms: Expr,
}

/// Numbers of partial tiles that blocks may store, and of ticket counters. Both are zero if no two
/// blocks share a tile, and `None` if the plan never shares K.
fn extents(plan: &SgemmPlan, of: SplitSizes) -> Option<[Expr; 2]> {
    match plan.sharing() {
        Sharing::Whole => None,
        Sharing::Partitions(_) | Sharing::AutoPartitions => {
            let several = of.partitions.clone().gt(1u64);
            Some(
                [of.tiles.clone() * of.partitions, of.tiles]
                    .map(|n| several.clone().select(n, 0u64)),
            )
        }
        Sharing::Stream => {
            let some = of.blocks.clone().max(1u64);
            // A tile with a single step is not shared either.
            let even = (of.tiles % some).equals(0u64).or(of.terms.le(u64::from(plan.k_step())));
            let parts = even.select(0u64, of.blocks * u64::from(stream_k::PARTS_OF_BLOCK));
            // There is a counter for each remaining tile. Fewer than two tiles per block remain.
            Some([parts.clone(), parts])
        }
    }
}

/// Number of accumulators per block; `None` for kernels that do not share K.
fn sums_of_part(plan: &SgemmPlan) -> Option<u32> {
    match plan.kind() {
        KernelKind::Naive(_) => None,
        KernelKind::Direct(d) => Some(d.tm() * d.tn() * d.epilogue_threads()),
        KernelKind::Tiled(t) => Some(t.tm() * t.tn() * t.epilogue_threads()),
        KernelKind::Wgmma(t) => Some(t.tm() * t.tn() * t.epilogue_threads()),
    }
}

/// Adds the workspace arrays to a program.
pub(crate) fn slots(
    program: &mut Program,
    plan: &SgemmPlan,
    sizes: SplitSizes,
) -> Vec<(Operand, Slot)> {
    let (Some(sums), Some([parts, words])) = (sums_of_part(plan), extents(plan, sizes)) else {
        return Vec::new();
    };
    let partials = program.temp("partials", plan.types().acc, [parts, u64::from(sums).into()]);
    let tickets = tickets::slot(program, words);
    vec![(PARTIALS, partials), (TICKETS, tickets)]
}

/// Workspace of split-K and stream-K in a kernel.
pub(crate) struct SplitKWorkspace {
    partials: BufferId,
    tickets: BufferId,
    is_last: Access,
    sums: Const,
    /// True if partial tiles can be read by vectors.
    by_vectors: bool,
    /// Shared array for the combined accumulators, if only some threads have final accumulators.
    added: Option<BufferId>,
}

/// Partial tiles of one tile of C, and their indices in the workspace.
struct TileShares {
    /// Ticket counter of the tile. `count` is the number of blocks that share the tile.
    word: Access,
    count: Expr,
    /// Index of this block's partial tile. `first` is the index of the first one in ascending K.
    own: Expr,
    first: Expr,
    other: Box<dyn Fn(Expr) -> Expr>,
}

impl SplitKWorkspace {
    /// Declares the arrays, after the parameters of the GEMM.
    pub(crate) fn declare(
        b: &mut KernelBuilder,
        plan: &SgemmPlan,
        problem: &GemmProblem,
        AccumulatorCounts { places, epilogue_threads, by_all }: AccumulatorCounts,
    ) -> Option<Self> {
        let sizes = SplitSizes {
            tiles: schedule::tiles_of(plan, problem),
            partitions: schedule::partitions_of(plan, problem),
            blocks: match problem.distribution {
                Some(TileDistribution::StreamK(of)) => Expr::from(of.sharers).wide(),
                Some(TileDistribution::Persistent(_)) | None => 1u64.into(),
            },
            terms: Expr::from(problem.k).wide(),
        };
        let [parts, words] = extents(plan, sizes)?;
        // Whichever block is last, each element of C is stored once. Matrices of a pointer list may
        // overlap. The matrices of further values are marked where they are declared.
        if !problem.listed {
            b.exclusive(problem.c().buffer);
        }
        let partials = b.global("partials", plan.types().acc, PARTIALS);
        let tickets = tickets::parameter(b, TICKETS);
        tickets::workspace_title(b, "partials holds PART_SUMS accumulators per partial tile");
        let sums =
            b.constant("PART_SUMS", places * epilogue_threads, "accumulators of a partial tile");
        b.shape(partials, [parts, Expr::from(sums).wide()], [sums.into(), 1.into()]);
        tickets::shape(b, tickets, words);
        let is_last = tickets::flag(b);
        let added = (!by_all).then(|| {
            let meaning = "total of all partial tiles";
            b.shared(
                "all_parts",
                plan.types().acc,
                [sums.into()],
                BufferLayout::row_major(1),
                meaning,
            )
        });
        let by_vectors = sums_of_part(plan)
            .is_some_and(|sums| sums.is_multiple_of(plan.types().acc.vector_lanes().into()));
        Some(Self { partials, tickets, is_last, sums, by_vectors, added })
    }

    /// Combines and stores a tile. A block that has computed all of K stores its own accumulators.
    /// Otherwise the block leaves them in the workspace, and the last block combines all partial
    /// tiles and stores the sum.
    pub(crate) fn gather(
        &self,
        b: &mut KernelBuilder,
        block: &AccumulatorTile<'_>,
        parts: &TileParts,
        acc: Accumulators,
        store: impl FnOnce(&mut KernelBuilder, &Accumulators),
    ) {
        let all = acc.in_one(b, block);
        b.comment(
            "A block that computed all of K stores its tile. Otherwise the last of the tile's \
             blocks to finish stores it.",
        );
        let has_all = match parts {
            TileParts::Partitions(partitions) => Expr::from(partitions.count).equals(1),
            TileParts::Segment(segment) => segment.is_whole(),
        };
        let stores = b.mut_("stores", has_all);
        b.if_(Expr::from(stores).negated(), |b| {
            let shared = match parts {
                TileParts::Partitions(partitions) => self.partitions(b, partitions),
                TileParts::Segment(segment) => self.segments(b, *segment),
            };
            let tickets = self.leave(b, block, &shared, &all);
            let is_last = tickets.is_last(b);
            b.assign(stores, is_last);
            b.if_(stores.into(), |b| {
                match self.added {
                    None => self.add(b, block, &shared, &all),
                    Some(added) => self.add_by_all(b, block, added, &shared, &all),
                }
                tickets.reset(b);
            });
        });
        let by_this = block.in_epilogue.iter().cloned().fold(stores.into(), Expr::and);
        b.if_(by_this, |b| store(b, &all));
    }

    /// Partial tiles of a tile, in the order of its split-K partitions.
    fn partitions(&self, b: &mut KernelBuilder, partitions: &SplitKPartitions) -> TileShares {
        let [block, range] = schedule::tile_and_range();
        let tile = partitions.tile.map_or(block, Expr::from);
        let first = b.let_("first_part", tile.clone().wide() * Expr::from(partitions.count).wide());
        TileShares {
            word: Access::new(self.tickets, [tile]),
            count: partitions.count.into(),
            own: first + range.wide(),
            first: first.into(),
            other: Box::new(move |nth| first + nth.wide()),
        }
    }

    /// Partial tiles of a tile under stream-K. A block stores at most two partial tiles: one of a
    /// tile that another block begins, and one of a tile that it begins itself.
    fn segments(&self, b: &mut KernelBuilder, segment: Segment) -> TileShares {
        let [first, count] = segment.blocks(b);
        let parts = stream_k::PARTS_OF_BLOCK as i32;
        let parts =
            b.constant("PARTS_OF_BLOCK", parts, "maximum number of partial tiles of a block");
        let continues = b.constant("CONTINUES", 0, "part of a tile that another block begins");
        let begins = b.constant("BEGINS", 1, "part of a tile that this block begins");
        let which = Expr::from(segment.from).equals(0).select(begins, continues);
        TileShares {
            word: Access::new(self.tickets, [segment.nth.into()]),
            count: count.into(),
            own: schedule::block() * parts + which,
            first: first * parts + begins,
            other: Box::new(move |nth| (Expr::from(first) + nth) * parts + continues),
        }
    }

    /// Location of a thread's accumulator in a partial tile.
    fn at(&self, block: &AccumulatorTile<'_>, part: impl Into<Expr>, m: &Expr, n: &Expr) -> Access {
        Access::new(self.partials, [part.into(), block.place(m, n)])
    }

    /// Stores this block's accumulators in the workspace, and takes a ticket.
    fn leave(
        &self,
        b: &mut KernelBuilder,
        block: &AccumulatorTile<'_>,
        shared: &TileShares,
        acc: &Accumulators,
    ) -> Tickets {
        b.comment(
            "Publish the partial accumulators in the workspace, in thread order, then take a \
             ticket.",
        );
        let part = b.let_("part", shared.own.clone());
        block.by_epilogue_threads(b, |b| {
            each(b, block.elements(), |b, m, n| {
                b.store(self.at(block, part, m, n), acc.value(m, n));
            });
        });
        let tickets = Tickets::new(
            shared.word.clone(),
            self.is_last.clone(),
            shared.count.clone(),
            block.first_thread.clone(),
        )
        .among(block.meet);
        tickets.take_for_all(b);
        tickets
    }

    /// Combines all partial tiles if only some threads have final accumulators. All threads add,
    /// which is faster, and pass the sums on through shared memory.
    fn add_by_all(
        &self,
        b: &mut KernelBuilder,
        block: &AccumulatorTile<'_>,
        added: BufferId,
        shared: &TileShares,
        all: &Accumulators,
    ) {
        b.comment(
            "Last ticket: the acquire-release add and the barrier make all partial tiles visible. \
             This block adds them in the order of K. All of its threads take part, each with \
             accumulators of its own.",
        );
        let (thread, threads) = block.thread.clone();
        let of = |part, i: Var| Access::new(self.partials, [part, i.into()]);
        let acc = block.plan.types().acc;
        let lanes = i32::from(acc.vector_lanes());
        let at_once = at_once(block.plan, if self.by_vectors { lanes as u32 } else { 1 });
        if self.by_vectors {
            let sums = For::below(thread * lanes, self.sums).change(Change::Add(threads * lanes));
            b.loop_("i", sums.unroll(Unroll::By(1)), |b, i| {
                let vector = b.registers("sum", acc, [lanes.into()], "");
                let own = |v: Expr| Access::new(vector, [v]);
                b.store(own(0.into()).vector(), of(shared.first.clone(), i).vector().load());
                let none = Expr::Pack(vec![zero_of(acc, -0.0); lanes as usize]);
                let read = |b: &mut KernelBuilder, part, is: Expr, place: PartAccess<'_>| {
                    let value = is.select(of(part, i).vector().load(), none.clone());
                    b.store(place(vec![0.into()]).vector(), value);
                };
                others(
                    b,
                    shared,
                    PartRegisters { elem: acc, at_once, dims: vec![lanes.into()] },
                    read,
                    |b, place| {
                        b.unrolled("v", lanes, |b, v| {
                            let sum = own(v.into()).load() + place(vec![v.into()]).load();
                            b.store(own(v.into()), sum);
                        });
                    },
                );
                b.store(Access::new(added, [i.into()]).vector(), own(0.into()).vector().load());
            });
        } else {
            let sums = For::below(thread, self.sums).change(Change::Add(threads));
            b.loop_("i", sums.unroll(Unroll::By(1)), |b, i| {
                let sum = b.mut_("sum", of(shared.first.clone(), i).load());
                let none = zero_of(acc, -0.0);
                let read = |b: &mut KernelBuilder, part, is: Expr, place: PartAccess<'_>| {
                    b.store(place(Vec::new()), is.select(of(part, i).load(), none.clone()));
                };
                let registers = PartRegisters { elem: acc, at_once, dims: Vec::new() };
                others(b, shared, registers, read, |b, place| {
                    b.assign(sum, sum + place(Vec::new()).load());
                });
                b.store(Access::new(added, [i.into()]), Expr::from(sum));
            });
        }
        block.barrier(b);
        block.by_epilogue_threads(b, |b| {
            each(b, block.elements(), |b, m, n| {
                all.set(b, m, n, Access::new(added, [block.place(m, n)]).load());
            });
        });
    }

    /// Combines all partial tiles if every thread has final accumulators.
    fn add(
        &self,
        b: &mut KernelBuilder,
        block: &AccumulatorTile<'_>,
        shared: &TileShares,
        all: &Accumulators,
    ) {
        b.comment(
            "Last ticket: the acquire-release add and the barrier make all partial tiles visible. \
             This block adds them in the order of K.",
        );
        let first = match &shared.first {
            first @ Expr::Var(_) => first.clone(),
            first => b.let_("first_part", first.clone()).into(),
        };
        each(b, block.elements(), |b, m, n| {
            all.set(b, m, n, self.at(block, first.clone(), m, n).load());
        });
        let at_once = at_once(block.plan, block.rows.count * block.cols.count);
        if at_once == 1 {
            let others = For::below(1, shared.count.clone()).unroll(Unroll::By(1));
            return b.loop_("other", others, |b, other: Var| {
                let part = b.let_("part", (shared.other)(other.into()));
                each(b, block.elements(), |b, m, n| {
                    let sum = all.value(m, n) + self.at(block, part, m, n).load();
                    all.set(b, m, n, sum);
                });
            });
        }
        let elem = block.plan.types().acc;
        let read = |b: &mut KernelBuilder, part: Expr, is: Expr, place: PartAccess<'_>| {
            each(b, block.elements(), |b, m, n| {
                let sum = self.at(block, part.clone(), m, n).load();
                let sum = is.clone().select(sum, zero_of(elem, -0.0));
                b.store(place(vec![m.clone(), n.clone()]), sum);
            });
        };
        let own = [block.rows.name, block.cols.name].map(Expr::from).to_vec();
        others(b, shared, PartRegisters { elem, at_once, dims: own }, read, |b, place| {
            each(b, block.elements(), |b, m, n| {
                let sum = all.value(m, n) + place(vec![m.clone(), n.clone()]).load();
                all.set(b, m, n, sum);
            });
        });
    }
}

/// Registers of a thread in addition to its accumulators and the loaded partial tiles.
const BESIDE: u32 = 40;

/// Maximum number of partial tiles that are loaded at once.
const MOST_AT_ONCE: u32 = 16;

/// Number of partial tiles that a thread with `sums` accumulators loads at once: a power of two, at
/// most [`MOST_AT_ONCE`]. Several loads take as long as one, so the number is as large as registers
/// allow.
fn at_once(plan: &SgemmPlan, sums: u32) -> u32 {
    let even = even_registers(plan.threads().into(), plan.blocks_per_sm());
    let left = even.saturating_sub(BESIDE + sums);
    let fitting = (left / sums.max(1)).clamp(1, MOST_AT_ONCE);
    1 << fitting.ilog2()
}

/// Function that returns the register for an element of a partial tile, given its indices.
type PartAccess<'p> = &'p dyn Fn(Vec<Expr>) -> Access;

/// Registers for partial tiles that are loaded at once: the number of tiles, and the extents of
/// each.
struct PartRegisters {
    elem: Elem,
    at_once: u32,
    dims: Vec<Expr>,
}

/// Adds all partial tiles except the first, in order. Each iteration loads `at_once` tiles, each
/// into a register array of its own. Missing tiles are -0, which changes no accumulator.
fn others(
    b: &mut KernelBuilder,
    shared: &TileShares,
    registers: PartRegisters,
    read: impl Fn(&mut KernelBuilder, Expr, Expr, PartAccess<'_>),
    mut add: impl FnMut(&mut KernelBuilder, PartAccess<'_>),
) {
    let PartRegisters { elem, at_once, dims: own } = registers;
    let at_once = b.constant("PARTS", at_once as i32, "partial tiles loaded at once");
    let all = For::below(1, shared.count.clone()).unroll(Unroll::By(1));
    b.loop_("other", all.change(Change::Add(at_once.into())), |b, other: Var| {
        let parts = b.registers("parts", elem, [at_once.into()].into_iter().chain(own), "");
        let of =
            |u: Var, own: Vec<Expr>| Access::new(parts, [Expr::from(u)].into_iter().chain(own));
        b.unrolled("u", at_once, |b, u| {
            let is = (other + u).lt(shared.count.clone());
            read(b, (shared.other)(other + u), is, &|own| of(u, own));
        });
        b.unrolled("u", at_once, |b, u| add(b, &|own| of(u, own)));
    });
}
