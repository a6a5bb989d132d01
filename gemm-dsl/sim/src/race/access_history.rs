//! Race detection for words that atomics access, and for global memory in kernels whose blocks
//! synchronise.
//!
//! Two atomics do not race if each is in the scope of the other. All other pairs of accesses must
//! be ordered, except two reads. The history keeps all accesses of a word until the next ordinary
//! write. Release sequences are kept separately ([`crate::race::release_sequence`]), because most
//! words have none. A word with only a write takes 24 bytes.

use super::clock::Clocks;
use crate::race::model::{Timeline, WordEffect};
use crate::race::release_sequence::ReleaseSequences;
use crate::region::ElementId;
use gemm_dsl::ir::Scope;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Bound;

/// Agent of an access, which is a timeline of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Agent {
    pub(crate) block: u32,
    /// Number of the agent in the block.
    pub(crate) number: u32,
}

#[derive(Clone, Copy)]
pub(crate) struct Access<'c> {
    pub(crate) clocks: &'c Clocks,
    pub(crate) block: u32,
    pub(crate) thread: usize,
    pub(crate) on: Timeline,
    pub(crate) touch: WordEffect,
    /// True if the buffer is declared exclusive. Then only accesses of the same thread count as
    /// ordered.
    pub(crate) exclusive: bool,
}

/// Earlier access that is not ordered with the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnorderedAccess {
    pub(crate) agent: Agent,
    pub(crate) epoch: u32,
    pub(crate) wrote: bool,
}

/// Last epoch in which each agent made an access of one kind.
#[derive(Clone, Debug)]
enum LastEpochs {
    /// List sorted by agent.
    Few(Vec<(Agent, u32)>),
    Many(BTreeMap<Agent, u32>),
}

/// Maximum length of [`LastEpochs::Few`]. A longer list becomes a tree.
const FEW: usize = 16;

impl Default for LastEpochs {
    fn default() -> Self {
        LastEpochs::Few(Vec::new())
    }
}

impl LastEpochs {
    fn insert(&mut self, agent: Agent, epoch: u32) {
        match self {
            LastEpochs::Many(many) => _ = many.insert(agent, epoch),
            LastEpochs::Few(few) => match few.binary_search_by_key(&agent, |&(a, _)| a) {
                Ok(at) => few[at].1 = epoch,
                Err(at) if few.len() < FEW => few.insert(at, (agent, epoch)),
                Err(_) => {
                    let more = std::iter::once((agent, epoch));
                    *self = LastEpochs::Many(few.drain(..).chain(more).collect());
                }
            },
        }
    }

    /// Returns the first agent, in ascending order, for which `of` is true. Agents of block `but`
    /// are skipped.
    fn find(&self, but: Option<u32>, of: impl Fn(Agent, u32) -> bool) -> Option<(Agent, u32)> {
        let counts = |agent: Agent| but != Some(agent.block);
        match self {
            LastEpochs::Few(few) => few.iter().copied().find(|&(a, e)| counts(a) && of(a, e)),
            LastEpochs::Many(many) => {
                let first = |block| Agent { block, number: 0 };
                let all = (Bound::Unbounded, Bound::Unbounded);
                let below = |block| (Bound::Unbounded, Bound::Excluded(first(block)));
                let above = |block| (Bound::Included(first(block + 1)), Bound::Unbounded);
                let (some, others) = (but.map_or(all, below), but.map(above));
                let others = others.into_iter().flat_map(|others| many.range(others));
                many.range(some).chain(others).map(|(&a, &e)| (a, e)).find(|&(a, e)| of(a, e))
            }
        }
    }
}

#[derive(Clone, Debug)]
struct AtomicHistory {
    /// Atomics of block scope, and atomics of device scope.
    by_scope: [LastEpochs; 2],
    last: Agent,
}

#[derive(Clone, Debug, Default)]
struct WordHistory {
    /// Last ordinary write. Epochs start at 1.
    write: Option<(Agent, NonZeroU32)>,
    since: Option<Box<LaterAccesses>>,
}

const _: () = assert!(size_of::<WordHistory>() <= 24);

/// Accesses since the last ordinary write.
#[derive(Clone, Debug, Default)]
struct LaterAccesses {
    reads: LastEpochs,
    atomics: Option<Box<AtomicHistory>>,
}

/// Histories of [`PAGE`] adjacent words.
type HistoryPage = Box<[WordHistory]>;
const PAGE: usize = 64;

/// Access histories, by buffer number and element number.
#[derive(Debug, Default)]
pub(crate) struct AccessHistory {
    buffers: Vec<Vec<Option<HistoryPage>>>,
    pub(crate) releases: ReleaseSequences,
}

impl AccessHistory {
    pub(crate) fn clear(&mut self) {
        self.buffers.clear();
        self.releases.clear();
    }

