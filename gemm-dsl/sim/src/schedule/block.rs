//! Scheduling of one block, or of all blocks of one cluster. The warps are coroutines that take
//! turns.
//!
//! In a round, every ready warp runs until it must wait. Warps at a barrier become ready again when
//! all have reached it. A polling warp becomes ready after an event. Warps and named barriers are
//! numbered across all blocks of a cluster. If no warp is ready and some have not exited, the block
//! waits for other blocks, or forever. The same holds if all its warps meet repeatedly and return
//! to an earlier state.

mod report;

use crate::counters::Profile;
use crate::error::{Fault, FaultKind, SimError};
use crate::exec::budget::Budget;
use crate::exec::interleaving::{Interleaving, Random};
use crate::exec::livelock::LivelockDetector;
use crate::exec::machine::{Machine, Registers};
use crate::exec::mbarrier::AwaitedPhase;
use crate::exec::warp::{Progress, Warp};
use crate::launch::Launch;
use crate::lower::code::Code;
use crate::mask::WARP;
use crate::observe::{Observer, Sync};
use crate::race::detector::InterBlock;
use crate::race::named_barrier::{NamedBarriers, TooEarly};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;
use std::ops::Range;

/// Number of meetings after which the block is checked for livelock.
const PATIENCE: u64 = 1 << 10;
/// Maximum number of named barriers that warps pass in a round before other warps run.
const ARRIVALS: u32 = 64;
/// Number of hardware barriers per block. Named barriers have smaller numbers.
const NAMES: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WarpState {
    Ready,
    /// Waits at the block barrier in this statement.
    Barrier(u32),
    /// Waits at the cluster barrier in this statement.
    Cluster(u32),
    Named {
        barrier: u32,
        stmt: u32,
    },
    /// Waits for a phase of an mbarrier. `completed` is the number of completed phases when the
    /// wait began.
    Phase {
        awaited: AwaitedPhase,
        stmt: u32,
        completed: u64,
    },
    /// Polls in a loop until an event occurs. `events` is the number of events when it began.
    Polling {
        stmt: u32,
        events: u64,
    },
    Exited,
}

/// State of a block, or of a cluster, after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockProgress {
    Ready,
    /// No warp is ready until other blocks write memory.
    Stuck,
    Done,
}

pub(crate) struct Block<'l> {
    pub(crate) machine: Machine<'l>,
    number: u32,
    warps: Vec<Warp>,
    states: Vec<WarpState>,
    named_barriers: NamedBarriers,
    /// Number of meetings at the last livelock check.
    met: u64,
    livelock: LivelockDetector,
    /// Number of memory changes when the block was found to be livelocked; `None` if it is not.
    livelocked_at: Option<u64>,
    /// Order of the warps in a round; `rounds` is the number of rounds.
    order: Vec<u32>,
    rounds: u64,
}

impl<'l> Block<'l> {
    pub(crate) fn new(
        launch: &'l Launch<'l>,
        code: &'l Code<'l>,
        between: InterBlock<'l>,
        budget: &'l Budget,
    ) -> Self {
        let warps = launch.cluster() * launch.warps();
        Self {
            machine: Machine::new(launch, code, between, budget),
            number: 0,
            warps: (0..warps).map(|number| Warp::new(number, Registers::new(code.slots))).collect(),
            states: Vec::new(),
            named_barriers: NamedBarriers::default(),
            met: 0,
            livelock: LivelockDetector::default(),
            livelocked_at: None,
            order: Vec::new(),
            rounds: 0,
        }
    }

    pub(crate) fn warps(&self) -> usize {
        self.warps.len()
    }

    /// Sets the thread interleaving of blocks that start afterwards.
    pub(crate) fn take(&mut self, turns: Interleaving) {
        self.machine.turns = turns;
    }

    /// Returns the counters of all blocks that have run.
    pub(crate) fn finish(self) -> Profile {
        self.machine.finish()
    }

    /// Starts a cluster, in the memory of the previous one.
    pub(crate) fn start(&mut self, number: u32) {
        self.number = number;
        self.machine.begin(number);
        for warp in &mut self.warps {
            warp.restart(&mut self.machine);
        }
        let turns = self.machine.turns;
        self.machine.reversed = turns.are_reversed();
        self.order = (0..self.warps.len() as u32).collect();
        if turns.are_reversed() {
            self.order.reverse();
        }
        // Each cluster has its own seed, which does not depend on the worker that runs it.
        self.machine.random = Random::new(turns.seed() + (u64::from(number) << 8));
        self.rounds = 0;
        self.states.clear();
        self.states.resize(self.warps.len(), WarpState::Ready);
        self.named_barriers.clear();
        (self.met, self.livelock, self.livelocked_at) = (0, LivelockDetector::default(), None);
    }

