//! Access history of a word that several threads use, tested at the level of clocks.

use crate::race::access_history::{Access, AccessHistory, Agent, UnorderedAccess};
use crate::race::clock::Clocks;
use crate::race::model::{MODEL, ORDINARY, WordEffect};
use crate::region::ElementId;
use gemm_dsl::ir::Scope;

/// Threads of one block that access one word.
struct Rig {
    clocks: Clocks,
    words: AccessHistory,
}

impl Rig {
    fn new() -> Self {
        Self { clocks: Clocks::new(&MODEL, 64), words: AccessHistory::default() }
    }

    fn access(&mut self, thread: usize, touch: WordEffect) -> Result<(), UnorderedAccess> {
        let access = Access {
            clocks: &self.clocks,
            block: 0,
            thread,
            on: ORDINARY,
            touch,
            exclusive: false,
        };
        self.words.access(ELEMENT, &access)
    }
}

const ELEMENT: ElementId = ElementId { buffer: 0, element: 0 };
const ATOMIC: WordEffect = WordEffect::Atomic(Scope::Block);

#[test]
fn the_last_writer_is_returned() {
    let mut rig = Rig::new();
    let writer = |rig: &Rig| rig.words.writer(ELEMENT).map(|agent| agent.number);
    assert_eq!(writer(&rig), None);
    for (thread, touch, last) in [
        (7, WordEffect::Read, None),
        (9, ATOMIC, Some(9)),
        (3, ATOMIC, Some(3)),
        (9, ATOMIC, Some(9)),
        (5, WordEffect::Write, Some(5)),
        (2, WordEffect::Read, Some(5)),
        (2, ATOMIC, Some(2)),
        (8, WordEffect::Read, Some(2)),
    ] {
        assert_eq!(rig.access(thread, touch), Ok(()));
        assert_eq!(writer(&rig), last);
        rig.clocks.meet(0..64);
    }
}

/// A write reports the first earlier access after which it is not ordered, for any number of
/// readers.
#[test]
fn all_that_have_accessed_a_word_are_remembered() {
    for touch in [WordEffect::Read, ATOMIC] {
        for readers in [1, 15, 16, 17, 18, 32] {
            let mut rig = Rig::new();
            for thread in (32..32 + readers).rev().chain(0..readers).chain([5]) {
                assert_eq!(rig.access(thread, touch), Ok(()));
            }
            let wrote = touch != WordEffect::Read;
            let other =
                |number| UnorderedAccess { agent: Agent { block: 0, number }, epoch: 1, wrote };
            let first = if readers == 1 { 5 } else { 1 };
            assert_eq!(rig.access(0, WordEffect::Write), Err(other(first)));
            rig.clocks.meet(0..32);
            assert_eq!(rig.access(0, WordEffect::Write), Err(other(32)));
            rig.clocks.meet(0..64);
            assert_eq!(rig.access(0, WordEffect::Write), Ok(()));
        }
    }
}

/// A thread that acquires the same release repeatedly joins its clock only once.
#[test]
fn repeated_acquires_join_the_clock_once() {
    let (mut a, mut b) = (Clocks::new(&MODEL, 32), Clocks::new(&MODEL, 32));
    let left = a.release(0, 3);
    // The lanes of a warp share one clock after a barrier, until one of them learns more.
    for (block, clocks) in [(0, &mut a), (1, &mut b)] {
        clocks.acquire(block, 7, &left);
        clocks.meet(0..32);
        for thread in [7, 8] {
            clocks.acquire(block, thread, &left);
            assert!(clocks.common(0, ORDINARY).is_some(), "{block}");
        }
    }
    let more = a.release(0, 3);
    b.acquire(1, 8, &more);
    assert!(b.common(0, ORDINARY).is_none());
    assert!(b.knows(8, ORDINARY, 0, 3, 3) && !b.knows(7, ORDINARY, 0, 3, 2));
}
