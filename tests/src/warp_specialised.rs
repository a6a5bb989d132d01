//! A product by hand as the fastest kernels of `sm_90` make it: one warpgroup has boxes of A and B copied into a ring of
//! stages, the others multiply them. What is known to be wrong can be planted in it.

use crate::random::Random;
use crate::tensor_core::{Kind, Tile};
use gemm_dsl::ir::{
    Access, BufferId, BufferLayout, Change, Elem, Expr, Extent, For, Geometry, IrError,
    KernelBuilder, MbarrierId, Operand, ProxyFence, Special, TensorMap, TensorSwizzle, Ty,
    VerifiedKernel, Wgmma,
};
use gemm_dsl::target::tensor_core::{Format, Rules};
use gemm_sim::{Buffer, Counters, SimError};

/// Threads of a warpgroup.
pub const WARPGROUP: i32 = 128;
/// Bytes of a row of a stage.
pub const ROW: i32 = 128;

/// How the stages are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// By copies of boxes, which one thread issues.
    Boxes,
    /// By ordinary stores of one warp, of matrices whose extents tiles fill.
    Stores,
}

/// What is wrong with the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Consumers do not wait for a stage to be full.
    NoWaitForFull,
    /// They wait for the other parity.
    OtherParity,
    /// The producer does not wait for a stage to be empty.
    NoWaitForEmpty,
    /// Consumers give a stage back before they have waited for the instructions that read it.
    EarlyRelease,
    /// They use sums before they have waited for them.
    EarlyUse,
    /// They write sums in flight.
    EarlyWrite,
    /// The wait does not name the sums.
    UnnamedSums,
    /// There is no fence before the matrix instructions.
    NoFence,
    /// So many bytes more are expected than come.
    MoreBytes(i32),
    /// A stage is empty behind so many arrivals more.
    MoreArrivals(i32),
    /// One lane of a warp gives a stage back, and nothing says that the others have waited.
    NoWarpBarrier,
    /// Nothing shows the barriers to the copies.
    NoFenceOfBarriers,
    /// Nothing says that the barriers are made before they are used.
    NoBarrierOfBlock,
    /// A barrier is made twice.
    MadeTwice,
    /// Nobody makes the barriers.
    NeverMade,
    /// What is stored is not shown to matrix instructions.
    NoFenceOfProxies,
    /// The instructions read the first part of each row of B only.
    OtherPart,
    /// Their tiles begin one row below where they may.
    OtherRow,
    /// The tensor maps have another swizzle than the stages.
    OtherSwizzle,
    /// One warp of a warpgroup leaves a matrix instruction out.
    WarpApart,
    /// The boxes of A have the rows of the first half only.
    ShortBox,
    /// The producer keeps, and consumers ask for, so many registers, where there are two of these.
    Registers([u32; 2]),
}

/// A product of A and the transpose of B, each row by row.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// What the elements of A and B are.
    pub format: Format,
    /// Stages of the ring.
    pub stages: i32,
    /// Warpgroups that multiply, 64 rows of a tile each.
    pub consumers: i32,
    /// Columns of a tile.
    pub columns: i32,
    /// How the stages are filled.
    pub fill: Fill,
    /// Whether the instructions of a stage are in flight while those of the next are issued.
    pub overlap: bool,
    /// What is wrong.
    pub fault: Fault,
}

impl Default for Product {
    fn default() -> Self {
        let (fill, fault) = (Fill::Boxes, Fault::None);
        let (format, overlap) = (Format::Bf16, false);
        Self { format, stages: 3, consumers: 2, columns: 64, fill, overlap, fault }
    }
}

/// The element type of a format in memory.
fn elem(format: Format) -> Elem {
    match format {
        Format::Bf16 => Elem::Bf16,
        Format::F16 => Elem::F16,
        Format::Tf32 => Elem::F32,
    }
}

/// Whatever of a kernel its parts ask for.
struct Parts {
    product: Product,
    full: MbarrierId,
    empty: MbarrierId,
    /// Rounds of the ring.
    rounds: Expr,
}

impl Parts {
    fn is(&self, fault: Fault) -> bool {
        self.product.fault == fault
    }
}

impl Product {
    /// What A and B are made of in memory.
    pub fn elem(&self) -> Elem {
        elem(self.format)
    }

    /// Terms of a row of a stage.
    pub fn depth(&self) -> i32 {
        8 * ROW / self.format.bits() as i32
    }

    /// Rows and columns of a tile.
    pub fn tile(&self) -> [i32; 2] {
        [Wgmma::ROWS as i32 * self.consumers, self.columns]
    }

