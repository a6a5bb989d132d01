//! Barriers with names: who has come to each.

use super::clock::Clocks;
use crate::mask::WARP;
use crate::race::model::ORDINARY;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// A warp that has come, and the epochs of its threads then.
#[derive(Debug)]
struct WarpArrival {
    warp: u32,
    epochs: [u32; WARP],
}

/// A barrier with a name.
#[derive(Debug, Default)]
struct NamedBarrier {
    /// The threads that take part.
    expected: u32,
    arrivals: Vec<WarpArrival>,
    /// Those of them that wait.
    waiting: Vec<u32>,
    /// Who came to the round before.
    before: Vec<WarpArrival>,
}

/// The barriers of a block, by their names.
#[derive(Debug, Default)]
pub(crate) struct NamedBarriers(BTreeMap<u32, NamedBarrier>);

/// Who has come to which and who waits: not when, by which no two rounds would be alike.
impl Hash for NamedBarriers {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (barrier, round) in &self.0 {
            (barrier, round.expected, &round.waiting).hash(state);
            round.arrivals.iter().for_each(|arrival| arrival.warp.hash(state));
        }
    }
}

/// A warp has come to a round that it is in, or before it could know that the last one is over.
pub(crate) struct TooEarly;

impl NamedBarriers {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// A warp comes to a barrier of so many threads. Whether it may must not depend on who runs when:
    /// that all have come to the round before has to be known to it.
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

    /// Ends the round of a barrier if all have come: the warps that have waited.
    pub(crate) fn complete(&mut self, barrier: u32) -> Option<Vec<u32>> {
        let round = self.0.get_mut(&barrier).filter(|r| r.arrived() >= r.expected)?;
        round.before = std::mem::take(&mut round.arrivals);
        Some(std::mem::take(&mut round.waiting))
    }

    /// The threads that have come to a barrier, and those that take part.
    pub(crate) fn count(&self, barrier: u32) -> (u32, u32) {
        self.0.get(&barrier).map_or((0, 0), |round| (round.arrived(), round.expected))
    }
}

impl NamedBarrier {
    /// A warp counts as a whole one, whatever it lacks.
    fn arrived(&self) -> u32 {
        (self.arrivals.len() * WARP) as u32
    }
}

impl WarpArrival {
    /// Whether a warp knows of it: it comes as a whole, and so did the other, so that any thread may know
    /// of any.
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
