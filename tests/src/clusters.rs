//! A product by hand of blocks in clusters: those of a cluster share rows of A, of which each has a part copied to all. What is
//! known to be wrong can be planted in it.

use crate::warp_specialised::{Product, ROW, WARPGROUP, store_sums};
use gemm_dsl::ir::{
    Access, BufferId, BufferLayout, Elem, Expr, Extent, For, Geometry, IrError, KernelBuilder,
    MbarrierId, Operand, ProxyFence, Special, TensorMap, TensorSwizzle, Ty, VerifiedKernel, Wgmma,
};

/// Warps of a warpgroup, each of which gives stages back.
const WARPS: i32 = 4;

/// How a block sees to it that it is there as long as others arrive at its barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By a barrier of the cluster.
    Barrier,
    /// The producer waits until all stages are empty.
    Drain,
    /// Not at all, which is a fault.
    Nothing,
}

/// What is wrong with the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// At the start the threads of a block wait for one another alone.
    NoClusterBarrier,
    /// Nothing shows the barriers to the copies, and to other blocks.
    NoFenceOfBarriers,
    /// Consumers give stages back to their own block alone; others await them, or do not.
    ReleaseToOwn {
        /// Whether a stage is empty without those of other blocks.
        alone: bool,
    },
    /// They give stages back to their own block, as often as there are blocks.
    ReleaseToWrong,
    /// They give them back to a block that there is not.
    ReleaseToNone,
    /// A part of A goes to its own block alone.
    OwnMask,
    /// It goes to one block more than there are.
    LongMask,
    /// It goes nowhere.
    NoMask,
    /// A block expects its own part of A alone.
    OwnBytes,
    /// All parts of A go to one place.
    OnePlace,
    /// The producer waits for no stage to be empty.
    NoWaitForEmpty,
}

/// A product of A and the transpose of B, each row by row.
#[derive(Clone, Copy, Debug)]
pub struct Clustered {
    /// Its format, stages, consumers and columns; boxes fill the stages.
    pub product: Product,
    /// Blocks of a cluster.
    pub cluster: i32,
    /// How it ends.
    pub end: End,
    /// What is wrong.
    pub fault: Fault,
}

impl Default for Clustered {
    fn default() -> Self {
        let (product, end, fault) = (Product::default(), End::Barrier, Fault::None);
        Self { product, cluster: 2, end, fault }
    }
}

/// Whatever of a kernel its parts ask for.
struct Parts {
    of: Clustered,
    full: MbarrierId,
    empty: MbarrierId,
    /// The number of the block in its cluster.
    rank: Expr,
    /// Rounds of the ring.
    rounds: Expr,
}

impl Clustered {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// Rows of A that a block has copied for all.
    fn part(&self) -> i32 {
        self.product.tile()[0] / self.cluster
    }

    /// Blocks along x and y for so many rows and columns.
    pub fn blocks(&self, [m, n]: [usize; 2]) -> [usize; 2] {
        let [rows, columns] = self.product.tile().map(|extent| extent as usize);
        [n.div_ceil(columns).next_multiple_of(self.cluster as usize), m.div_ceil(rows)]
    }

