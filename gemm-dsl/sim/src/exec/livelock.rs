//! Whether a warp goes round for ever.
//!
//! A warp that waits for others has to let them run, and may wait in vain: it does where it is again in a
//! state that it has been in, and nothing has happened in between. What it did then it will do again.
//! Variables that decide nothing in the loop that it goes round in are no part of its state
//! ([`crate::lower`] knows which do): how often it has asked, most often. So may all warps of a block
//! together, that meet in each round.

/// The state of a warp, or of all warps of a block, to which it may come back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LivelockDetector {
    /// What had happened at the last look.
    events: u64,
    /// How often there has been a look since, and the state at one of those times: some of it, and all.
    looks: u32,
    state: Option<(u64, u64)>,
}

impl LivelockDetector {
    /// Whether nothing has happened since this was asked last; what has is known by its number.
    pub(crate) fn is_quiet(&mut self, events: u64) -> bool {
        let quiet = self.events == events;
        if !quiet {
            *self = Self { events, ..Self::default() };
        }
        quiet
    }

    /// Whether this is a state that there has been, while all was quiet. The whole is asked for only where
    /// what is brief does not tell.
    pub(crate) fn again(&mut self, brief: u64, whole: impl FnOnce() -> u64) -> bool {
        self.looks += 1;
        // As Brent finds cycles of whatever length: the state to come back to is ever younger.
        let younger = self.looks.is_power_of_two();
        if !younger && self.state.is_none_or(|(then, _)| then != brief) {
            return false;
        }
        let state = Some((brief, whole()));
        let again = self.state == state;
        if younger {
            self.state = state;
        }
        again
    }
}
