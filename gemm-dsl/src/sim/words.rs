//! Words at which threads meet: the race detector of buffers that atomics work on, and of global memory
//! where blocks speak to one another.
//!
//! An atomic's word is a synchronisation object: it keeps what was left in it by those that released,
//! for those that acquire. Every atomic reads and writes, so each hands on what was left before it, unless
//! it and the one before are not in each other's scope.
//! Two atomics do not race if each is in the other's scope; an ordinary access must be ordered with
//! all others but reads. All accesses of a word are kept until an ordinary write comes after them.

use super::clock::{Clocks, Left};
use super::timeline::Timeline;
use crate::ir::{Order, Scope};
use std::collections::{BTreeMap, HashMap};

/// Who accesses: a timeline of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Agent {
    pub(super) block: u32,
    /// Its number in the block.
    pub(super) number: u32,
}

/// What an access does to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    Read,
    Write,
    /// An atomic of this scope.
    Atomic(Scope),
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
type Past = BTreeMap<Agent, u32>;

/// What is remembered of a word.
#[derive(Debug, Default)]
struct Word {
    writes: Past,
    reads: Past,
    /// Atomics whose scope is the block, and those whose scope is the device.
    atomics: [Past; 2],
    /// What was left for all threads of the launch, and for those of each block.
    left: Option<Left>,
    left_in: BTreeMap<u32, Left>,
    /// The block and scope of the last atomic that wrote.
    last: Option<(u32, Scope)>,
}

/// Words by the number of their buffer and element.
#[derive(Debug, Default)]
pub(super) struct Words(HashMap<(usize, u32), Word>);

impl Words {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Checks and records an access.
    pub(super) fn access(
        &mut self,
        at: (usize, u32),
        access: &Access<'_>,
    ) -> Result<(), Unordered> {
        let word = self.0.entry(at).or_default();
        access.after(&word.writes, true)?;
        let [block, device] = &word.atomics;
        match access.touch {
            Touch::Read => {
                access.after(block, true)?;
                access.after(device, true)?;
            }
            Touch::Write => {
                access.after(&word.reads, false)?;
                access.after(block, true)?;
                access.after(device, true)?;
            }
            Touch::Atomic(scope) => {
                access.after(&word.reads, false)?;
                // Two of one block are in each other's scope, whatever it is.
                let elsewhere = |past: &Past| {
                    let others = past.iter().filter(|(a, _)| a.block != access.block);
                    others.map(|(&a, &e)| (a, e)).collect::<Past>()
                };
                access.after(&elsewhere(block), true)?;
                if scope != Scope::Device {
                    access.after(&elsewhere(device), true)?;
                }
            }
        }
        let agent = Agent { block: access.block, number: access.agent() };
        let past = match access.touch {
            Touch::Read => &mut word.reads,
            Touch::Write => {
                let nobody = || (Past::new(), [Past::new(), Past::new()]);
                (word.reads, word.atomics) = nobody();
                word.writes.clear();
                &mut word.writes
            }
            Touch::Atomic(scope) => &mut word.atomics[usize::from(scope == Scope::Device)],
        };
        past.insert(agent, access.clocks.epoch(access.thread, access.on));
        Ok(())
    }

    /// The agent that has written a word last, in the order of agents, if one has.
    pub(super) fn writer(&self, at: (usize, u32)) -> Option<Agent> {
        let word = self.0.get(&at)?;
        let [block, device] = &word.atomics;
        [&word.writes, block, device].into_iter().find_map(|past| past.keys().next().copied())
    }
}

impl Access<'_> {
    fn agent(&self) -> u32 {
        self.clocks.agent(self.thread, self.on)
    }

    fn after(&self, past: &Past, wrote: bool) -> Result<(), Unordered> {
        let ordered = |agent: &Agent, epoch: u32| match agent.block == self.block {
            true => self.clocks.ordered(self.thread, self.on, agent.number as usize, epoch),
            false => self.clocks.knows(self.thread, self.on, (agent.block, agent.number), epoch),
        };
        match past.iter().find(|(agent, epoch)| !ordered(agent, **epoch)) {
            None => Ok(()),
            Some((&agent, &epoch)) => Err(Unordered { agent, epoch, wrote }),
        }
    }
}

/// What the fences of a thread stand for.
#[derive(Clone, Debug, Default)]
pub(super) struct Fenced {
    /// What the thread has done before its last fence of the block, and of the device: left by every
    /// atomic behind it.
    left: [Option<Left>; 2],
    /// What the atomics before the next fence have found, for those fences to take over.
    found: [Option<Left>; 2],
}

/// Whether an order takes over what others have left.
fn acquires(order: Order) -> bool {
    matches!(order, Order::Acquire | Order::AcqRel | Order::SeqCst)
}

/// Whether an order leaves something for others.
fn releases(order: Order) -> bool {
    matches!(order, Order::Release | Order::AcqRel | Order::SeqCst)
}

impl Words {
    /// A thread's atomic on a word takes over what its order says, and leaves it where it has written.
    pub(super) fn synchronise(
        &mut self,
        at: (usize, u32),
        (clocks, block, thread): (&mut Clocks, u32, usize),
        (order, scope, wrote): (Order, Scope, bool),
        fenced: &mut Fenced,
    ) {
        let word = self.0.entry(at).or_default();
        let device = scope == Scope::Device;
        let continues = word.last.is_none_or(|(of, s)| of == block || device && s == Scope::Device);
        let global = word.left.as_ref().filter(|_| device);
        let found = Left::and(word.left_in.get(&block), global).filter(|_| continues);
        if let Some(found) = found {
            if acquires(order) {
                clocks.acquire(block, thread, &found);
            } else {
                // A fence behind it takes over what is in the scopes of both.
                let own = word.left_in.get(&block).cloned();
                fenced.found[0] = Left::and(fenced.found[0].as_ref(), own.as_ref());
                fenced.found[1] = Left::and(fenced.found[1].as_ref(), Some(&found));
            }
        }
        if !wrote {
            return;
        }
        word.last = Some((block, scope));
        if !continues {
            (word.left, word.left_in) = (None, BTreeMap::new());
        }
        let mut leave = |left: &Left, device: bool| {
            if device {
                word.left = Left::and(word.left.as_ref(), Some(left));
            }
            let own = word.left_in.get(&block);
            let own = Left::and(own, Some(left));
            own.map(|own| word.left_in.insert(block, own));
        };
        if releases(order) {
            leave(&clocks.release(block, thread), device);
        }
        for (i, left) in fenced.left.iter().enumerate() {
            if let Some(left) = left {
                leave(left, device && i == 1);
            }
        }
    }
}

impl Fenced {
    /// A fence: what atomics have found comes before it, and what it stands behind will be left by those
    /// that follow.
    pub(super) fn fence(&mut self, clocks: &mut Clocks, block: u32, thread: usize, scope: Scope) {
        let device = usize::from(scope == Scope::Device);
        if let Some(found) = self.found[device].take() {
            clocks.acquire(block, thread, &found);
        }
        let left = clocks.release(block, thread);
        for slot in &mut self.left[..=device] {
            *slot = Some(left.clone());
        }
    }
}
