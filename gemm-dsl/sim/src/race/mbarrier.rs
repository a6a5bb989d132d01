//! Barriers in shared memory: their phases, and what is known of them.
//!
//! A barrier's phases come one after the other. That one is over is an epoch of an agent, as what its copies have written is:
//! the agent is the barrier's, and epoch `n + 1` is phase `n`. So whether somebody may know that a phase is over is asked of
//! the clocks, and nothing depends on who ran first:
//! * Who arrives, or lets a copy count, knows that the phase before is over: else it might count there.
//! * Who waits for a parity means the phase that is to come after those it knows, or the last of those. That one must be the
//!   current one or the one before, whenever the wait is executed: so a phase is over only when all are known to have
//!   waited who wait for the one before.

use super::clock::Clocks;
use crate::error::MbarrierFault;
use crate::race::model::{Model, ORDINARY, TMA};
use crate::race::vector_clock::BarrierClock;
use gemm_dsl::ir::Mbarrier;
use std::hash::{Hash, Hasher};
use std::ops::Range;

/// An epoch of an agent.
#[derive(Clone, Copy, Debug)]
struct Moment {
    agent: u32,
    epoch: u32,
}

/// One barrier.
#[derive(Debug, Default)]
struct MbarrierState {
    made: Option<Initialisation>,
    /// Arrivals that are missing in the phase.
    pending: u32,
    /// Bytes that are expected in it and have not come; below zero where more have come.
    bytes: i64,
    /// The number of the phase.
    phase: u32,
    /// What those who have arrived have left, and what those had who completed the phase before.
    arrived: BarrierClock,
    complete: BarrierClock,
    /// The agents that have waited for the phase before, and when.
    waited: Vec<Moment>,
    /// The last phase in which a copy was issued, counted from 1, and who has issued it.
    copied: Option<(u32, Issuer)>,
    /// Phases of other barriers that those had come after who issued its copies in other blocks.
    carried: Vec<Moment>,
    /// The agents that have arrived from other blocks, when they did so last, and where.
    from_others: Vec<RemoteArrival>,
}

/// An arrival from another block: when it was, the phase to which it counts, from 1, and where.
#[derive(Debug)]
struct RemoteArrival {
    then: Moment,
    phase: u32,
    issuer: Issuer,
}

/// A thread that has issued a copy, or has arrived, and the number of the statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Issuer {
    pub(crate) thread: u32,
    pub(crate) stmt: u32,
}

/// That a thread has made it a barrier.
#[derive(Debug)]
struct Initialisation {
    expected: u32,
    by: Moment,
    /// When a fence has shown it to asynchronous units.
    shown: Vec<Moment>,
}

/// What a barrier that somebody waits for lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PhaseState {
    pub(crate) phase: u32,
    pub(crate) arrivals: u32,
    pub(crate) bytes: i64,
}

/// What an arrival does to a phase, beside being one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Bytes that the barrier expects from then on.
    pub(crate) bytes: i64,
    /// Whether it leaves behind what the thread knows of asynchronous work alone.
    pub(crate) relaxed: bool,
}

/// The barriers of a block, or of those of a cluster, one block's after the other's.
#[derive(Debug, Default)]
pub(crate) struct Mbarriers {
    objects: Vec<MbarrierState>,
    /// How many phases are over.
    pub(crate) completed: u64,
}

/// What two states have in common between which nothing has happened: not how many phases there have been.
impl Hash for Mbarriers {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for object in &self.objects {
            (object.made.is_some(), object.pending, object.bytes, object.phase % 2).hash(state);
        }
    }
}

type Checked<T = ()> = Result<T, MbarrierFault>;

fn now(clocks: &Clocks, thread: usize) -> Moment {
    Moment { agent: clocks.agent(thread, ORDINARY), epoch: clocks.epoch(thread, ORDINARY) }
}

/// Whether a moment comes before what a thread does by its own statements.
fn is_known(clocks: &Clocks, thread: usize, moment: Moment) -> bool {
    clocks.ordered(thread, ORDINARY, moment.agent as usize, moment.epoch)
}

impl Mbarriers {
    /// A block, or a cluster, with so many begins.
    pub(crate) fn begin(&mut self, count: u32) {
        self.objects.clear();
        self.objects.resize_with(count as usize, MbarrierState::default);
        self.completed = 0;
    }