    /// The kernel. It takes A, B and C, and the extents `m`, `n` and `k`.
    ///
    /// # Errors
    /// What verification refuses, where that is planted.
    pub fn kernel(&self) -> Result<VerifiedKernel, IrError> {
        let Product { format, stages, consumers, columns, .. } = self.product;
        let (elem, depth) = (self.product.elem(), self.product.depth());
        let [rows, _] = self.product.tile();
        let mut k = KernelBuilder::new(format!("clusters_of_{}_{}", self.cluster, format.name()));
        k.title("C = A * transpose(B), A and B row by row: blocks of a cluster bring each other the rows of A.");
        let mut input = |name: &str, operand, lines: i32| {
            let tile = vec![lines as u32, depth as u32];
            k.tensor_map(name, elem, operand, TensorMap { tile, swizzle: TensorSwizzle::Bytes128 })
        };
        let a = input("A", Operand::Input(0), self.part());
        let b = input("B", Operand::Input(1), columns);
        let c = k.global("C", Elem::F32, Operand::Output(0));
        let [m, n, length] = [("m", Extent::M), ("n", Extent::N), ("k", Extent::K)]
            .map(|(name, extent)| Expr::from(k.extent(name, Ty::I32, extent)));
        k.shape(a, [m.clone(), length.clone()], [length.clone(), 1.into()]);
        k.shape(b, [n.clone(), length.clone()], [length.clone(), 1.into()]);
        k.shape(c, [m.clone(), n.clone()], [n.clone(), 1.into()]);
        let tiles = |extent: &Expr, of: i32| extent.clone().wide().div_ceil(Expr::U64(of as u64));
        let clusters = tiles(&n, columns * self.cluster);
        k.geometry(Geometry {
            block: ((WARPGROUP * (consumers + 1)) as u32, 1),
            grid: [clusters * Expr::U64(self.cluster as u64), tiles(&m, rows), Expr::U64(1)],
            blocks_per_sm: 1,
        });
        k.cluster(self.cluster as u32);
        let layout = || BufferLayout::Array {
            order: vec![0, 1, 2],
            pad: 0.into(),
            swizzle: TensorSwizzle::Bytes128.layout(elem),
        };
        let stage = |lines: i32| [stages.into(), lines.into(), depth.into()];
        let tile_a = k.shared("As", elem, stage(rows), layout(), "tiles of A");
        let tile_b = k.shared("Bs", elem, stage(columns), layout(), "tiles of B");
        let full = k.mbarriers("full", stages, "a stage has come");
        let empty = k.mbarriers("empty", stages, "all blocks have read a stage");
        let rank = Expr::from(k.let_("rank", Special::ClusterRank));
        let row = Expr::from(k.let_("row", Expr::from(Special::BlockY) * rows));
        let column = Expr::from(k.let_("column", Expr::from(Special::BlockX) * columns));
        let rounds = Expr::from(k.let_("rounds", length.div_ceil(depth)));
        let parts = Parts { of: *self, full, empty, rank, rounds };

        self.make_barriers(&mut k, &parts);
        let tid = || Expr::from(Special::ThreadX);
        k.if_else(
            tid().lt(WARPGROUP),
            |k| {
                k.comment(
                    "The producer keeps the rings full: its own, and a part of A of the others.",
                );
                if consumers == 2 {
                    k.fewer_registers(40);
                }
                k.if_(tid().equals(0), |k| {
                    produce(k, &parts, (a, tile_a, row.clone()), (b, tile_b, column.clone()));
                });
            },
            |k| {
                k.comment("Consumers multiply what is in it.");
                if consumers == 2 {
                    k.more_registers(232);
                }
                let group = Expr::from(k.let_("group", tid() / WARPGROUP - 1));
                let sums = [Expr::from(columns / 2)];
                let acc = k.zeroed_registers("acc", Elem::F32, sums, "sums of C");
                consume(k, &parts, acc, [tile_a, tile_b], group.clone());
                store_sums(k, (c, [m, n]), acc, [row.clone(), column.clone(), group], columns);
            },
        );
        if self.end == End::Barrier {
            k.comment("No block leaves as long as others may arrive at its barriers.");
            k.cluster_barrier();
        }
        k.finish()
    }

    fn make_barriers(&self, k: &mut KernelBuilder, parts: &Parts) {
        let alone = self.is(Fault::ReleaseToOwn { alone: true });
        let arrivals = WARPS * self.product.consumers * if alone { 1 } else { self.cluster };
        k.if_(Expr::from(Special::ThreadX).equals(0), |k| {
            k.unrolled("i", self.product.stages, |k, i| {
                k.mbarrier_init(parts.full, i, 1);
                k.mbarrier_init(parts.empty, i, arrivals);
            });
            if !self.is(Fault::NoFenceOfBarriers) {
                k.proxy_fence(ProxyFence::MbarrierInit);
            }
        });
        match self.is(Fault::NoClusterBarrier) {
            true => k.barrier(),
            false => k.cluster_barrier(),
        }
    }
}

