//! Race detection between threads.

use super::*;
use gemm_dsl::ir::{BufferLayout, Elem, Operand, Scope, Stmt};

/// Last warp of a reduction tree, `x[tid] += x[tid + s]` for s = 16 … 1 without divergence. Each
/// step has a warp barrier after its read and another after its write. The injected fault omits one
/// of them.
fn last_warp(planted: Option<(i32, usize)>) -> Bench {
    let mut b = bench(32, 1, [64, 1]);
    let x = b.shared(64);
    for half in [0, 32] {
        let value = b.read(tid() + half);
        b.k.store(at(x, tid() + half), value);
    }
    b.k.barrier();
    for s in [32, 16, 8, 4, 2, 1] {
        let sum = b.k.let_(&format!("sum{s}"), load(x, tid()) + load(x, tid() + s));
        if planted != Some((s, 0)) {
            b.k.warp_barrier();
        }
        b.k.store(at(x, tid()), sum);
        if planted != Some((s, 1)) {
            b.k.warp_barrier();
        }
    }
    let output = b.output;
    b.k.if_(tid().equals(0), |b| b.store(at(output, 0), load(x, 0)));
    b
}

#[test]
fn the_unrolled_last_warp_needs_both_of_its_warp_barriers() {
    let (out, counters) = last_warp(None).run().expect("the kernel is right");
    assert_eq!(out, [(0..64).sum::<i32>() as f32]);
    assert_eq!((counters.block_barriers, counters.warp_barriers), (1, 12));
    for s in [16, 8, 4, 2, 1] {
        let after_read = last_warp(Some((s, 0))).kind();
        assert!(matches!(after_read, FaultKind::Race { writes: true, .. }), "{s}: {after_read:?}");
        // After the last write, lane 0 reads its own result.
        if s > 1 {
            let after_write = last_warp(Some((s, 1))).kind();
            assert!(
                matches!(after_write, FaultKind::Race { writes: false, .. }),
                "{s}: {after_write:?}"
            );
        }
    }
    assert!(last_warp(Some((1, 1))).run().is_ok());
    // The step over 32 reads words that no lane writes in that step.
    assert!(last_warp(Some((32, 0))).run().is_ok());
}

/// Threads exchange values through shared memory, with `barrier` between write and read.
fn exchange(threads: u32, barrier: Option<Scope>) -> Bench {
    let n = threads as i32;
    let mut b = bench(threads, 1, [threads as usize, threads as usize]);
    let x = b.shared(n);
    let value = b.read(tid());
    b.k.store(at(x, tid()), value);
    if let Some(scope) = barrier {
        b.k.push(Stmt::Barrier(scope));
    }
    b.write(tid(), load(x, Expr::from(n - 1) - tid()));
    b
}

#[test]
fn threads_of_two_warps_need_a_block_barrier() {
    let (out, _) = exchange(64, Some(Scope::Block)).run().expect("ordered");
    assert!((0..64).all(|t| out[t] == 63.0 - t as f32));
    for barrier in [None, Some(Scope::Warp)] {
        let fault = exchange(64, barrier).fault();
        let FaultKind::Race { place, writes, earlier } = fault.kind else {
            panic!("{:?}", fault.kind);
        };
        assert_eq!((place.index, writes, fault.thread), (vec![63], false, (0, 0)));
        assert_eq!((earlier.thread, earlier.wrote, earlier.by_copy()), ((63, 0), true, false));
    }
}

#[test]
fn lanes_of_one_warp_need_a_warp_barrier() {
    assert!(exchange(32, Some(Scope::Warp)).run().is_ok());
    assert!(exchange(32, Some(Scope::Block)).run().is_ok());
    assert!(matches!(exchange(32, None).kind(), FaultKind::Race { writes: false, .. }));
    // The same holds for a partial warp.
    assert!(exchange(20, Some(Scope::Warp)).run().is_ok());
    assert!(matches!(exchange(20, None).kind(), FaultKind::Race { .. }));
}

