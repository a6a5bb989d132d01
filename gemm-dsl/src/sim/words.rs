//! Words at which threads meet: the race detector of buffers that atomics work on, and of global memory
//! where blocks speak to one another.
//!
//! Two atomics do not race if each is in the other's scope; an ordinary access must be ordered with
//! all others but reads. All accesses of a word are kept until an ordinary write comes after them.
//! What atomics hand on by a word is kept apart ([`super::handover`]): most words see none.

use super::clock::Clocks;
use super::handover::Handovers;
use super::timeline::{Timeline, Touch};
use crate::ir::Scope;
use std::collections::{BTreeMap, HashMap};

/// Who accesses: a timeline of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Agent {
    pub(super) block: u32,
    /// Its number in the block.
    pub(super) number: u32,
}

/// An access that is about to happen.
#[derive(Clone, Copy)]
pub(super) struct Access<'c> {
    pub(super) clocks: &'c Clocks,
    pub(super) block: u32,
    pub(super) thread: usize,
    pub(super) on: Timeline,
    pub(super) touch: Touch,
}

/// An earlier access that it is not ordered after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unordered {
    pub(super) agent: Agent,
    pub(super) epoch: u32,
    pub(super) wrote: bool,
}

/// The last epoch in which each agent has made an access of one kind.
#[derive(Debug)]
enum Past {
    /// In the order of agents.
    Few(Vec<(Agent, u32)>),
    Many(BTreeMap<Agent, u32>),
}

/// So many are few.
const FEW: usize = 16;

impl Default for Past {
    fn default() -> Self {
        Past::Few(Vec::new())
    }
}

impl Past {
    fn insert(&mut self, agent: Agent, epoch: u32) {
        match self {
            Past::Many(many) => _ = many.insert(agent, epoch),
            Past::Few(few) => match few.binary_search_by_key(&agent, |&(a, _)| a) {
                Ok(at) => few[at].1 = epoch,
                Err(at) if few.len() < FEW => few.insert(at, (agent, epoch)),
                Err(_) => {
                    let more = std::iter::once((agent, epoch));
                    *self = Past::Many(few.drain(..).chain(more).collect());
                }
            },
        }
    }

    /// The first in the order of agents of which that holds.
    fn find(&self, of: impl Fn(Agent, u32) -> bool) -> Option<(Agent, u32)> {
        match self {
            Past::Few(few) => few.iter().copied().find(|&(agent, epoch)| of(agent, epoch)),
            Past::Many(many) => {
                many.iter().map(|(&a, &e)| (a, e)).find(|&(agent, epoch)| of(agent, epoch))
            }
        }
    }
}

/// The atomics on a word.
#[derive(Debug)]
struct Atomics {
    /// Those whose scope is the block, and those whose scope is the device.
    by_scope: [Past; 2],
    last: Agent,
}

/// What is remembered of a word.
#[derive(Debug, Default)]
struct Word {
    write: Option<(Agent, u32)>,
    /// Since that.
    reads: Past,
    atomics: Option<Box<Atomics>>,
}

/// Words by the number of their buffer and element.
#[derive(Debug, Default)]
pub(super) struct Words {
    words: HashMap<(usize, u32), Word>,
    pub(super) handovers: Handovers,
}

impl Words {
    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.handovers.clear();
    }

    /// Checks and records an access.
    pub(super) fn access(
        &mut self,
        at: (usize, u32),
        access: &Access<'_>,
    ) -> Result<(), Unordered> {
        let word = self.words.entry(at).or_default();
        access.after_write(word.write)?;
        if access.touch != Touch::Read {
            access.after(&word.reads, false, |_| true)?;
        }
        if let Some(Atomics { by_scope: [block, device], .. }) = word.atomics.as_deref() {
            // Two of one block are in each other's scope, whatever it is.
            let elsewhere = |agent: Agent| agent.block != access.block;
            match access.touch {
                Touch::Read | Touch::Write => {
                    access.after(block, true, |_| true)?;
                    access.after(device, true, |_| true)?;
                }
                Touch::Atomic(Scope::Device) => access.after(block, true, elsewhere)?,
                Touch::Atomic(_) => {
                    access.after(block, true, elsewhere)?;
                    access.after(device, true, elsewhere)?;
                }
            }
        }
        let agent = Agent { block: access.block, number: access.agent() };
        let epoch = access.clocks.epoch(access.thread, access.on);
        match access.touch {
            Touch::Read => word.reads.insert(agent, epoch),
            Touch::Write => *word = Word { write: Some((agent, epoch)), ..Word::default() },
            Touch::Atomic(scope) => {
                let none = || Box::new(Atomics { by_scope: Default::default(), last: agent });
                let atomics = word.atomics.get_or_insert_with(none);
                atomics.by_scope[usize::from(scope == Scope::Device)].insert(agent, epoch);
                atomics.last = agent;
            }
        }
        Ok(())
    }

    /// The agent that has written a word last, if one has.
    pub(super) fn writer(&self, at: (usize, u32)) -> Option<Agent> {
        let word = self.words.get(&at)?;
        let atomic = word.atomics.as_ref().map(|atomics| atomics.last);
        atomic.or(word.write.map(|(agent, _)| agent))
    }
}

impl Access<'_> {
    fn agent(&self) -> u32 {
        self.clocks.agent(self.thread, self.on)
    }

    fn is_after(&self, agent: Agent, epoch: u32) -> bool {
        match agent.block == self.block {
            true => self.clocks.ordered(self.thread, self.on, agent.number as usize, epoch),
            false => self.clocks.knows(self.thread, self.on, (agent.block, agent.number), epoch),
        }
    }

    fn after_write(&self, write: Option<(Agent, u32)>) -> Result<(), Unordered> {
        match write {
            Some((agent, epoch)) if !self.is_after(agent, epoch) => {
                Err(Unordered { agent, epoch, wrote: true })
            }
            _ => Ok(()),
        }
    }

    /// Fails if it does not come after one of those accesses that count.
    fn after(
        &self,
        past: &Past,
        wrote: bool,
        counts: impl Fn(Agent) -> bool,
    ) -> Result<(), Unordered> {
        match past.find(|agent, epoch| counts(agent) && !self.is_after(agent, epoch)) {
            None => Ok(()),
            Some((agent, epoch)) => Err(Unordered { agent, epoch, wrote }),
        }
    }
}
