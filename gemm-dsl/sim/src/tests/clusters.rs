//! Clusters of blocks: waits, memory ordering, TMA copies to another block, and the faults of
//! each.

mod remote_stores;

use super::*;
use crate::{MbarrierFault, WaitReason};
use gemm_dsl::ir::{MbarrierId, ProxyFence, Stmt, TensorMap, TensorSwizzle};

/// Blocks of 64 threads in clusters of two.
struct Clusters {
    k: KernelBuilder,
    blocks: usize,
    /// Numbers 0, 1, 2 … in rows of 32.
    from: BufferId,
    /// Destination rows of boxes.
    to: BufferId,
    /// One number per thread.
    out: BufferId,
    barrier: MbarrierId,
}

fn rank() -> Expr {
    Special::ClusterRank.into()
}

/// Index of the thread in the grid.
fn index() -> Expr {
    block() * 64 + tid()
}

fn clusters(blocks: usize) -> Clusters {
    let mut b = KernelBuilder::new("kernel");
    let grid = [blocks as u64, 1, 1].map(Expr::U64);
    b.geometry(Geometry { block: (64, 1), grid, blocks_per_sm: Some(1) });
    b.cluster(2);
    let map = TensorMap { tile: vec![8, 32].into(), swizzle: TensorSwizzle::Bytes128 };
    let from = b.tensor_map("in", Elem::I32, Operand::Input(0), map);
    b.shape(from, [16.into(), 32.into()], [32.into(), 1.into()]);
    let out = b.global("out", Elem::I32, Operand::Output(0));
    b.shape(out, [(64 * blocks as i32).into()], [1.into()]);
    let swizzle = TensorSwizzle::Bytes128.layout(Elem::I32);
    let layout = BufferLayout::Array { order: vec![0, 1], pad: 0.into(), swizzle };
    let to = b.shared("x", Elem::I32, [16.into(), 32.into()], layout, "");
    let barrier = b.mbarriers("full", 2, "");
    Clusters { k: b, blocks, from, to, out, barrier }
}

/// Clusters in which each block has initialised a barrier for `count` arrivals and the cluster has
/// synchronised.
fn with_barriers(count: i32) -> Clusters {
    let mut c = clusters(2);
    c.make(count, true);
    c.k.cluster_barrier();
    c
}

/// Emits statements for the first thread of one block of each cluster.
fn first_of(b: &mut KernelBuilder, of: i32, body: impl FnOnce(&mut KernelBuilder)) {
    b.if_(rank().equals(of).and(tid().equals(0)), body);
}

impl Clusters {
    fn make(&mut self, count: i32, shows: bool) {
        let barrier = self.barrier;
        thread(&mut self.k, 0, |b| {
            b.mbarrier_init(barrier, 1, count);
            if shows {
                b.proxy_fence(ProxyFence::MbarrierInit);
            }
        });
    }

    /// The first block issues a TMA copy to these blocks; each of them expects its bytes.
    fn bring(&mut self, blocks: impl Into<Expr>) {
        let (Self { from, to, barrier, .. }, blocks) = (&*self, blocks.into());
        let (from, to, barrier) = (*from, *to, *barrier);
        thread(&mut self.k, 0, |b| b.mbarrier_arrive_expect(barrier, 1, 1024));
        first_of(&mut self.k, 0, |b| {
            let to = Access::new(to, [0.into(), 0.into()]);
            b.tensor_multicast(from, [8.into(), 0.into()], to, (barrier, 1.into()), blocks);
        });
    }

    /// Stores one number per thread.
    fn give(&mut self, value: impl Into<Expr>) {
        self.k.store(at(self.out, index()), value);
    }

    /// Stores one row that a TMA copy wrote, one element per thread.
    fn give_row(&mut self, row: impl Into<Expr>) {
        let value = Access::new(self.to, [row.into(), tid() % 32]).load();
        self.give(value);
    }

