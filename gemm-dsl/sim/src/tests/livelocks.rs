//! Loops that never end, and loops that only take long.

use super::*;
use crate::exec::livelock::LivelockDetector;
use gemm_dsl::ir::For;

/// Two agents each try to take two locks, in opposite order. On failure, they release the locks
/// that they hold, if `releases` is true.
fn try_locks(blocks: bool, releases: bool) -> Team {
    let (threads, count, scope) =
        if blocks { (32, 2, Scope::Device) } else { (64, 1, Scope::Block) };
    let mut t = team(threads, count);
    let lock = if blocks { t.array("lock", &[0; 2]) } else { t.shared("lock", 2) };
    let out = t.array("out", &[0]);
    let k = &mut t.k;
    if !blocks {
        k.if_(tid().lt(2), |b| b.store(at(lock, tid()), 0));
        k.barrier();
    }
    let own = || if blocks { block() } else { tid() / 32 };
    let other = || Expr::from(1) - own();
    let take = |b: &mut KernelBuilder, which: Expr| -> Expr {
        let op = AtomicOp::CompareExchange { expected: 0.into() };
        Expr::from(b.atomic("held", op, at(lock, which), 1, MemoryOrder::Acquire, scope)).equals(0)
    };
    let release = |b: &mut KernelBuilder, which: Expr| {
        b.atomic_only(AtomicOp::Exchange, at(lock, which), 0, MemoryOrder::Release, scope);
    };
    k.if_((tid() % 32).equals(0), |b| {
        let done = b.mut_("done", 0);
        b.loop_("round", For::new(0, |_| Expr::from(done).equals(0)), |b, _| {
            let mine = take(b, own());
            b.if_(mine, |b| {
                let both = take(b, other());
                b.if_(both, |b| {
                    b.store(at(out, 0), load(out, 0) + 1);
                    b.assign(done, 1);
                    release(b, other());
                    release(b, own());
                });
                if releases {
                    b.if_(Expr::from(done).equals(0), |b| release(b, own()));
                }
            });
        });
    });
    t
}

/// Two agents that try locks in lockstep make progress in the end, because one gets ahead.
#[test]
fn try_locks_that_let_go_end() {
    for blocks in [false, true] {
        let options = Options { instructions: 1 << 20, ..Options::default() };
        assert_eq!(try_locks(blocks, true).run_with(&options), Ok(vec![2]), "{blocks}");
        // An agent that keeps one lock and waits for the other waits for ever.
        let kept = fault(try_locks(blocks, false).run_with(&options));
        assert!(matches!(kept.kind, FaultKind::Deadlock { .. }), "{kept}");
    }
}

/// An exceeded limit reports where the last instruction was.
#[test]
fn exceeded_limits_name_the_last_instruction() {
    let kernel = |device: bool, count: u64| {
        let mut t = team(64, count);
        let (word, s) = (t.array("word", &[0u32]), t.shared("s", 1));
        let k = &mut t.k;
        thread(k, 0, |b| b.store(at(s, 0), 0));
        k.barrier();
        thread(k, 37, |b| {
            let here = || block().equals(count as i32 - 1);
            b.loop_("i", For::new(0, move |_| here()), |b, _| {
                let (add, order) = (AtomicOp::Add, MemoryOrder::Relaxed);
                match device {
                    true => b.atomic_only(add, at(word, 0), Expr::U32(1), order, Scope::Device),
                    false => {
                        b.atomic_only(AtomicOp::Max, at(s, 0), load(s, 0), order, Scope::Block)
                    }
                }
            });
        });
        t
    };
    let options = Options { instructions: 40_000, ..Options::default() };
    let Err(SimError::OutOfInstructions { instructions: 40_000, at, .. }) =
        kernel(true, 2).run_with(&options)
    else {
        panic!("it does not end");
    };
    assert_eq!((at.block, at.warp, at.order, at.turns), ((1, 0, 0), 1, Some("ascending"), None));
    let text = kernel(true, 2).run_with(&options).expect_err("it does not end").to_string();
    assert!(text.contains("and is not done: warp 1 of block (1, 0, 0) is in `"), "{text}");
    assert!(text.ends_with("\n    with the blocks in ascending order"), "{text}");
    let Err(SimError::OutOfInstructions { at, .. }) = kernel(true, 1).run_with(&options) else {
        panic!("it does not end");
    };
    assert_eq!((at.block, at.warp, at.order, at.turns), ((0, 0, 0), 1, None, None));
}

