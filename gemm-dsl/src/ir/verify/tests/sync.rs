//! Rules of barriers, fences and atomics.

use super::{at, breaks, kernel, rule};
use crate::ir::{
    Access, Atomic, AtomicOp, BufferId, BufferLayout, Elem, Expr, Geometry, KernelBuilder,
    MemoryOrder, Scope, Stmt, Ty, Var, VerifiedKernel,
};

/// Kernel of 64 threads with this body.
fn doing(body: impl FnOnce(&mut KernelBuilder)) -> KernelBuilder {
    kernel(Elem::F32, |b, _, _| {
        let grid = [const { Expr::U64(1) }; 3];
        b.geometry(Geometry { block: (64, 1), grid, blocks_per_sm: None });
        body(b);
    })
}

#[test]
fn a_named_barrier_has_an_id_and_one_number_of_whole_warps() {
    let barrier = |id, threads| doing(|b| b.named_barrier(id, threads));
    for (id, threads) in [(1, 32), (15, 64)] {
        assert_eq!(rule(barrier(id, threads)), Ok(()));
    }
    breaks(barrier(0, 64), "barrier 0: they are 1 to 15");
    breaks(barrier(16, 64), "barrier 16: they are 1 to 15");
    breaks(barrier(1, 0), "barrier 1 of 0 threads in a block of 64");
    breaks(barrier(1, 48), "barrier 1 of 48 threads in a block of 64");
    breaks(barrier(1, 96), "barrier 1 of 96 threads in a block of 64");
    // A partial warp counts as a whole one.
    let partial = |threads| {
        doing(|b| {
            b.geometry(Geometry {
                block: (80, 1),
                grid: [const { Expr::U64(1) }; 3],
                blocks_per_sm: None,
            });
            b.named_barrier(1, threads);
        })
    };
    assert_eq!(rule(partial(96)), Ok(()));
    breaks(partial(128), "barrier 1 of 128 threads in a block of 80");
    let two = |other| {
        doing(|b| {
            b.named_barrier(1, 64);
            b.named_barrier(2, 32);
            b.if_(Expr::from(1).lt(2), |b| b.named_arrive(1, other));
        })
    };
    assert_eq!(rule(two(64)), Ok(()));
    breaks(two(32), "barrier 1 of 64 and of 32 threads");
}

#[test]
fn a_barrier_is_of_a_warp_or_a_block() {
    for scope in [Scope::Warp, Scope::Block] {
        assert_eq!(rule(doing(|b| b.push(Stmt::Barrier(scope)))), Ok(()));
    }
    breaks(doing(|b| b.push(Stmt::Barrier(Scope::Device))), "a barrier of all blocks");
}

#[test]
fn a_fence_orders_both_ways_and_speaks_to_a_block_or_to_all() {
    for order in [MemoryOrder::AcqRel, MemoryOrder::SeqCst] {
        for scope in [Scope::Block, Scope::Device] {
            assert_eq!(rule(doing(|b| b.fence(order, scope))), Ok(()));
        }
        breaks(doing(|b| b.fence(order, Scope::Warp)), "a fence of a warp");
    }
    for order in [MemoryOrder::Relaxed, MemoryOrder::Acquire, MemoryOrder::Release] {
        breaks(doing(|b| b.fence(order, Scope::Device)), "a fence that is ");
    }
}

/// Kernel whose body is an atomic on the first word of its output.
fn atomic(elem: Elem, op: AtomicOp, change: impl FnOnce(&mut Atomic)) -> KernelBuilder {
    kernel(elem, |b, _, output| {
        let (order, scope) = (MemoryOrder::Relaxed, Scope::Device);
        let value = at(output, 1).load();
        let mut atomic = Atomic { old: None, op, target: at(output, 0), value, order, scope };
        change(&mut atomic);
        b.push(Stmt::Atomic(atomic));
    })
}

fn swap(expected: impl Into<Expr>) -> AtomicOp {
    AtomicOp::CompareExchange { expected: expected.into() }
}

