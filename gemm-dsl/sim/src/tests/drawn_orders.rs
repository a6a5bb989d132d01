//! Shuffled orders: each draw gives a new order as long as there is one.

use super::*;
use crate::exec::interleaving::{SHUFFLES, more};
use crate::schedule::block_order::{BLOCK_ORDERS, BlockOrder};
use proptest::prelude::*;

const ALL: [[i32; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

proptest! {
    #![proptest_config(gemm_cases::cases(256))]

    #[test]
    fn shuffles_are_orders_of_their_own(count in 0u32..40, by in 0u64..1 << 56) {
        let shuffles = SHUFFLES[..2].iter().chain(more(count as usize));
        let mut orders: Vec<Vec<u32>> = shuffles.map(|shuffle| shuffle.order(count, by)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert!(sorted.into_iter().eq(0..count));
        }
        if count > 2 {
            orders.extend([(0..count).collect(), (0..count).rev().collect()]);
            orders.sort_unstable();
            orders.dedup();
            prop_assert_eq!(orders.len(), if count == 3 { 6 } else { 4 });
        }
    }
}

/// A shuffle is not just a rotation.
#[test]
fn a_shuffle_is_no_rotation() {
    let rotates = |order: &Vec<u32>| {
        let step = |by: u32| (0..8).all(|i| order[(i + 1) % 8] == (order[i] + by) % 8);
        step(1) || step(7)
    };
    for shuffle in SHUFFLES {
        assert!((0..20).map(|by| shuffle.order(8, by)).filter(rotates).count() < 3);
        let orders: Vec<_> = (0..20).map(|by| shuffle.order(8, by)).collect();
        assert!(orders.windows(2).all(|pair| pair[0] != pair[1]));
    }
}

/// In grids larger than one shuffled piece, the pieces are shuffled as well.
#[test]
fn pieces_are_shuffled() {
    for order in BLOCK_ORDERS {
        let BlockOrder::Shuffled(_) = order else { continue };
        let mut pieces: Vec<u32> = order.blocks(400_000).map(|block| block >> 16).collect();
        pieces.dedup();
        assert_eq!(pieces.len(), 7);
        assert!(!pieces.is_sorted() && !pieces.iter().rev().is_sorted(), "{pieces:?}");
    }
}

/// One thread writes and signals, a second one passes the signal on, and a third one writes if it
/// receives it. The first and the third are unordered, which shows in one of six orders.
fn passed_on([first, second, third]: [i32; 3], blocks: bool) -> Team {
    let (mut t, scope) = match blocks {
        true => (team(32, 3), Scope::Device),
        false => (team(96, 1), Scope::Block),
    };
    let array = |t: &mut Team, name| if blocks { t.array(name, &[0]) } else { t.shared(name, 1) };
    let (x, flag) = (array(&mut t, "x"), array(&mut t, "flag"));
    t.unordered();
    let k = &mut t.k;
    if !blocks {
        thread(k, 0, |b| b.store(at(flag, 0), 0));
        k.barrier();
    }
    let ask = |b: &mut KernelBuilder, op, value: i32| -> Expr {
        b.atomic("old", op, at(flag, 0), value, MemoryOrder::Relaxed, scope).into()
    };
    let is = |number: i32| match blocks {
        true => block().equals(number).and(tid().equals(0)),
        false => tid().equals(32 * number),
    };
    k.if_(is(first), |b| {
        b.store(at(x, 0), 1);
        ask(b, AtomicOp::Exchange, 1);
    });
    k.if_(is(second), |b| {
        ask(b, AtomicOp::CompareExchange { expected: 1.into() }, 2);
    });
    k.if_(is(third), |b| {
        let old = ask(b, AtomicOp::Add, 0);
        b.if_(old.equals(2), |b| b.store(at(x, 0), 3));
    });
    t
}

#[test]
fn three_come_in_every_order() {
    for order in ALL {
        for blocks in [true, false] {
            let fault = passed_on(order, blocks).fault();
            assert_eq!(fault.order.is_some(), blocks, "{fault}");
            assert_eq!(race(fault.kind), "x", "{order:?} {blocks}");
        }
    }
}

/// Shuffled turns order the lanes of a warp independently of the warps.
#[test]
fn lanes_have_an_order_of_their_own() {
    for first in [31, 32] {
        let mut t = team(64, 24);
        let (count, out) = (t.shared("count", 1), t.array("out", &[0; 24]));
        let k = &mut t.k;
        thread(k, 0, |b| b.store(at(count, 0), 0));
        k.barrier();
        let old =
            k.atomic("old", AtomicOp::Add, at(count, 0), 1, MemoryOrder::Relaxed, Scope::Block);
        thread(k, first, |b| {
            b.if_(Expr::from(old).equals(0), |b| b.store(at(out, block()), 1));
        });
        match t.run() {
            Err(SimError::InterleavingDependent { turns, .. }) => {
                assert!(turns.starts_with("shuffled (seed "), "{turns}");
            }
            other => panic!("no turns begin with lane {first}: {other:?}"),
        }
    }
}
