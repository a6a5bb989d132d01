//! Stores to shared memory of another block of the cluster.

use super::*;

/// Clusters in which thread `t` of each block writes `100 * block + t` to place `t` of row
/// `of(rank)` of the block `to`, between barriers of the cluster, and then stores an element of row
/// 1 of its own block.
fn storing(to: impl Into<Expr>, row: impl Into<Expr>, [before, after]: [bool; 2]) -> Clusters {
    let mut c = clusters(2);
    let place = Access::new(c.to, [row.into(), tid() % 32]);
    if before {
        c.k.cluster_barrier();
    }
    let value = block() * 100 + tid();
    let to = to.into();
    warp(&mut c.k, 0, |b| b.store_remote(to, place, value));
    if after {
        c.k.cluster_barrier();
    }
    c
}

fn other() -> Expr {
    rank().xor(1)
}

#[test]
fn a_store_reaches_another_block() {
    let mut c = storing(other(), 1, [true, true]);
    c.give_row(1);
    let expected: Vec<i32> = (0..128).map(|i| 100 * (1 - i / 64) + i % 32).collect();
    let (found, counters) = c.counted().expect("no fault");
    assert_eq!((found, counters.shared_stores), (expected, 2));
    // To both blocks, each lane to one of them.
    let mut c = storing(tid() % 2, rank() + 1, [true, true]);
    c.give_row(rank() + 1);
    let kind = c.kind();
    let FaultKind::Uninitialised { place } = &kind else { panic!("{kind}") };
    assert_eq!((place.buffer.as_str(), place.index.as_slice()), ("x", &[1, 1][..]));
}

#[test]
fn a_remote_store_moves_vectors() {
    let mut c = clusters(2);
    let from = Access::new(c.to, [0.into(), tid() % 8 * 4]).vector();
    let place = Access::new(c.to, [1.into(), tid() % 8 * 4]).vector();
    let to = c.to;
    warp(&mut c.k, 0, |b| b.store(Access::new(to, [0.into(), tid()]), block() * 100 + tid()));
    c.k.cluster_barrier();
    c.k.if_(tid().lt(8), |b| b.store_remote(other(), place, from.load()));
    c.k.cluster_barrier();
    c.give_row(1);
    let expected: Vec<i32> = (0..128).map(|i| 100 * (1 - i / 64) + i % 32).collect();
    assert_eq!(c.run(), Ok(expected));
}

#[test]
fn a_remote_store_needs_barriers_of_the_cluster() {
    // Nothing orders the store after the start of the other block, or before its exit.
    for (barriers, exited) in [([false, true], false), ([true, false], true)] {
        let kind = storing(other(), 1, barriers).kind();
        let FaultKind::RemoteStore { block, exited: found } = kind else { panic!("{kind}") };
        assert_eq!(found, exited);
        assert!([(0, 0, 0), (1, 0, 0)].contains(&block), "{block:?}");
    }
    // A read of the own block's memory that no barrier orders after the store.
    let mut c = clusters(2);
    let to = c.to;
    c.k.cluster_barrier();
    c.k.store(Access::new(to, [1.into(), tid() % 32]), 0);
    warp(&mut c.k, 1, |b| b.store(Access::new(to, [2.into(), tid() % 32]), 0));
    let FaultKind::Race { .. } = c.kind() else { panic!("two warps write a row") };
    let racing = |in_between: bool| {
        let mut c = clusters(2);
        let place = |row: i32| Access::new(to, [row.into(), tid() % 32]);
        warp(&mut c.k, 0, |b| b.store(place(1), 0));
        c.k.cluster_barrier();
        warp(&mut c.k, 0, |b| b.store_remote(other(), place(1), tid()));
        if in_between {
            c.k.cluster_barrier();
        }
        c.give_row(1);
        c.k.cluster_barrier();
        c
    };
    let expected: Vec<i32> = (0..128).map(|i| i % 32).collect();
    assert_eq!(racing(true).run(), Ok(expected));
    let kind = racing(false).kind();
    let FaultKind::Race { place, earlier, .. } = &kind else { panic!("{kind}") };
    assert_eq!(place.buffer, "x");
    assert!([(0, 0, 0), (1, 0, 0)].contains(&earlier.block));
}

#[test]
fn stores_of_two_blocks_to_a_place_race() {
    let kind = storing(0, 1, [true, true]).kind();
    let FaultKind::Race { place, writes: true, earlier } = &kind else { panic!("{kind}") };
    assert_eq!((place.buffer.as_str(), earlier.block), ("x", (0, 0, 0)));
    let mut c = storing(0, rank() + 1, [true, true]);
    c.give(0);
    assert_eq!(c.run(), Ok(vec![0; 128]));
}

#[test]
fn a_remote_store_stays_in_its_buffer_and_cluster() {
    let kind = storing(rank() + 1, 1, [true, true]).kind();
    assert_eq!(kind, FaultKind::NoSuchBlock { block: 2, blocks: 2 });
    assert!(matches!(storing(other(), 16, [true, true]).kind(), FaultKind::OutOfBounds { .. }));
}
