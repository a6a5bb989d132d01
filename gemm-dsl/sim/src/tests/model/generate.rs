//! Random programs.
//!
//! They have few words, so that threads conflict. In addition to accesses and synchronisation, they
//! contain the two halves of a message, which match or nearly match. Otherwise, hardly any program
//! with atomics would be free of races.

use super::program::{Action, Item, Place, Program, is_global};
use crate::mask::lanes_of;
use gemm_dsl::expr::random::Random as SplitMix;
use gemm_dsl::ir::{MemoryOrder, Scope};

/// Random numbers by SplitMix64 (Steele, Lea and Flood).
pub(in crate::tests) struct Random(SplitMix);

impl Random {
    pub(in crate::tests) fn new(seed: u64) -> Self {
        Self(SplitMix(seed))
    }

    pub(in crate::tests) fn next(&mut self) -> u64 {
        self.0.bits()
    }

    pub(in crate::tests) fn below(&mut self, n: usize) -> usize {
        (self.next() >> 32) as usize % n
    }

    pub(in crate::tests) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    pub(in crate::tests) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

const LANES: [u32; 4] = [0, 1, 5, 31];

/// Words that a program accesses.
struct AccessHistory {
    data: Vec<(usize, u32)>,
    /// Words of atomics; empty if the program has none.
    flags: Vec<(usize, u32)>,
}

struct Generator<'r> {
    random: &'r mut Random,
    words: AccessHistory,
    lanes: Vec<u32>,
    named: [u32; 2],
    items: Vec<Item>,
}

/// Random program with no atomics, atomics on shared memory, or atomics on global memory.
pub(super) fn program(random: &mut Random) -> Program {
    let (shared, global) = match random.below(10) {
        0..3 => (false, false),
        3..5 => (true, false),
        _ => (random.percent(20), true),
    };
    let blocks = match random.below(100) {
        0..8 if global => 3,
        8..60 if global => 2,
        60..80 if !global => 2,
        _ => 1,
    };
    let warps = 1 + random.below(4 - blocks);
    let mut lanes = vec![vec![0; warps]; blocks];
    let threads = (blocks * warps).max(2 + random.below(3));
    for i in 0..threads {
        let lanes = &mut lanes[i % blocks][i / blocks % warps];
        let free: Vec<u32> = LANES.into_iter().filter(|l| *lanes >> l & 1 == 0).collect();
        // If several lanes are equivalent, the detector checks only the first of them, so the first
        // lane is chosen more often.
        *lanes |= 1 << if random.percent(50) { free[0] } else { random.of(&free) };
    }
    let word = |random: &mut Random, arrays: &[usize]| (random.of(arrays), random.below(2) as u32);
    let of_data: &[usize] = if blocks > 1 { &[0, 2, 2, 3] } else { &[0, 0, 0, 1, 2] };
    let data = (0..1 + random.below(2)).map(|_| word(random, of_data)).collect();
    let mut flags = Vec::new();
    for _ in 0..if random.percent(30) { 2 } else { 1 } {
        flags.extend(shared.then(|| word(random, &[1, 1, 1, 0])));
        flags.extend(global.then(|| word(random, &[3, 3, 3, 2])));
    }
    let mut named = || 1 + random.below(warps) as u32;
    let named = [named(), named()];
    let words = AccessHistory { data, flags };
    let mut g = Generator { random, words, lanes: Vec::new(), named, items: Vec::new() };
    let statements = |lanes: &Vec<u32>| {
        g.lanes.clone_from(lanes);
        for _ in 0..3 + g.random.below(if blocks > 1 { 3 } else { 6 }) {
            g.some();
        }
        std::mem::take(&mut g.items)
    };
    let blocks = lanes.iter().map(statements).collect();
    Program { lanes, blocks, named }
}

