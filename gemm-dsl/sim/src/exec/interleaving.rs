//! Thread interleavings, which are orders that hardware may choose.
//!
//! The order and progress of warps affects a result only if threads synchronise by atomics. A block
//! whose threads do so runs in each of these interleavings.

/// Deterministic shuffle, identified by its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shuffle {
    pub(crate) seed: u64,
    pub(crate) name: &'static str,
}

/// Shuffles of blocks, and of the warps of a block.
pub(crate) const SHUFFLES: [Shuffle; 4] = [
    Shuffle { seed: 1, name: "shuffled (seed 1)" },
    Shuffle { seed: 2, name: "shuffled (seed 2)" },
    Shuffle { seed: 3, name: "shuffled (seed 3)" },
    Shuffle { seed: 4, name: "shuffled (seed 4)" },
];

/// Additional shuffles for `count` items. With them, 3 items are run in all of their orders.
pub(crate) fn more(count: usize) -> &'static [Shuffle] {
    if count == 3 { &SHUFFLES[2..] } else { &[] }
}

impl Shuffle {
    /// Returns a permutation of `0..count` that the seed and `more` determine. For three or more
    /// items, it differs from the ascending order, the descending order and all earlier shuffles.
    pub(crate) fn order(self, count: u32, more: u64) -> Vec<u32> {
        let ascending: Vec<u32> = (0..count).collect();
        if count < 3 {
            let mut order = ascending;
            Random::new(self.seed + (more << 8)).shuffle(&mut order);
            return order;
        }
        let descending = ascending.iter().rev().copied().collect();
        let mut known = vec![ascending, descending];
        for seed in 1..=self.seed {
            let (mut order, mut random) = (known[0].clone(), Random::new(seed + (more << 8)));
            while known.contains(&order) {
                random.shuffle(&mut order);
            }
            known.push(order);
        }
        known.pop().unwrap_or_default()
    }
}

/// Linear congruential generator with a 64-bit state.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % n
    }

    /// Shuffles with the Fisher-Yates algorithm.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// Order of the warps of a block, and of the lanes of a warp in an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interleaving {
    /// Ascending order; each warp runs until it must wait.
    Forward,
    /// Descending order. Lanes for which the condition of a branch is false run before the others.
    Reversed,
    /// Ascending or descending order, in which a warp yields after each atomic. After many rounds
    /// the warps yield at random, because warps in lockstep can block each other forever.
    Interleaved { reversed: bool },
    /// Random order of warps and lanes, and random yields after atomics, drawn again in each round.
    Shuffled(Shuffle),
}

/// Interleavings of a block whose threads synchronise by atomics.
pub(crate) const INTERLEAVINGS: [Interleaving; 6] = [
    Interleaving::Forward,
    Interleaving::Reversed,
    Interleaving::Interleaved { reversed: false },
    Interleaving::Interleaved { reversed: true },
    Interleaving::Shuffled(SHUFFLES[0]),
    Interleaving::Shuffled(SHUFFLES[1]),
];

impl Interleaving {
    /// Returns true for a descending order that is not drawn at random.
    pub(crate) fn are_reversed(self) -> bool {
        matches!(self, Interleaving::Reversed | Interleaving::Interleaved { reversed: true })
    }

    /// Seed of the random numbers.
    pub(crate) fn seed(self) -> u64 {
        match self {
            Interleaving::Shuffled(shuffle) => shuffle.seed,
            Interleaving::Forward | Interleaving::Reversed | Interleaving::Interleaved { .. } => 0,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Interleaving::Forward => "forward",
            Interleaving::Reversed => "reversed",
            Interleaving::Interleaved { reversed: false } => "interleaved",
            Interleaving::Interleaved { reversed: true } => "reversed and interleaved",
            Interleaving::Shuffled(shuffle) => shuffle.name,
        }
    }
}