/// The first warp reads words of the second, which then overwrites them.
#[test]
fn overwriting_what_another_warp_still_reads() {
    let kernel = |barrier: bool| {
        let mut b = bench(64, 1, [64, 64]);
        let x = b.shared(64);
        b.k.store(at(x, tid()), 1.0);
        b.k.barrier();
        let output = b.output;
        b.k.if_(tid().lt(32), |b| {
            b.store(at(output, tid()), load(x, Expr::from(63) - tid()));
        });
        if barrier {
            b.k.barrier();
        }
        b.k.if_(tid().ge(32), |b| b.store(at(x, tid()), 2.0));
        b
    };
    assert!(kernel(true).run().is_ok());
    let kind = kernel(false).kind();
    let FaultKind::Race { writes: true, earlier, .. } = &kind else {
        panic!("{kind:?}");
    };
    assert!(!earlier.wrote && earlier.thread.0 < 32, "{earlier:?}");
}

#[test]
fn two_lanes_may_not_write_one_word_in_one_statement() {
    let kernel = |stride: i32| {
        let mut b = bench(32, 1, [1, 1]);
        let x = b.shared(32);
        b.k.store(at(x, tid() / stride), 1.0);
        b
    };
    assert!(kernel(1).run().is_ok());
    let fault = kernel(2).fault();
    assert_eq!(fault.thread, (1, 0));
    assert!(matches!(fault.kind, FaultKind::Race { writes: true, earlier, .. }
        if earlier.thread == (0, 0) && earlier.wrote));
}

#[test]
fn two_warps_may_not_write_one_word() {
    let kernel = |barrier: bool| {
        let mut b = bench(64, 1, [1, 1]);
        let x = b.shared(32);
        b.k.if_(tid().lt(32), |b| b.store(at(x, tid()), 1.0));
        if barrier {
            b.k.barrier();
        }
        b.k.if_(tid().ge(32), |b| b.store(at(x, tid() - 32), 1.0));
        b
    };
    assert!(kernel(true).run().is_ok());
    assert!(matches!(kernel(false).kind(), FaultKind::Race { writes: true, .. }));
}

/// A read in an earlier epoch counts, if its lane has not read since.
#[test]
fn older_reads_are_not_forgotten() {
    let kernel = |barrier: bool| {
        let mut b = bench(64, 1, [1, 64]);
        let x = b.shared(1);
        b.k.if_(tid().equals(40), |b| b.store(at(x, 0), 1.0));
        b.k.barrier();
        let output = b.output;
        b.k.if_(tid().equals(3), |b| b.store(at(output, 3), load(x, 0)));
        b.k.warp_barrier();
        b.k.if_(tid().equals(5), |b| b.store(at(output, 5), load(x, 0)));
        b.k.warp_barrier();
        b.k.if_(tid().equals(3), |b| b.store(at(x, 0), 2.0));
        if barrier {
            b.k.barrier();
        }
        b.k.if_(tid().equals(40), |b| b.store(at(output, 40), load(x, 0)));
        b
    };
    assert!(kernel(true).run().is_ok());
    assert!(matches!(kernel(false).kind(), FaultKind::Race { writes: false, .. }));
}

/// Threads of a block exchange values through global memory.
#[test]
fn races_in_global_memory_within_a_block() {
    let kernel = |barrier: bool| {
        let mut b = KernelBuilder::new("kernel");
        let scratch = b.global("scratch", Elem::F32, Operand::Temp(0));
        b.shape(scratch, [Expr::U64(64)], [1.into()]);
        b.store(at(scratch, tid()), 1.0);
        if barrier {
            b.warp_barrier();
        }
        b.store(at(scratch, tid() + 32), load(scratch, Expr::from(31) - tid()));
        let kernel = b.finish().expect("valid");
        launch(&kernel, &[Buffer::zeros(64)], &[])
    };
    assert!(kernel(true).is_ok());
    let fault = kernel(false);
    assert!(
        matches!(&fault, Err(SimError::Fault(f)) if matches!(&f.kind, FaultKind::Race { place, .. }
            if place.buffer == "scratch")),
        "{fault:?}"
    );
}

/// Blocks write words `block * step + tid`.
#[test]
fn blocks_may_not_write_one_word() {
    let kernel = |step: i32| {
        let mut b = bench(32, 9, [1, 512]);
        b.write(Expr::from(Special::BlockX) * step + tid(), 1.0);
        b
    };
    assert!(kernel(32).run().is_ok());
    for _ in 0..20 {
        let fault = kernel(31).fault();
        assert_eq!((fault.block, fault.thread), ((1, 0, 0), (0, 0)));
        let FaultKind::Race { place, writes, earlier } = fault.kind else {
            panic!("{:?}", fault.kind);
        };
        assert_eq!((place.index, writes), (vec![31], true));
        assert_eq!((earlier.block, earlier.thread, earlier.wrote), ((0, 0, 0), (31, 0), true));
    }
}