    /// The registers of a thread of the producer, and of one that multiplies, where they are shared out anew.
    fn registers(&self) -> Option<[u32; 2]> {
        match self.fault {
            _ if self.consumers != 2 => None,
            Fault::Registers(registers) => Some(registers),
            _ => Some([40, 232]),
        }
    }

    /// The kernel. It takes A, B and C, and the extents `m`, `n` and `k`.
    ///
    /// # Errors
    /// What verification refuses, where that is planted.
    pub fn kernel(&self) -> Result<VerifiedKernel, IrError> {
        let (format, depth, [rows, columns]) = (self.format, self.depth(), self.tile());
        let (elem, boxes) = (elem(format), self.fill == Fill::Boxes);
        let mut k = KernelBuilder::new(format!("warp_specialised_{}", format.name()));
        k.title("C = A * transpose(B), A and B row by row: a producer and consumers, a ring of stages between them.");
        let swizzle = match self.fault {
            Fault::OtherSwizzle => TensorSwizzle::Bytes64,
            _ => TensorSwizzle::Bytes128,
        };
        let mut input = |name: &str, operand, lines: i32| match boxes {
            true => {
                let tile = vec![lines as u32, depth as u32];
                k.tensor_map(name, elem, operand, TensorMap { tile, swizzle })
            }
            false => k.global(name, elem, operand),
        };
        let short = self.fault == Fault::ShortBox;
        let a = input("A", Operand::Input(0), if short { rows / 2 } else { rows });
        let b = input("B", Operand::Input(1), columns);
        let c = k.global("C", Elem::F32, Operand::Output(0));
        let [m, n, length] = [("m", Extent::M), ("n", Extent::N), ("k", Extent::K)]
            .map(|(name, extent)| Expr::from(k.extent(name, Ty::I32, extent)));
        k.shape(a, [m.clone(), length.clone()], [length.clone(), 1.into()]);
        k.shape(b, [n.clone(), length.clone()], [length.clone(), 1.into()]);
        k.shape(c, [m.clone(), n.clone()], [n.clone(), 1.into()]);
        let tiles = |extent: &Expr, of: i32| extent.clone().wide().div_ceil(Expr::U64(of as u64));
        let threads = WARPGROUP * (self.consumers + 1);
        k.geometry(Geometry {
            block: (threads as u32, 1),
            grid: [tiles(&n, columns), tiles(&m, rows), Expr::U64(1)],
            blocks_per_sm: 1,
        });
        let layout = || BufferLayout::Array {
            order: vec![0, 1, 2],
            pad: 0.into(),
            swizzle: TensorSwizzle::Bytes128.layout(elem),
        };
        let stage = |lines: i32| [self.stages.into(), lines.into(), depth.into()];
        let tile_a = k.shared("As", elem, stage(rows), layout(), "tiles of A");
        let tile_b = k.shared("Bs", elem, stage(columns), layout(), "tiles of B");
        let full = k.mbarriers("full", self.stages, "a stage has come");
        let empty = k.mbarriers("empty", self.stages, "a stage has been read");
        let row = k.let_("row", Expr::from(Special::BlockY) * rows);
        let column = k.let_("column", Expr::from(Special::BlockX) * columns);
        let rounds = Expr::from(k.let_("rounds", length.div_ceil(depth)));
        let parts = Parts { product: *self, full, empty, rounds };

        self.make_barriers(&mut k, &parts);
        let tid = || Expr::from(Special::ThreadX);
        k.if_else(
            tid().lt(WARPGROUP),
            |k| {
                k.comment("The producer keeps the ring full.");
                if let Some([few, _]) = self.registers() {
                    k.fewer_registers(few);
                }
                let issues = if boxes { tid().equals(0) } else { tid().lt(32) };
                k.if_(issues, |k| {
                    produce(k, &parts, [(a, tile_a, row.into()), (b, tile_b, column.into())]);
                });
            },
            |k| {
                k.comment("Consumers multiply what is in it.");
                if let Some([_, many]) = self.registers() {
                    k.more_registers(many);
                }
                let group = k.let_("group", tid() / WARPGROUP - 1);
                let sums = [Expr::from(columns / 2)];
                let acc = k.zeroed_registers("acc", Elem::F32, sums, "sums of C");
                consume(k, &parts, acc, [tile_a, tile_b], group.into());
                store_sums(k, (c, [m, n]), acc, [row.into(), column.into(), group.into()], columns);
            },
        );
        k.finish()
    }

