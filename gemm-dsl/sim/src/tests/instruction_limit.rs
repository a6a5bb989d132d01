//! Instruction limit and progress reports.

use super::*;
use gemm_dsl::ir::{Change, For};
use std::sync::Mutex;

type Innermost<'a> = dyn FnMut(&mut KernelBuilder) + 'a;

/// Each of six blocks counts to `rounds`, either with an atomic, and thus in several orders, or
/// without.
fn counting(rounds: i32, synchronising: bool) -> Team {
    let mut t = team(64, 6);
    let (word, out) = (t.array("word", &[0]), t.array("out", &[0; 6]));
    let k = &mut t.k;
    let sum = k.mut_("sum", 0);
    k.loop_("i", For::below(0, rounds), |b, _| {
        b.assign(sum, Expr::from(sum) + 1);
    });
    thread(k, 0, |b| {
        if synchronising {
            b.atomic_only(AtomicOp::Add, at(word, 0), 1, MemoryOrder::Relaxed, Scope::Device);
        }
        b.store(at(out, block()), sum);
    });
    t
}

fn limited(t: Team, instructions: u64) -> Result<Vec<i32>, SimError> {
    anywhere(t.run_with(&Options { instructions, ..Options::default() }))
}

#[test]
fn a_loop_without_an_end() {
    for synchronising in [false, true] {
        let endless = |counted: bool| {
            let mut t = counting(1, synchronising);
            let out = t.array("counted", &[0u64]);
            let count = t.k.mut_("count", 0u64);
            t.k.loop_("j", For::below(1, 2).change(Change::Mul(1.into())), |b, _| {
                b.assign(count, Expr::from(count) + 1u64);
                if counted {
                    in_block(b, 0, |b| b.store(at(out, 0), count));
                }
            });
            in_block(&mut t.k, 0, |b| b.store(at(out, 0), count));
            t
        };
        for limit in [0, 10, 100_000] {
            assert_eq!(limited(endless(true), limit), spent(limit));
        }
        // The state repeats unless the loop counts its rounds.
        assert_eq!(limited(endless(false), 10), spent(10));
        let stuck = endless(false).kind();
        assert!(matches!(stuck, FaultKind::Deadlock { .. }), "{stuck:?}");
    }
    // A loop of atomics, each of which changes its word.
    let mut t = team(32, 2);
    let word = t.array("word", &[0u32]);
    t.k.loop_("j", For::below(1, 2).change(Change::Mul(1.into())), |b, _| {
        b.atomic_only(
            AtomicOp::Add,
            at(word, 0),
            Expr::U32(1),
            MemoryOrder::Relaxed,
            Scope::Device,
        );
    });
    assert_eq!(limited(t, 100_000), spent(100_000));
}

/// Smallest limit with which a kernel completes.
fn needed(kernel: impl Fn() -> Team) -> u64 {
    let (mut low, mut high) = (0, 1 << 20);
    while low < high {
        let middle = (low + high) / 2;
        match limited(kernel(), middle) {
            Ok(_) => high = middle,
            Err(_) => low = middle + 1,
        }
    }
    low
}

#[test]
fn a_limit_that_is_just_enough() {
    for synchronising in [false, true] {
        let needs = |rounds| needed(|| counting(rounds, synchronising));
        let few = needs(100);
        assert_eq!(limited(counting(100, synchronising), few), Ok(vec![100; 6]));
        assert_eq!(limited(counting(100, synchronising), few - 1), spent(few - 1));
        // A round is a test, a sum, a step and a jump. Two warps in six blocks execute it in all
        // orders.
        let orders = if synchronising { 5 } else { 1 };
        assert_eq!(needs(2000) - few, 1900 * 4 * 2 * 6 * orders);
    }
}

/// Loops that unroll to nothing still count against the limit.
#[test]
fn unrolling_ends() {
    let nested = |depth: usize, end: i32| {
        let mut t = team(32, 1);
        let out = t.array("out", &[0; 4]);
        fn within(b: &mut KernelBuilder, depth: usize, end: i32, innermost: &mut Innermost<'_>) {
            match depth {
                0 => innermost(b),
                _ => b.unrolled("i", end, |b, _| within(b, depth - 1, end, innermost)),
            }
        }
        within(&mut t.k, depth, end, &mut |k| k.comment("nothing"));
        thread(&mut t.k, 0, |b| within(b, 2, 2, &mut |b| b.store(at(out, 1), 1)));
        t
    };
    assert_eq!(limited(nested(3, 4096), 100_000), spent(100_000));
    assert_eq!(limited(nested(7, 4096), 100_000), spent(100_000));
    assert_eq!(nested(3, 64).run(), Ok(vec![0, 1, 0, 0]));
}

#[test]
fn progress_counts_every_block_once() {
    for (synchronising, all) in [(false, 6), (true, 30)] {
        let reports = Mutex::new(Vec::new());
        let report = |done, all| reports.lock().expect("nobody fails").push((done, all));
        let options = Options { progress: Some(&report), ..Options::default() };
        assert_eq!(counting(10, synchronising).run_with(&options), Ok(vec![10; 6]));
        let mut reports = reports.into_inner().expect("nobody fails");
        // Parallel blocks report in any order.
        if !synchronising {
            reports.sort_unstable();
        }
        assert_eq!(reports, (1..=all).map(|done| (done, all)).collect::<Vec<_>>());
    }
}
