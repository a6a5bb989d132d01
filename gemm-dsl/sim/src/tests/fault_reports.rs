//! Fault reports: block, thread, order and text.

use super::*;
use crate::WaitingWarp;
use gemm_dsl::ir::{For, Guard, Stmt};

/// Double buffering by asynchronous copies: the next tile is copied while one is read.
fn double_buffer(pending: i32, before: bool, behind: bool) -> Team {
    const TILES: i32 = 7;
    let mut t = team(64, 2);
    let x = t.array("x", &(0..2 * 64 * TILES).collect::<Vec<i32>>());
    let out = t.array("out", &[0; 128]);
    let s = t.shared("s", 128);
    let issue = |b: &mut KernelBuilder, tile: Expr| {
        let target = at(s, tile.clone() % 2 * 64 + tid());
        let source = at(x, (block() * TILES + tile.clone()) * 64 + tid());
        let guard = Some(Guard { cond: tile.lt(TILES), or_zero: false });
        b.push(Stmt::CopyAsync { target, source, guard });
        b.push(Stmt::CopyCommit);
    };
    let k = &mut t.k;
    issue(k, 0.into());
    let sum = k.mut_("sum", 0);
    k.loop_("tile", For::below(0, TILES), |b, tile| {
        issue(b, Expr::from(tile) + 1);
        b.push(Stmt::CopyWait { pending: pending.into() });
        if before {
            b.barrier();
        }
        let read = load(s, Expr::from(tile) % 2 * 64 + (Expr::from(63) - tid()));
        b.assign(sum, Expr::from(sum) + read);
        if behind {
            b.barrier();
        }
    });
    k.store(at(out, block() * 64 + tid()), sum);
    t
}

/// A copy that overwrites its buffer too early races with threads that still read it. It is not
/// reported as a missing wait.
#[test]
fn a_copy_that_comes_too_early_is_a_race() {
    assert!(double_buffer(1, true, true).run().is_ok());
    let fault = double_buffer(1, true, false).fault();
    let text = fault.to_string();
    let FaultKind::Race { writes: false, earlier, place } = fault.kind else { panic!("{text}") };
    assert!(earlier.by_copy() && earlier.wrote && place.buffer == "s");
    assert!(
        text.contains("not ordered after the write by an asynchronous copy of thread"),
        "{text}"
    );
    // No thread waited for the copy that is read.
    let fault = double_buffer(2, true, true).fault();
    let text = fault.to_string();
    assert!(matches!(fault.kind, FaultKind::CopyNotAwaited { .. }), "{text}");
    assert!(text.contains("] is being written by an asynchronous copy of thread ("), "{text}");
    // All threads waited, but each only for its own copy.
    let kind = double_buffer(1, false, true).kind();
    assert!(matches!(kind, FaultKind::Race { .. }), "{kind:?}");
}

/// Warps wait for ever at a named barrier.
#[test]
fn four_of_many_waiting_warps_are_named() {
    for (warps, more) in [(4, ""), (5, "; and 1 more"), (7, "; and 3 more")] {
        // The last warp does not arrive.
        let mut t = team(32 * (warps + 1), 1);
        t.k.if_(tid().lt(32 * warps as i32), |b| {
            b.push(Stmt::NamedBarrier { id: 1, threads: 32 * (warps + 1), wait: true });
        });
        let fault = t.fault();
        let text = fault.to_string();
        let FaultKind::Deadlock { waiting, .. } = fault.kind else { panic!("{text}") };
        assert_eq!(waiting.len(), warps as usize);
        assert_eq!(text.matches(" waits at barrier 1").count(), 4, "{text}");
        assert!(text.contains(&format!("`{more}\n")), "{text}");
    }
}

/// One lane of a warp polls in vain, with a long pause between polls.
fn asks_in_vain(who: i32, by_atomics: bool, pause: i32) -> Team {
    let mut t = team(64, 1);
    let (flag, out) = (t.shared("flag", 1), t.array("out", &[0]));
    let k = &mut t.k;
    thread(k, 0, |b| b.store(at(flag, 0), 0));
    k.barrier();
    thread(k, who, |b| {
        let seen = b.mut_("seen", 0);
        b.loop_("round", For::new(0, |_| Expr::from(seen).equals(0)), |b, _| {
            if by_atomics {
                let (add, order) = (AtomicOp::Add, MemoryOrder::Acquire);
                let found = b.atomic("found", add, at(flag, 0), 0, order, Scope::Block);
                b.assign(seen, found);
            } else {
                b.assign(seen, load(flag, 0));
            }
            b.loop_("pause", For::below(0, pause), |_, _| ());
        });
        b.store(at(out, 0), 1);
    });
    t
}

#[test]
fn livelocks_are_reported_at_the_polling_statement() {
    for who in [5, 32, 61] {
        for by_atomics in [false, true] {
            for pause in [0, 9000] {
                let fault = asks_in_vain(who, by_atomics, pause).fault();
                assert_eq!(fault.thread, (who as u32, 0));
                let FaultKind::Deadlock { waiting, .. } = &fault.kind else { panic!("{fault}") };
                let [WaitingWarp { statement, .. }] = &waiting[..] else { panic!("{fault}") };
                assert!(statement.contains("flag") && *statement == fault.statement, "{fault}");
            }
        }
    }
    // A warp that polls nothing is reported as waiting in the loop.
    let mut t = team(32, 1);
    let out = t.array("out", &[0; 32]);
    t.k.store(at(out, tid()), load(out, tid()) + 1);
    t.k.loop_("i", For::new(0, |_| tid().ge(0)), |_, _| ());
    let fault = t.fault();
    assert!(fault.statement.starts_with("for ("), "{fault}");
}

/// The report of a single block names no block order, only the turns of its threads.
#[test]
fn one_block_has_no_order() {
    let kernel = |beyond: i32| {
        let mut t = team(64, 1);
        let (count, out) = (t.array("count", &[0]), t.array("out", &[0; 64]));
        let scope = Scope::Device;
        let old = t.k.atomic("old", AtomicOp::Add, at(count, 0), 1, MemoryOrder::Relaxed, scope);
        thread(&mut t.k, 0, |b| b.store(at(out, Expr::from(old) + beyond), 1));
        t
    };
    let first = kernel(64).fault();
    assert_eq!((first.order, first.turns), (None, None));
    assert!(!first.to_string().contains("with the"), "{first}");
    let other = kernel(1).fault();
    assert_eq!((other.order, other.turns), (None, Some("reversed")));
    let text = kernel(0).run().expect_err("it depends on turns").to_string();
    assert!(
        text.contains("block (0, 0, 0): the results depend on the order in which threads"),
        "{text}"
    );
    assert!(text.contains(" in reversed turns"), "{text}");
}
