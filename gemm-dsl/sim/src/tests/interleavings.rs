//! Interleavings of threads of one block that synchronise by atomics on shared memory.

use super::*;
use crate::Position;

/// Kernel with a zeroed flag and an uninitialised array in shared memory.
fn two_warps() -> (Team, BufferId, BufferId) {
    let mut t = team(64, 2);
    let (flag, s) = (t.shared("flag", 1), t.shared("s", 2));
    thread(&mut t.k, 5, |b| b.store(at(flag, 0), 0));
    t.k.barrier();
    (t, flag, s)
}

fn add(b: &mut KernelBuilder, word: BufferId, value: i32, order: MemoryOrder) -> Expr {
    b.atomic("old", AtomicOp::Add, at(word, 0), value, order, Scope::Block).into()
}

/// Each warp writes and releases if it finds the flag set to the given value.
fn writers(first: i32, raised: i32) -> Team {
    let (mut t, flag, s) = two_warps();
    for warp in [0, 1] {
        thread(&mut t.k, 32 * warp, |b| {
            if warp == first {
                b.store(at(s, 0), 1);
                add(b, flag, 1, MemoryOrder::Release);
            } else {
                let old = add(b, flag, 0, MemoryOrder::Acquire);
                b.if_(old.equals(raised), |b| b.store(at(s, 0), 2));
            }
        });
    }
    t
}

#[test]
fn races_are_found_in_either_order_of_the_warps() {
    for first in [0, 1] {
        assert!(writers(first, 1).run().is_ok());
        let fault = writers(first, 0).fault();
        // The first interleaving, with warp 0 before warp 1, is not named in errors.
        let turns = [Some("reversed"), None][first as usize];
        assert_eq!((fault.block, fault.order, fault.turns), ((0, 0, 0), None, turns));
        let text = fault.to_string();
        let named = text.ends_with("\n    with the threads of the block in reversed turns");
        assert_eq!(named, turns.is_some(), "{text}");
        assert_eq!(race(fault.kind), "s");
    }
}

fn differing(t: Team) -> (Position, (u32, u32, u32), &'static str, [u64; 2]) {
    match t.run() {
        Err(SimError::InterleavingDependent { kernel, block, place, turns, bits }) => {
            assert_eq!(kernel, "kernel");
            (*place, block, turns, bits)
        }
        other => panic!("results that differ were expected: {other:?}"),
    }
}

fn element(index: i128) -> Position {
    let (buffer, space) = ("out".into(), gemm_dsl::ir::Space::Global);
    Position { buffer, space, index: vec![index], at: u64::try_from(index).ok() }
}

/// Each thread draws a slot. The slot of a thread depends on the interleaving, but the set of
/// filled slots does not.
#[test]
fn slot_order_depends_on_turns() {
    let kernel = |what: fn() -> Expr| {
        let (mut t, count, _) = two_warps();
        let out = t.array("out", &[7; 128]);
        let slot = add(&mut t.k, count, 1, MemoryOrder::Relaxed);
        t.k.store(at(out, slot + block() * 64), what() + block() * 64);
        t
    };
    let sum = kernel(|| 1.into()).run();
    assert_eq!(sum, Ok([vec![1; 64], vec![65; 64]].concat()));
    let expected = (element(0), (0, 0, 0), "reversed", [0, 63]);
    assert_eq!(differing(kernel(tid)), expected);
    let (kernel_, arrays) = kernel(tid).finish();
    let text = launch(&kernel_, &arrays, &[]).expect_err("it depends on the order").to_string();
    let told = "block (0, 0, 0): the results depend on the order in which threads run: out[0] has \
        the bits 0x0 if they take turns from the first to the last, and 0x3f in reversed turns";
    assert!(text.contains(told), "{text}");
    // With the declaration, the results are those of the first interleaving.
    let mut declared = kernel(tid);
    declared.unordered();
    assert_eq!(declared.run(), Ok((0..128).collect()));
}

/// The middle one of three warps is second in both plain interleavings. A warp that adds twice runs
/// alone, unless another warp is interleaved.
#[test]
fn the_ends_are_not_all_turns() {
    let kernel = |twice: bool| {
        let mut t = team(96, 1);
        let (count, out) = (t.shared("count", 1), t.array("out", &[0; 2]));
        let k = &mut t.k;
        thread(k, 5, |b| b.store(at(count, 0), 0));
        k.barrier();
        k.if_((tid() % 32).equals(0), |b| {
            let first = add(b, count, 1, MemoryOrder::Relaxed);
            if twice {
                let (add, order) = (AtomicOp::Add, MemoryOrder::Relaxed);
                let next = b.atomic("next", add, at(count, 0), 1, order, Scope::Block);
                let own = Expr::from(next).equals(first + 1);
                b.if_(tid().equals(32).and(own), |b| b.store(at(out, 1), 1));
            }
        });
        t
    };
    let (place, _, turns, bits) = differing(kernel(true));
    assert_eq!((place, turns, bits), (element(1), "interleaved", [1, 0]));
    assert_eq!(kernel(false).run(), Ok(vec![0, 0]));
    let middle = || {
        let mut t = team(96, 1);
        let (count, out) = (t.shared("count", 1), t.array("out", &[0; 2]));
        let k = &mut t.k;
        thread(k, 5, |b| b.store(at(count, 0), 0));
        k.barrier();
        k.if_((tid() % 32).equals(0), |b| {
            let drawn = add(b, count, 1, MemoryOrder::Relaxed);
            b.if_(tid().equals(32), |b| b.store(at(out, 0), drawn));
        });
        t
    };
    let (place, _, turns, [forward, _]) = differing(middle());
    assert_eq!((place, forward), (element(0), 1));
    assert!(turns.starts_with("shuffled (seed "), "{turns}");
}

