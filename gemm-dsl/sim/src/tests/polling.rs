//! Threads that wait for others by polling a word.

use super::*;
use crate::{WaitReason, WaitingWarp};
use gemm_dsl::ir::{Change, For};

/// Polls a word until it is non-zero. Each round also executes `aside`.
fn spin(b: &mut KernelBuilder, word: Access, scope: Scope, aside: impl FnOnce(&mut KernelBuilder)) {
    let seen = b.mut_("seen", 0);
    let none = |_| Expr::from(seen).equals(0);
    b.loop_("round", For::new(0, none), |b, _| {
        let found = b.atomic("found", AtomicOp::Add, word, 0, MemoryOrder::Acquire, scope);
        b.assign(seen, found);
        aside(b);
    });
}

pub(super) fn raise(b: &mut KernelBuilder, word: Access, scope: Scope) {
    b.atomic_only(AtomicOp::Exchange, word, 1, MemoryOrder::Release, scope);
}

/// Each block waits for the predecessor given by `before`, if there is one, and adds its own number
/// to the predecessor's sum.
fn scan(blocks: i32, before: impl FnOnce(&mut KernelBuilder) -> (Expr, Expr)) -> Team {
    let mut t = team(32, blocks as u64);
    let flags = t.array("flags", &vec![0; blocks as usize]);
    let sums = t.array("sums", &vec![0; blocks as usize]);
    thread(&mut t.k, 0, |b| {
        let (own, before) = before(b);
        let sum = b.mut_("sum", own.clone());
        b.if_(before.clone().ge(0).and(before.clone().lt(blocks)), |b| {
            spin(b, at(flags, before.clone()), Scope::Device, |_| ());
            b.assign(sum, Expr::from(sum) + load(sums, before));
        });
        b.store(at(sums, own.clone()), sum);
        raise(b, at(flags, own), Scope::Device);
    });
    t
}

#[test]
fn a_block_may_not_wait_for_one_that_need_not_run() {
    // Waiting for a later block hangs in ascending order.
    let fault = scan(12, |_| (block(), block() + 1)).fault();
    assert_eq!((fault.block, fault.order), ((0, 0, 0), Some("ascending")));
    let FaultKind::Deadlock { waiting, to_come: 11 } = &fault.kind else {
        panic!("{fault:?}");
    };
    let [WaitingWarp { block: (0, 0, 0), warp: 0, statement, waits_for: WaitReason::Change }] =
        &waiting[..]
    else {
        panic!("{waiting:?}");
    };
    assert!(statement.contains("flags"), "{statement}");
    let text = fault.to_string();
    assert!(text.contains("; and 11 blocks need not start before these are done"), "{text}");
    // Waiting for an earlier block hangs in descending order.
    let fault = scan(12, |_| (block(), block() - 1)).fault();
    assert_eq!((fault.block, fault.order), ((11, 0, 0), Some("descending")));
    assert!(matches!(fault.kind, FaultKind::Deadlock { to_come: 11, .. }));
}

/// Blocks draw their numbers. A block with a lower number has already started, and waits only for
/// still lower ones.
#[test]
fn a_block_may_wait_for_one_that_has_drawn_a_lower_number() {
    let mut numbers = None;
    let mut t = scan(12, |b| {
        let drawn = b.global("drawn", Elem::I32, Operand::Temp(2));
        b.shape(drawn, [Expr::U64(1)], [1.into()]);
        numbers = Some(Buffer::from_slice(&[0]));
        let (order, scope) = (MemoryOrder::Relaxed, Scope::Device);
        let own = b.atomic("own", AtomicOp::Add, at(drawn, 0), 1, order, scope);
        (own.into(), Expr::from(own) - 1)
    });
    t.arrays.extend(numbers);
    let (kernel, arrays) = t.finish();
    launch(&kernel, &arrays, &[]).expect("nobody waits in vain");
    let expected: Vec<i32> = (0..12).map(|n| n * (n + 1) / 2).collect();
    assert_eq!(arrays[1].to_vec_of(), Some(expected));
}

