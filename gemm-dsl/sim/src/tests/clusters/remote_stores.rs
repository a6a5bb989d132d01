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

/// Clusters in which the first warp of each block stores asynchronously to the other block. Both
/// expect the bytes, and `waits` tells which threads wait.
fn storing_async(expected: i32, waits: impl Into<Expr>) -> Clusters {
    let mut c = with_barriers(1);
    let (barrier, place) = (c.barrier, Access::new(c.to, [1.into(), tid() % 32]));
    thread(&mut c.k, 0, |b| b.mbarrier_arrive_expect(barrier, 1, expected));
    let value = block() * 100 + tid();
    warp(&mut c.k, 0, |b| b.store_async(other(), place, value, (barrier, 1.into())));
    c.k.if_(waits.into(), |b| b.mbarrier_wait(barrier, 1, 0));
    c
}

#[test]
fn an_asynchronous_store_counts_at_the_other_block() {
    let mut c = storing_async(128, Expr::truth());
    c.give_row(1);
    let expected: Vec<i32> = (0..128).map(|i| 100 * (1 - i / 64) + i % 32).collect();
    assert_eq!(c.run(), Ok(expected));
    // Bytes are missing.
    let FaultKind::Deadlock { waiting, .. } = storing_async(132, Expr::truth()).kind() else {
        panic!("the phase does not complete")
    };
    assert!(
        waiting.iter().all(|warp| {
            matches!(warp.waits_for, WaitReason::Phase { arrivals: 0, bytes: 4, .. })
        })
    );
}

#[test]
fn an_asynchronous_store_is_complete_after_a_wait() {
    // A barrier of the cluster completes no asynchronous store.
    let mut c = storing_async(128, tid().equals(0));
    c.k.cluster_barrier();
    c.give_row(1);
    assert!(c.run().is_ok());
    let mut c = storing_async(128, tid().equals(0));
    c.give_row(1);
    let kind = c.kind();
    let FaultKind::Race { place, writes: false, earlier } = &kind else { panic!("{kind}") };
    assert!(place.buffer == "x" && earlier.by_copy(), "{kind}");
    let left = wrong(storing_async(128, tid().lt(0)).kind());
    assert_eq!(left.1, MbarrierFault::LeftBehind);
}

#[test]
fn a_wait_orders_what_the_storing_thread_did() {
    // Each block writes an element of `out` before its store; the other block reads it.
    let speaking = |before: bool| {
        let mut c = with_barriers(1);
        let (barrier, out) = (c.barrier, c.out);
        let place = Access::new(c.to, [1.into(), 0.into()]);
        thread(&mut c.k, 0, |b| {
            b.mbarrier_arrive_expect(barrier, 1, 4);
            if before {
                b.store(at(out, block()), block() + 5);
            }
            b.store_async(other(), place, 1, (barrier, 1.into()));
            if !before {
                b.store(at(out, block()), block() + 5);
            }
        });
        c.k.mbarrier_wait(barrier, 1, 0);
        first_of(&mut c.k, 0, |b| {
            let value = load(out, 1);
            b.store(at(out, 2), value);
        });
        c
    };
    assert_eq!(speaking(true).run().map(|numbers| numbers[2]), Ok(6));
    assert!(matches!(speaking(false).kind(), FaultKind::Race { .. }));
}

#[test]
fn an_asynchronous_store_overwrites_what_has_been_read() {
    let storing = |ordered: bool| {
        let mut c = with_barriers(1);
        let (barrier, place) =
            (c.barrier, |c: &Clusters| Access::new(c.to, [1.into(), tid() % 32]));
        let own = place(&c);
        warp(&mut c.k, 0, |b| b.store(own, tid()));
        c.k.barrier();
        c.give_row(1);
        if ordered {
            c.k.cluster_barrier();
        }
        thread(&mut c.k, 0, |b| b.mbarrier_arrive_expect(barrier, 1, 128));
        let to = place(&c);
        warp(&mut c.k, 0, |b| b.store_async(other(), to, 7, (barrier, 1.into())));
        c.k.mbarrier_wait(barrier, 1, 0);
        c
    };
    let expected: Vec<i32> = (0..128).map(|i| i % 32).collect();
    // No proxy fence is needed.
    assert_eq!(storing(true).run(), Ok(expected));
    assert!(matches!(storing(false).kind(), FaultKind::Race { writes: true, .. }));
}
