//! Results of atomics, for all memory spaces and lanes.

use super::*;
use gemm_dsl::ir::{Space, Ty};

const OPS: [AtomicOp; 4] = [AtomicOp::Add, AtomicOp::Min, AtomicOp::Max, AtomicOp::Exchange];

/// One thread's operation on a word of global or shared memory. All values are given as bits.
/// Returns the new contents of the word and the old value.
fn once(
    space: Space,
    elem: Elem,
    op: &dyn Fn(Expr) -> AtomicOp,
    [word, value, expected]: [u64; 3],
) -> Result<[u64; 2], SimError> {
    let mut t = team(1, 1);
    let given = t.bound("given", Buffer::from_bits(elem, [word, value, expected].into_iter()));
    let out = t.bound("out", Buffer::zeros_of(elem, 2));
    let k = &mut t.k;
    let target = match space {
        Space::Shared => k.shared("x", elem, [3.into()], BufferLayout::row_major(1), ""),
        _ => out,
    };
    let last = if space == Space::Shared { 2 } else { 0 };
    k.store(at(target, last), load(given, 0));
    let op = op(load(given, 2));
    let (order, scope) = (MemoryOrder::Relaxed, Scope::Block);
    let old = k.atomic("old", op, at(target, last), load(given, 1), order, scope);
    k.store(at(out, 1), old);
    if space == Space::Shared {
        k.store(at(out, 0), load(target, last));
    }
    let (kernel, arrays) = t.finish();
    launch(&kernel, &arrays, &[])?;
    let bits = arrays[1].bits();
    Ok([bits[0], bits[1]])
}

const SPACES: [Space; 2] = [Space::Global, Space::Shared];

#[test]
fn sums_extremes_and_exchanges_by_hand() {
    let m1 = |elem: Elem| if elem.size() == 8 { u64::MAX } else { u64::from(u32::MAX) };
    for space in SPACES {
        for elem in [Elem::U32, Elem::I32, Elem::U64, Elem::I64] {
            let signed = matches!(elem, Elem::I32 | Elem::I64);
            let m1 = m1(elem);
            // Contents of the word, operand, and contents after each operation.
            let mut cases = vec![
                (5, 3, [8, 3, 5, 3]),
                (3, 5, [8, 3, 5, 5]),
                (7, 7, [14, 7, 7, 7]),
                (0, m1, [m1, if signed { m1 } else { 0 }, if signed { 0 } else { m1 }, m1]),
                (m1, 2, [1, if signed { m1 } else { 2 }, if signed { 2 } else { m1 }, 2]),
                (m1, m1, [m1 - 1, m1, m1, m1]),
            ];
            if elem.size() == 8 {
                let (a, b) = (0x1_0000_0002, 0x3_0000_0001);
                cases.push((a, b, [0x4_0000_0003, a, b, b]));
            }
            for (word, value, after) in cases {
                for (op, after) in OPS.iter().zip(after) {
                    let found = once(space, elem, &|_| op.clone(), [word, value, 0]);
                    assert_eq!(found, Ok([after, word]), "{op:?} of {elem}: {word:x}, {value:x}");
                }
            }
        }
    }
}

#[test]
fn a_load_reads_all_bits_and_writes_nothing() {
    let bits = 0x8765_4321_fedc_ba98;
    for space in SPACES {
        for elem in [Elem::U32, Elem::I32, Elem::F32, Elem::U64, Elem::I64, Elem::F64] {
            let word = if elem.size() == 8 { bits } else { bits & u64::from(u32::MAX) };
            assert_eq!(once(space, elem, &|_| AtomicOp::Load, [word, 3, 0]), Ok([word, word]));
        }
    }
}

#[test]
fn sums_of_signed_numbers_must_fit() {
    for space in SPACES {
        for (elem, max) in [(Elem::I32, i32::MAX as u64), (Elem::I64, i64::MAX as u64)] {
            let add = |word, value| once(space, elem, &|_| AtomicOp::Add, [word, value, 0]);
            assert_eq!(add(max - 1, 1), Ok([max, max - 1]));
            for (word, value) in [(max, 1), (max + 1, max + 1)] {
                let fault = fault(add(word, value));
                let FaultKind::Overflow { op, operands } = fault.kind else { panic!("{fault:?}") };
                let signed = |bits: u64| match elem {
                    Elem::I32 => i128::from(bits as u32 as i32),
                    _ => i128::from(bits as i64),
                };
                assert_eq!(
                    (op, operands),
                    (gemm_dsl::ir::BinaryOp::ADD, [word, value].map(signed))
                );
            }
        }
        // Unsigned sums wrap.
        assert_eq!(
            once(space, Elem::U32, &|_| AtomicOp::Add, [u32::MAX.into(), 2, 0]),
            Ok([1, u32::MAX.into()])
        );
        assert_eq!(once(space, Elem::U64, &|_| AtomicOp::Add, [u64::MAX, 2, 0]), Ok([1, u64::MAX]));
    }
}