/// One warp waits for the other by a word in shared memory. The waiting warp runs first.
pub(super) fn handed(raised: bool, aside: impl Fn(&mut KernelBuilder, BufferId)) -> Team {
    let mut t = team(64, 1);
    let (data, flag) = (t.shared("data", 1), t.shared("flag", 2));
    let out = t.array("out", &[0]);
    let k = &mut t.k;
    k.if_(tid().lt(2), |b| b.store(at(flag, tid()), 0));
    k.barrier();
    thread(k, 0, |b| {
        spin(b, at(flag, 0), Scope::Block, |b| aside(b, flag));
        b.store(at(out, 0), load(data, 0));
    });
    thread(k, 32, |b| {
        b.store(at(data, 0), 5);
        if raised {
            raise(b, at(flag, 0), Scope::Block);
        }
    });
    t
}

#[test]
fn a_warp_may_wait_for_another_of_its_block() {
    assert_eq!(handed(true, |_, _| ()).run(), Ok(vec![5]));
    let fault = handed(false, |_, _| ()).fault();
    assert_eq!((fault.thread, fault.order), ((0, 0), None));
    let FaultKind::Deadlock { waiting, to_come: 0 } = &fault.kind else {
        panic!("{fault:?}");
    };
    assert_eq!(waiting.len(), 1);
    assert_eq!((waiting[0].warp, waiting[0].waits_for.clone()), (0, WaitReason::Change));
}

/// A warp that polls several words, or that writes in each round, still lets other warps run.
#[test]
fn a_warp_that_waits_may_do_other_things() {
    let other = |b: &mut KernelBuilder, op: AtomicOp, value: i32, flag: BufferId| {
        b.atomic_only(op, at(flag, 1), value, MemoryOrder::Relaxed, Scope::Block);
    };
    let ask_two = |b: &mut KernelBuilder, flag| {
        other(b, AtomicOp::Max, 0, flag);
        other(b, AtomicOp::Min, 0, flag);
    };
    assert_eq!(handed(true, ask_two).run(), Ok(vec![5]));
    assert!(matches!(handed(false, ask_two).kind(), FaultKind::Deadlock { .. }));
    let count = |b: &mut KernelBuilder, flag| other(b, AtomicOp::Add, 1, flag);
    assert_eq!(handed(true, count).run(), Ok(vec![5]));
}

/// Atomics that change nothing are not a deadlock if their loop ends.
#[test]
fn a_loop_of_atomics_that_change_nothing_ends() {
    let mut t = team(32, 1);
    let most = t.array("most", &[3]);
    t.k.loop_("i", For::below(0, 1000), |b, _| {
        b.atomic_only(AtomicOp::Max, at(most, 0), 0, MemoryOrder::Relaxed, Scope::Device);
    });
    assert_eq!(t.run(), Ok(vec![3]));
}

/// Two warps count to a hundred in turns.
#[test]
fn two_warps_take_turns() {
    let kernel = |turns: [i32; 2]| {
        let mut t = team(64, 1);
        let (word, out) = (t.shared("word", 1), t.array("out", &[0]));
        let k = &mut t.k;
        thread(k, 0, |b| b.store(at(word, 0), 0));
        k.barrier();
        k.if_((tid() % 32).equals(0), |b| {
            let own = (tid() / 32).equals(0).select(turns[0], turns[1]);
            b.loop_("i", For::below(own, 100).change(Change::Add(2.into())), |b, i| {
                let seen = b.mut_("seen", -1);
                let waits = |_| Expr::from(seen).lt(i).or(Expr::from(seen).gt(i));
                b.loop_("round", For::new(0, waits), |b, _| {
                    let op = AtomicOp::CompareExchange { expected: i.into() };
                    let next = Expr::from(i) + 1;
                    let old =
                        b.atomic("old", op, at(word, 0), next, MemoryOrder::AcqRel, Scope::Block);
                    b.assign(seen, old);
                });
            });
        });
        k.barrier();
        thread(k, 0, |b| b.store(at(out, 0), load(word, 0)));
        t
    };
    assert_eq!(kernel([0, 1]).run(), Ok(vec![100]));
    // No warp takes this turn: both wait, and both are reported.
    let kind = kernel([2, 1]).kind();
    let FaultKind::Deadlock { waiting, .. } = &kind else {
        panic!("{kind:?}");
    };
    assert_eq!(waiting.iter().map(|w| w.warp).collect::<Vec<_>>(), [0, 1]);
}
