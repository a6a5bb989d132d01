//! Livelock detection: warps that poll forever.
//!
//! A warp that polls lets the others run. It polls forever if it returns to an earlier state and
//! nothing has happened in between, because it will then repeat the same steps. Variables that do
//! not influence the loop, such as a round counter, are not part of its state ([`crate::lower`]
//! determines them). The same holds for all warps of a block that meet in every round.

/// State to which a warp, or all warps of a block, may return.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LivelockDetector {
    /// Event count at the last check.
    events: u64,
    /// Number of checks since the last event, and the state at one of them: its brief hash and its
    /// full hash.
    looks: u32,
    state: Option<(u64, u64)>,
}

impl LivelockDetector {
    /// Returns true if the event count is unchanged since the last call. Otherwise restarts the
    /// detection.
    pub(crate) fn is_quiet(&mut self, events: u64) -> bool {
        let quiet = self.events == events;
        if !quiet {
            *self = Self { events, ..Self::default() };
        }
        quiet
    }

    /// Returns true if the state has occurred before in the quiet period. The full hash is computed
    /// only if the brief one does not already differ.
    pub(crate) fn again(&mut self, brief: u64, whole: impl FnOnce() -> u64) -> bool {
        self.looks += 1;
        // Brent's cycle detection: the stored state is replaced at every power of two, so cycles of
        // any length are found.
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
