//! What is known to be over: of the agents of a block, and of other blocks.

use crate::mask::WARP;
use crate::race::persistent_map::{Join, PersistentMap};
use std::cell::OnceCell;
use std::rc::Rc;

/// What is known of the agents of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct VectorClock {
    /// For each agent, the last epoch known to be over.
    agents: Box<[u32]>,
    /// For each row, the least of those.
    rows: Box<[u32]>,
}

impl VectorClock {
    pub(crate) fn new(agents: Vec<u32>) -> Self {
        let least = |row: &[u32]| row.iter().copied().fold(u32::MAX, u32::min);
        Self { rows: agents.chunks(WARP).map(least).collect(), agents: agents.into() }
    }

    /// Whether an epoch of an agent is known to be over. A thread knows more of itself.
    #[inline]
    pub(crate) fn covers(&self, agent: u32, epoch: u32) -> bool {
        self.agents[agent as usize] >= epoch
    }

    /// As [`VectorClock::covers`] for all agents of a row.
    #[inline]
    pub(crate) fn covers_row(&self, row: usize, epoch: u32) -> bool {
        self.rows[row] >= epoch
    }

    /// The last epoch of each agent that is known to be over.
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

/// What is known of blocks, by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockClocks(PersistentMap<VectorClock>);

impl BlockClocks {
    pub(crate) fn get(&self, block: u32) -> Option<&VectorClock> {
        self.0.get(block)
    }

    /// With what is known of a block, which is all that was and more.
    pub(crate) fn with(&self, block: u32, seen: VectorClock) -> Self {
        Self(self.0.with(block, seen))
    }

    /// What either holds: itself, if the other adds nothing.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self(self.0.and(&other.0, &VectorClock::and))
    }

    /// Whether it is the same, not just equal.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.is(&other.0)
    }
}

/// What a thread has learnt of others by synchronisation, in the view of one proxy.
#[derive(Clone, Debug, Default)]
pub(crate) struct AcquiredClock {
    /// Of its own block.
    pub(crate) here: VectorClock,
    /// Of all blocks that it has heard of; what that says of its own is in `here` too.
    pub(crate) blocks: BlockClocks,
}

/// What some know together.
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

/// Raises epochs to those of the others.
pub(crate) fn raise(epochs: &mut [u32], others: &[u32]) {
    epochs.iter_mut().zip(others).for_each(|(epoch, &other)| *epoch = (*epoch).max(other));
}

/// What threads have left for others, in the view of each proxy.
#[derive(Clone, Debug)]
pub(crate) struct ReleaseClock(pub(crate) Vec<BlockClocks>);

impl ReleaseClock {
    /// What either holds.
    pub(crate) fn and(a: Option<&Self>, b: Option<&Self>) -> Option<Self> {
        let (Some(a), Some(b)) = (a, b) else { return a.or(b).cloned() };
        Some(Self(a.0.iter().zip(&b.0).map(|(a, b)| a.and(b)).collect()))
    }
}

/// What threads that meet have brought, in the view of each proxy.
#[derive(Debug, Default)]
pub(crate) struct BarrierClock(pub(crate) Vec<JoinedClock>);

impl BarrierClock {
    /// The last epoch of an agent that those who brought it know to be over, in the view of statements.
    pub(crate) fn covers(&self, agent: u32, epoch: u32) -> bool {
        self.0.first().is_some_and(|sum| sum.agents[agent as usize] >= epoch)
    }

    /// Adds, in all views, that an epoch of an agent is over.
    pub(crate) fn add(&mut self, agent: u32, epoch: u32) {
        for sum in &mut self.0 {
            let known = &mut sum.agents[agent as usize];
            *known = (*known).max(epoch);
        }
    }
}

/// What a thread may leave for others, as long as nobody asks: most of it is what others know too.
#[derive(Debug)]
pub(crate) struct PendingRelease {
    /// In the view of each proxy what it had learnt, and of its own agents what it knew.
    pub(crate) learnt: Vec<Rc<AcquiredClock>>,
    pub(crate) own: Vec<Vec<(usize, u32)>>,
    pub(crate) left: OnceCell<ReleaseClock>,
}

impl PendingRelease {
    /// What a thread of block `block` leaves.
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
