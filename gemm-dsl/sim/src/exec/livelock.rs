//! Livelock detection: warps that poll forever.
//!
//! A warp that polls lets other warps run. It polls forever if it returns to an earlier state and
//! no event has occurred since, because it then repeats the same steps. Variables that do not
//! influence the loop, such as a round counter, are not part of the state ([`crate::lower`]
//! determines them). The same holds for all warps of a block that meet in every round.

/// Detector of a repeated state of a warp, or of all warps of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LivelockDetector {
    /// Number of events at the last check.
    events: u64,
    /// Number of checks since the last event. `state` is the state at one of these checks, as a
    /// brief hash and a full hash.
    looks: u32,
    state: Option<(u64, u64)>,
}

impl LivelockDetector {
    /// Returns true if no event has occurred since the last call. Otherwise restarts the detection.
    pub(crate) fn is_quiet(&mut self, events: u64) -> bool {
        let quiet = self.events == events;
        if !quiet {
            *self = Self { events, ..Self::default() };
        }
        quiet
    }

    /// Returns true if the state has occurred before since the last event. The full hash is
    /// computed only if the brief hash is equal.
    pub(crate) fn again(&mut self, brief: u64, whole: impl FnOnce() -> u64) -> bool {
        self.looks += 1;
        // Brent's cycle detection. The stored state is replaced at every power of two, which finds
        // cycles of any length.
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