    fn counted(self) -> Result<(Vec<i32>, Counters), SimError> {
        let input: Vec<i32> = (0..16 * 32).collect();
        let buffers = [Buffer::from_slice(&input), Buffer::from_slice(&vec![0; 64 * self.blocks])];
        let kernel = self.k.finish().expect("the test's kernel is valid");
        let counters = launch(&kernel, &buffers, &[])?;
        Ok((buffers[1].to_vec_of().unwrap_or_default(), counters))
    }

    fn run(self) -> Result<Vec<i32>, SimError> {
        self.counted().map(|(numbers, _)| numbers)
    }

    fn kind(self) -> FaultKind {
        fault(self.run()).kind
    }
}

fn wrong(kind: FaultKind) -> (Option<(u32, u32, u32)>, MbarrierFault) {
    match kind {
        FaultKind::Mbarrier { barrier, index: 1, block, wrong } if barrier == "full" => {
            (block, wrong)
        }
        other => panic!("{other}"),
    }
}

const OTHER: Option<(u32, u32, u32)> = Some((1, 0, 0));

#[test]
fn a_block_knows_its_number_in_the_cluster() {
    let mut c = clusters(6);
    c.give(rank() * 10 + block());
    let expected: Vec<i32> = (0..6 * 64).map(|i| i / 64 % 2 * 10 + i / 64).collect();
    let (found, counters) = c.counted().expect("no fault");
    assert_eq!((found, counters.blocks), (expected, 6));
}

#[test]
fn blocks_of_a_cluster_have_shared_memory_and_barriers_of_their_own() {
    let mut c = clusters(4);
    let to = c.to;
    warp(&mut c.k, 0, |b| {
        b.store(Access::new(to, [0.into(), tid()]), block() * 100 + tid());
        b.named_arrive(3, 64);
    });
    warp(&mut c.k, 1, |b| b.named_barrier(3, 64));
    c.k.barrier();
    c.give_row(0);
    let expected: Vec<i32> = (0..4 * 64).map(|i| i / 64 * 100 + i % 32).collect();
    let (found, counters) = c.counted().expect("no fault");
    assert_eq!((found, counters.block_barriers), (expected, 1));
}

/// Each block writes; then each thread of a cluster's first block reads an element written by the
/// other block.
#[test]
fn a_barrier_of_the_cluster_orders_what_its_blocks_do() {
    let speaking = |of_cluster: Option<bool>, distance: i32| {
        let mut c = clusters(4);
        c.give(index() + 1);
        match of_cluster {
            Some(true) => c.k.cluster_barrier(),
            Some(false) => c.k.barrier(),
            None => {}
        }
        let out = c.out;
        c.k.if_(rank().equals(0).and(block().equals(0)), |b| {
            let value = load(out, tid() + 64 * distance);
            b.store(at(out, tid()), value);
        });
        c
    };
    let expected: Vec<i32> = (1..=256).map(|i| if i <= 64 { i + 64 } else { i }).collect();
    assert_eq!(speaking(Some(true), 1).run(), Ok(expected));
    for of_cluster in [Some(false), None] {
        let fault = fault(speaking(of_cluster, 1).run());
        let FaultKind::Race { earlier, .. } = &fault.kind else { panic!("{fault}") };
        let mut blocks = [fault.block, earlier.block];
        blocks.sort_unstable();
        assert_eq!(blocks, [(0, 0, 0), (1, 0, 0)]);
    }
    // The barrier does not order blocks of another cluster.
    let fault = fault(speaking(Some(true), 2).run());
    let FaultKind::Race { earlier, .. } = &fault.kind else { panic!("{fault}") };
    let mut blocks = [fault.block, earlier.block];
    blocks.sort_unstable();
    assert_eq!(blocks, [(0, 0, 0), (2, 0, 0)]);
}

