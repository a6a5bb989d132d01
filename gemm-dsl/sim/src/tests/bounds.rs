//! Bounds, alignment and initialisation in each memory space.

use super::*;
use gemm_dsl::ir::{Elem, Space};

#[test]
fn out_of_bounds_of_global_memory() {
    let kernel = |len| {
        let mut b = bench(32, 1, [len, 32]);
        let value = b.read(tid());
        b.write(tid(), value);
        b
    };
    assert!(kernel(32).run().is_ok());
    let fault = kernel(20).fault();
    assert_eq!((fault.block, fault.thread), ((0, 0, 0), (20, 0)));
    match fault.kind {
        FaultKind::OutOfBounds { place, extents, .. } => {
            assert_eq!((place.buffer.as_str(), place.index), ("in", vec![20]));
            assert_eq!(extents, [20]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn negative_indices_are_out_of_bounds() {
    let mut b = bench(32, 1, [32, 32]);
    let value = b.read(tid() - 1);
    b.write(tid(), value);
    assert!(matches!(b.kind(), FaultKind::OutOfBounds { place, .. } if place.index == [-1]));
}

/// The padding of a row is allocated but lies outside the logical extents.
#[test]
fn out_of_bounds_of_shared_memory() {
    let kernel = |column: i32| {
        let mut b = bench(32, 1, [1, 1]);
        let layout = BufferLayout::Array { order: vec![0, 1], pad: Expr::from(1), swizzle: None };
        let x = b.k.shared("x", Elem::F32, [2.into(), 32.into()], layout, "");
        b.k.store(Access::new(x, [0.into(), tid() + column]), 1.0);
        b
    };
    assert!(kernel(0).run().is_ok());
    let kind = kernel(1).kind();
    assert!(
        matches!(&kind, FaultKind::OutOfBounds { place, .. }
            if place.index == [0, 32] && place.space == Space::Shared),
        "{kind:?}"
    );
}

#[test]
fn out_of_bounds_of_registers() {
    for (index, right) in [(3.into(), true), (Expr::from(4), false), (tid(), false)] {
        let mut b = bench(32, 1, [1, 1]);
        let r = b.k.registers("r", Elem::F32, [4.into()], "");
        b.k.store(at(r, index), 1.0);
        match b.run() {
            Ok(_) => assert!(right),
            Err(SimError::Fault(fault)) => {
                assert!(!right);
                assert!(matches!(fault.kind, FaultKind::OutOfBounds { place, .. }
                    if place.index == [4] && place.space == Space::Register));
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_vector_may_not_reach_over_the_end() {
    let kernel = |len| {
        let mut b = bench(8, 1, [len, 32]);
        let value = at(b.input, tid() * 4).vector().load();
        b.k.store(at(b.output, tid() * 4).vector(), value);
        b
    };
    let (out, _) = kernel(32).run().expect("the kernel is right");
    assert!((0..32).all(|i| out[i] == i as f32));
    let kind = kernel(31).kind();
    assert!(matches!(kind, FaultKind::OutOfBounds { place, width: 4, .. }
        if place.index == [28]));
}

#[test]
fn extents_beyond_the_allocation() {
    let mut b = bench(32, 1, [32, 32]);
    let value = b.read(tid());
    b.write(tid(), value);
    let kernel = b.finish();
    let with = |len| launch(&kernel, &[Buffer::zeros(len), Buffer::zeros(32)], &[]);
    assert!(with(32).is_ok());
    let short = unmet(with(31));
    assert_eq!((short.need, short.value), (Need::Elements(32), 31));
    assert!(matches!(short.subject, Subject::Array { name, .. } if name == "in"));
}

#[test]
fn vectors_are_aligned() {
    let kernel = |first: i32| {
        let mut b = bench(4, 1, [32, 1]);
        let x = b.shared(32);
        let value = at(b.input, tid() * 4 + first).vector().load();
        b.k.store(at(x, tid() * 4).vector(), value);
        b
    };
    assert!(kernel(0).run().is_ok());
    assert!(matches!(kernel(1).kind(), FaultKind::Misaligned { place } if place.index == [1]));
    // The base of the view counts too.
    let memory = Buffer::zeros(40);
    let run = |offset| {
        let input = memory.view(offset, 32).expect("inside");
        launch(&kernel(0).finish(), &[input, Buffer::zeros(1)], &[])
    };
    assert!(run(4).is_ok());
    let fault = run(2);
    assert!(
        matches!(&fault, Err(SimError::Fault(f)) if matches!(f.kind, FaultKind::Misaligned { .. })),
        "{fault:?}"
    );
}

#[test]
fn shared_memory_starts_uninitialised() {
    let kernel = |written: i32| {
        let mut b = bench(32, 2, [1, 32]);
        let x = b.shared(32);
        b.k.if_(tid().lt(written), |k| k.store(at(x, tid()), 1.0));
        b.k.barrier();
        b.k.if_(Expr::from(Special::BlockX).equals(0), |_| ());
        let output = b.output;
        b.k.if_(Expr::from(Special::BlockX).equals(1), |k| {
            k.store(at(output, tid()), load(x, Expr::from(31) - tid()));
        });
        b
    };
    assert!(kernel(32).run().is_ok());
    let fault = kernel(30).fault();
    assert_eq!((fault.block, fault.thread), ((1, 0, 0), (0, 0)));
    assert!(matches!(fault.kind, FaultKind::Uninitialised { place } if place.index == [31]));
}

#[test]
fn registers_start_uninitialised_in_each_lane_and_each_round() {
    let kernel = |written: i32, round: i32| {
        let mut b = bench(32, 1, [1, 32]);
        let output = b.output;
        b.k.unrolled("round", 2, |k, i| {
            let r = k.registers("r", Elem::F32, [2.into()], "");
            k.if_(Expr::from(i).le(round).and(tid().lt(written)), |k| {
                k.store(at(r, 1), 1.0);
            });
            k.store(at(output, tid()), load(r, 1));
        });
        b
    };
    assert!(kernel(32, 1).run().is_ok());
    let uninitialised = |b: Bench, lane: u32| {
        let fault = b.fault();
        assert_eq!(fault.thread, (lane, 0));
        assert!(matches!(fault.kind, FaultKind::Uninitialised { place }
            if place.buffer == "r" && place.index == [1]));
    };
    uninitialised(kernel(9, 1), 9);
    uninitialised(kernel(32, 0), 0);
}

#[test]
fn a_fault_names_everything() {
    let mut b = bench(32, 3, [10, 96]);
    let value = b.read(tid() + Expr::from(Special::BlockX) * 4 - 4);
    b.k.if_(tid().lt(4).and(Expr::from(Special::BlockX).gt(0)), |_| ());
    let output = b.output;
    b.k.if_(Expr::from(Special::BlockX).equals(2).and(tid().gt(5)), |k| {
        k.store(at(output, tid()), value);
    });
    let fault = b.fault();
    assert_eq!((fault.kernel.as_str(), fault.block, fault.thread), ("kernel", (2, 0, 0), (6, 0)));
    let text = fault.to_string();
    assert!(text.contains("in[10]") && text.contains("block (2, 0, 0), thread (6, 0)"), "{text}");
    assert!(!fault.statement.is_empty());
}

/// Shared memory written by one block is uninitialised for the next block on the same worker.
#[test]
fn shared_memory_is_uninitialised_in_every_block() {
    let kernel = |writers: i32| {
        let mut b = bench(32, 2, [1, 64]);
        let x = b.shared(32);
        let block = || Expr::from(Special::BlockX);
        b.k.if_(block().lt(writers), |k| k.store(at(x, tid()), 1.0));
        b.write(block() * 32 + tid(), load(x, tid()));
        b
    };
    let one_worker = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    one_worker.install(|| {
        assert!(kernel(2).run().is_ok());
        let fault = kernel(1).fault();
        assert_eq!(fault.block, (1, 0, 0));
        assert!(matches!(fault.kind, FaultKind::Uninitialised { .. }), "{fault:?}");
    });
}
