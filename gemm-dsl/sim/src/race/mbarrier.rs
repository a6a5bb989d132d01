//! Mbarriers in shared memory: their phases, and their happens-before order.
//!
//! Each mbarrier has an agent of its own, whose epochs are the mbarrier's phases: epoch `n + 1` is
//! phase `n`. The agent also makes the writes of copies that the mbarrier counts. The clocks
//! therefore determine if a thread knows that a phase is complete, and the execution order does not
//! matter:
//! * A thread that arrives, or that issues a counted copy, must know that the previous phase is
//!   complete. Otherwise the arrival or the bytes might count in the previous phase.
//! * Consider the phases that a thread knows to be complete. A wait for a parity means the phase
//!   that follows them, or the last of them. At the time of the wait, this must be the current or
//!   the previous phase. A phase may therefore complete only after all waits for the previous phase
//!   are known to have returned.

use super::clock::Clocks;
use crate::error::MbarrierFault;
use crate::race::model::{Model, ORDINARY, TMA};
use crate::race::vector_clock::BarrierClock;
use gemm_dsl::ir::Mbarrier;
use std::hash::{Hash, Hasher};
use std::ops::Range;

#[derive(Clone, Copy, Debug)]
struct Moment {
    agent: u32,
    epoch: u32,
}

#[derive(Debug, Default)]
struct MbarrierState {
    made: Option<Initialisation>,
    /// Number of missing arrivals of the current phase.
    pending: u32,
    /// Number of missing bytes of the current phase; negative if more bytes have arrived than were
    /// expected.
    bytes: i64,
    phase: u32,
    /// Clock that arrivals in the current phase have released. `complete` is the clock of the
    /// previous phase.
    arrived: BarrierClock,
    complete: BarrierClock,
    /// Waits for the previous phase.
    waited: Vec<Moment>,
    /// Last phase, counted from 1, in which a copy was issued, with the issuer of the copy.
    copied: Option<(u32, Issuer)>,
    /// Phases of other mbarriers that issuers in other blocks knew to be complete.
    carried: Vec<Moment>,
    /// Last arrival of each thread that belongs to another block.
    from_others: Vec<RemoteArrival>,
}

/// Arrival from another block: its moment, its phase counted from 1, and the thread.
#[derive(Debug)]
struct RemoteArrival {
    then: Moment,
    phase: u32,
    issuer: Issuer,
}

/// Thread that issued a copy or arrived, and the number of the statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Issuer {
    pub(crate) thread: u32,
    pub(crate) stmt: u32,
}

/// Initialisation of an mbarrier by a thread.
#[derive(Debug)]
struct Initialisation {
    expected: u32,
    by: Moment,
    /// Fences that made the initialisation visible to asynchronous units.
    shown: Vec<Moment>,
}

/// Numbers of missing arrivals and bytes of the current phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PhaseState {
    pub(crate) phase: u32,
    pub(crate) arrivals: u32,
    pub(crate) bytes: i64,
}

/// Effects of an arrival in addition to the arrival itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Number of bytes that the arrival adds to the expected bytes of the phase.
    pub(crate) bytes: i64,
    /// True if the arrival releases only what the thread knows of asynchronous work.
    pub(crate) relaxed: bool,
}

/// Mbarriers of a block, or of all blocks of a cluster in order of rank.
#[derive(Debug, Default)]
pub(crate) struct Mbarriers {
    objects: Vec<MbarrierState>,
    pub(crate) completed: u64,
}

/// Hashes the state for livelock detection. The hash includes only the parity of the number of
/// phases.
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

/// Returns true if a moment happens before the next statement of a thread.
fn is_known(clocks: &Clocks, thread: usize, moment: Moment) -> bool {
    clocks.ordered(thread, ORDINARY, moment.agent as usize, moment.epoch)
}

impl Mbarriers {
    /// Starts a block, or a cluster, with `count` mbarriers.
    pub(crate) fn begin(&mut self, count: u32) {
        self.objects.clear();
        self.objects.resize_with(count as usize, MbarrierState::default);
        self.completed = 0;
    }

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