#[test]
fn all_threads_of_a_cluster_come_to_its_barrier() {
    let coming = |body: &dyn Fn(&mut KernelBuilder)| {
        let mut c = clusters(2);
        body(&mut c.k);
        c.kind()
    };
    let alone = |b: &mut KernelBuilder| b.if_(rank().equals(1), KernelBuilder::cluster_barrier);
    assert_eq!(coming(&alone), FaultKind::BarrierAfterExit { exited: 64 });
    let lanes = |b: &mut KernelBuilder| b.if_(tid().lt(40), KernelBuilder::cluster_barrier);
    let divergent = FaultKind::DivergentBarrier { scope: Scope::Cluster, absent: 24 };
    assert_eq!(coming(&lanes), divergent);
    let two = |b: &mut KernelBuilder| {
        b.if_else(rank().equals(0), KernelBuilder::cluster_barrier, KernelBuilder::cluster_barrier);
    };
    assert!(matches!(coming(&two), FaultKind::BarrierMismatch { .. }));
    let other = |b: &mut KernelBuilder| {
        b.if_else((tid() / 32).equals(0), KernelBuilder::cluster_barrier, KernelBuilder::barrier);
    };
    assert!(matches!(coming(&other), FaultKind::BarrierMismatch { .. }));
}

#[test]
fn a_hang_names_the_blocks_of_the_cluster() {
    let mut c = with_barriers(2);
    let barrier = c.barrier;
    first_of(&mut c.k, 0, |b| b.mbarrier_arrive_remote(barrier, 1, 1));
    c.k.if_(rank().equals(1), |b| b.mbarrier_wait(barrier, 1, 0));
    c.k.cluster_barrier();
    let kind = c.kind();
    let FaultKind::Deadlock { waiting, .. } = &kind else { panic!("{kind}") };
    let found: Vec<_> = waiting.iter().map(|w| (w.block, w.warp, &w.waits_for)).collect();
    let phase = WaitReason::Phase {
        barrier: "full".to_owned(),
        index: 1,
        parity: 0,
        phase: 0,
        arrivals: 1,
        bytes: 0,
    };
    let of = |block, waits_for| [0, 1].map(|warp| ((block, 0, 0), warp, waits_for));
    assert_eq!(found, [of(0, &WaitReason::Cluster), of(1, &phase)].concat());
    let told = kind.to_string();
    assert!(
        told.contains("warp 0 of block (0, 0, 0) waits for all warps of the cluster"),
        "{told}"
    );
}

/// The first block writes and arrives at a barrier of the other block, whose threads wait for it
/// and read.
#[test]
fn an_arrival_from_another_block_orders() {
    let handed = |order: Option<MemoryOrder>| {
        let arrives = order.is_some();
        let mut c = with_barriers(1);
        let (barrier, out) = (c.barrier, c.out);
        first_of(&mut c.k, 0, |b| {
            b.store(at(out, 0), 7);
            match order {
                Some(MemoryOrder::Relaxed) => b.mbarrier_arrive_relaxed(barrier, 1, 1),
                Some(_) => b.mbarrier_arrive_remote(barrier, 1, 1),
                None => {}
            }
        });
        c.k.if_(rank().equals(1), |b| {
            if !arrives {
                thread(b, 0, |b| b.mbarrier_arrive_remote(barrier, 1, rank()));
            }
            b.mbarrier_wait(barrier, 1, 0);
            let value = load(out, 0);
            b.store(at(out, index()), value);
        });
        c
    };
    let expected: Vec<i32> = (0..128).map(|i| if i == 0 || i >= 64 { 7 } else { 0 }).collect();
    assert_eq!(handed(Some(MemoryOrder::Release)).run(), Ok(expected));
    // A relaxed arrival orders no store.
    assert_eq!(race(handed(Some(MemoryOrder::Relaxed)).kind()), "out");
    assert_eq!(race(handed(None).kind()), "out");
}