/// A compare-and-swap compares bits and moves all of them.
#[test]
fn a_compare_and_swap_is_of_bits() {
    let (zero, minus_zero) = (0, (-0.0f32).to_bits().into());
    let nans = [0x7fc0_1234, 0xffa0_0001];
    let wide = |bits: u64| f64::from(f32::from_bits(bits as u32)).to_bits();
    let (wide_zero, wide_minus_zero) = (wide(zero), wide(minus_zero));
    let wide_nans = [0x7ff8_0000_dead_beef, 0xfff4_0000_0000_0001];
    for space in SPACES {
        let swap = |elem, word, value, expected| {
            let op = |expected| AtomicOp::CompareExchange { expected };
            once(space, elem, &op, [word, value, expected]).expect("the kernel is right")
        };
        for (elem, [a, b], [c, d]) in [
            (Elem::F32, [zero, minus_zero], nans),
            (Elem::F64, [wide_zero, wide_minus_zero], wide_nans),
            (Elem::U32, [1, u32::MAX.into()], [2, 3]),
            (Elem::I32, [1, u32::MAX.into()], [2, 3]),
            (Elem::U64, [1, 1 << 32 | 1], [2, 3]),
            (Elem::I64, [1, 1 << 32 | 1], [2, 3]),
        ] {
            for (word, value) in [(a, c), (b, d), (c, d), (d, a)] {
                assert_eq!(swap(elem, word, value, word), [value, word], "{elem}");
                for other in [a, b, c, d].into_iter().filter(|&other| other != word) {
                    assert_eq!(swap(elem, word, value, other), [word, word], "{elem}");
                }
            }
        }
        // An exchange keeps NaN payloads too.
        for (elem, [a, b]) in [(Elem::F32, nans), (Elem::F64, wide_nans)] {
            let exchange = |_| AtomicOp::Exchange;
            assert_eq!(once(space, elem, &exchange, [a, b, 0]), Ok([b, a]));
        }
    }
}

/// Applies an atomic of all lanes to one word. Returns the old value found by each lane, in lane
/// order, and the final value.
fn together(op: impl Fn(&mut KernelBuilder) -> (AtomicOp, Expr), space: Space) -> Vec<i32> {
    let mut t = team(64, 1);
    let (word, out) = (t.array("word", &[0]), t.array("out", &[0; 65]));
    let shared = t.shared("x", 1);
    let k = &mut t.k;
    let target = if space == Space::Shared { shared } else { word };
    if space == Space::Shared {
        thread(k, 0, |b| b.store(at(shared, 0), 0));
    }
    k.barrier();
    let (op, value) = op(k);
    let old = k.atomic("old", op, at(target, 0), value, MemoryOrder::Relaxed, Scope::Device);
    k.store(at(out, tid()), old);
    k.barrier();
    thread(k, 0, |b| b.store(at(out, 64), load(target, 0)));
    t.unordered();
    t.run().expect("the kernel is right")
}

#[test]
fn lanes_take_turns_at_one_word() {
    for space in SPACES {
        let mut found = together(|_| (AtomicOp::Add, 1.into()), space);
        assert_eq!(found.pop(), Some(64));
        found.sort_unstable();
        assert_eq!(found, (0..64).collect::<Vec<_>>());
        // Each lane finds the value of another lane, and the value of the last lane remains.
        let mut found = together(|_| (AtomicOp::Exchange, tid() + 1), space);
        found.sort_unstable();
        assert_eq!(found, (0..=64).collect::<Vec<_>>());
        // Exactly one lane succeeds.
        let swap = AtomicOp::CompareExchange { expected: 0.into() };
        let found = together(|_| (swap.clone(), tid() + 1), space);
        assert_eq!(found.iter().filter(|&&f| f == 0).count(), 1);
        assert!(found.iter().all(|&f| f == 0 || f == found[64]));
        assert_eq!(together(|_| (AtomicOp::Max, tid()), space)[64], 63);
    }
}