    /// Runs a cluster to its end, without other clusters.
    pub(crate) fn run(&mut self, number: u32) -> Result<(), SimError> {
        self.start(number);
        loop {
            match self.round(0)? {
                BlockProgress::Ready => {}
                BlockProgress::Stuck => {
                    return Err(SimError::Fault(self.deadlock(std::iter::empty(), 0)));
                }
                BlockProgress::Done => return Ok(()),
            }
        }
    }

    /// Runs every ready warp until it must wait. `elsewhere` is the number of memory changes by
    /// other blocks.
    pub(crate) fn round(&mut self, elsewhere: u64) -> Result<BlockProgress, SimError> {
        self.machine.elsewhere = elsewhere;
        if self.livelocked_at == Some(self.machine.changes()) {
            return Ok(BlockProgress::Stuck);
        }
        self.livelocked_at = None;
        if let Interleaving::Shuffled(shuffle) = self.machine.turns {
            let drawn_by = (u64::from(self.number) << 24).wrapping_add(self.rounds);
            self.order = shuffle.order(self.warps.len() as u32, drawn_by);
            self.rounds += 1;
            self.machine.reversed = self.machine.random.below(2) == 1;
        }
        let (mut turn, mut passed) = (0, 0);
        while let Some(&i) = self.order.get(turn) {
            let i = i as usize;
            turn += 1;
            if let WarpState::Polling { events, .. } = self.states[i]
                && events != self.machine.events()
            {
                self.states[i] = WarpState::Ready;
            }
            if let WarpState::Phase { completed, .. } = self.states[i]
                && completed != self.machine.mbarriers.completed
            {
                self.states[i] = WarpState::Ready;
            }
            if self.states[i] != WarpState::Ready {
                continue;
            }
            let reached = self.warps[i].run(&mut self.machine);
            self.states[i] =
                match reached.map_err(|stop| SimError::Fault(self.faulted(i, *stop)))? {
                    Progress::Barrier(stmt) => WarpState::Barrier(stmt),
                    Progress::Cluster(stmt) => WarpState::Cluster(stmt),
                    Progress::Named { barrier, threads, wait, stmt } => {
                        let of_block = i as u32 / self.machine.launch.warps() * NAMES;
                        let state = self.arrive(i, of_block + barrier, threads, wait, stmt);
                        let state = state.map_err(SimError::Fault)?;
                        // A warp that need not wait yields in some interleavings and continues in
                        // others. Its next statements are thereby run both before and after those
                        // of other warps.
                        if state == WarpState::Ready
                            && self.machine.turns != Interleaving::Forward
                            && passed < ARRIVALS
                        {
                            (turn, passed) = (turn - 1, passed + 1);
                        }
                        state
                    }
                    Progress::Phase { awaited, stmt } => {
                        let completed = self.machine.mbarriers.completed;
                        WarpState::Phase { awaited, stmt, completed }
                    }
                    Progress::Polling(stmt) => {
                        WarpState::Polling { stmt, events: self.machine.events() }
                    }
                    Progress::Turn => WarpState::Ready,
                    Progress::Spent => return Err(self.spent(i)),
                    Progress::Exit => WarpState::Exited,
                };
        }
        self.settle().map_err(SimError::Fault)
    }

    /// Records the arrival of a warp at a named barrier. The last arrival makes the waiting warps
    /// ready.
    fn arrive(
        &mut self,
        i: usize,
        barrier: u32,
        threads: u32,
        wait: bool,
        stmt: u32,
    ) -> Result<WarpState, Box<Fault>> {
        let warp = i as u32;
        let clocks = &self.machine.observers.race.clocks;
        if let Err(TooEarly) = self.named_barriers.arrive(clocks, barrier, threads, warp, wait) {
            let kind = FaultKind::NamedBarrierTooEarly { barrier: barrier % NAMES };
            return Err(self.fault(warp * WARP as u32, stmt, kind));
        }
        self.machine.meetings += 1;
        self.machine.observers.sync(Sync::Arrive { barrier, warp });
        let Some(waited) = self.named_barriers.complete(barrier) else {
            return Ok(if wait { WarpState::Named { barrier, stmt } } else { WarpState::Ready });
        };
        self.machine.observers.sync(Sync::Complete { barrier, warps: &waited });
        for warp in waited {
            self.states[warp as usize] = WarpState::Ready;
        }
        Ok(WarpState::Ready)
    }