/// A thread polls a flag and runs `aside` in each round, and `after` once the flag is set.
fn asking(
    raised: bool,
    aside: impl Fn(&mut KernelBuilder, &[gemm_dsl::ir::Var]),
    after: impl Fn(&mut KernelBuilder, BufferId, &[gemm_dsl::ir::Var]),
) -> Team {
    let mut t = team(64, 1);
    let (flag, out) = (t.shared("flag", 1), t.array("out", &[0, 0]));
    t.unordered();
    let k = &mut t.k;
    thread(k, 0, |b| b.store(at(flag, 0), 0));
    k.barrier();
    thread(k, 0, |b| {
        let counts = [b.mut_("tries", 0), b.mut_("pause", 0)];
        let seen = b.mut_("seen", 0);
        b.loop_("round", For::new(0, |_| Expr::from(seen).equals(0)), |b, _| {
            let (order, scope) = (MemoryOrder::Acquire, Scope::Block);
            let found = b.atomic("found", AtomicOp::Add, at(flag, 0), 0, order, scope);
            b.assign(seen, found);
            aside(b, &counts);
        });
        after(b, out, &counts);
    });
    thread(k, 32, |b| {
        if raised {
            b.atomic_only(AtomicOp::Exchange, at(flag, 0), 1, MemoryOrder::Release, Scope::Block);
        }
    });
    t
}

fn limited(t: Team) -> Result<Vec<i32>, SimError> {
    t.run_with(&Options { instructions: 1 << 21, ..Options::default() })
}

/// The thread reports its number of polls after the wait, which never ends.
#[test]
fn poll_counts_after_a_wait_do_not_hide_a_deadlock() {
    let kernel = |raised| {
        asking(
            raised,
            |b, counts| b.assign(counts[0], Expr::from(counts[0]) + 1),
            |b, out, counts| b.store(at(out, 1), counts[0]),
        )
    };
    let tries = limited(kernel(true)).expect("it is raised");
    assert!(tries[1] > 0, "{tries:?}");
    let kind = fault(limited(kernel(false))).kind;
    assert!(matches!(kind, FaultKind::Deadlock { .. }), "{kind:?}");
}

/// A pause between polls grows up to a limit.
#[test]
fn a_pause_that_grows_to_a_limit() {
    let kernel = |raised| {
        asking(
            raised,
            |b, counts| {
                let pause = counts[1];
                b.if_(Expr::from(pause).lt(300), |b| b.assign(pause, Expr::from(pause) + 1));
            },
            |b, out, counts| b.store(at(out, 1), counts[1]),
        )
    };
    assert!(limited(kernel(true)).is_ok());
    let kind = fault(limited(kernel(false))).kind;
    assert!(matches!(kind, FaultKind::Deadlock { .. }), "{kind:?}");
}

/// An inner loop that returns to the same state in each outer round is not a livelock.
#[test]
fn rounds_of_rounds_end() {
    let mut t = team(32, 1);
    let (most, out) = (t.array("most", &[3]), t.array("out", &[0]));
    let k = &mut t.k;
    let sum = k.mut_("sum", 0);
    k.loop_("i", For::below(0, 300), |b, _| {
        b.loop_("j", For::below(0, 100), |b, _| {
            thread(b, 0, |b| {
                b.atomic_only(AtomicOp::Max, at(most, 0), 0, MemoryOrder::Relaxed, Scope::Device);
            });
        });
        b.assign(sum, Expr::from(sum) + 1);
    });
    thread(k, 0, |b| b.store(at(out, 0), sum));
    assert_eq!(t.run(), Ok(vec![300]));
}

/// Wait states of one block are not carried to the next, for polling warps and for warps at
/// barriers.
#[test]
fn each_block_waits_for_itself() {
    let mut t = team(32, 3);
    let most = t.array("most", &[3]);
    t.k.loop_("i", For::below(0, 100), |b, _| {
        thread(b, 0, |b| {
            b.atomic_only(AtomicOp::Max, at(most, 0), 0, MemoryOrder::Relaxed, Scope::Device);
        });
    });
    assert_eq!(t.run(), Ok(vec![3]));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let mut t = team(64, 3);
    t.array("out", &[0]);
    t.k.loop_("i", For::below(0, 3000), |b, _| b.barrier());
    assert_eq!(pool.install(|| t.run()), Ok(vec![0]));
}

/// The full state is computed only if its brief part was seen before, or if it is to be stored.
#[test]
fn most_states_are_told_by_some_of_them() {
    let (mut livelock, mut wholes) = (LivelockDetector::default(), 0);
    for brief in 0..10_000 {
        let whole = || {
            wholes += 1;
            7
        };
        assert!(!livelock.again(brief, whole));
    }
    assert_eq!(wholes, 14);
    // A cycle of three states, two of which have the same brief part.
    let mut livelock = LivelockDetector::default();
    let mut states = [(1, 2), (1, 3), (2, 2)].into_iter().cycle();
    let looks = (1..20).find(|_| {
        let (brief, whole) = states.next().expect("a cycle has no end");
        livelock.again(brief, || whole)
    });
    assert_eq!(looks, Some(7));
}