#[test]
fn an_atomic_suits_its_word() {
    use AtomicOp::{Add, Exchange, Max, Min};
    for elem in Elem::ALL {
        let integer = matches!(elem, Elem::I32 | Elem::U32 | Elem::I64 | Elem::U64);
        let moved = integer || matches!(elem, Elem::F32 | Elem::F64);
        for (op, suits) in [(Add, integer), (Min, integer), (Max, integer), (Exchange, moved)] {
            let k = atomic(elem, op.clone(), |_| ());
            match suits {
                true => assert_eq!(rule(k), Ok(()), "{op:?} of {elem}"),
                false => breaks(k, &format!("an atomic {} of {elem}", op.name())),
            }
        }
        // The expected value has the type of the word.
        let swaps = kernel(elem, |b, _, output| {
            let op = swap(at(output, 2).load());
            let value = at(output, 1).load();
            b.atomic_only(op, at(output, 0), value, MemoryOrder::Acquire, Scope::Block);
        });
        match moved {
            true => assert_eq!(rule(swaps), Ok(()), "{elem}"),
            false => breaks(swaps, &format!("an atomic compare_exchange of {elem}")),
        }
    }
}

#[test]
fn an_atomic_has_operands_of_its_word() {
    let value = |value: Expr| atomic(Elem::U32, AtomicOp::Add, |a| a.value = value);
    assert_eq!(rule(value(Expr::U32(1))), Ok(()));
    breaks(value(1.into()), "an atomic of another type than out");
    let expected = |expected: Expr| atomic(Elem::U32, swap(expected), |_| ());
    assert_eq!(rule(expected(Expr::U32(1))), Ok(()));
    breaks(expected(1.into()), "out is compared with another type");
}

#[test]
fn an_atomic_has_an_order_and_a_scope() {
    let with =
        |order, scope| atomic(Elem::I32, AtomicOp::Add, |a| (a.order, a.scope) = (order, scope));
    for order in
        [MemoryOrder::Relaxed, MemoryOrder::Acquire, MemoryOrder::Release, MemoryOrder::AcqRel]
    {
        for scope in [Scope::Block, Scope::Device] {
            assert_eq!(rule(with(order, scope)), Ok(()));
        }
        breaks(with(order, Scope::Warp), "an atomic of a warp");
    }
    breaks(with(MemoryOrder::SeqCst, Scope::Device), "an atomic is not a fence");
}

#[test]
fn an_atomic_load_is_relaxed_or_acquires_a_value() {
    let with = |order, keeps: bool| {
        kernel(Elem::U64, |b, _, output| {
            let (target, scope) = (at(output, 0), Scope::Device);
            match keeps {
                true => _ = b.atomic("found", AtomicOp::Load, target, 0u64, order, scope),
                false => b.atomic_only(AtomicOp::Load, target, 0u64, order, scope),
            }
        })
    };
    for order in [MemoryOrder::Relaxed, MemoryOrder::Acquire] {
        assert_eq!(rule(with(order, true)), Ok(()));
        breaks(with(order, false), "an atomic load of out without a variable");
    }
    for order in [MemoryOrder::Release, MemoryOrder::AcqRel] {
        breaks(with(order, true), "an atomic load that is");
    }
}

#[test]
fn an_atomic_is_on_one_word_that_others_see() {
    let on = |place: fn(&mut KernelBuilder, BufferId, BufferId) -> Access| {
        kernel(Elem::U64, |b, input, output| {
            let target = place(b, input, output);
            b.atomic_only(AtomicOp::Max, target, 1u64, MemoryOrder::Release, Scope::Block);
        })
    };
    assert_eq!(rule(on(|_, _, output| at(output, 0))), Ok(()));
    let shared = on(|b, _, _| {
        let shared = b.shared("held", Elem::U64, [2.into()], BufferLayout::row_major(1), "");
        at(shared, 0)
    });
    assert_eq!(rule(shared), Ok(()));
    breaks(on(|_, input, _| at(input, 0)), "in0 is read-only");
    breaks(on(|_, _, output| at(output, 0).vector()), "an atomic on a vector of out");
    breaks(on(|b, _, _| at(b.registers("r", Elem::U64, [2.into()], ""), 0)), "on registers r");
    let pointer = on(|b, _, output| {
        let no_dims: [Expr; 0] = [];
        at(b.pointers("p", output, no_dims, ""), 0)
    });
    breaks(pointer, "p is read-only");
}

/// Kernel that atomically adds to its output, followed by `go_on` with the previous value.
fn adding(go_on: impl FnOnce(&mut KernelBuilder, Var, BufferId)) -> KernelBuilder {
    kernel(Elem::U32, |b, _, output| {
        let (one, order, scope) = (Expr::U32(1), MemoryOrder::AcqRel, Scope::Device);
        let old = b.atomic("old", AtomicOp::Add, at(output, 0), one, order, scope);
        go_on(b, old, output);
    })
}

