//! Named barriers, at which warps of a block meet from different branches.

use super::*;
use crate::{WaitReason, WaitingWarp};
use gemm_dsl::ir::{Change, For, Stmt};

fn named(b: &mut KernelBuilder, id: u32, threads: u32, wait: bool) {
    b.push(Stmt::NamedBarrier { id, threads, wait });
}

/// The first warp writes and arrives at a barrier; the second one waits there and reads. The third
/// warp does not take part.
fn handed(threads: u32, arrives: impl FnOnce(&mut KernelBuilder)) -> Team {
    let mut t = team(96, 1);
    let (x, out) = (t.shared("x", 32), t.array("out", &[0; 32]));
    warp(&mut t.k, 0, |b| {
        b.store(at(x, tid()), tid() + 1);
        arrives(b);
    });
    warp(&mut t.k, 1, |b| {
        named(b, 1, threads, true);
        b.store(at(out, tid() - 32), load(x, Expr::from(63) - tid()));
    });
    t
}

#[test]
fn a_named_barrier_is_of_the_warps_that_it_counts() {
    let expected: Vec<i32> = (1..=32).rev().collect();
    for wait in [false, true] {
        let t = handed(64, |b| named(b, 1, 64, wait));
        assert_eq!(t.run(), Ok(expected.clone()));
    }
}

#[test]
fn a_named_barrier_that_counts_too_many() {
    for wait in [false, true] {
        let fault = handed(96, |b| named(b, 1, 96, wait)).fault();
        let FaultKind::Deadlock { waiting, to_come: 0 } = &fault.kind else {
            panic!("{fault:?}");
        };
        let waits_for = WaitReason::Named { barrier: 1, arrived: 64, expected: 96 };
        assert!(waiting.iter().all(|w| w.block == (0, 0, 0) && w.waits_for == waits_for));
        let warps: Vec<u32> = waiting.iter().map(|w| w.warp).collect();
        assert_eq!(warps, if wait { vec![0, 1] } else { vec![1] });
        assert_eq!(fault.thread, (warps[0] * 32, 0));
        let text = fault.to_string();
        assert!(text.contains("at barrier 1, where 64 of 96 threads have arrived"), "{text}");
        assert!(waiting[0].statement.contains("named_barrier(1, 96)") || !wait, "{text}");
    }
    // No warp but the waiting one arrives.
    let kind = handed(64, |_| ()).kind();
    let FaultKind::Deadlock { waiting, .. } = &kind else { panic!("{kind:?}") };
    assert_eq!(waiting[0].waits_for, WaitReason::Named { barrier: 1, arrived: 32, expected: 64 });
}

#[test]
fn a_named_barrier_that_counts_too_few() {
    // Either warp could be the one that completes the barrier.
    for wait in [false, true] {
        let kind = handed(32, |b| named(b, 1, 32, wait)).kind();
        assert_eq!(kind, FaultKind::NamedBarrierTooEarly { barrier: 1 });
    }
    // A barrier with another number is another barrier.
    let other = handed(32, |b| named(b, 2, 32, false));
    assert_eq!(race(other.kind()), "x");
}

#[test]
fn a_warp_comes_to_a_round_once() {
    // The fault is found whichever of the two warps runs first.
    let twice = |waits: bool| {
        handed(64, |b| {
            named(b, 1, 64, false);
            if waits {
                named(b, 2, 32, true);
            }
            named(b, 1, 64, false);
        })
    };
    assert_eq!(twice(true).kind(), FaultKind::NamedBarrierTooEarly { barrier: 1 });
    let fault = twice(false).fault();
    assert_eq!(fault.kind, FaultKind::NamedBarrierTooEarly { barrier: 1 });
    assert_eq!(fault.thread, (0, 0));
    assert!(fault.to_string().contains("the last round of barrier 1"), "{fault}");
    // In the next round the warp may arrive again.
    let mut t = handed(64, |b| (0..2).for_each(|_| named(b, 1, 64, true)));
    warp(&mut t.k, 1, |b| named(b, 1, 64, true));
    assert_eq!(t.run(), Ok((1..=32).rev().collect()));
}