/// Each lane updates its own word, in a view that starts inside its allocation.
#[test]
fn atomics_on_a_view() {
    let memory = Buffer::from_slice(&[100u64; 10]);
    let mut t = team(32, 1);
    let view = t.bound("x", memory.view(3, 4).expect("inside"));
    assert_eq!(at(view, 0).ty(), Ty::U64);
    let value = Expr::U64(1 << 32);
    t.k.atomic_only(AtomicOp::Add, at(view, tid() % 4), value, MemoryOrder::Relaxed, Scope::Device);
    assert!(t.run().is_ok());
    let (old, new) = (100, 100 + (8 << 32));
    assert_eq!(memory.bits(), [old, old, old, new, new, new, new, old, old, old]);
    let mut t = team(32, 1);
    let view = t.bound("x", memory.view(3, 4).expect("inside"));
    t.k.atomic_only(AtomicOp::Add, at(view, tid()), 1u64, MemoryOrder::Relaxed, Scope::Device);
    let fault = t.fault();
    assert_eq!(fault.thread, (4, 0));
    assert!(matches!(fault.kind, FaultKind::OutOfBounds { place, .. } if place.index == [4]));
}

#[test]
fn only_the_lanes_that_take_part() {
    let mut t = team(32, 1);
    let (word, out) = (t.array("word", &[0]), t.array("out", &[-1; 32]));
    t.k.if_((tid() % 4).equals(1), |b| {
        let old =
            b.atomic("old", AtomicOp::Add, at(word, 0), 1, MemoryOrder::Relaxed, Scope::Device);
        b.store(at(out, tid()), Expr::from(old).min(0));
    });
    let expected: Vec<i32> = (0..32).map(|l| if l % 4 == 1 { 0 } else { -1 }).collect();
    assert_eq!(t.run(), Ok(expected));
}

/// An ordinary access races with another thread's atomic on the same word.
#[test]
fn ordinary_accesses_are_ordered_with_atomics() {
    let kernel = |space: Space, barrier: bool, atomic_first: bool, writes: bool| {
        let mut t = team(64, 1);
        let (word, out) = (t.array("word", &[0]), t.array("out", &[0]));
        let x = if space == Space::Shared { t.shared("x", 1) } else { word };
        let k = &mut t.k;
        thread(k, 9, |b| b.store(at(x, 0), 0));
        k.barrier();
        let first = if atomic_first { 0 } else { 32 };
        for step in [0, 32] {
            thread(k, step, |b| match (step == first, writes) {
                (true, _) => {
                    b.atomic_only(AtomicOp::Add, at(x, 0), 1, MemoryOrder::AcqRel, Scope::Device)
                }
                (false, true) => b.store(at(x, 0), 3),
                (false, false) => b.store(at(out, 0), load(x, 0)),
            });
            if barrier {
                k.barrier();
            }
        }
        t
    };
    for space in SPACES {
        let name = if space == Space::Shared { "x" } else { "word" };
        for (first, writes) in [(true, true), (true, false), (false, true), (false, false)] {
            assert!(kernel(space, true, first, writes).run().is_ok());
            assert_eq!(race(kernel(space, false, first, writes).kind()), name);
        }
    }
}

#[test]
fn an_atomic_reads_what_must_have_been_written() {
    let kernel = |written: bool| {
        let mut t = team(32, 1);
        let x = t.shared("x", 2);
        if written {
            thread(&mut t.k, 0, |b| b.store(at(x, 1), 1));
            t.k.warp_barrier();
        }
        thread(&mut t.k, 5, |b| {
            b.atomic_only(AtomicOp::Exchange, at(x, 1), 1, MemoryOrder::Relaxed, Scope::Block);
        });
        t
    };
    assert!(kernel(true).run().is_ok());
    let fault = kernel(false).fault();
    assert_eq!(fault.thread, (5, 0));
    assert!(matches!(fault.kind, FaultKind::Uninitialised { place } if place.index == [1]));
}

/// An asynchronous copy into the word of an atomic is still in flight.
#[test]
fn a_copy_is_awaited_before_an_atomic() {
    let kernel = |wait: bool| {
        let mut t = team(32, 1);
        let from = t.array("from", &[3]);
        let (x, out) = (t.shared("x", 1), t.array("out", &[0]));
        thread(&mut t.k, 0, |b| {
            use gemm_dsl::ir::Stmt;
            b.push(Stmt::CopyAsync { target: at(x, 0), source: at(from, 0), guard: None });
            b.push(Stmt::CopyCommit);
            if wait {
                b.push(Stmt::CopyWait { pending: 0.into() });
            }
            let old =
                b.atomic("old", AtomicOp::Add, at(x, 0), 1, MemoryOrder::AcqRel, Scope::Block);
            b.store(at(out, 0), old);
        });
        t
    };
    assert_eq!(kernel(true).run(), Ok(vec![3]));
    let kind = kernel(false).kind();
    assert!(matches!(&kind, FaultKind::Race { earlier, .. } if earlier.by_copy()), "{kind:?}");
}
