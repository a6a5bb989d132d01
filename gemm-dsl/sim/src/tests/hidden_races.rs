//! Conditions that could hide a race or make its report depend on scheduling.

use super::*;
use gemm_dsl::ir::{For, Stmt};

/// Error texts of `times` runs with this number of workers.
fn told(workers: usize, times: usize, kernel: impl Fn() -> Team + Sync) -> Vec<String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build().expect("threads");
    let run = || kernel().run().expect_err("it has a fault").to_string();
    pool.install(|| (0..times).map(|_| run()).collect())
}

/// The single error text that all runs report, for 1, 2 and 4 workers.
fn always(times: usize, kernel: impl Fn() -> Team + Sync) -> String {
    let mut all: Vec<String> = [1, 2, 4].iter().flat_map(|&n| told(n, times, &kernel)).collect();
    all.dedup();
    assert_eq!(all.len(), 1, "{all:#?}");
    all.swap_remove(0)
}

/// Blocks write one word, while each block runs in several turns.
#[test]
fn blocks_that_race_are_told_whatever_their_threads_ask() {
    let text = always(12, || {
        let mut t = team(64, 3);
        let (s, word) = (t.shared("s", 1), t.array("word", &[0]));
        let k = &mut t.k;
        thread(k, 0, |b| b.store(at(s, 0), 0));
        k.barrier();
        k.loop_("i", For::below(0, 20), |b, _| {
            b.atomic_only(AtomicOp::Add, at(s, 0), 1, MemoryOrder::Relaxed, Scope::Block);
        });
        k.barrier();
        thread(k, 0, |b| b.store(at(word, 0), block() + 1));
        t
    });
    assert!(text.contains("data race on word[0]: this write"), "{text}");
}

/// A block fails because of a value that another block wrote. The report is the race.
#[test]
fn a_fault_behind_a_race_is_the_race() {
    for late in [0, 200] {
        let text = always(20, || {
            let mut t = team(32, 2);
            let (at_, x) = (t.array("at", &[0]), t.array("x", &[0; 4]));
            t.k.loop_("i", For::below(0, block() * late), |_, _| ());
            in_block(&mut t.k, 0, |b| b.store(at(at_, 0), 1000));
            in_block(&mut t.k, 1, |b| b.store(at(x, load(at_, 0)), 1));
            t
        });
        assert!(
            text.contains("block (1, 0, 0), thread (0, 0): data race on at[0]: this read"),
            "{text}"
        );
    }
}

/// A fault of an earlier block is reported before the race.
#[test]
fn a_fault_before_a_race_is_the_fault() {
    let text = always(20, || {
        let mut t = team(32, 4);
        let x = t.array("x", &[0; 4]);
        in_block(&mut t.k, 1, |b| b.store(at(x, 4), 1));
        t.k.if_(block().ge(2), |b| thread(b, 0, |b| b.store(at(x, 0), 1)));
        t
    });
    assert!(text.contains("x[4] is out of bounds"), "{text}");
}

/// A loop ends only if another block writes a word, without synchronisation.
#[test]
fn a_racy_wait_is_a_deadlock() {
    let text = always(10, || {
        let mut t = team(32, 2);
        let (flag, out) = (t.array("flag", &[0]), t.array("out", &[0; 2]));
        in_block(&mut t.k, 1, |b| b.store(at(flag, 0), 1));
        in_block(&mut t.k, 0, |b| {
            let none = |_| load(flag, 0).equals(0);
            b.loop_("round", For::new(0, none), |_, _| ());
            b.store(at(out, 0), 1);
        });
        t
    });
    // Alone, which is allowed, the first block waits for ever.
    assert!(text.contains("deadlock"), "{text}");
}

/// A word that a block writes twice is restored to its value before the first write.
#[test]
fn a_word_that_is_written_twice_in_a_turn() {
    let mut t = team(64, 2);
    let (s, out) = (t.shared("s", 1), t.array("out", &[7; 128]));
    let k = &mut t.k;
    thread(k, 0, |b| b.store(at(s, 0), 0));
    k.barrier();
    k.atomic_only(AtomicOp::Add, at(s, 0), 1, MemoryOrder::Relaxed, Scope::Block);
    let own = || at(out, tid() + block() * 64);
    (0..2).for_each(|_| k.store(own(), own().load() + 1));
    assert_eq!(t.run(), Ok(vec![9; 128]));
}

/// Writes of discarded turns are undone, even where results may differ.
#[test]
fn writes_of_discarded_turns_are_undone() {
    let mut t = team(64, 8);
    let (s, out) = (t.shared("s", 1), t.array("out", &[0; 512]));
    t.unordered();
    let k = &mut t.k;
    thread(k, 0, |b| b.store(at(s, 0), 0));
    k.barrier();
    let old = k.atomic("old", AtomicOp::Add, at(s, 0), 1, MemoryOrder::Relaxed, Scope::Block);
    // The first thread to arrive writes; in the last turns that is another thread in some blocks.
    k.if_(Expr::from(old).equals(0), |b| b.store(at(out, block() * 64 + tid()), 1));
    let first = |i| i32::from(i % 64 == 0);
    assert_eq!(t.run(), Ok((0..512).map(first).collect::<Vec<i32>>()));
}

/// An arrival at a named barrier that no warp completes is dropped at the end of the block. The
/// barrier with the same number in the next block does not count it.
#[test]
fn an_arrival_that_nobody_completes_is_lost() {
    let kernel = |reads: i32| {
        let mut t = team(96, 2);
        let (x, out) = (t.shared("x", 2), t.array("out", &[0]));
        let named = |b: &mut KernelBuilder, wait| {
            b.push(Stmt::NamedBarrier { id: 1, threads: 64, wait });
        };
        t.k.if_(block().equals(0), |b| warp(b, 0, |b| named(b, false)));
        t.k.if_(block().equals(1), |b| {
            thread(b, 0, |b| b.store(at(x, 0), 1));
            thread(b, 64, |b| b.store(at(x, 1), 1));
            b.if_(tid().ge(32), |b| named(b, true));
            thread(b, 32, |b| b.store(at(out, 0), load(x, reads)));
        });
        t
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    assert_eq!(pool.install(|| kernel(1).run()), Ok(vec![1]));
    assert_eq!(race(pool.install(|| kernel(0).kind())), "x");
}