    /// A thread makes a barrier.
    pub(crate) fn make(
        &mut self,
        clocks: &Clocks,
        slot: usize,
        thread: usize,
        expected: u32,
    ) -> Checked {
        let object = &mut self.objects[slot];
        if object.made.is_some() {
            return Err(MbarrierFault::AlreadyMade);
        }
        object.made = Some(Initialisation { expected, by: now(clocks, thread), shown: Vec::new() });
        object.pending = expected;
        Ok(())
    }

    /// A thread shows asynchronous units the barriers that it has made.
    pub(crate) fn show(&mut self, clocks: &Clocks, thread: usize) {
        let now = now(clocks, thread);
        let made = self.objects.iter_mut().filter_map(|object| object.made.as_mut());
        made.filter(|made| made.by.agent == now.agent).for_each(|made| made.shown.push(now));
    }

    /// A barrier of which a thread knows that it is one.
    fn made(&mut self, clocks: &Clocks, slot: usize, thread: usize) -> Checked<&mut MbarrierState> {
        let object = &mut self.objects[slot];
        match &object.made {
            None => Err(MbarrierFault::NotMade),
            Some(made) if !is_known(clocks, thread, made.by) => Err(MbarrierFault::NotKnown),
            Some(_) => Ok(object),
        }
    }

    /// Fails where a fence of who has made a barrier has not shown it, as a thread would know.
    fn shown(&self, clocks: &Clocks, slot: usize, thread: usize) -> Checked {
        let is_shown = self.objects[slot].made.as_ref().is_some_and(|made| {
            let Moment { agent, epoch } = made.by;
            clocks.ordered(thread, TMA, agent as usize, epoch)
                || made.shown.iter().any(|&then| is_known(clocks, thread, then))
        });
        if is_shown { Ok(()) } else { Err(MbarrierFault::NotShown) }
    }

    /// How many phases of a barrier a thread knows to be over.
    fn known(clocks: &Clocks, slot: usize, thread: usize) -> u32 {
        clocks.learnt(thread, clocks.agent(slot, TMA))
    }

    /// A thread arrives.
    pub(crate) fn arrive(
        &mut self,
        clocks: &mut Clocks,
        slot: usize,
        thread: usize,
        arrival: Arrival,
    ) -> Checked {
        let Arrival { bytes, relaxed } = arrival;
        let object = self.made(clocks, slot, thread)?;
        if Self::known(clocks, slot, thread) != object.phase {
            return Err(MbarrierFault::TooEarly { phase: object.phase });
        }
        let most = i64::from(Mbarrier::MOST);
        let sum = object.bytes.saturating_add(bytes);
        if !(0..=most).contains(&bytes) || sum > most {
            return Err(MbarrierFault::TooManyBytes { bytes: sum });
        }
        if object.pending == 0 {
            return Err(MbarrierFault::TooManyArrivals { phase: object.phase });
        }
        match relaxed {
            false => clocks.arrive(thread, &mut object.arrived),
            true => clocks.arrive_relaxed(thread, &mut object.arrived),
        }
        (object.bytes, object.pending) = (sum, object.pending - 1);
        self.settle(clocks, slot)
    }

    /// A thread of another block arrives, in the statement of this number.
    pub(crate) fn arrive_from_other(
        &mut self,
        clocks: &mut Clocks,
        slot: usize,
        thread: usize,
        stmt: u32,
        relaxed: bool,
    ) -> Checked {
        self.made(clocks, slot, thread)?;
        self.shown(clocks, slot, thread)?;
        let object = &mut self.objects[slot];
        let last = RemoteArrival {
            then: now(clocks, thread),
            phase: object.phase + 1,
            issuer: Issuer { thread: thread as u32, stmt },
        };
        match object.from_others.iter_mut().find(|other| other.then.agent == last.then.agent) {
            Some(other) => *other = last,
            None => object.from_others.push(last),
        }
        self.arrive(clocks, slot, thread, Arrival { bytes: 0, relaxed })
    }

    /// Fails where a copy that a thread is about to issue may not count at a barrier.
    pub(crate) fn may_copy(&mut self, clocks: &Clocks, slot: usize, thread: usize) -> Checked {
        self.made(clocks, slot, thread)?;
        self.shown(clocks, slot, thread)?;
        let phase = self.objects[slot].phase;
        match Self::known(clocks, slot, thread) == phase {
            true => Ok(()),
            false => Err(MbarrierFault::TooEarly { phase }),
        }
    }

    /// A copy that a thread issues counts at a barrier of another block, whose threads learn by it which phases the thread came
    /// after.
    pub(crate) fn carry(&mut self, clocks: &Clocks, slot: usize, thread: usize) {
        let over = (0..self.objects.len()).map(|of| {
            let agent = clocks.agent(of, TMA);
            Moment { agent, epoch: clocks.learnt(thread, agent) }
        });
        let over: Vec<Moment> = over.filter(|moment| moment.epoch > 0).collect();
        self.objects[slot].carried.extend(over);
    }

