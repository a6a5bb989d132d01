//! Barriers and warp-wide intrinsics that some lanes or warps do not reach.

use super::*;
use gemm_dsl::ir::{For, Intrinsic, LoadMatrix, Mma, Scope, Stmt};
use gemm_dsl::target::Format;

fn guarded(threads: u32, below: i32, scope: Scope) -> Bench {
    let mut b = bench(threads, 1, [1, 1]);
    b.k.if_(tid().lt(below), |k| k.push(Stmt::Barrier(scope)));
    b
}

#[test]
fn a_barrier_under_divergence() {
    for scope in [Scope::Block, Scope::Warp] {
        assert!(guarded(64, 64, scope).run().is_ok());
        let fault = guarded(64, 40, scope).fault();
        let expected = FaultKind::DivergentBarrier { scope, absent: 24 };
        assert_eq!(fault.kind, expected);
        assert_eq!(fault.thread, (32, 0));
    }
    // Lanes that a partial warp does not have are not counted as missing.
    assert!(guarded(40, 40, Scope::Block).run().is_ok());
    assert!(guarded(40, 40, Scope::Warp).run().is_ok());
}

#[test]
fn a_warp_barrier_is_of_each_warp_alone() {
    assert!(guarded(64, 32, Scope::Warp).run().is_ok());
}

#[test]
fn a_warp_that_has_left() {
    let fault = guarded(96, 32, Scope::Block).fault();
    assert_eq!(fault.kind, FaultKind::BarrierAfterExit { exited: 64 });
    assert_eq!(fault.thread, (0, 0));
    let mut b = bench(64, 1, [1, 1]);
    b.k.if_(tid().ge(32), |k| k.barrier());
    let fault = b.fault();
    assert_eq!(fault.kind, FaultKind::BarrierAfterExit { exited: 32 });
    assert_eq!(fault.thread, (32, 0));
}

#[test]
fn warps_at_two_barriers() {
    let mut b = bench(64, 1, [1, 1]);
    b.k.if_else(tid().lt(32), |k| k.barrier(), |k| k.barrier());
    assert!(matches!(b.kind(), FaultKind::BarrierMismatch { .. }));
}

/// A loop contains a barrier, and its trip count differs between lanes.
#[test]
fn a_barrier_in_a_divergent_loop() {
    let kernel = |trips: Expr| {
        let mut b = bench(32, 1, [1, 1]);
        b.k.loop_("i", For::below(0, trips), |k, _| k.barrier());
        b
    };
    assert!(kernel(tid() - tid() + 3).run().is_ok());
    let kind = kernel(tid() % 4 + 1).kind();
    assert!(matches!(kind, FaultKind::DivergentBarrier { absent: 8, .. }), "{kind:?}");
}

#[test]
fn a_shuffle_under_divergence() {
    let kernel = |below: i32| {
        let mut b = bench(64, 1, [64, 64]);
        let (input, output) = (b.input, b.output);
        b.k.if_(tid().lt(below), |k| {
            let shuffled = vec![load(input, tid()), 1.into()];
            k.store(at(output, tid()), Expr::Call(Intrinsic::ShuffleDown, shuffled));
        });
        b
    };
    assert!(kernel(64).run().is_ok());
    assert!(kernel(32).run().is_ok());
    let fault = kernel(33).fault();
    let intrinsic = "__shfl_down_sync";
    assert_eq!(fault.kind, FaultKind::DivergentIntrinsic { intrinsic, absent: 31 });
    assert_eq!(fault.thread, (32, 0));
}

#[test]
fn a_shuffle_from_a_lane_that_does_not_exist() {
    let kernel = |shuffle: Intrinsic, threads: u32, delta: i32| {
        let mut b = bench(threads, 1, [64, 64]);
        let value = vec![b.read(tid()), delta.into()];
        b.write(tid(), Expr::Call(shuffle, value));
        b
    };
    assert!(kernel(Intrinsic::ShuffleUp, 20, 4).run().is_ok());
    for shuffle in [Intrinsic::ShuffleDown, Intrinsic::ShuffleXor] {
        assert!(kernel(shuffle, 32, 31).run().is_ok());
        for (threads, delta) in [(20, 4), (32, 32), (32, -1)] {
            let kind = kernel(shuffle, threads, delta).kind();
            assert_eq!(kind, FaultKind::ShuffleSource { delta });
        }
    }
}