    fn make_barriers(&self, k: &mut KernelBuilder, parts: &Parts) {
        let arrivals = 4 * self.consumers;
        let more = if let Fault::MoreArrivals(more) = self.fault { more } else { 0 };
        let filled = if self.fill == Fill::Boxes { 1 } else { 32 };
        k.if_(Expr::from(Special::ThreadX).equals(0), |k| {
            if !parts.is(Fault::NeverMade) {
                k.unrolled("i", self.stages, |k, i| {
                    k.mbarrier_init(parts.full, i, filled);
                    k.mbarrier_init(parts.empty, i, arrivals + more);
                });
            }
            if parts.is(Fault::MadeTwice) {
                k.mbarrier_init(parts.full, 0, filled);
            }
            if !parts.is(Fault::NoFenceOfBarriers) {
                k.proxy_fence(ProxyFence::MbarrierInit);
            }
        });
        if !parts.is(Fault::NoBarrierOfBlock) {
            k.barrier();
        }
    }

    /// Operands of a kind, of extents that the kernel's tiles need not fill.
    pub fn operands(&self, kind: Kind, extents: [usize; 3], seed: u64) -> Tile {
        kind.tile(self.format, extents, &mut Random::new(seed))
    }

    /// What the rules say of operands, row by row: a chain of groups that begins with nothing, and ends with zeros.
    pub fn expected(&self, operands: &Tile, rules: Rules) -> Vec<u32> {
        let [m, n, k] = operands.extents;
        let padded = k.next_multiple_of(self.depth() as usize);
        let lines = |words: &[u32]| -> Vec<u32> {
            let lines = words.chunks(k);
            lines.flat_map(|line| line.iter().copied().chain((k..padded).map(|_| 0))).collect()
        };
        let (a, b) = (lines(&operands.a), lines(&operands.b));
        let (extents, c) = ([m, n, padded], vec![0; m * n]);
        Tile { format: self.format, extents, a, b, c }.multiplied(rules)
    }

    /// Elements in the memory of the simulator.
    pub fn buffer(format: Format, words: &[u32]) -> Buffer {
        Buffer::from_bits(elem(format), words.iter().map(|word| u64::from(*word)))
    }

    /// What a kernel makes of operands, row by row, and its counters.
    ///
    /// # Errors
    /// What the simulator finds.
    pub fn simulate(
        kernel: &VerifiedKernel,
        operands: &Tile,
    ) -> Result<(Vec<u32>, Counters), SimError> {
        let [m, n, k] = operands.extents;
        let [a, b] = [&operands.a, &operands.b].map(|words| Self::buffer(operands.format, words));
        let buffers = [a, b, Buffer::zeros(m * n)];
        let counters = gemm_sim::launch(kernel, &buffers, &[m, n, k].map(|extent| extent as u64))?;
        Ok((buffers[2].bits().into_iter().map(|bits| bits as u32).collect(), counters))
    }
}

/// Stores the sums of a tile of C that are inside of it: of a warpgroup of consumers the rows from `row` on, the columns from
/// `column` on.
pub fn store_sums(
    k: &mut KernelBuilder,
    (c, [m, n]): (BufferId, [Expr; 2]),
    sums: BufferId,
    [row, column, group]: [Expr; 3],
    columns: i32,
) {
    let lane = || Expr::from(Special::ThreadX) % 32;
    k.comment("Sums inside of C are stored.");
    let warp = k.let_("warp", Expr::from(Special::ThreadX) % WARPGROUP / 32);
    let first = k.let_("first", row + group * 64 + Expr::from(warp) * 16 + lane() / 4);
    let beside = k.let_("beside", column + lane() % 4 * 2);
    k.unrolled("i", columns / 2, |k, i| {
        let i = Expr::from(i);
        let r = Expr::from(k.let_("r", Expr::from(first) + i.clone() / 2 % 2 * 8));
        let s = k.let_("s", Expr::from(beside) + i.clone() / 4 * 8 + i.clone() % 2);
        let s = Expr::from(s);
        k.if_(r.clone().lt(m.clone()).and(s.clone().lt(n.clone())), |k| {
            k.store(Access::new(c, [r, s]), Access::new(sums, [i]).load());
        });
    });
}

/// A stage of the ring in a round, and the parity of its phase.
fn stage(k: &mut KernelBuilder, parts: &Parts, round: impl Into<Expr>) -> [Expr; 2] {
    let (round, stages) = (round.into(), parts.product.stages);
    let stage = k.let_("stage", round.clone() % stages);
    let parity = k.let_("parity", round / stages % 2);
    [stage.into(), parity.into()]
}

type Side = (BufferId, BufferId, Expr);