    fn word(&mut self, at: ElementId) -> &mut WordHistory {
        let ElementId { buffer, element } = at;
        let (page, at) = (element as usize / PAGE, element as usize % PAGE);
        if self.buffers.len() <= buffer {
            self.buffers.resize_with(buffer + 1, Vec::new);
        }
        let pages = &mut self.buffers[buffer];
        if pages.len() <= page {
            pages.resize_with(page + 1, || None);
        }
        let page = pages[page].get_or_insert_with(|| vec![WordHistory::default(); PAGE].into());
        &mut page[at]
    }

    /// Calls `element` for each element of a buffer that was written.
    pub(crate) fn written(&self, buffer: usize, mut element: impl FnMut(u32)) {
        let pages = self.buffers.get(buffer).into_iter().flatten().enumerate();
        for (page, words) in pages.filter_map(|(page, words)| Some((page, words.as_ref()?))) {
            for (at, word) in words.iter().enumerate() {
                if word.writer().is_some() {
                    element((page * PAGE + at) as u32);
                }
            }
        }
    }

    pub(crate) fn access(
        &mut self,
        at: ElementId,
        access: &Access<'_>,
    ) -> Result<(), UnorderedAccess> {
        let word = self.word(at);
        access.after_write(word.write)?;
        if let Some(LaterAccesses { reads, atomics }) = word.since.as_deref() {
            if access.touch != WordEffect::Read {
                access.after(reads, false, None)?;
            }
            if let Some(AtomicHistory { by_scope: [block, device], .. }) = atomics.as_deref() {
                // Two atomics of the same block are in each other's scope, whatever the scopes are.
                let own = Some(access.block);
                match access.touch {
                    WordEffect::Read | WordEffect::Write => {
                        access.after(block, true, None)?;
                        access.after(device, true, None)?;
                    }
                    WordEffect::Atomic(Scope::Device) => access.after(block, true, own)?,
                    WordEffect::Atomic(_) => {
                        access.after(block, true, own)?;
                        access.after(device, true, own)?;
                    }
                }
            }
        }
        let agent = Agent { block: access.block, number: access.agent() };
        let epoch = access.clocks.epoch(access.thread, access.on);
        match access.touch {
            WordEffect::Read => word.since.get_or_insert_default().reads.insert(agent, epoch),
            WordEffect::Write => {
                let write = NonZeroU32::new(epoch).map(|epoch| (agent, epoch));
                *word = WordHistory { write, since: None };
            }
            WordEffect::Atomic(scope) => {
                let none = || Box::new(AtomicHistory { by_scope: Default::default(), last: agent });
                let since = word.since.get_or_insert_default();
                let atomics = since.atomics.get_or_insert_with(none);
                atomics.by_scope[usize::from(scope == Scope::Device)].insert(agent, epoch);
                atomics.last = agent;
            }
        }
        Ok(())
    }

    /// Returns the agent that wrote a word last, if any.
    pub(crate) fn writer(&self, at: ElementId) -> Option<Agent> {
        let ElementId { buffer, element } = at;
        let page = self.buffers.get(buffer)?.get(element as usize / PAGE)?.as_ref()?;
        page[element as usize % PAGE].writer()
    }
}

impl WordHistory {
    fn writer(&self) -> Option<Agent> {
        let atomics = self.since.as_ref().and_then(|since| since.atomics.as_ref());
        atomics.map(|atomics| atomics.last).or(self.write.map(|(agent, _)| agent))
    }
}

impl Access<'_> {
    fn agent(&self) -> u32 {
        self.clocks.agent(self.thread, self.on)
    }

    fn is_after(&self, agent: Agent, epoch: u32) -> bool {
        let is_own = |agent: Agent| {
            agent.block == self.block
                && self.clocks.thread_of(agent.number).0 as usize == self.thread
        };
        match agent.block == self.block {
            _ if self.exclusive && !is_own(agent) => false,
            true => self.clocks.ordered(self.thread, self.on, agent.number as usize, epoch),
            false => self.clocks.knows(self.thread, self.on, agent.block, agent.number, epoch),
        }
    }

    fn after_write(&self, write: Option<(Agent, NonZeroU32)>) -> Result<(), UnorderedAccess> {
        match write.map(|(agent, epoch)| (agent, epoch.get())) {
            Some((agent, epoch)) if !self.is_after(agent, epoch) => {
                Err(UnorderedAccess { agent, epoch, wrote: true })
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if the access is not ordered with one of the past accesses. Accesses of
    /// block `but` are skipped.
    fn after(
        &self,
        past: &LastEpochs,
        wrote: bool,
        but: Option<u32>,
    ) -> Result<(), UnorderedAccess> {
        match past.find(but, |agent, epoch| !self.is_after(agent, epoch)) {
            None => Ok(()),
            Some((agent, epoch)) => Err(UnorderedAccess { agent, epoch, wrote }),
        }
    }
}