/// A thread waits for its own asynchronous copies and arrives at a barrier. Other threads of its
/// block wait there and read.
#[test]
fn a_relaxed_arrival_publishes_no_copies() {
    let handed = |order: MemoryOrder| {
        let mut c = with_barriers(1);
        let (barrier, out) = (c.barrier, c.out);
        let tile = c.k.shared("tile", Elem::I32, [4.into()], BufferLayout::row_major(1), "a tile");
        first_of(&mut c.k, 0, |b| {
            // An element that no thread of the first block stores.
            let source = at(out, 127);
            b.push(Stmt::CopyAsync { target: at(tile, 0), source, guard: None });
            b.push(Stmt::CopyCommit);
            b.push(Stmt::CopyWait { pending: 0.into() });
            match order {
                MemoryOrder::Relaxed => b.mbarrier_arrive_relaxed(barrier, 1, 0),
                _ => b.mbarrier_arrive_remote(barrier, 1, 0),
            }
        });
        c.k.if_(rank().equals(0), |b| {
            b.mbarrier_wait(barrier, 1, 0);
            let value = load(tile, 0);
            b.store(at(out, index()), value);
        });
        c
    };
    assert!(handed(MemoryOrder::Release).run().is_ok());
    assert_eq!(race(handed(MemoryOrder::Relaxed).kind()), "tile");
}

#[test]
fn a_barrier_of_another_block_is_made_and_shown() {
    let arriving = |shows: bool, meets: bool, makes: bool| {
        let mut c = clusters(2);
        if makes {
            c.make(1, shows);
        }
        if meets {
            c.k.cluster_barrier();
        } else {
            c.k.barrier();
        }
        let barrier = c.barrier;
        first_of(&mut c.k, 0, |b| b.mbarrier_arrive_remote(barrier, 1, 1));
        c.k.cluster_barrier();
        c
    };
    assert!(arriving(true, true, true).run().is_ok());
    assert_eq!(wrong(arriving(false, true, true).kind()), (OTHER, MbarrierFault::NotShown));
    assert_eq!(wrong(arriving(true, true, false).kind()), (OTHER, MbarrierFault::NotMade));
    // The progress of the other block does not matter.
    let (block, early) = wrong(arriving(true, false, true).kind());
    assert!(block == OTHER && [MbarrierFault::NotMade, MbarrierFault::NotKnown].contains(&early));
}

#[test]
fn a_block_is_there_when_others_arrive() {
    let leaving = |meets: bool, waits: bool| {
        let mut c = with_barriers(1);
        let barrier = c.barrier;
        first_of(&mut c.k, 0, |b| b.mbarrier_arrive_remote(barrier, 1, 1));
        if waits {
            first_of(&mut c.k, 1, |b| b.mbarrier_wait(barrier, 1, 0));
        }
        if meets {
            c.k.cluster_barrier();
        }
        c
    };
    assert!(leaving(true, false).run().is_ok());
    assert!(leaving(false, true).run().is_ok());
    let fault = fault(leaving(false, false).run());
    let told = "barrier full[1] of block (1, 0, 0): this arrival from another block is not \
                ordered before the exit of the barrier's block";
    assert!(fault.to_string().contains(told), "{fault}");
    assert_eq!((fault.block, fault.thread), ((0, 0, 0), (0, 0)));
    assert_eq!(fault.statement, "mbarrier_arrive_remote(&full[1], 1);");
}

#[test]
fn a_box_comes_to_all_blocks_that_are_named() {
    for (blocks, arrived) in [(3, 2), (1, 1)] {
        let mut c = with_barriers(1);
        c.bring(blocks);
        let barrier = c.barrier;
        c.k.if_(rank().lt(arrived as i32), |b| b.mbarrier_wait(barrier, 1, 0));
        if blocks == 3 {
            c.give_row(tid() / 32 * 4);
            let (found, counters) = c.counted().expect("no fault");
            let expected: Vec<i32> = (0..128).map(|i| 32 * (8 + i / 32 % 2 * 4) + i % 32).collect();
            assert_eq!(found, expected);
            let bytes = (counters.bulk_bytes, counters.bulk_arrived_bytes());
            assert_eq!((counters.bulk_copies, bytes), (1, (1024, 1024 * arrived)));
            continue;
        }
        // The other block expects bytes that never arrive, and no thread waits for them.
        let (_, counters) = c.counted().expect("no fault");
        assert_eq!((counters.bulk_bytes, counters.bulk_arrived_bytes()), (1024, 1024 * arrived));
    }
}