    /// Makes the mbarriers that a thread has initialised visible to asynchronous units.
    pub(crate) fn show(&mut self, clocks: &Clocks, thread: usize) {
        let now = now(clocks, thread);
        let made = self.objects.iter_mut().filter_map(|object| object.made.as_mut());
        made.filter(|made| made.by.agent == now.agent).for_each(|made| made.shown.push(now));
    }

    /// Returns an mbarrier if the thread knows of its initialisation.
    fn made(&mut self, clocks: &Clocks, slot: usize, thread: usize) -> Checked<&mut MbarrierState> {
        let object = &mut self.objects[slot];
        match &object.made {
            None => Err(MbarrierFault::NotMade),
            Some(made) if !is_known(clocks, thread, made.by) => Err(MbarrierFault::NotKnown),
            Some(_) => Ok(object),
        }
    }

    /// Returns [`MbarrierFault::NotShown`] if the thread is not ordered after a fence of the
    /// initialising thread.
    fn shown(&self, clocks: &Clocks, slot: usize, thread: usize) -> Checked {
        let is_shown = self.objects[slot].made.as_ref().is_some_and(|made| {
            let Moment { agent, epoch } = made.by;
            clocks.ordered(thread, TMA, agent as usize, epoch)
                || made.shown.iter().any(|&then| is_known(clocks, thread, then))
        });
        if is_shown { Ok(()) } else { Err(MbarrierFault::NotShown) }
    }

    /// Number of phases that a thread knows to be complete.
    fn known(clocks: &Clocks, slot: usize, thread: usize) -> u32 {
        clocks.learnt(thread, clocks.agent(slot, TMA))
    }

    /// Records an arrival. Adds the bytes that it expects, releases the thread's clock, and
    /// completes the phase if nothing is missing.
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

    /// Records an arrival of a thread of another block, at statement `stmt`.
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

    /// Returns a fault if a copy that the thread is about to issue must not count at this mbarrier.
    pub(crate) fn may_copy(&mut self, clocks: &Clocks, slot: usize, thread: usize) -> Checked {
        self.made(clocks, slot, thread)?;
        self.shown(clocks, slot, thread)?;
        let phase = self.objects[slot].phase;
        match Self::known(clocks, slot, thread) == phase {
            true => Ok(()),
            false => Err(MbarrierFault::TooEarly { phase }),
        }
    }

    /// For a copy that is counted in another block, passes on which phases its issuer knows to be
    /// complete. Threads that wait for the copy acquire this knowledge.
    pub(crate) fn carry(&mut self, clocks: &Clocks, slot: usize, thread: usize) {
        let over = (0..self.objects.len()).map(|of| {
            let agent = clocks.agent(of, TMA);
            Moment { agent, epoch: clocks.learnt(thread, agent) }
        });
        let over: Vec<Moment> = over.filter(|moment| moment.epoch > 0).collect();
        self.objects[slot].carried.extend(over);
    }

    /// Releases the clock of a thread that stores a value, to threads that wait for the phase in
    /// which its bytes count.
    pub(crate) fn release(&mut self, clocks: &mut Clocks, slot: usize, thread: usize) {
        clocks.arrive(thread, &mut self.objects[slot].arrived);
    }

    /// Counts bytes of a copy that have arrived.
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

    /// Completes the current phase if nothing is missing.
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

    /// Returns the missing arrivals and bytes if the phase for which a thread waits, given by
    /// parity, is incomplete.
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
        // Phases count from 1 here, and the phase before the first is complete from the start.
        let meant = known + u32::from(u64::from(known % 2) == parity);
        if object.phase > meant {
            return Err(MbarrierFault::TooLate { phase: i64::from(meant) - 1, now: object.phase });
        }
        Ok(object.phase < meant)
    }

    /// Records that threads of a warp have waited for the last complete phase.
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

    /// Returns a copy or a remote arrival that may come after all threads of the mbarrier's block
    /// have exited. No thread of this block has waited for the copy, or is ordered after the
    /// arrival.
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
            // A thread knows of an arrival if it has waited for the arrival's phase, or if it is
            // ordered after the arrival in another way.
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

    pub(crate) fn state(&self, slot: usize) -> PhaseState {
        let MbarrierState { phase, pending, bytes, .. } = self.objects[slot];
        PhaseState { phase, arrivals: pending, bytes }
    }
}
