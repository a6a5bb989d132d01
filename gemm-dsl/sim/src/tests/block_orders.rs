//! Detection of results that depend on the order of blocks.

use super::*;
use crate::Position;
use crate::schedule::block_order::{BLOCK_ORDERS, BlockOrder};

/// Five blocks that run one body on a shared word.
fn five(threads: u32, body: impl FnOnce(&mut KernelBuilder, BufferId, BufferId)) -> Team {
    let mut t = team(threads, 5);
    let (word, out) = (t.array("word", &[10]), t.array("out", &[0; 5]));
    body(&mut t.k, word, out);
    t
}

fn on(b: &mut KernelBuilder, op: AtomicOp, word: BufferId, value: impl Into<Expr>) -> Expr {
    b.atomic("old", op, at(word, 0), value, MemoryOrder::AcqRel, Scope::Device).into()
}

/// First element that differs, the other block order, and its value in both orders.
fn differing(t: Team) -> (Position, &'static str, [u64; 2]) {
    match t.run() {
        Err(SimError::OrderDependent { kernel, place, order, bits }) => {
            assert_eq!(kernel, "kernel");
            (*place, order, bits)
        }
        other => panic!("results that differ were expected: {other:?}"),
    }
}

fn element(buffer: &str, index: i128) -> Position {
    let (buffer, space) = (buffer.into(), gemm_dsl::ir::Space::Global);
    Position { buffer, space, index: vec![index], at: u64::try_from(index).ok() }
}

