//! Vector clocks: the last complete epochs of the agents of a block and of other blocks.

use crate::mask::WARP;
use crate::race::persistent_map::{Join, PersistentMap};
use std::cell::OnceCell;
use std::rc::Rc;

/// Vector clock of the agents of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct VectorClock {
    /// Last epoch of each agent that is known to be complete.
    agents: Box<[u32]>,
    /// Minimum of each row of `agents`.
    rows: Box<[u32]>,
}

impl VectorClock {
    pub(crate) fn new(agents: Vec<u32>) -> Self {
        let least = |row: &[u32]| row.iter().copied().fold(u32::MAX, u32::min);
        Self { rows: agents.chunks(WARP).map(least).collect(), agents: agents.into() }
    }

    /// Returns true if an epoch of an agent is known to be complete. A thread's own epochs are
    /// stored elsewhere, and may be higher than those here.
    #[inline]
    pub(crate) fn covers(&self, agent: u32, epoch: u32) -> bool {
        self.agents[agent as usize] >= epoch
    }

    /// Returns true if [`VectorClock::covers`] holds for all agents of a row.
    #[inline]
    pub(crate) fn covers_row(&self, row: usize, epoch: u32) -> bool {
        self.rows[row] >= epoch
    }

    /// Last epoch of each agent that is known to be complete.
    #[inline]
    pub(crate) fn agents(&self) -> &[u32] {
        &self.agents
    }

    fn and(&self, other: &Self) -> Join<Self> {
        let all = |of: fn(&(&u32, &u32)) -> bool| {
            self.agents.iter().zip(&other.agents).all(|pair| of(&pair))
        };
        if all(|(a, b)| a >= b) {
            Join::First
        } else if all(|(a, b)| a <= b) {
            Join::Second
        } else {
            let mut agents = self.agents.to_vec();
            raise(&mut agents, &other.agents);
            Join::New(Self::new(agents))
        }
    }
}

/// Vector clocks of blocks, by block number.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockClocks(PersistentMap<VectorClock>);

impl BlockClocks {
    pub(crate) fn get(&self, block: u32) -> Option<&VectorClock> {
        self.0.get(block)
    }

    /// Returns a copy with a new clock for a block. The new clock must cover the old one.
    pub(crate) fn with(&self, block: u32, seen: VectorClock) -> Self {
        Self(self.0.with(block, seen))
    }

    /// Joins two clocks. If `other` adds nothing, returns the same nodes as `self`.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self(self.0.and(&other.0, &VectorClock::and))
    }

    /// Returns true if both clocks consist of the same nodes. Equal clocks may have different
    /// nodes.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.is(&other.0)
    }
}

/// Clock that a thread has acquired from other threads, in one proxy view.
#[derive(Clone, Debug, Default)]
pub(crate) struct AcquiredClock {
    pub(crate) here: VectorClock,
    /// Clocks of all known blocks. The entry for the thread's own block is also included in `here`.
    pub(crate) blocks: BlockClocks,
}

/// Join of the clocks of several threads.
#[derive(Clone, Debug)]
pub(crate) struct JoinedClock {
    pub(crate) agents: Vec<u32>,
    pub(crate) blocks: BlockClocks,
}

impl JoinedClock {
    pub(crate) fn new(known: &AcquiredClock) -> Self {
        Self { agents: known.here.agents.to_vec(), blocks: known.blocks.clone() }
    }

    pub(crate) fn add(&mut self, agents: &[u32], blocks: &BlockClocks) {
        raise(&mut self.agents, agents);
        self.blocks = self.blocks.and(blocks);
    }

    pub(crate) fn known(self) -> AcquiredClock {
        AcquiredClock { here: VectorClock::new(self.agents), blocks: self.blocks }
    }
}

/// Raises each epoch to the maximum of the two.
pub(crate) fn raise(epochs: &mut [u32], others: &[u32]) {
    epochs.iter_mut().zip(others).for_each(|(epoch, &other)| *epoch = (*epoch).max(other));
}

/// Clock that threads have released, for each proxy view.
#[derive(Clone, Debug)]
pub(crate) struct ReleaseClock(pub(crate) Vec<BlockClocks>);

impl ReleaseClock {
    /// Joins two clocks; `None` is the empty clock.
    pub(crate) fn and(a: Option<&Self>, b: Option<&Self>) -> Option<Self> {
        let (Some(a), Some(b)) = (a, b) else { return a.or(b).cloned() };
        Some(Self(a.0.iter().zip(&b.0).map(|(a, b)| a.and(b)).collect()))
    }
}

/// Clock gathered from threads that meet, for each proxy view.
#[derive(Debug, Default)]
pub(crate) struct BarrierClock(pub(crate) Vec<JoinedClock>);

impl BarrierClock {
    /// Returns true if the contributing threads know that an epoch of an agent is complete, in the
    /// view of ordinary accesses.
    pub(crate) fn covers(&self, agent: u32, epoch: u32) -> bool {
        self.0.first().is_some_and(|sum| sum.agents[agent as usize] >= epoch)
    }

    /// Marks an epoch of an agent as complete in all views.
    pub(crate) fn add(&mut self, agent: u32, epoch: u32) {
        for sum in &mut self.0 {
            let known = &mut sum.agents[agent as usize];
            *known = (*known).max(epoch);
        }
    }
}

/// Clock that a thread may release later, which is computed only if it is needed. Until then, it
/// mostly shares the clocks of other threads.
#[derive(Debug)]
pub(crate) struct PendingRelease {
    /// Acquired clock for each proxy view. `own` contains the known epochs of the thread's own
    /// agents, for each proxy view.
    pub(crate) learnt: Vec<Rc<AcquiredClock>>,
    pub(crate) own: Vec<Vec<(usize, u32)>>,
    pub(crate) left: OnceCell<ReleaseClock>,
}

impl PendingRelease {
    /// Returns the clock that a thread of `block` releases.
    pub(crate) fn left(&self, block: u32) -> &ReleaseClock {
        self.left.get_or_init(|| {
            let views = self.learnt.iter().zip(&self.own).map(|(known, own)| {
                let JoinedClock { mut agents, blocks } = JoinedClock::new(known);
                for &(agent, epoch) in own {
                    agents[agent] = agents[agent].max(epoch);
                }
                blocks.with(block, VectorClock::new(agents))
            });
            ReleaseClock(views.collect())
        })
    }
}