fn produce(k: &mut KernelBuilder, parts: &Parts, sides: [Side; 2]) {
    let product = parts.product;
    let (depth, [rows, columns]) = (product.depth(), product.tile());
    let more = if let Fault::MoreBytes(more) = product.fault { more } else { 0 };
    k.loop_("round", For::below(0, parts.rounds.clone()), |k, round| {
        let [stage, parity] = stage(k, parts, round);
        if !parts.is(Fault::NoWaitForEmpty) {
            // Of the first round all stages are empty: so is the phase before the first.
            k.mbarrier_wait(parts.empty, stage.clone(), parity.xor(1));
        }
        let at = Expr::from(round) * depth;
        if product.fill == Fill::Boxes {
            k.mbarrier_arrive_expect(parts.full, stage.clone(), ROW * (rows + columns) + more);
            for (from, to, line) in sides {
                let to = Access::new(to, [stage.clone(), 0.into(), 0.into()]);
                k.tensor_copy(from, [line, at.clone()], to, (parts.full, stage.clone()));
            }
            return;
        }
        for ((from, to, line), lines) in sides.into_iter().zip([rows, columns]) {
            k.loop_("r", For::below(0, lines), |k, r| {
                k.loop_(
                    "e",
                    For::below(Special::ThreadX, depth).change(Change::Add(32.into())),
                    |k, e| {
                        let from = Access::new(from, [line.clone() + r, at.clone() + e]);
                        k.store(Access::new(to, [stage.clone(), r.into(), e.into()]), from.load());
                    },
                );
            });
        }
        if !parts.is(Fault::NoFenceOfProxies) {
            k.proxy_fence(ProxyFence::Async);
        }
        k.mbarrier_arrive(parts.full, stage);
    });
}

fn consume(
    k: &mut KernelBuilder,
    parts: &Parts,
    acc: BufferId,
    [a, b]: [BufferId; 2],
    group: Expr,
) {
    let product = parts.product;
    let terms = product.format.terms() as i32;
    let lane = || Expr::from(Special::ThreadX) % 32;
    let sum = || Access::new(acc, [0.into()]);
    k.loop_("round", For::below(0, parts.rounds.clone()), |k, round| {
        let [stage, parity] = stage(k, parts, round);
        if !parts.is(Fault::NoWaitForFull) {
            let parity = if parts.is(Fault::OtherParity) { parity.xor(1) } else { parity };
            k.mbarrier_wait(parts.full, stage.clone(), parity);
        }
        if !parts.is(Fault::NoFence) {
            k.wgmma_fence([acc]);
        }
        k.unrolled("step", product.depth() / terms, |k, step| {
            let (row, at) = (group.clone() * Wgmma::ROWS as i32, Expr::from(step) * terms);
            let row = if parts.is(Fault::OtherRow) { row + 1 } else { row };
            let other = if parts.is(Fault::OtherPart) { 0.into() } else { at.clone() };
            let wgmma = Wgmma {
                format: product.format,
                columns: product.columns as u32,
                d: sum(),
                a: Access::new(a, [stage.clone(), row, at]),
                b: Access::new(b, [stage.clone(), 0.into(), other]),
                accumulate: (Expr::from(round) + step).gt(0),
            };
            match parts.is(Fault::WarpApart) {
                true => k.if_((Expr::from(Special::ThreadX) / 32).lt(7), |k| k.wgmma(wgmma)),
                false => k.wgmma(wgmma),
            }
        });
        k.wgmma_commit();
        if product.overlap {
            // What the instructions of the round before have read is free.
            k.wgmma_wait(1, [acc]);
            k.warp_barrier();
            let before = (Expr::from(round) + product.stages - 1) % product.stages;
            k.if_(lane().equals(0).and(Expr::from(round).gt(0)), |k| {
                k.mbarrier_arrive(parts.empty, before);
            });
            return;
        }
        let release = |k: &mut KernelBuilder| {
            if !parts.is(Fault::NoWarpBarrier) {
                k.warp_barrier();
            }
            k.if_(lane().equals(0), |k| k.mbarrier_arrive(parts.empty, stage.clone()));
        };
        match product.fault {
            Fault::EarlyRelease => release(k),
            Fault::EarlyUse => {
                k.let_("early", sum().load());
            }
            Fault::EarlyWrite => k.store(sum(), 0.0),
            _ => {}
        }
        let named = if parts.is(Fault::UnnamedSums) { None } else { Some(acc) };
        k.wgmma_wait(0, named);
        if !parts.is(Fault::EarlyRelease) {
            release(k);
        }
    });
    if product.overlap {
        k.wgmma_wait(0, [acc]);
    }
}