#[test]
fn the_former_value_is_an_immutable_variable_of_the_block() {
    assert_eq!(rule(adding(|b, old, output| b.store(at(output, 1), old))), Ok(()));
    breaks(adding(|b, old, _| b.assign(old, Expr::U32(1))), "old is not mutable");
    breaks(adding(|b, _, _| _ = b.let_("old", 1)), "old is declared twice in a block");
    let again = adding(|b, old, output| {
        let (op, target, value) = (AtomicOp::Exchange, at(output, 0), Expr::U32(1));
        let (order, scope) = (MemoryOrder::Relaxed, Scope::Device);
        b.push(Stmt::Atomic(Atomic { old: Some(old), op, target, value, order, scope }));
    });
    breaks(again, "old is declared twice");
    // The variable is visible only to the end of its block.
    let outside = kernel(Elem::U32, |b, _, output| {
        let mut kept = None;
        b.if_(at(output, 1).load().equals(Expr::U32(0)), |b| {
            let (one, order, scope) = (Expr::U32(1), MemoryOrder::AcqRel, Scope::Device);
            kept = Some(b.atomic("old", AtomicOp::Add, at(output, 0), one, order, scope));
        });
        b.store(at(output, 1), kept.expect("declared"));
    });
    breaks(outside, "variable old is out of scope");
    // The variable has the type of the word, and is not an operand of its own atomic.
    let typed = |ty: Ty| {
        kernel(Elem::U32, |b, _, output| {
            let old = Some(b.var("old", ty));
            let (op, target, value) = (AtomicOp::Add, at(output, 0), Expr::U32(1));
            let (order, scope) = (MemoryOrder::Relaxed, Scope::Device);
            b.push(Stmt::Atomic(Atomic { old, op, target, value, order, scope }));
        })
    };
    assert_eq!(rule(typed(Ty::U32)), Ok(()));
    breaks(typed(Ty::I32), "the type of old");
    let own = kernel(Elem::U32, |b, _, output| {
        let old = b.var("old", Ty::U32);
        let (op, target, value) = (AtomicOp::Add, at(output, 0), old.into());
        let (order, scope) = (MemoryOrder::Relaxed, Scope::Device);
        b.push(Stmt::Atomic(Atomic { old: Some(old), op, target, value, order, scope }));
    });
    breaks(own, "variable old is out of scope");
}

#[test]
fn blocks_speak_by_atomics_on_global_memory() {
    let finished = |k: KernelBuilder| k.finish().expect("a sound kernel");
    let (global, fence) =
        (finished(adding(|_, _, _| ())), doing(|b| b.fence(MemoryOrder::SeqCst, Scope::Device)));
    let shared = finished(kernel(Elem::U32, |b, input, _| {
        let shared = b.shared("held", Elem::U32, [2.into()], BufferLayout::row_major(1), "");
        let value = at(input, 0).load();
        b.atomic_only(AtomicOp::Add, at(shared, 0), value, MemoryOrder::Relaxed, Scope::Device);
    }));
    let inside = finished(kernel(Elem::U32, |b, input, output| {
        b.if_(at(input, 0).load().equals(Expr::U32(0)), |b| {
            let one = Expr::U32(1);
            b.atomic_only(AtomicOp::Max, at(output, 0), one, MemoryOrder::Relaxed, Scope::Device);
        });
    }));
    let speak = [&global, &inside, &shared, &finished(fence)].map(|k| k.communicates());
    assert_eq!(speak, [true, true, false, false]);
    // An atomic reads and writes its target, and its operands are read.
    let arrays = |k: &VerifiedKernel| -> Vec<[bool; 3]> {
        k.contract().arrays().map(|a| [a.is_read, a.is_written, a.is_atomic]).collect()
    };
    assert_eq!(arrays(&inside), [[true, false, false], [true, true, true]]);
    assert_eq!(arrays(&shared), [[true, false, false], [false; 3]]);
}

#[test]
fn unordered_results_are_declared() {
    let declared = |shared: bool| {
        kernel(Elem::I32, |b, _, out| {
            let x = b.shared("x", Elem::I32, [1.into()], BufferLayout::row_major(1), "");
            b.unordered(if shared { x } else { out });
        })
    };
    let k = declared(false).finish().expect("a sound kernel");
    assert_eq!(k.buffers.iter().map(|b| b.unordered).collect::<Vec<_>>(), [false, true, false]);
    breaks(declared(true), "x is not a result");
}
