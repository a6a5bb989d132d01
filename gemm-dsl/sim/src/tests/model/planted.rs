//! Programs that random generation hardly ever finds.

use super::program::{Action, Item, Place, Program};
use gemm_dsl::ir::{MemoryOrder, Scope};

fn place(array: usize, first: u32) -> Place {
    Place { array, first, stride: 0, vector: false }
}

fn act(lane: u32, guarded: bool, action: Action) -> Item {
    Item::Act { warp: 0, lanes: 1 << lane, guarded, action }
}

fn atomic(lane: u32, word: u32, order: MemoryOrder, scope: Scope) -> Item {
    act(lane, false, Action::Atomic(place(3, word), order, scope))
}

/// Program of two blocks with one warp each.
fn program(lanes: [u32; 2], blocks: [Vec<Item>; 2]) -> Program {
    let lanes = lanes.into_iter().map(|lanes| vec![lanes]).collect();
    Program { lanes, blocks: blocks.into(), named: [1, 1] }
}

/// A release does not pass through an atomic outside the scope of its predecessor, even if another
/// word orders the two.
pub(super) fn planted() -> [Program; 2] {
    let data = place(2, 0);
    let (write, read) = (Action::Write(data), Action::Read(data));
    let relaxed = |lane| {
        [
            atomic(lane, 1, MemoryOrder::Acquire, Scope::Device),
            atomic(lane, 0, MemoryOrder::Relaxed, Scope::Block),
        ]
    };
    let read = |lane| [atomic(lane, 0, MemoryOrder::Acquire, Scope::Device), act(lane, true, read)];
    let left_by_another_block = program(
        [1, 0b11],
        [
            vec![
                act(0, false, write),
                atomic(0, 0, MemoryOrder::Release, Scope::Device),
                atomic(0, 1, MemoryOrder::Release, Scope::Device),
            ],
            [relaxed(0), read(1)].concat(),
        ],
    );
    let left_by_its_own_block = program(
        [1, 0b111],
        [
            vec![
                atomic(0, 0, MemoryOrder::Relaxed, Scope::Device),
                atomic(0, 1, MemoryOrder::Release, Scope::Device),
            ],
            [
                vec![act(2, false, write), atomic(2, 0, MemoryOrder::Release, Scope::Device)],
                relaxed(0).into(),
                read(1).into(),
            ]
            .concat(),
        ],
    );
    [left_by_another_block, left_by_its_own_block]
}