impl Generator<'_> {
    /// Appends a statement, or a few that belong together.
    fn some(&mut self) {
        let warp = self.random.below(self.lanes.len()) as u32;
        let all: Vec<usize> = lanes_of(self.lanes[warp as usize]).collect();
        let one = 1 << self.random.of(&all);
        let lanes = if self.random.percent(30) { self.lanes[warp as usize] } else { one };
        let atomics = !self.words.flags.is_empty();
        // Without atomics, the last four kinds become accesses and barriers.
        match self.random.below(100) {
            0..14 => self.access(warp, lanes, false),
            14..21 => self.items.push(Item::Block),
            21..28 => self.items.push(Item::Warp { warp }),
            28..37 => self.named(),
            37..47 => self.copy(warp, lanes),
            47..51 => self.act(warp, lanes, Action::Commit),
            51..55 => self.await_copies(warp, lanes),
            55..66 if atomics => self.atomic(warp, lanes),
            66..72 if atomics => self.fence(warp, lanes),
            72..85 if atomics => {
                self.access(warp, lanes, false);
                self.half(warp, lanes, [MemoryOrder::Release, MemoryOrder::AcqRel], false);
            }
            _ if atomics => {
                self.half(warp, lanes, [MemoryOrder::Acquire, MemoryOrder::AcqRel], true);
                let guarded = self.random.percent(80);
                self.access(warp, lanes, guarded);
            }
            55..75 => self.access(warp, lanes, false),
            75..85 => self.items.push(Item::Block),
            85..92 => self.items.push(Item::Warp { warp }),
            _ => self.named(),
        }
    }

    fn act(&mut self, warp: u32, lanes: u32, action: Action) {
        self.items.push(Item::Act { warp, lanes, guarded: false, action });
    }

    fn place(&mut self, (array, first): (usize, u32)) -> Place {
        let vector = self.random.percent(18);
        let stride = if self.random.percent(25) { 1 } else { 0 };
        Place { array, first, stride, vector }
    }

    fn access(&mut self, warp: u32, lanes: u32, guarded: bool) {
        let word = match self.random.percent(6) && !self.words.flags.is_empty() {
            true => self.random.of(&self.words.flags),
            false => self.random.of(&self.words.data),
        };
        let place = self.place(word);
        let write = self.random.percent(40);
        let action = if write { Action::Write(place) } else { Action::Read(place) };
        self.items.push(Item::Act { warp, lanes, guarded, action });
    }

    fn scope(&mut self) -> Scope {
        if self.random.percent(70) { Scope::Device } else { Scope::Block }
    }

    fn atomic_of(&mut self, warp: u32, lanes: u32, order: MemoryOrder) {
        let (array, first) = self.random.of(&self.words.flags);
        let stride = if self.random.percent(8) { 1 } else { 0 };
        let place = Place { array, first, stride, vector: false };
        let scope = self.scope();
        let action = match self.random.percent(20) {
            true => Action::Swap(place, order, scope),
            false => Action::Atomic(place, order, scope),
        };
        self.act(warp, lanes, action);
    }

    fn atomic(&mut self, warp: u32, lanes: u32) {
        let orders =
            [MemoryOrder::Relaxed, MemoryOrder::Acquire, MemoryOrder::Release, MemoryOrder::AcqRel];
        let order = self.random.of(&orders);
        self.atomic_of(warp, lanes, order);
    }

    fn fence(&mut self, warp: u32, lanes: u32) {
        let (order, scope) =
            (self.random.of(&[MemoryOrder::AcqRel, MemoryOrder::SeqCst]), self.scope());
        self.act(warp, lanes, Action::Fence(order, scope));
    }

    /// One half of a message: an atomic with one of these orders, or a relaxed atomic with a fence.
    fn half(&mut self, warp: u32, lanes: u32, orders: [MemoryOrder; 2], fence_last: bool) {
        let fenced = self.random.percent(40);
        if fenced && !fence_last {
            self.fence(warp, lanes);
        }
        let order = if fenced { MemoryOrder::Relaxed } else { self.random.of(&orders) };
        self.atomic_of(warp, lanes, order);
        if fenced && fence_last {
            self.fence(warp, lanes);
        }
    }

    /// Named barrier, most often with the right number of warps.
    fn named(&mut self) {
        let id = 1 + self.random.below(2) as u32;
        let mut warps: Vec<u32> = (0..self.lanes.len() as u32).collect();
        let missing = u32::from(self.random.percent(5));
        for _ in missing..self.named[id as usize - 1] {
            let warp = warps.swap_remove(self.random.below(warps.len()));
            let wait = self.random.percent(70);
            self.items.push(Item::Named { warp, id, wait });
        }
    }

    /// Asynchronous copy, most often with the commit and the wait that it needs.
    fn copy(&mut self, warp: u32, lanes: u32) {
        let mut side = |global: bool| {
            let words = self.words.data.iter().copied();
            let words: Vec<_> = words.filter(|&(array, _)| is_global(array) == global).collect();
            if words.is_empty() { (if global { 2 } else { 0 }, 0) } else { self.random.of(&words) }
        };
        let (target, source) = (side(false), side(true));
        let target = self.place(target);
        let source = Place { vector: target.vector, ..self.place(source) };
        self.act(warp, lanes, Action::Copy { target, source });
        if self.random.percent(75) {
            self.act(warp, lanes, Action::Commit);
        }
        if self.random.percent(60) {
            self.await_copies(warp, lanes);
        }
    }

    fn await_copies(&mut self, warp: u32, lanes: u32) {
        let pending = self.random.of(&[0, 0, 1]);
        self.act(warp, lanes, Action::Wait(pending));
    }
}
