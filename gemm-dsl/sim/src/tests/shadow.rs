//! Shadow memory with more rows than its bits can distinguish, compared with a list of all
//! accesses.

use crate::mask::WARP;
use crate::race::clock::Clocks;
use crate::race::model::Timeline;
use crate::race::shadow::{Reads, Shadow};
use crate::tests::proxy_model::{Rig, TIMELINES, WAITS};

/// Multiplicative pseudo-random generator.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, n: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

struct Past {
    agent: u32,
    epoch: u32,
    wrote: bool,
}

/// True if an access is ordered after all conflicting accesses.
fn ordered(clocks: &Clocks, past: &[Past], (thread, on, writes): (usize, Timeline, bool)) -> bool {
    let mut conflicts = past.iter().filter(|p| writes || p.wrote);
    conflicts.all(|p| clocks.ordered(thread, on, p.agent as usize, p.epoch))
}

/// Threads with the same lane and with other lanes, in the same warp and in other warps. Every
/// second of their timelines shares its bits.
const THREADS: [usize; 5] = [0, 1, 33, 500, 993];
const WORDS: usize = 4;

#[test]
fn no_race_is_missed_and_none_is_invented() {
    let (mut races, mut sound) = (0, 0);
    for seed in 0..60 {
        let (mut dice, mut rig) = (Dice(seed), Rig::new(1024));
        assert!(rig.clocks.rows() > 128);
        let mut past: [Vec<Past>; WORDS] = Default::default();
        for _ in 0..500 {
            let thread = dice.of(&THREADS);
            match dice.below(20) {
                0 => rig.clocks.meet(rig.clocks.all()),
                1 => {
                    let first = thread / WARP * WARP;
                    rig.clocks.meet(first..first + WARP);
                }
                2 | 3 => rig.tell(thread, dice.of(&THREADS)),
                4 | 5 => rig.fence(thread),
                6 | 7 => rig.finish(thread, dice.of(&WAITS)),
                8 => rig.clocks.close(thread, dice.of(&TIMELINES[1..])),
                _ => {
                    let (on, word) = (dice.of(&TIMELINES), dice.below(WORDS));
                    let writes = dice.below(4) == 0;
                    let expected = ordered(&rig.clocks, &past[word], (thread, on, writes));
                    let found = rig.access(thread, on, word, writes);
                    assert_eq!(found, expected, "{seed}: {thread}, {on:?}, {word}, {writes}");
                    if found {
                        sound += 1;
                        let agent = rig.clocks.agent(thread, on);
                        let epoch = rig.clocks.epoch(thread, on);
                        past[word].push(Past { agent, epoch, wrote: writes });
                    } else {
                        races += 1;
                        rig.forget();
                        past.iter_mut().for_each(Vec::clear);
                    }
                }
            }
        }
    }
    assert!(races > 1000 && sound > 5000, "{races} races, {sound} sound accesses");
}

/// Epochs and lanes of the reads in one epoch.
type Round<'d> = dyn FnMut(u32) -> [(u32, u32); 2] + 'd;

/// Each lane is stored once, however long it keeps reading a word.
#[test]
fn a_lane_stands_for_its_earlier_reads() {
    // In each epoch, both halves of the warp read, then some lanes, some of them twice.
    let mut dice = Dice(7);
    let halves = |epoch: u32| [(epoch, 0xffff), (epoch, 0xffff_0000)];
    let mut some =
        |epoch: u32| [(epoch, 1 << dice.below(WARP)), (epoch - 1, 1 << dice.below(WARP))];
    let rounds: [(&mut Round<'_>, usize); 2] =
        [(&mut |epoch| halves(epoch), 0), (&mut some, WARP - 1)];
    for (round, at_most) in rounds {
        let mut shadow = Shadow::new(1);
        shadow.reset(1);
        // A neighbouring word has older reads of its own.
        for (epoch, lanes) in [(1, 1), (2, 2)] {
            shadow.read(1, 1, 0, Reads { epoch, lanes }, |_| true).expect("nobody has written");
        }
        for epoch in 2..10_000 {
            for (epoch, lanes) in round(epoch) {
                let read = Reads { epoch, lanes };
                shadow.read(0, 1, 0, read, |_| true).expect("nobody has written");
            }
            let (newest, older) = shadow.reads_of(0, 0);
            assert!(older.len() <= at_most, "{} entries in epoch {epoch}", older.len());
            let lanes = older.iter().fold(0, |all, r| {
                assert_eq!(all & r.lanes, 0, "a lane in two entries in epoch {epoch}");
                all | r.lanes
            });
            assert_eq!(lanes & newest.lanes, 0, "a lane in two entries in epoch {epoch}");
        }
        assert_eq!(shadow.reads_of(1, 0).1.len(), 1);
    }
}
