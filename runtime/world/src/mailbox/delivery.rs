//! In which order messages become visible, and what goes wrong, as data.

use std::time::Duration;

/// How what ranks of one process say to one another is delivered.
#[derive(Clone, Debug, Default)]
pub struct Delivery {
    /// What the order in which messages become visible is drawn from. Without one each is so at once.
    pub seed: Option<u64>,
    /// What goes wrong. Several at the same call happen in this order.
    pub faults: Vec<Fault>,
}

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Of which rank: one that is there.
    pub rank: usize,
    /// At which of its calls of `send` and `take`, counted from 0.
    pub call: u64,
    /// What.
    pub kind: FaultKind,
}

/// What goes wrong at a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The rank is gone, as if its thread had been killed: this call fails, and all that come after it.
    Die,
    /// The call takes so much longer.
    Delay(Duration),
    /// A bit of the message changes, or its length.
    Corrupt,
    /// The rank fails with a text.
    Fail(String),
}

/// Changes a message: one of its bits, or one byte more or less.
pub(super) fn corrupt(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        bytes.push(0);
        return;
    }
    match random.below(3) {
        0 => bytes.push(0),
        1 => _ = bytes.pop(),
        _ => {
            let bit = random.below(8);
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << bit;
        }
    }
}

/// Numbers from a seed (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One of 0 .. n; 0 where there is none.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mixed = mixed ^ (mixed >> 31);
        // The upper half of a product below n times 2^64.
        ((u128::from(mixed) * n as u128) >> 64) as usize
    }
}
