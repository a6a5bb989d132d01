//! Deadlocks of threads that also do other work.

use super::*;
use crate::tests::polling::{handed, raise};
use crate::{WaitReason, WaitingWarp};
use gemm_dsl::ir::{For, Space};

/// A warp that never sees its flag is deadlocked even if it counts its rounds, stores an unchanged
/// value, or both.
#[test]
fn a_warp_that_waits_in_vain_may_do_other_things() {
    let limited = |raised: bool, aside: &dyn Fn(&mut KernelBuilder, BufferId)| {
        let t = handed(raised, aside);
        let options = Options { instructions: 1 << 22, ..Options::default() };
        anywhere(t.run_with(&options))
    };
    let count = |b: &mut KernelBuilder, flag| {
        b.atomic_only(AtomicOp::Add, at(flag, 1), 1, MemoryOrder::Relaxed, Scope::Block);
    };
    let store = |b: &mut KernelBuilder, flag| b.store(at(flag, 1), 1);
    assert_eq!(limited(true, &store), Ok(vec![5]));
    let kind = fault(limited(false, &store)).kind;
    assert!(matches!(kind, FaultKind::Deadlock { .. }), "{kind:?}");
    // Memory that changes in each round is a new state: another thread may read it.
    assert_eq!(limited(true, &count), Ok(vec![5]));
    assert_eq!(limited(false, &count), spent(1 << 22));
}

/// A thread polls a flag and counts its polls. It is deadlocked unless the count can end the loop.
#[test]
fn a_poll_count_does_not_hide_a_deadlock() {
    let kernel = |raised: bool, most: Option<i32>| {
        let mut t = team(64, 1);
        let (flag, out) = (t.shared("flag", 1), t.array("out", &[0]));
        let k = &mut t.k;
        thread(k, 0, |b| b.store(at(flag, 0), 0));
        k.barrier();
        thread(k, 0, |b| {
            let (tries, twice) = (b.mut_("tries", 0u64), b.mut_("twice", 0u64));
            let seen = b.mut_("seen", 0);
            let waits = |_| {
                let none = Expr::from(seen).equals(0);
                match most {
                    Some(most) => none.and(Expr::from(tries).lt(Expr::U64(most as u64))),
                    None => none,
                }
            };
            b.loop_("round", For::new(0, waits), |b, _| {
                b.assign(tries, Expr::from(tries) + 1u64);
                b.assign(twice, Expr::from(tries) + Expr::from(twice));
                let (order, scope) = (MemoryOrder::Acquire, Scope::Block);
                let found = b.atomic("found", AtomicOp::Add, at(flag, 0), 0, order, scope);
                b.assign(seen, found);
            });
            b.store(at(out, 0), 1);
        });
        thread(k, 32, |b| {
            if raised {
                raise(b, at(flag, 0), Scope::Block);
            }
        });
        t
    };
    assert_eq!(kernel(true, None).run(), Ok(vec![1]));
    let kind = kernel(false, None).kind();
    assert!(matches!(kind, FaultKind::Deadlock { .. }), "{kind:?}");
    // A loop that gives up after some number of rounds is not a deadlock.
    assert_eq!(kernel(false, Some(10_000)).run(), Ok(vec![1]));
}

/// Thread 0 polls and passes the value to the others at a barrier: a block barrier or a named
/// barrier.
#[test]
fn a_block_that_meets_in_each_round() {
    let kernel = |raised: i32, named: bool, rounds: Option<i32>| {
        let mut t = team(64, 2);
        let word = t.array("word", &[0]);
        let told = t.shared("told", 1);
        let out = t.array("out", &[0; 2]);
        let meet = |b: &mut KernelBuilder| match named {
            true => b.push(gemm_dsl::ir::Stmt::NamedBarrier { id: 1, threads: 64, wait: true }),
            false => b.barrier(),
        };
        // Block `raised` sets the word; block 1 polls it.
        t.k.if_(block().equals(raised), |b| thread(b, 0, |b| raise(b, at(word, 0), Scope::Device)));
        t.k.if_(block().equals(1), |b| {
            let (seen, count) = (b.mut_("seen", 0), b.mut_("count", 0));
            let waits = |_| {
                let none = Expr::from(seen).equals(0);
                rounds.map_or(none.clone(), |most| none.and(Expr::from(count).lt(most)))
            };
            b.loop_("round", For::new(0, waits), |b, _| {
                thread(b, 0, |b| {
                    let (order, scope) = (MemoryOrder::Acquire, Scope::Device);
                    let found = b.atomic("found", AtomicOp::Add, at(word, 0), 0, order, scope);
                    b.store(at(told, 0), found);
                });
                meet(b);
                b.assign(seen, load(told, 0));
                b.assign(count, Expr::from(count) + 1);
                meet(b);
            });
            thread(b, 0, |b| b.store(at(out, 1), load(told, 0) + 1));
        });
        t
    };
    for named in [false, true] {
        // In ascending order block 1 finds the word set. In descending order it runs first and
        // waits for ever.
        let fault = kernel(0, named, None).fault();
        assert_eq!((fault.block, fault.order), ((1, 0, 0), Some("descending")));
        let FaultKind::Deadlock { waiting, to_come: 1 } = &fault.kind else { panic!("{fault:?}") };
        let waits: Vec<_> = waiting.iter().map(|w| (w.warp, w.waits_for.clone())).collect();
        assert_eq!(waits, [(0, WaitReason::Change), (1, WaitReason::Change)]);
        let at_barrier = |w: &WaitingWarp| w.statement.contains("__syncthreads");
        assert!(named || waiting.iter().all(at_barrier), "{waiting:?}");
        // No block sets the word.
        let fault = kernel(7, named, None).fault();
        assert_eq!((fault.block, fault.order), ((1, 0, 0), Some("ascending")));
        assert!(matches!(fault.kind, FaultKind::Deadlock { to_come: 0, .. }), "{fault:?}");
        // The loop gives up in the end.
        assert_eq!(kernel(7, named, Some(5000)).run(), Ok(vec![0, 1]));
    }
}

