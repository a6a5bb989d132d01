//! Named barriers and their arrivals.

use super::clock::Clocks;
use crate::mask::WARP;
use crate::race::model::ORDINARY;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// Arrival of a warp, with the epochs of its threads at this time.
#[derive(Debug)]
struct WarpArrival {
    warp: u32,
    epochs: [u32; WARP],
}

#[derive(Debug, Default)]
struct NamedBarrier {
    /// Number of participating threads that the arriving warps specify.
    expected: u32,
    arrivals: Vec<WarpArrival>,
    waiting: Vec<u32>,
    /// Arrivals of the previous round.
    before: Vec<WarpArrival>,
}

/// Named barriers of a block, by number.
#[derive(Debug, Default)]
pub(crate) struct NamedBarriers(BTreeMap<u32, NamedBarrier>);

/// Hashes arrivals and waiting warps for livelock detection. Epochs are not included, because they
/// differ in every round.
impl Hash for NamedBarriers {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (barrier, round) in &self.0 {
            (barrier, round.expected, &round.waiting).hash(state);
            round.arrivals.iter().for_each(|arrival| arrival.warp.hash(state));
        }
    }
}

/// Error for a warp that arrives twice in one round, or that does not know that the previous round
/// is complete.
pub(crate) struct TooEarly;

impl NamedBarriers {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Records the arrival of a warp at a barrier of `threads` threads. The warp must be ordered
    /// after all arrivals of the previous round, so that the check does not depend on the execution
    /// order.
    pub(crate) fn arrive(
        &mut self,
        clocks: &Clocks,
        barrier: u32,
        threads: u32,
        warp: u32,
        wait: bool,
    ) -> Result<(), TooEarly> {
        let round = self.0.entry(barrier).or_default();
        if round.arrivals.iter().any(|a| a.warp == warp)
            || !round.before.iter().all(|before| before.is_known(clocks, warp))
        {
            return Err(TooEarly);
        }
        let first = warp as usize * WARP;
        let epochs = std::array::from_fn(|lane| clocks.epoch(first + lane, ORDINARY));
        round.arrivals.push(WarpArrival { warp, epochs });
        round.expected = threads;
        round.waiting.extend(wait.then_some(warp));
        Ok(())
    }

    /// Ends a complete round, and returns the warps that waited for it.
    pub(crate) fn complete(&mut self, barrier: u32) -> Option<Vec<u32>> {
        let round = self.0.get_mut(&barrier).filter(|r| r.arrived() >= r.expected)?;
        round.before = std::mem::take(&mut round.arrivals);
        Some(std::mem::take(&mut round.waiting))
    }

    /// Number of arrived threads and number of participating threads of a barrier.
    pub(crate) fn count(&self, barrier: u32) -> (u32, u32) {
        self.0.get(&barrier).map_or((0, 0), |round| (round.arrived(), round.expected))
    }
}

impl NamedBarrier {
    /// Number of arrived threads, in which a partial warp counts as a full one.
    fn arrived(&self) -> u32 {
        (self.arrivals.len() * WARP) as u32
    }
}

impl WarpArrival {
    /// Returns true if a warp is ordered after this arrival. Both warps act as a whole, so it
    /// suffices that one thread of the warp knows of one thread of the other.
    fn is_known(&self, clocks: &Clocks, warp: u32) -> bool {
        let first = |warp: u32| warp as usize * WARP;
        let arrivals = self.epochs.iter().enumerate();
        let mut arrivals = arrivals.map(|(lane, &epoch)| {
            (clocks.agent(first(self.warp) + lane, ORDINARY) as usize, epoch)
        });
        arrivals.any(|(agent, epoch)| {
            let mut lanes = first(warp)..first(warp) + WARP;
            lanes.any(|thread| clocks.ordered(thread, ORDINARY, agent, epoch))
        })
    }
}