/// Matrix instruction on zeros in the threads below a number, with one operand element left
/// uninitialised.
fn multiplied(below: i32, left_out: Option<(&'static str, i32)>) -> Bench {
    let mut b = bench(64, 1, [64, 64]);
    b.k.if_(tid().lt(below), |k| {
        let mut held = |name, elem, count: usize, zero: Expr| {
            let count = count as i32;
            let buffer = k.registers(name, elem, [Expr::I32(count)], "");
            for i in (0..count).filter(|i| left_out != Some((name, *i))) {
                k.store(at(buffer, i), zero.clone());
            }
            at(buffer, 0)
        };
        let d = held("d", Elem::F32, Mma::OF_D, Expr::F32(0.0));
        let a = held("a", Elem::U32, Mma::OF_A, Expr::U32(0));
        let b = held("b", Elem::U32, Mma::OF_B, Expr::U32(0));
        k.mma(Mma { format: Format::Tf32, d, a, b });
    });
    b
}

#[test]
fn a_matrix_instruction_under_divergence() {
    for whole in [32, 64] {
        assert!(multiplied(whole, None).run().is_ok());
    }
    let fault = multiplied(33, None).fault();
    assert_eq!(fault.kind, FaultKind::DivergentIntrinsic { intrinsic: "mma", absent: 31 });
    assert_eq!(fault.thread, (32, 0));
}

#[test]
fn a_matrix_instruction_of_what_was_not_written() {
    for (name, at) in [("d", 3), ("a", 1), ("b", 1)] {
        let FaultKind::Uninitialised { place } = multiplied(64, Some((name, at))).kind() else {
            panic!("{name} was written");
        };
        assert_eq!((place.buffer.as_str(), place.index), (name, vec![i128::from(at)]));
    }
}

/// Load of `count` matrices by the threads below a number. Row `lane` is at row `lane * stride` of
/// shared memory, which is initialised except for one row.
fn loaded(below: i32, count: u8, stride: i32, left_out: Option<i32>) -> Bench {
    let mut b = bench(32, 1, [64, 64]);
    let rows = 32 * stride;
    let dims = [rows.into(), 4.into()];
    let shared = b.k.shared("tile", Elem::U32, dims, BufferLayout::row_major(2), "");
    let row = |row: Expr| Access::new(shared, [row, 0.into()]).vector();
    let own = tid() * stride;
    let written = left_out.map_or(Expr::I32(1).equals(1), |row| tid().equals(row).negated());
    b.k.if_(written, |k| k.store(row(own.clone()), Expr::Pack(vec![Expr::U32(7); 4])));
    b.k.warp_barrier();
    b.k.if_(tid().lt(below), |k| {
        let held = k.registers("held", Elem::U32, [i32::from(count).into()], "");
        let to = at(held, 0);
        k.load_matrix(LoadMatrix { count, transposed: false, to, from: row(own) });
    });
    b
}

#[test]
fn a_load_of_matrices() {
    let fault = loaded(31, 4, 1, None).fault();
    assert_eq!(fault.kind, FaultKind::DivergentIntrinsic { intrinsic: "ldmatrix", absent: 1 });
    // Addresses of lanes that the instruction does not use are ignored.
    for (count, asked) in [(1, 8), (2, 16), (4, 32)] {
        assert!(asked == 32 || loaded(32, count, 1, Some(asked)).run().is_ok());
        let kind = loaded(32, count, 1, Some(asked - 1)).kind();
        let FaultKind::Uninitialised { place } = kind else { panic!("{kind:?}") };
        assert_eq!(place.index[0], i128::from(asked - 1));
    }
}

#[test]
fn a_load_of_matrices_conflicts_where_its_rows_do() {
    for (count, stride, wavefronts) in [(1, 1, 1), (2, 1, 2), (4, 1, 4), (4, 8, 32), (2, 2, 4)] {
        let counters = loaded(32, count, stride, None).counters();
        // The kernel also writes 32 rows; their wavefronts are subtracted.
        let (before, reads) = (loaded(0, count, stride, None).counters(), u64::from(count));
        assert_eq!(counters.shared_wavefronts - before.shared_wavefronts, wavefronts);
        assert_eq!(counters.shared_load_bytes, 8 * reads * 16);
        assert_eq!((counters.shared_loads, before.shared_loads), (1, 0));
    }
}
