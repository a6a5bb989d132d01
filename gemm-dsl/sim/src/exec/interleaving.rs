//! Orders that are the machine's choice: how the threads of a block take turns.
//!
//! Which warp runs first, and how far, shows only where threads ask one another by atomics. A block in
//! which they do is run in each of these turns.

/// A shuffle that is the same on every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shuffle {
    pub(crate) seed: u64,
    pub(crate) name: &'static str,
}

/// The shuffles of blocks, and of the warps of a block.
pub(crate) const SHUFFLES: [Shuffle; 4] = [
    Shuffle { seed: 1, name: "shuffled (seed 1)" },
    Shuffle { seed: 2, name: "shuffled (seed 2)" },
    Shuffle { seed: 3, name: "shuffled (seed 3)" },
    Shuffle { seed: 4, name: "shuffled (seed 4)" },
];

/// The shuffles of so many besides the first two: of three, all orders are few enough.
pub(crate) fn more(count: usize) -> &'static [Shuffle] {
    if count == 3 { &SHUFFLES[2..] } else { &[] }
}

impl Shuffle {
    /// The numbers below `count` in its order, with more that is drawn by: neither ascending nor
    /// descending nor in the order of a shuffle before it, where there are others.
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

/// Numbers of a multiplicative generator.
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

    /// Fisher and Yates's shuffle.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// How the warps of a block take turns, and the lanes of a warp at an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interleaving {
    /// From the first to the last, each warp as far as it comes.
    Forward,
    /// From the last to the first. The lanes for which the condition of a branch does not hold go before
    /// the others.
    Reversed,
    /// From the first to the last or the other way round, and a warp hands over behind each atomic: when
    /// the block has done so for long, as drawn, since who does what another one does in step with it may
    /// never get ahead of it.
    Interleaved { reversed: bool },
    /// As drawn for each round: the order of the warps, that of the lanes, and whether a warp hands over
    /// behind an atomic.
    Shuffled(Shuffle),
}

/// The turns of a block whose threads ask one another by atomics.
pub(crate) const INTERLEAVINGS: [Interleaving; 6] = [
    Interleaving::Forward,
    Interleaving::Reversed,
    Interleaving::Interleaved { reversed: false },
    Interleaving::Interleaved { reversed: true },
    Interleaving::Shuffled(SHUFFLES[0]),
    Interleaving::Shuffled(SHUFFLES[1]),
];

impl Interleaving {
    /// Whether the last come first, where nothing is drawn.
    pub(crate) fn are_reversed(self) -> bool {
        matches!(self, Interleaving::Reversed | Interleaving::Interleaved { reversed: true })
    }

    /// What the numbers that are drawn begin with.
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