    /// Determines the progress of the block or cluster, after every warp has run until it must
    /// wait.
    fn settle(&mut self) -> Result<BlockProgress, Box<Fault>> {
        if self.machine.meetings >= PATIENCE && self.is_livelocked() {
            self.livelocked_at = Some(self.machine.changes());
            return Ok(BlockProgress::Stuck);
        }
        let now = self.machine.events();
        let ready = |state: &WarpState| match state {
            WarpState::Polling { events, .. } => *events != now,
            WarpState::Phase { completed, .. } => *completed != self.machine.mbarriers.completed,
            state => *state == WarpState::Ready,
        };
        if self.states.iter().any(ready) {
            return Ok(BlockProgress::Ready);
        }
        let mut met = false;
        for rank in 0..self.machine.launch.cluster() {
            let is_there = |state: &WarpState| matches!(state, WarpState::Barrier(_));
            met |= self.meet(self.warps_of(rank), Sync::Block(rank), is_there)?;
        }
        let is_there = |state: &WarpState| matches!(state, WarpState::Cluster(_));
        if met || self.meet(0..self.states.len(), Sync::Cluster, is_there)? {
            return Ok(BlockProgress::Ready);
        }
        if self.states.iter().any(|state| *state != WarpState::Exited) {
            return Ok(BlockProgress::Stuck);
        }
        let unseen = self.left_behind().or_else(|| self.stores_after_exit());
        unseen.or_else(|| self.register_deadlock()).map_or(Ok(BlockProgress::Done), Err)
    }

    /// Range of the warps of one block of the cluster.
    fn warps_of(&self, rank: u32) -> Range<usize> {
        let warps = self.machine.launch.warps() as usize;
        rank as usize * warps..(rank as usize + 1) * warps
    }

    /// Returns true if all of these warps have met at their barrier and continue. Warps that wait
    /// for something else may still reach the barrier.
    fn meet(
        &mut self,
        warps: Range<usize>,
        sync: Sync<'_>,
        is_there: impl Fn(&WarpState) -> bool,
    ) -> Result<bool, Box<Fault>> {
        let states = &self.states[warps.clone()];
        let waits = |s| {
            matches!(
                s,
                &WarpState::Named { .. } | &WarpState::Polling { .. } | &WarpState::Phase { .. }
            )
        };
        if states.iter().any(waits) || !states.iter().any(is_there) {
            return Ok(false);
        }
        let first = states[0];
        let Some(odd) = states.iter().position(|&state| state != first) else {
            self.machine.meetings += 1;
            self.machine.observers.sync(sync);
            self.states[warps].fill(WarpState::Ready);
            return Ok(true);
        };
        let at = |state| match state {
            WarpState::Barrier(stmt) | WarpState::Cluster(stmt) => Some(stmt),
            _ => None,
        };
        let (waiting, stmt, kind) = match (at(first), at(states[odd])) {
            (Some(a), Some(b)) => {
                let other = self.machine.code.text(a);
                (odd, b, FaultKind::BarrierMismatch { other })
            }
            (Some(stmt), None) => (0, stmt, self.after_exit(warps.clone())),
            (None, Some(stmt)) => (odd, stmt, self.after_exit(warps.clone())),
            (None, None) => {
                unreachable!("{first:?}: a warp that does not wait has left, as others")
            }
        };
        Err(self.fault(((warps.start + waiting) * WARP) as u32, stmt, kind))
    }

    /// Returns true if all warps have met since the last check, and have returned to an earlier
    /// state without a change of memory. A warp that does not meet others is checked separately.
    fn is_livelocked(&mut self) -> bool {
        self.machine.compares_writes = true;
        let met = std::mem::replace(&mut self.met, self.machine.meetings);
        if met == self.met || !self.livelock.is_quiet(self.machine.changes()) {
            return false;
        }
        let mut brief = DefaultHasher::new();
        let code = self.machine.code;
        for (warp, now) in self.warps.iter().zip(&self.states) {
            (discriminant(now), warp.brief(code)).hash(&mut brief);
        }
        self.named_barriers.hash(&mut brief);
        self.machine.mbarriers.hash(&mut brief);
        let warps = &self.warps;
        let whole = || {
            let mut state = DefaultHasher::new();
            warps.iter().for_each(|warp| warp.state(code).hash(&mut state));
            state.finish()
        };
        self.livelock.again(brief.finish(), whole)
    }
}
