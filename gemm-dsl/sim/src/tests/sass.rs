//! Counters of compiled code, for kernels whose SASS was computed by hand.

use super::*;
use crate::{Profile, SassCounters, profile};
use gemm_dsl::ir::{For, Intrinsic, Unroll};

impl Bench {
    /// Profile with the counters of compiled code.
    fn profiled(self) -> Profile {
        let input: Vec<f32> = (0..self.lens[0]).map(|i| i as f32).collect();
        let buffers = [Buffer::from_f32(&input), Buffer::zeros(self.lens[1])];
        let options = Options { compiled: true, ..Options::default() };
        profile(&self.finish(), &buffers, &[], &options).expect("the kernel is right")
    }

    fn compiled(self) -> SassCounters {
        self.profiled().compiled.expect("it was asked for")
    }
}

/// A warp writes shared memory and then sums four elements that are `step` apart. Lane `l` starts
/// at `of * l`.
fn sum_of_four(of: i32, step: i32) -> Bench {
    let mut b = bench(32, 1, [1, 32]);
    let x = b.shared(512);
    b.k.unrolled("i", 16, |k, i| k.store(at(x, i * 32 + tid()), 1.0));
    b.k.barrier();
    let parts = (0..4).map(|i| at(x, tid() * of + i * step).load());
    let sum = parts.reduce(|sum, part| sum + part).expect("four");
    b.write(tid(), sum);
    b
}

#[test]
fn neighbours_that_are_aligned_are_loaded_together() {
    let loads = |of, step| {
        let counts = sum_of_four(of, step).compiled();
        (counts.shared_loads, counts.shared_load_wavefronts)
    };
    // 16 bytes per lane take four wavefronts, one for each eight lanes.
    assert_eq!(loads(4, 1), (1, 4));
    assert_eq!(loads(8, 1), (1, 8));
    // Pairs are 8-byte loads.
    assert_eq!(loads(2, 1), (2, 4));
    // Loads are not merged if their alignment is unknown or if they are not adjacent.
    assert_eq!(loads(5, 1), (4, 4));
    assert_eq!(loads(4, 4).0, 4);
}

#[test]
fn known_values_are_not_loaded_again() {
    let loads = |stores: bool| {
        let mut b = bench(32, 1, [32, 64]);
        let x = b.shared(64);
        b.k.store(at(x, tid()), b.read(tid()));
        b.k.store(at(x, tid() + 32), 0.0);
        b.k.barrier();
        let one = b.k.let_("one", at(x, tid() * 2).load());
        if stores {
            b.k.store(at(x, tid() * 2 + 1), 2.0);
        } else {
            b.k.barrier();
        }
        let two = b.k.let_("two", at(x, tid() * 2).load());
        b.write(tid(), one + two);
        b.compiled().shared_loads
    };
    // The store is known to hit another word: it has the same base address and another offset.
    // After a barrier other threads may have changed the word.
    assert_eq!(loads(true), 1);
    assert_eq!(loads(false), 2);
}

#[test]
fn dead_stores_are_not_counted() {
    let stores = |looks: bool| {
        let mut b = bench(32, 1, [1, 64]);
        b.write(tid(), 1.0);
        if looks {
            b.k.barrier();
        }
        b.write(tid(), 2.0);
        let counts = b.compiled();
        (counts.global_stores, counts.global_store_requests, counts.global_store_sectors)
    };
    assert_eq!(stores(true).0, 2);
    assert_eq!(stores(false), (1, 1, 4));
}

#[test]
fn multiply_adds_are_those_of_the_text_however_loops_are_unrolled() {
    let unrolled = [Unroll::Auto, Unroll::By(4), Unroll::By(7), Unroll::By(8), Unroll::By(16)];
    let trips = [1, 3, 4, 5, 17, 100];
    for (unroll, trips) in unrolled.into_iter().flat_map(|by| trips.map(|trips| (by, trips))) {
        let mut b = bench(64, 2, [128, 128]);
        let sum = b.k.mut_("sum", 0.0);
        let (factor, rounds) = (b.read(tid()), b.read(0).cast(Elem::I32) + trips);
        let rounds = b.k.let_("rounds", rounds);
        b.k.loop_("i", For::below(0, rounds).unroll(unroll), |k, _| {
            let next = Expr::Call(Intrinsic::Fma, vec![factor.clone(), factor.clone(), sum.into()]);
            k.assign(sum, next);
        });
        b.write(Expr::Special(Special::BlockX) * 64 + tid(), sum);
        let profile = b.profiled();
        let compiled = profile.compiled.expect("it was asked for");
        let text = (profile.total.fma, profile.total.fmas);
        assert_eq!((compiled.ffma, compiled.thread_ffma), text, "{unroll:?}, {trips}");
        let mut statements = SassCounters::default();
        profile.compiled_statements.iter().for_each(|of| statements += *of);
        // Overhead of the whole kernel is charged to no statement.
        assert!(statements.instructions < compiled.instructions);
        assert_eq!(statements.ffma, compiled.ffma);
        assert_eq!(statements.global_stores, compiled.global_stores);
    }
}

#[test]
fn compiled_counters_are_opt_in() {
    let b = sum_of_four(4, 1);
    let buffers = [Buffer::zeros(1), Buffer::zeros(32)];
    let profile = profile(&b.finish(), &buffers, &[], &Options::default()).expect("a sound kernel");
    assert_eq!((profile.compiled, profile.compiled_statements), (None, Vec::new()));
}