#[test]
fn a_cluster_has_the_blocks_that_are_named() {
    for mask in [0, 4, 7, -1] {
        let mut c = with_barriers(1);
        c.bring(mask);
        let mask = mask.into();
        assert_eq!(c.kind(), FaultKind::NoSuchBlocks { mask, blocks: 2 });
    }
    for block in [-1, 2] {
        let mut c = with_barriers(1);
        let barrier = c.barrier;
        first_of(&mut c.k, 0, |b| b.mbarrier_arrive_remote(barrier, 1, block));
        let block = block.into();
        assert_eq!(c.kind(), FaultKind::NoSuchBlock { block, blocks: 2 });
    }
}

/// R13: threads of the other block read or write the words that a box overwrites, with and without
/// synchronising with its issuer.
#[test]
fn a_box_overwrites_what_another_block_has_read() {
    for (tells, shows) in [(true, true), (true, false), (false, true)] {
        let mut c = with_barriers(1);
        let (barrier, to) = (c.barrier, c.to);
        c.k.if_(rank().equals(1), |b| {
            warp(b, 1, |b| {
                b.store(Access::new(to, [0.into(), tid() % 32]), tid());
                if shows {
                    b.proxy_fence(ProxyFence::Async);
                }
            });
            b.barrier();
        });
        if tells {
            c.k.cluster_barrier();
        }
        c.bring(3);
        c.k.mbarrier_wait(barrier, 1, 0);
        match tells && shows {
            true => assert!(c.run().is_ok()),
            // If the other block is slower, its write is not ordered after the box.
            false => assert_eq!(race(c.kind()), "x"),
        }
    }
}

#[test]
fn a_box_does_not_outlive_a_block_that_it_comes_to() {
    let mut c = with_barriers(1);
    c.bring(3);
    let barrier = c.barrier;
    first_of(&mut c.k, 0, |b| b.mbarrier_wait(barrier, 1, 0));
    let fault = fault(c.run());
    assert_eq!(wrong(fault.kind.clone()), (OTHER, MbarrierFault::LeftBehind));
    assert_eq!(fault.statement, "tensor_multicast_2d(&x[0][0], &in, &full[1], 0, 8, 3);");
}

/// The contents of a box are visible to threads that waited for it in their own block.
#[test]
fn each_block_waits_for_its_own_box() {
    let mut c = with_barriers(1);
    c.bring(3);
    let barrier = c.barrier;
    c.k.if_(rank().equals(0), |b| b.mbarrier_wait(barrier, 1, 0));
    c.give_row(0);
    let fault = fault(c.run());
    assert_eq!(fault.block, (1, 0, 0), "{fault}");
    assert!(matches!(fault.kind, FaultKind::CopyNotAwaited { .. } | FaultKind::Race { .. }));
}

#[test]
fn a_grid_is_made_of_whole_clusters() {
    let lacking = unmet(clusters(3).counted().map(|(_, counters)| counters));
    assert_eq!((&lacking.subject, lacking.value), (&Subject::Blocks { axis: 0 }, 3));
    assert_eq!(lacking.need, Need::Multiple { of: 2 });
    let told =
        "the number of blocks along x to be a multiple of 2, but it is 3 = 1·2 + 1. Choose extents";
    assert!(lacking.to_string().contains(told), "{lacking}");
    assert!(clusters(0).run().is_ok());
}