/// Each block writes its own word of a scratch buffer and reads word `read(block)`.
#[test]
fn blocks_may_not_read_what_another_writes() {
    let kernel = |ahead: i32| {
        let mut b = KernelBuilder::new("kernel");
        let scratch = b.global("scratch", Elem::F32, Operand::Temp(0));
        let out = b.global("out", Elem::F32, Operand::Output(0));
        for buffer in [scratch, out] {
            b.shape(buffer, [Expr::U64(8)], [1.into()]);
        }
        b.geometry(Geometry {
            block: (1, 1),
            grid: [Expr::U64(8), Expr::U64(1), Expr::U64(1)],
            blocks_per_sm: Some(1),
        });
        let block = || Expr::from(Special::BlockX);
        b.store(at(scratch, block()), 1.0);
        b.store(at(out, block()), load(scratch, (block() + ahead) % 8));
        let kernel = b.finish().expect("valid");
        launch(&kernel, &[Buffer::zeros(8), Buffer::zeros(8)], &[])
    };
    assert!(kernel(0).is_ok());
    for _ in 0..20 {
        let Err(SimError::Fault(fault)) = kernel(3) else {
            panic!("a race was expected");
        };
        // Word 0 is written by block 0 and read by block 5.
        assert_eq!(fault.block, (5, 0, 0));
        assert!(matches!(fault.kind, FaultKind::Race { place, writes: false, earlier }
            if place.index == [0] && earlier.block == (0, 0, 0) && earlier.wrote));
    }
}

/// A block reads the word that it writes. Another block's read is still a race.
#[test]
fn the_writer_of_a_word_does_not_hide_another_reader() {
    let kernel = |others: i32| {
        let mut b = KernelBuilder::new("kernel");
        let scratch = b.global("scratch", Elem::F32, Operand::Temp(0));
        let out = b.global("out", Elem::F32, Operand::Output(0));
        for buffer in [scratch, out] {
            b.shape(buffer, [Expr::U64(2)], [1.into()]);
        }
        b.geometry(Geometry {
            block: (1, 1),
            grid: [Expr::U64(2), Expr::U64(1), Expr::U64(1)],
            blocks_per_sm: Some(1),
        });
        let block = || Expr::from(Special::BlockX);
        b.if_else(
            block().equals(0),
            |b| b.store(at(scratch, 0), load(scratch, 0) + 1.0),
            |b| b.store(at(out, 1), load(scratch, others)),
        );
        let kernel = b.finish().expect("valid");
        launch(&kernel, &[Buffer::zeros(2), Buffer::zeros(2)], &[])
    };
    assert!(kernel(1).is_ok());
    for _ in 0..20 {
        let Err(SimError::Fault(fault)) = kernel(0) else {
            panic!("a race was expected");
        };
        assert_eq!(fault.block, (1, 0, 0));
        assert!(matches!(fault.kind, FaultKind::Race { writes: false, earlier, .. }
            if earlier.block == (0, 0, 0) && earlier.wrote));
    }
}

/// The reported fault is that of the lowest block, independent of scheduling.
#[test]
fn the_lowest_block_is_reported() {
    for _ in 0..20 {
        let mut b = bench(32, 200, [150, 200]);
        let block = Expr::from(Special::BlockX);
        let value = b.read(block.clone());
        let output = b.output;
        b.k.if_(tid().equals(0), |b| b.store(at(output, block), value));
        let fault = b.fault();
        assert_eq!(fault.block, (150, 0, 0));
    }
}

/// The array is two-dimensional, transposed and padded. The reported index is the logical one.
#[test]
fn a_race_is_reported_by_its_logical_index() {
    let mut b = bench(32, 1, [1, 1]);
    let layout = BufferLayout::Array { order: vec![1, 0], pad: Expr::from(3), swizzle: None };
    let x = b.k.shared("x", Elem::F32, [8.into(), 32.into()], layout, "");
    b.k.store(Access::new(x, [5.into(), tid()]), 1.0);
    b.k.store(Access::new(x, [5.into(), Expr::from(31) - tid()]), 1.0);
    let fault = b.fault();
    assert_eq!(fault.thread, (0, 0));
    assert!(matches!(fault.kind, FaultKind::Race { place, .. } if place.index == [5, 31]));
}
