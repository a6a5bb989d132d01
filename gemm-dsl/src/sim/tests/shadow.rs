//! Shadow memory of more rows than its bits tell apart, against a list of all accesses.

use super::proxies::{Rig, TIMELINES, WAITS};
use crate::sim::clock::Clocks;
use crate::sim::lanes::WARP;
use crate::sim::timeline::Timeline;

/// The numbers of a multiplicative generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// An access that has happened.
struct Past {
    agent: u32,
    epoch: u32,
    wrote: bool,
}

/// Whether an access comes after all those that it conflicts with.
fn ordered(clocks: &Clocks, past: &[Past], (thread, on, writes): (usize, Timeline, bool)) -> bool {
    let mut conflicts = past.iter().filter(|p| writes || p.wrote);
    conflicts.all(|p| clocks.ordered(thread, on, p.agent as usize, p.epoch))
}

/// Threads of the same lane and of others, of the same warp and of others, on timelines of which every
/// other one shares its bits.
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
