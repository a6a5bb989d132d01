//! Pointers into global memory, and register arrays initialised with zeros.

use super::*;
use gemm_dsl::ir::{Elem, For, Guard, PointerRef, Requirement, Stmt, Ty};

fn pointer(buffer: BufferId, index: impl IntoIterator<Item = Expr>) -> PointerRef {
    PointerRef { buffer, index: index.into_iter().collect() }
}

/// Each thread walks 4 elements with stride 32 through pointer `which` of two.
fn walk(len: usize, which: Expr, set: bool) -> Bench {
    let mut b = bench(32, 1, [len, 32]);
    let (input, output) = (b.input, b.output);
    let p = b.k.pointers("p", input, [2.into()], "");
    if set {
        for half in 0..2 {
            let to = at(input, tid() + half * 4);
            b.k.push(Stmt::Point { pointer: pointer(p, [half.into()]), at: to });
        }
    }
    let sum = b.k.mut_("sum", 0.0);
    b.k.loop_("i", For::below(0, 4), |b, _| {
        let value = Access::new(p, [which.clone(), 0.into()]).load();
        b.assign(sum, Expr::from(sum) + value);
        b.push(Stmt::Advance { pointer: pointer(p, [which.clone()]), by: 32.into() });
    });
    b.k.store(at(output, tid()), sum);
    b
}

#[test]
fn pointers_walk() {
    let (out, counters) = walk(132, 1.into(), true).run().expect("132 elements are enough");
    let expected = |t: usize| (4 * (t + 4) + 32 * 6) as f32;
    assert!((0..32).all(|t| out[t] == expected(t)), "{out:?}");
    // Each load starts 16 bytes into a sector.
    assert_eq!((counters.global_requests, counters.global_sectors), (5, 4 * 5 + 4));
    // The pointer itself may differ between lanes.
    let (out, _) = walk(132, tid() % 2, true).run().expect("132 elements are enough");
    let expected = |t: usize| (4 * (t + t % 2 * 4) + 32 * 6) as f32;
    assert!((0..32).all(|t| out[t] == expected(t)), "{out:?}");
}

#[test]
fn pointers_are_checked() {
    let fault = walk(131, 1.into(), true).fault();
    assert_eq!(fault.thread, (31, 0));
    assert!(matches!(fault.kind, FaultKind::BeyondAllocation { offset: 131, len: 131, .. }));
    assert!(matches!(walk(132, 1.into(), false).kind(), FaultKind::UnsetPointer { .. }));
    let kind = walk(132, tid() % 3, true).kind();
    assert!(matches!(kind, FaultKind::NoSuchPointer { index: 2, count: 2 }), "{kind:?}");
}

#[test]
fn a_pointer_may_start_before_its_buffer() {
    let kernel = |ahead: i32| {
        let mut b = bench(32, 1, [32, 32]);
        let (input, output) = (b.input, b.output);
        let p = b.k.pointers("p", input, [], "");
        let before = || pointer(p, []);
        b.k.push(Stmt::Point { pointer: before(), at: at(input, tid() - 32) });
        b.k.push(Stmt::Advance { pointer: before(), by: ahead.into() });
        b.k.store(at(output, tid()), Access::new(p, [0.into()]).load());
        b
    };
    let (out, _) = kernel(32).run().expect("inside");
    assert!((0..32).all(|t| out[t] == t as f32), "{out:?}");
    assert!(matches!(kernel(31).kind(), FaultKind::BeyondAllocation { .. }));
}

#[test]
fn a_vector_through_a_pointer_is_aligned() {
    let kernel = |first: i32| {
        let mut b = bench(4, 1, [32, 16]);
        let (input, output) = (b.input, b.output);
        let p = b.k.pointers("p", input, [], "");
        b.k.push(Stmt::Point { pointer: pointer(p, []), at: at(input, tid() * 4 + first) });
        let value = Access::new(p, [4.into()]).vector().load();
        b.k.store(at(output, tid() * 4).vector(), value);
        b
    };
    let (out, _) = kernel(4).run().expect("aligned");
    assert!((0..16).all(|i| out[i] == (i + 8) as f32));
    assert!(matches!(kernel(3).kind(), FaultKind::Misaligned { place } if place.index == [7]));
}

/// A copy with a false guard and no zero fill does nothing.
#[test]
fn a_skipped_copy_leaves_its_target_alone() {
    let kernel = |or_zero: bool| {
        let mut b = bench(32, 1, [32, 32]);
        let x = b.shared(32);
        b.k.store(at(x, tid()), 9.0);
        let source = at(b.input, tid());
        let guard = Some(Guard { cond: tid().lt(3), or_zero });
        b.k.push(Stmt::CopyAsync { target: at(x, tid()), source, guard });
        b.k.push(Stmt::CopyCommit);
        b.k.push(Stmt::CopyWait { pending: 0.into() });
        b.write(tid(), load(x, tid()));
        b.run().expect("ordered").0
    };
    assert_eq!(kernel(false)[1..5], [1.0, 2.0, 9.0, 9.0]);
    assert_eq!(kernel(true)[1..5], [1.0, 2.0, 0.0, 0.0]);
}

#[test]
fn zeroed_registers_need_no_store() {
    let mut b = bench(32, 1, [32, 32]);
    let r = b.k.zeroed_registers("r", Elem::F32, [4.into()], "");
    b.k.if_(tid().lt(3), |b| b.store(at(r, 2), 1.0));
    b.write(tid(), load(r, 2));
    let (out, _) = b.run().expect("every element has a value");
    assert_eq!(out[..5], [1.0, 1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn a_range_is_required() {
    let mut b = KernelBuilder::new("kernel");
    let n = b.extent("n", Ty::I32, gemm_dsl::ir::Extent::LENGTH);
    b.require(Requirement::Range { scalar: n, min: 2, max: 5 });
    let kernel = b.finish().expect("valid");
    for value in 0..8 {
        let run = launch(&kernel, &[] as &[Buffer], &[value]);
        match value {
            2..=5 => assert!(run.is_ok()),
            0..2 => assert_eq!(unmet(run).need, Need::AtLeast(2)),
            _ => assert_eq!(unmet(run).need, Need::AtMost(5)),
        }
    }
}
