//! Rules of clusters.

use super::{at, breaks, kernel, rule};
use crate::ir::{
    Access, AtomicOp, BufferId, BufferLayout, Elem, Expr, KernelBuilder, MbarrierId, MemoryOrder,
    Operand, Scope, Special, Stmt, TensorMap, TensorSwizzle,
};

/// Kernel with clusters of `blocks` blocks and this body.
fn of(blocks: u32, body: impl FnOnce(&mut KernelBuilder, BufferId)) -> KernelBuilder {
    kernel(Elem::I32, |b, _, output| {
        b.cluster(blocks);
        body(b, output);
    })
}

/// Kernel that copies a box to the blocks of a mask.
fn bringing(cluster: u32, blocks: Option<Expr>) -> KernelBuilder {
    of(cluster, |b, _| {
        let map = TensorMap { tile: vec![8, 32].into(), swizzle: TensorSwizzle::None };
        let from = b.tensor_map("from", Elem::I32, Operand::Input(1), map);
        b.shape(from, [64.into(), 64.into()], [64.into(), 1.into()]);
        let to = b.shared("to", Elem::I32, [8.into(), 32.into()], BufferLayout::row_major(2), "");
        let barriers = b.mbarriers("full", 1, "");
        let (at, to) = ([0.into(), 0.into()], Access::new(to, [0.into(), 0.into()]));
        let barrier = (barriers, Expr::I32(0));
        match blocks {
            Some(blocks) => b.tensor_multicast(from, at, to, barrier, blocks),
            None => b.tensor_copy(from, at, to, barrier),
        }
    })
}

/// Kernel that arrives at a barrier of a block.
fn arriving(cluster: u32, block: impl Into<Expr>) -> KernelBuilder {
    of(cluster, |b, _| {
        let barriers = b.mbarriers("full", 1, "");
        b.mbarrier_arrive_remote(barriers, 0, block);
    })
}

/// Kernel that writes shared memory of a block.
fn storing(cluster: u32, block: impl Into<Expr>, value: impl Into<Expr>) -> KernelBuilder {
    of(cluster, |b, _| {
        let shared = b.shared("x", Elem::I32, [4.into()], BufferLayout::row_major(1), "");
        b.store_remote(block, at(shared, 3), value);
    })
}

#[test]
fn a_relaxed_arrival_needs_a_newer_compiler() {
    let kernel = of(2, |b, _| {
        let barriers = b.mbarriers("full", 1, "");
        b.mbarrier_arrive_relaxed(barriers, 0, 1);
    });
    let kernel = kernel.finish().expect("a sound kernel");
    assert_eq!((kernel.min_arch(), kernel.contract().min_release), (90, (12, 8)));
}

#[test]
fn a_remote_store_has_a_block_and_shared_memory() {
    assert_eq!(rule(storing(2, Special::ClusterRank, 1)), Ok(()));
    breaks(storing(2, 0, Expr::F32(1.0)), "a store of another type");
    breaks(storing(2, Expr::U64(1), 0), "a block of the cluster that is not I32");
    breaks(
        of(2, |b, out| b.store_remote(0, at(out, 0), 0)),
        "a store to out of another block, which is not shared",
    );
}

#[test]
fn an_asynchronous_store_has_a_barrier_and_four_or_eight_bytes() {
    let storing = |elem: Elem, vector: bool, barrier: usize| {
        of(2, |b, _| {
            let shared = b.shared("x", elem, [8.into()], BufferLayout::row_major(1), "");
            _ = b.mbarriers("full", 1, "");
            let place = Access::new(shared, [0.into()]);
            let place = if vector { place.vector() } else { place };
            let value = place.clone().load();
            b.store_async(1, place, value, (MbarrierId { id: barrier }, 0.into()));
        })
    };
    let kernel = storing(Elem::F64, false, 0).finish().expect("a sound kernel");
    assert_eq!((kernel.min_arch(), kernel.contract().min_release), (90, (12, 1)));
    breaks(storing(Elem::F16, false, 0), "an asynchronous store of other than 4 or 8 bytes");
    breaks(storing(Elem::F32, true, 0), "an asynchronous store of other than 4 or 8 bytes");
    breaks(storing(Elem::F32, false, 1), "unknown barriers");
}

#[test]
fn a_cluster_has_one_to_eight_blocks() {
    for blocks in [0, 9] {
        breaks(of(blocks, |_, _| ()), &format!("a cluster of {blocks} blocks"));
    }
    for blocks in 1..=8 {
        let kernel = of(blocks, |_, _| ()).finish().expect("a sound kernel");
        assert_eq!(kernel.contract().cluster, blocks);
        let needs = if blocks == 1 { (75, (11, 7)) } else { (90, (11, 8)) };
        assert_eq!((kernel.min_arch(), kernel.contract().min_release), needs);
        assert!(!kernel.contract().is_specific);
    }
}

#[test]
fn cluster_features_need_a_cluster() {
    let rank = |blocks| of(blocks, |b, out| b.store(at(out, 0), Special::ClusterRank));
    let barrier = |blocks| of(blocks, |b, _| b.cluster_barrier());
    let kernels = |blocks| {
        let brings = bringing(blocks, Some(1.into()));
        [rank(blocks), barrier(blocks), arriving(blocks, 0), brings, storing(blocks, 0, 0)]
    };
    for kernel in kernels(2) {
        assert_eq!(rule(kernel), Ok(()));
    }
    for kernel in kernels(1) {
        breaks(kernel, "a cluster operation in a kernel without clusters");
    }
    assert_eq!(rule(bringing(1, None)), Ok(()));
    assert_eq!(rule(bringing(2, None)), Ok(()));
}

#[test]
fn blocks_of_a_cluster_have_numbers() {
    breaks(arriving(2, Expr::U64(1)), "a block of the cluster that is not I32");
    breaks(bringing(2, Some(Expr::U64(1))), "the blocks of a multicast are not an I32");
    let unknown = |b: &mut KernelBuilder, _| b.mbarrier_arrive_remote(MbarrierId { id: 1 }, 0, 1);
    breaks(of(2, unknown), "unknown barriers");
}

#[test]
fn a_cluster_is_a_scope_of_barriers_alone() {
    breaks(of(2, |b, _| b.fence(MemoryOrder::AcqRel, Scope::Cluster)), "a fence of a cluster");
    let atomic = |cluster, scope| {
        of(cluster, |b, out| {
            b.atomic_only(AtomicOp::Add, at(out, 0), 1, MemoryOrder::Relaxed, scope)
        })
    };
    breaks(atomic(1, Scope::Cluster), "an atomic of a cluster");
    breaks(atomic(2, Scope::Device), "an atomic in a kernel of clusters");
    assert_eq!(rule(atomic(1, Scope::Device)), Ok(()));
    breaks(of(1, |b, _| b.push(Stmt::Barrier(Scope::Cluster))), "in a kernel without clusters");
}