/// A stage of the ring in a round, and the parity of its phase.
fn stage(k: &mut KernelBuilder, parts: &Parts, round: Expr) -> [Expr; 2] {
    let stages = parts.of.product.stages;
    let stage = k.let_("stage", round.clone() % stages);
    let parity = k.let_("parity", round / stages % 2);
    [stage.into(), parity.into()]
}

type Side = (BufferId, BufferId, Expr);

fn produce(k: &mut KernelBuilder, parts: &Parts, a: Side, b: Side) {
    let Parts { of, full, empty, rank, rounds } = parts;
    let (part, [rows, columns]) = (of.part(), of.product.tile());
    let blocks = match of.fault {
        Fault::OwnMask => rank.clone().equals(0).select(1, 2),
        Fault::LongMask => Expr::I32((2 << of.cluster) - 1),
        Fault::NoMask => Expr::I32(0),
        _ => Expr::I32((1 << of.cluster) - 1),
    };
    k.loop_("round", For::below(0, rounds.clone()), |k, round| {
        let [stage, parity] = stage(k, parts, round.into());
        if !of.is(Fault::NoWaitForEmpty) {
            // Of the first round all stages are empty: so is the phase before the first.
            k.mbarrier_wait(*empty, stage.clone(), parity.xor(1));
        }
        let expected = if of.is(Fault::OwnBytes) { part + columns } else { rows + columns };
        k.mbarrier_arrive_expect(*full, stage.clone(), ROW * expected);
        let at = Expr::from(round) * of.product.depth();
        let first = rank.clone() * part;
        let place = if of.is(Fault::OnePlace) { 0.into() } else { first.clone() };
        let (from, to, row) = a;
        let to = Access::new(to, [stage.clone(), place, 0.into()]);
        k.tensor_multicast(from, [row + first, at.clone()], to, (*full, stage.clone()), blocks);
        let (from, to, column) = b;
        let to = Access::new(to, [stage.clone(), 0.into(), 0.into()]);
        k.tensor_copy(from, [column, at], to, (*full, stage));
    });
    if of.end == End::Drain {
        k.comment("The block stays until others have given its stages back.");
        let end = rounds.clone() + of.product.stages;
        k.loop_("round", For::below(rounds.clone(), end), |k, round| {
            let [stage, parity] = stage(k, parts, round.into());
            k.mbarrier_wait(*empty, stage, parity.xor(1));
        });
    }
}

fn consume(
    k: &mut KernelBuilder,
    parts: &Parts,
    acc: BufferId,
    [a, b]: [BufferId; 2],
    group: Expr,
) {
    let Parts { of, full, empty, rank, rounds } = parts;
    let (product, fault) = (of.product, of.fault);
    let terms = product.format.terms() as i32;
    let lane = || Expr::from(Special::ThreadX) % 32;
    k.loop_("round", For::below(0, rounds.clone()), |k, round| {
        let [stage, parity] = stage(k, parts, round.into());
        k.mbarrier_wait(*full, stage.clone(), parity);
        k.wgmma_fence([acc]);
        k.unrolled("step", product.depth() / terms, |k, step| {
            let (row, at) = (group.clone() * Wgmma::ROWS as i32, Expr::from(step) * terms);
            k.wgmma(Wgmma {
                format: product.format,
                columns: product.columns as u32,
                d: Access::new(acc, [0.into()]),
                a: Access::new(a, [stage.clone(), row, at.clone()]),
                b: Access::new(b, [stage.clone(), 0.into(), at]),
                accumulate: (Expr::from(round) + step).gt(0),
            });
        });
        k.wgmma_commit();
        k.wgmma_wait(0, [acc]);
        k.comment("Each block is told that the stage has been read, by a lane of its own.");
        k.warp_barrier();
        let blocks = match fault {
            Fault::ReleaseToOwn { .. } => 1,
            Fault::ReleaseToNone => of.cluster + 1,
            _ => of.cluster,
        };
        k.if_(lane().lt(blocks), |k| match fault {
            Fault::ReleaseToOwn { .. } => k.mbarrier_arrive(*empty, stage),
            Fault::ReleaseToWrong => k.mbarrier_arrive_relaxed(*empty, stage, rank.clone()),
            _ => k.mbarrier_arrive_relaxed(*empty, stage, lane()),
        });
    });
}