    /// Bytes of a copy have come.
    pub(crate) fn count(
        &mut self,
        clocks: &mut Clocks,
        slot: usize,
        issuer: Issuer,
        bytes: u64,
    ) -> Checked {
        let object = &mut self.objects[slot];
        object.copied = Some((object.phase + 1, issuer));
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        object.bytes = object.bytes.saturating_sub(bytes);
        if object.bytes < -i64::from(Mbarrier::MOST) {
            return Err(MbarrierFault::TooManyBytes { bytes: object.bytes });
        }
        self.settle(clocks, slot)
    }

    /// Ends the phase of a barrier if nothing is missing.
    fn settle(&mut self, clocks: &mut Clocks, slot: usize) -> Checked {
        let object = &mut self.objects[slot];
        let Some(made) = object.made.as_ref().filter(|_| object.pending == 0 && object.bytes == 0)
        else {
            return Ok(());
        };
        let arrived = &object.arrived;
        if !object.waited.iter().all(|then| arrived.covers(then.agent, then.epoch)) {
            return Err(MbarrierFault::NotObserved { phase: object.phase });
        }
        object.waited.clear();
        object.complete = std::mem::take(&mut object.arrived);
        object.pending = made.expected;
        object.phase += 1;
        object.complete.add(clocks.agent(slot, TMA), object.phase);
        for Moment { agent, epoch } in object.carried.drain(..) {
            object.complete.add(agent, epoch);
        }
        clocks.close(slot, TMA);
        self.completed += 1;
        Ok(())
    }

    /// Whether the phase that a thread waits for by its parity lacks anything.
    pub(crate) fn lacking(
        &mut self,
        clocks: &Clocks,
        slot: usize,
        thread: usize,
        parity: u64,
    ) -> Checked<bool> {
        if parity > 1 {
            return Err(MbarrierFault::NoParity { parity: parity as i64 });
        }
        let object = self.made(clocks, slot, thread)?;
        let known = Self::known(clocks, slot, thread);
        // Counted from 1: phase 0 is the first, and before it there is one that is over.
        let meant = known + u32::from(u64::from(known % 2) == parity);
        if object.phase > meant {
            return Err(MbarrierFault::TooLate { phase: i64::from(meant) - 1, now: object.phase });
        }
        Ok(object.phase < meant)
    }

    /// Threads of a warp have waited for the last phase of a barrier that is over.
    pub(crate) fn wait(
        &mut self,
        clocks: &mut Clocks,
        model: &Model,
        slot: usize,
        threads: impl Iterator<Item = usize> + Clone,
    ) {
        let object = &mut self.objects[slot];
        object.waited.extend(threads.clone().map(|thread| {
            let (agent, epoch) = clocks.waits(&model.waits, thread);
            Moment { agent, epoch }
        }));
        clocks.find(&model.phase, threads, &object.complete);
    }

    /// What may come to a barrier when its block is gone, all of whose threads have left: a copy that none of them has waited
    /// for, or an arrival from another block that none of them came after. Who has done it, and what that is.
    pub(crate) fn left_behind(
        &self,
        clocks: &Clocks,
        threads_of: impl Fn(usize) -> Range<usize>,
    ) -> Option<(usize, Issuer, MbarrierFault)> {
        let mut objects = self.objects.iter().enumerate();
        objects.find_map(|(slot, object)| {
            let threads = || threads_of(slot);
            let copy = object.copied.filter(|&(phase, _)| {
                !threads().any(|thread| Self::known(clocks, slot, thread) >= phase)
            });
            // Who has waited for the phase knows of an arrival, or who comes after it anyhow.
            let arrival = object.from_others.iter().find(|other| {
                !threads().any(|thread| {
                    Self::known(clocks, slot, thread) >= other.phase
                        || is_known(clocks, thread, other.then)
                })
            });
            let copy = copy.map(|(_, issuer)| (slot, issuer, MbarrierFault::LeftBehind));
            copy.or(arrival.map(|other| (slot, other.issuer, MbarrierFault::Gone)))
        })
    }

    /// What a barrier lacks of its phase.
    pub(crate) fn state(&self, slot: usize) -> PhaseState {
        let MbarrierState { phase, pending, bytes, .. } = self.objects[slot];
        PhaseState { phase, arrivals: pending, bytes }
    }
}