/// Lanes of an `else` may run before the lanes of its `if`, and still reach all their later
/// statements.
#[test]
fn the_lanes_of_an_else_may_go_first() {
    let kernel = |looks: bool| {
        let (mut t, flag, s) = two_warps();
        let out = t.array("out", &[0; 64]);
        let k = &mut t.k;
        let sum = k.mut_("sum", 0);
        k.if_else(
            (tid() % 2).equals(0),
            |b| {
                thread(b, 0, |b| {
                    b.store(at(s, 0), 5);
                    add(b, flag, 1, MemoryOrder::Release);
                });
                b.assign(sum, Expr::from(sum) + 1);
            },
            |b| {
                b.if_else(
                    tid().lt(32),
                    |b| {
                        thread(b, 7, |b| {
                            let old = add(b, flag, 0, MemoryOrder::Acquire);
                            let reads = if looks { old.equals(1) } else { old.ge(0) };
                            b.if_(reads, |b| b.store(at(s, 0), 6));
                        });
                        b.assign(sum, Expr::from(sum) + 10);
                    },
                    |b| b.assign(sum, Expr::from(sum) + 100),
                );
            },
        );
        k.if_(block().equals(0), |b| b.store(at(out, tid()), sum));
        t
    };
    let sums = |i| match (i % 2 == 0, i < 32) {
        (true, _) => 1,
        (_, true) => 10,
        _ => 100,
    };
    assert_eq!(kernel(true).run(), Ok((0..64).map(sums).collect::<Vec<i32>>()));
    let fault = kernel(false).fault();
    assert_eq!((fault.turns, race(fault.kind)), (Some("reversed"), "s".to_owned()));
}

/// A warp that arrives at a named barrier without waiting may also be the first to run after it.
#[test]
fn arriving_warps_may_run_first() {
    let kernel = |raised: i32| {
        let (mut t, flag, s) = two_warps();
        let arrive = |b: &mut KernelBuilder, wait| {
            b.push(gemm_dsl::ir::Stmt::NamedBarrier { id: 1, threads: 64, wait });
        };
        warp(&mut t.k, 0, |b| {
            arrive(b, false);
            thread(b, 0, |b| {
                let old = add(b, flag, 0, MemoryOrder::Acquire);
                b.if_(old.equals(raised), |b| b.store(at(s, 0), 2));
            });
        });
        warp(&mut t.k, 1, |b| {
            thread(b, 32, |b| {
                b.store(at(s, 0), 1);
                add(b, flag, 1, MemoryOrder::Release);
            });
            arrive(b, true);
        });
        t
    };
    assert!(kernel(1).run().is_ok());
    let fault = kernel(0).fault();
    assert_eq!((fault.turns, race(fault.kind)), (Some("interleaved"), "s".to_owned()));
}

/// Every interleaving starts from the same content, for accesses by element and by vector of all
/// sizes.
#[test]
fn every_turn_begins_with_what_was_given() {
    let kernel = || {
        let (mut t, count, _) = two_warps();
        let wide = t.array("wide", &[3u64; 128]);
        let narrow = t.bound("narrow", Buffer::from_bits(Elem::I8, (0u8..128).map(u64::from)));
        let out = t.array("out", &[7; 128]);
        let k = &mut t.k;
        add(k, count, 1, MemoryOrder::Relaxed);
        let own = || tid() + block() * 64;
        k.store(at(out, own()), load(out, own()) + own());
        k.store(at(wide, own()), load(wide, own()) + 1u64);
        k.if_((tid() % 16).equals(0), |b| {
            let place = || at(narrow, own()).vector();
            let held = b.let_("held", place().load());
            let low = Expr::from(held).lane(1);
            let parts = (0..16).map(|_| low.clone()).collect();
            b.store(place(), Expr::Pack(parts));
        });
        t
    };
    let (k, arrays) = kernel().finish();
    let counters = launch(&k, &arrays, &[]).expect("the order does not matter");
    assert_eq!(arrays[0].to_vec_of(), Some(vec![4u64; 128]));
    assert_eq!(arrays[1].bits(), (0..128).map(|i| i / 16 * 16 + 1).collect::<Vec<u64>>());
    assert_eq!(arrays[2].to_vec_of(), Some((7..135).collect::<Vec<i32>>()));
    // Only the first turns count.
    assert_eq!((counters.blocks, counters.global_stores), (2, 4 + 4 + 4));
}

/// Instructions of all interleavings count against the limit. Progress counts blocks.
#[test]
fn turns_count_against_the_limit() {
    let needs = |atomic: bool| {
        let runs = |instructions: u64| {
            let (mut t, count, _) = two_warps();
            if atomic {
                t.k.atomic_only(AtomicOp::Add, at(count, 0), 1, MemoryOrder::Relaxed, Scope::Block);
            } else {
                t.k.let_("value", load(count, 0));
            }
            t.run_with(&Options { instructions, ..Options::default() }).is_ok()
        };
        (0..10_000).find(|&limit| runs(limit)).expect("it ends")
    };
    // A branch whose second side runs first costs one more instruction.
    let (all, one) = (needs(true), needs(false));
    assert!((6 * one..7 * one).contains(&all), "{all} and {one}");
}
