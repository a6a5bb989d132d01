//! Message order and injected faults, as plain data.

use std::time::Duration;

/// Delivery of messages between the ranks of one process.
#[derive(Clone, Debug, Default)]
pub struct Delivery {
    /// Seed for the order in which messages become visible. `None` makes each message visible as
    /// soon as it is sent.
    pub seed: Option<u64>,
    /// Faults to inject. Several faults at the same call happen in the order of this list.
    pub faults: Vec<Fault>,
}

/// Fault to inject at one call of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Number of the affected rank, which must exist.
    pub rank: usize,
    /// Index of the affected call among the rank's calls of `send` and `take`, from 0.
    pub call: u64,
    /// Effect of the fault on the call.
    pub kind: FaultKind,
}

/// Kind of an injected fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The rank disappears, as if its thread had been killed: this call and all later calls fail.
    Die,
    /// The call takes this much longer.
    Delay(Duration),
    /// One bit of the message changes, or its length changes by one byte.
    Corrupt,
    /// The rank fails with this message.
    Fail(String),
}

/// Flips one bit of a message, or adds or removes one byte.
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

/// Random number generator with a seed (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number in 0 .. n, or 0 for n = 0.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mixed = mixed ^ (mixed >> 31);
        // Upper half of a number below n · 2⁶⁴.
        ((u128::from(mixed) * n as u128) >> 64) as usize
    }
}