/// A warp that only arrives at a barrier is not ordered after the others.
#[test]
fn arriving_without_waiting_does_not_acquire() {
    let kernel = |wait: bool| {
        let mut t = team(64, 1);
        let (x, y) = (t.shared("x", 32), t.shared("y", 32));
        let out = t.array("out", &[0; 64]);
        let lane = || tid() % 32;
        warp(&mut t.k, 1, |b| {
            b.store(at(y, lane()), 2);
            named(b, 3, 64, true);
            b.store(at(out, tid()), load(x, Expr::from(31) - lane()));
        });
        warp(&mut t.k, 0, |b| {
            b.store(at(x, lane()), 1);
            named(b, 3, 64, wait);
            b.store(at(out, tid()), load(y, Expr::from(31) - lane()));
        });
        t
    };
    assert_eq!(kernel(true).run(), Ok([[1; 32], [2; 32]].concat().into_iter().rev().collect()));
    assert_eq!(race(kernel(false).kind()), "y");
}

/// Body of a role for one round and one slot.
type Round = Box<dyn FnMut(&mut KernelBuilder, Expr, u32)>;

/// A producer fills two slots in turn and a consumer empties them. Each slot has a "full" and an
/// "empty" barrier.
fn ring(full: bool, empty: bool, count: u32) -> Team {
    const ROUNDS: i32 = 9;
    let mut t = team(64, 1);
    let (x, out) = (t.shared("x", 64), t.array("out", &[0; 32]));
    let lane = || tid() % 32;
    let rounds = |b: &mut KernelBuilder, mut body: Round| {
        b.loop_("i", For::below(0, ROUNDS).change(Change::Add(2.into())), |b, i| {
            body(b, i.into(), 0);
            b.if_((Expr::from(i) + 1).lt(ROUNDS), |b| body(b, Expr::from(i) + 1, 1));
        });
    };
    warp(&mut t.k, 0, |b| {
        rounds(
            b,
            Box::new(move |b, i, slot| {
                b.if_(i.clone().ge(2), |b| named(b, 3 + slot, 64, empty));
                b.store(at(x, lane() + 32 * slot as i32), i);
                named(b, 1 + slot, count, false);
            }),
        );
    });
    warp(&mut t.k, 1, |b| {
        let sum = b.mut_("sum", 0);
        rounds(
            b,
            Box::new(move |b, i, slot| {
                named(b, 1 + slot, count, full);
                let read = load(x, Expr::from(31) - lane() + 32 * slot as i32);
                b.assign(sum, Expr::from(sum) + read);
                // No warp waits for the last arrival of each slot.
                b.if_(i.lt(ROUNDS - 2), |b| named(b, 3 + slot, 64, false));
            }),
        );
        b.store(at(out, lane()), sum);
    });
    t
}

#[test]
fn a_producer_and_a_consumer() {
    assert_eq!(ring(true, true, 64).run(), Ok(vec![36; 32]));
    // Either the consumer does not wait for a full slot, or the producer does not wait for an empty
    // one.
    assert_eq!(race(ring(false, true, 64).kind()), "x");
    let too_early = |barrier| FaultKind::NamedBarrierTooEarly { barrier };
    assert_eq!(race(ring(true, false, 64).kind()), "x");
    assert_eq!(ring(true, true, 32).kind(), too_early(1));
}

#[test]
fn a_named_barrier_under_divergence() {
    let kernel = |below: i32| {
        let mut t = team(64, 1);
        t.k.if_(tid().lt(below), |b| named(b, 4, 64, true));
        t
    };
    assert!(kernel(64).run().is_ok());
    let fault = kernel(48).fault();
    assert_eq!(fault.kind, FaultKind::DivergentNamedBarrier { barrier: 4, absent: 16 });
    assert_eq!(fault.thread, (32, 0));
    // A whole warp that does not arrive shows in the count.
    assert!(matches!(kernel(32).kind(), FaultKind::Deadlock { .. }));
}

/// A partial warp counts as a whole one, as in a hardware barrier, which counts warps.
#[test]
fn a_partial_warp_counts_as_a_whole_one() {
    let kernel = |threads: u32| {
        let mut t = team(80, 1);
        let (x, out) = (t.shared("x", 80), t.array("out", &[0; 80]));
        t.k.store(at(x, tid()), tid());
        named(&mut t.k, 1, threads, true);
        t.k.store(at(out, tid()), load(x, Expr::from(79) - tid()));
        t
    };
    assert_eq!(kernel(96).run(), Ok((0..80).rev().collect()));
    let too_early = FaultKind::NamedBarrierTooEarly { barrier: 1 };
    assert_eq!(kernel(32).kind(), too_early);
    // The third warp has 16 lanes.
    let fault = kernel(64).fault();
    assert_eq!((fault.kind, fault.thread), (too_early, (64, 0)));
}