/// Blocks run concurrently, and one sets the word late, after the others have polled for long.
#[test]
fn a_block_that_meets_until_another_one_is_done() {
    let kernel = |raises: bool| {
        let mut t = team(64, 2);
        let (drawn, word) = (t.array("drawn", &[0]), t.array("word", &[0, 0]));
        let (told, own) = (t.shared("told", 1), t.shared("own", 1));
        let k = &mut t.k;
        thread(k, 0, |b| {
            let (order, scope) = (MemoryOrder::AcqRel, Scope::Device);
            let old = b.atomic("old", AtomicOp::Add, at(drawn, 0), 1, order, scope);
            b.store(at(own, 0), old);
        });
        k.barrier();
        // The block that draws first sets the word after many rounds; the second one waits for it.
        k.if_(load(own, 0).equals(0), |b| {
            b.loop_("i", For::below(0, 9000), |b, _| b.barrier());
            if raises {
                thread(b, 0, |b| raise(b, at(word, 0), Scope::Device));
            }
        });
        k.if_(load(own, 0).equals(1), |b| {
            let seen = b.mut_("seen", 0);
            let waits = |_| Expr::from(seen).equals(0);
            b.loop_("round", For::new(0, waits), |b, _| {
                thread(b, 0, |b| {
                    let (order, scope) = (MemoryOrder::Acquire, Scope::Device);
                    let found = b.atomic("found", AtomicOp::Add, at(word, 0), 0, order, scope);
                    b.store(at(told, 0), found);
                });
                b.barrier();
                b.assign(seen, load(told, 0));
                b.barrier();
            });
            thread(b, 0, |b| b.store(at(word, 1), 1));
        });
        t
    };
    assert_eq!(kernel(true).run(), Ok(vec![1, 1]));
    assert!(matches!(kernel(false).kind(), FaultKind::Deadlock { .. }));
}

/// A warp that polls by plain loads lets other warps run. The race of its load with their store is
/// then found, or the deadlock if no warp stores.
#[test]
fn a_warp_may_not_wait_by_loads() {
    let kernel = |waits: i32, raises: bool, after: bool, space: Space| {
        let mut t = team(64, 1);
        let (word, x) = (t.array("word", &[0]), t.shared("x", 1));
        let flag = if space == Space::Shared { x } else { word };
        let k = &mut t.k;
        thread(k, 0, |b| b.store(at(flag, 0), 0));
        k.barrier();
        let raise = |b: &mut KernelBuilder| {
            if raises {
                thread(b, 32 - waits, |b| b.store(at(flag, 0), 1));
            }
        };
        if !after {
            raise(k);
            k.barrier();
        }
        thread(k, waits, |k| {
            let none = |_| load(flag, 0).equals(0);
            k.loop_("round", For::new(0, none), |_, _| ());
        });
        if after {
            raise(k);
        }
        t
    };
    for space in [Space::Shared, Space::Global] {
        let name = if space == Space::Shared { "x" } else { "word" };
        for waits in [0, 32] {
            assert_eq!(race(kernel(waits, true, true, space).kind()), name);
            assert!(kernel(waits, true, false, space).run().is_ok());
            let kind = kernel(waits, false, true, space).kind();
            let FaultKind::Deadlock { waiting, .. } = &kind else { panic!("{kind:?}") };
            let [WaitingWarp { warp, waits_for: WaitReason::Change, statement, .. }] = &waiting[..]
            else {
                panic!("{waiting:?}");
            };
            assert_eq!(*warp, waits as u32 / 32);
            assert!(statement.starts_with("for ("), "{statement}");
        }
    }
}

/// A read of a word is either uninitialised or a race. The detector decides this when the other
/// warp has run to its end, however often the warps alternated before.
#[test]
fn an_unwritten_word_is_told_from_a_race() {
    let kernel = |atomics: i32, rounds: i32, written: bool| {
        let mut t = team(64, 1);
        let (x, count) = (t.shared("x", 1), t.shared("count", 1));
        let out = t.array("out", &[0]);
        let k = &mut t.k;
        thread(k, 0, |b| b.store(at(count, 0), 0));
        k.barrier();
        thread(k, 0, |b| b.store(at(out, 0), load(x, 0)));
        thread(k, 32, |b| {
            b.loop_("i", For::below(0, atomics), |b, _| {
                b.atomic_only(AtomicOp::Add, at(count, 0), 1, MemoryOrder::Relaxed, Scope::Block);
            });
            b.loop_("j", For::below(0, rounds), |_, _| ());
            if written {
                b.store(at(x, 0), 1);
            }
        });
        t
    };
    for (atomics, rounds) in [(0, 0), (1, 0), (1000, 0), (0, 20_000), (300, 20_000)] {
        assert_eq!(race(kernel(atomics, rounds, true).kind()), "x");
        let kind = kernel(atomics, rounds, false).kind();
        assert!(matches!(kind, FaultKind::Uninitialised { .. }), "{kind:?}");
    }
}