/// Runs the kernel with and without the declaration that its order does not matter.
fn unless_declared(
    kernel: impl Fn() -> Team,
    expected: (Position, &'static str, [u64; 2]),
    declared: &[i32],
) {
    assert_eq!(differing(kernel()), expected);
    let mut t = kernel();
    t.unordered();
    assert_eq!(t.run().as_deref(), Ok(declared));
}

#[test]
fn last_writes_depend_on_the_block_order() {
    let kernel = || five(1, |b, word, _| _ = on(b, AtomicOp::Exchange, word, block()));
    unless_declared(kernel, (element("word", 0), "descending", [4, 0]), &[0; 5]);
    // Maximum, minimum and sum are the same in any order.
    for (op, left) in [(AtomicOp::Max, 10), (AtomicOp::Min, 0), (AtomicOp::Add, 20)] {
        let (kernel, arrays) = five(1, |b, word, _| _ = on(b, op, word, block())).finish();
        launch(&kernel, &arrays, &[]).expect("the order does not matter");
        // Each order starts from the arrays as they were launched.
        assert_eq!(arrays[0].to_vec_of(), Some(vec![left]));
    }
}

#[test]
fn returned_values_depend_on_the_block_order() {
    let kernel = || {
        five(1, |b, word, out| {
            let old = on(b, AtomicOp::Add, word, 1);
            b.store(at(out, block()), old);
        })
    };
    let place = (element("out", 0), "descending", [10, 14]);
    unless_declared(kernel, place, &[10, 11, 12, 13, 14]);
}

/// The middle of five blocks is the third in ascending and in descending order.
#[test]
fn the_ends_are_not_all_orders() {
    let kernel = || {
        five(1, |b, word, out| {
            let old = on(b, AtomicOp::Add, word, 1);
            b.if_(block().equals(2), |b| b.store(at(out, 2), old));
        })
    };
    let (place, order, [ascending, other]) = differing(kernel());
    assert_eq!((place, order, ascending), (element("out", 2), "shuffled (seed 2)", 12));
    assert!(other != 12);
}

/// The two shuffles have different names.
#[test]
fn a_shuffle_is_known_by_its_seed() {
    let names: Vec<_> = BLOCK_ORDERS.map(|order| order.name()).into();
    let seeds = ["shuffled (seed 1)", "shuffled (seed 2)"];
    assert_eq!(names, ["ascending", "descending", seeds[0], seeds[1], "interleaved"]);
}

/// Every order contains each block exactly once, up to the largest grid, and is generated lazily.
#[test]
fn orders_contain_each_block_once() {
    for count in [0, 1, 2, 1000, (1 << 16) + 1, 200_000] {
        for order in BLOCK_ORDERS {
            let mut blocks: Vec<u32> = order.blocks(count).collect();
            let is_ascending = blocks.is_sorted();
            let plain = matches!(order, BlockOrder::Ascending | BlockOrder::Interleaved);
            // A shuffle of few blocks may be ascending by chance.
            let expected = plain || is_ascending && count < 3;
            assert_eq!(is_ascending, expected, "{order:?} of {count}");
            blocks.sort_unstable();
            assert!(blocks.into_iter().eq(0..count), "{order:?} of {count}");
        }
    }
    // A grid of the largest size allocates nothing for blocks that never start.
    let mut t = team(1, 1);
    let word = t.array("word", &[0u32]);
    t.k.atomic_only(AtomicOp::Add, at(word, 0), Expr::U32(1), MemoryOrder::Relaxed, Scope::Device);
    let most = [Expr::U64((1 << 31) - 1), Expr::U64(2), Expr::U64(1)];
    t.k.geometry(Geometry { block: (1, 1), grid: most, blocks_per_sm: None });
    let options = Options { instructions: 1000, ..Options::default() };
    let (kernel, arrays) = t.finish();
    let spent = launch_with(&kernel, &arrays, &[], &options);
    assert!(matches!(spent, Err(SimError::OutOfInstructions { .. })), "{spent:?}");
    for order in BLOCK_ORDERS {
        assert!(order.blocks(u32::MAX - 1).take(10).all(|block| block < u32::MAX - 1));
    }
}

/// The result depends on the number of blocks that run at the same time.
#[test]
fn blocks_may_run_together() {
    let kernel = || {
        five(1, |b, word, out| {
            on(b, AtomicOp::Add, word, 1);
            let now =
                b.atomic("now", AtomicOp::Add, at(word, 0), -1, MemoryOrder::AcqRel, Scope::Device);
            b.atomic_only(AtomicOp::Max, at(out, 0), now, MemoryOrder::AcqRel, Scope::Device);
        })
    };
    unless_declared(kernel, (element("out", 0), "interleaved", [11, 15]), &[11, 0, 0, 0, 0]);
}

/// Warps of a block, and lanes of a warp, are not ordered either.
#[test]
fn threads_of_a_block_have_no_order() {
    for (threads, apart) in [(2, 1), (64, 32)] {
        let kernel = || {
            five(threads, |b, word, out| {
                b.if_(block().equals(0).and((tid() % apart).equals(0)), |b| {
                    let old = on(b, AtomicOp::Add, word, 1);
                    b.store(at(out, tid() / apart), old);
                });
            })
        };
        let place = (element("out", 0), "descending", [10, 11]);
        unless_declared(kernel, place, &[10, 11, 0, 0, 0]);
    }
}

/// Every order starts from the same content. Results of one order do not affect the next.
#[test]
fn every_order_begins_with_what_was_given() {
    let mut t = team(1, 5);
    let (count, out) = (t.array("count", &[0]), t.array("out", &[7; 5]));
    on(&mut t.k, AtomicOp::Add, count, 1);
    t.k.store(at(out, block()), load(out, block()) + block());
    let (kernel, arrays) = t.finish();
    launch(&kernel, &arrays, &[]).expect("the order does not matter");
    assert_eq!(arrays[0].to_vec_of(), Some(vec![5]));
    assert_eq!(arrays[1].to_vec_of(), Some(vec![7, 8, 9, 10, 11]));
}

/// The old value of the third block may depend on the order, as declared. The final word is still
/// compared.
#[test]
fn a_declaration_is_of_one_array() {
    let kernel = |declared: [bool; 2], op: AtomicOp| {
        let mut t = five(1, |b, word, out| {
            let old = on(b, op, word, block());
            b.if_(block().equals(2), |b| b.store(at(out, 2), old));
        });
        let arrays = t.globals.clone();
        let declared = arrays.into_iter().zip(declared).filter(|(_, declared)| *declared);
        declared.for_each(|(array, _)| t.k.unordered(array));
        t
    };
    // The sum is the same in any order.
    assert!(kernel([false, true], AtomicOp::Add).run().is_ok());
    assert_eq!(differing(kernel([true, false], AtomicOp::Add)).0, element("out", 2));
    // The value of the last exchange depends on the order.
    let (place, order, bits) = differing(kernel([false, true], AtomicOp::Exchange));
    assert_eq!((place, order, bits), (element("word", 0), "descending", [4, 0]));
    assert!(kernel([true, true], AtomicOp::Exchange).run().is_ok());
}