#[test]
fn two_roles_that_wait_for_each_other() {
    let kernel = |second: [u32; 2]| {
        let mut t = team(64, 1);
        for (role, ids) in [(0, [1, 2]), (1, second)] {
            warp(&mut t.k, role, |b| ids.iter().for_each(|&id| named(b, id, 64, true)));
        }
        t
    };
    assert!(kernel([1, 2]).run().is_ok());
    let kind = kernel([2, 1]).kind();
    let FaultKind::Deadlock { waiting, .. } = &kind else { panic!("{kind:?}") };
    let named = |barrier| WaitReason::Named { barrier, arrived: 32, expected: 64 };
    let expected = [(0, named(1)), (1, named(2))];
    assert_eq!(waiting.iter().map(|w| (w.warp, w.waits_for.clone())).collect::<Vec<_>>(), expected);
}

/// One role waits at the block barrier and the other at a named barrier: a deadlock.
#[test]
fn a_role_at_the_barrier_of_the_block() {
    let kernel = |block: bool| {
        let mut t = team(64, 1);
        warp(&mut t.k, 0, |b| if block { b.barrier() } else { named(b, 1, 64, true) });
        warp(&mut t.k, 1, |b| named(b, 1, 64, true));
        t
    };
    assert!(kernel(false).run().is_ok());
    let kind = kernel(true).kind();
    let FaultKind::Deadlock { waiting, .. } = &kind else { panic!("{kind:?}") };
    let [
        WaitingWarp { warp: 0, waits_for: WaitReason::Block, .. },
        WaitingWarp { warp: 1, waits_for, .. },
    ] = &waiting[..]
    else {
        panic!("{waiting:?}");
    };
    assert_eq!(*waits_for, WaitReason::Named { barrier: 1, arrived: 32, expected: 64 });
}

/// A warp that exits after a named barrier does not reach the block barrier.
#[test]
fn a_role_that_leaves() {
    let kernel = |stays: bool| {
        let mut t = team(64, 1);
        warp(&mut t.k, 0, |b| named(b, 1, 64, false));
        warp(&mut t.k, 1, |b| named(b, 1, 64, true));
        if stays {
            t.k.barrier();
        } else {
            warp(&mut t.k, 1, |b| b.barrier());
        }
        t
    };
    assert!(kernel(true).run().is_ok());
    let fault = kernel(false).fault();
    assert_eq!(fault.kind, FaultKind::BarrierAfterExit { exited: 32 });
    assert_eq!(fault.thread, (32, 0));
}

/// The second warp waits at a barrier or only arrives there, and one of its lanes signals a lane of
/// the first warp. Then the first warp arrives again. It suffices that one lane of the first warp
/// knows, whichever lane it is.
#[test]
fn a_lane_may_know_for_its_warp_that_a_round_is_over() {
    const TOLD: i32 = 5;
    let kernel = |waits: bool, tells: i32, order: MemoryOrder| {
        let mut t = team(64, 1);
        let (flag, out) = (t.shared("flag", 1), t.array("out", &[0; 64]));
        let scope = Scope::Block;
        let k = &mut t.k;
        thread(k, 0, |b| b.store(at(flag, 0), 0));
        k.barrier();
        warp(k, 0, |b| {
            named(b, 1, 64, false);
            thread(b, TOLD, |b| {
                let seen = b.mut_("seen", 0);
                b.loop_("round", For::new(0, |_| Expr::from(seen).equals(0)), |b, _| {
                    let found = b.atomic("found", AtomicOp::Add, at(flag, 0), 0, order, scope);
                    b.assign(seen, found);
                });
            });
            named(b, 1, 64, false);
            b.store(at(out, tid()), 1);
        });
        warp(k, 1, |b| {
            named(b, 1, 64, waits);
            thread(b, 32 + tells, |b| {
                b.atomic_only(AtomicOp::Exchange, at(flag, 0), 1, MemoryOrder::Release, scope);
            });
        });
        t
    };
    for (waits, tells) in [(true, 0), (true, 7), (false, 0), (false, 7)] {
        let run = |order| kernel(waits, tells, order);
        assert_eq!(run(MemoryOrder::Acquire).run(), Ok([[1; 32], [0; 32]].concat()));
        let fault = run(MemoryOrder::Relaxed).fault();
        assert_eq!(fault.kind, FaultKind::NamedBarrierTooEarly { barrier: 1 });
        assert_eq!(fault.thread, (0, 0));
    }
}
