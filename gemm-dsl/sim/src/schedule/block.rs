//! One block, or those of a cluster: its warps are coroutines that take turns, and this is who is next.
//!
//! In a round every warp that is ready runs to where it must wait. A barrier that all have reached
//! makes its warps ready again; one that goes round in a loop is ready when something has happened.
//! Warps, and barriers with a name, are counted through all blocks of a cluster.
//! Where no warp is ready and some have not left, the block waits for others, or for ever. So it does
//! where all its warps meet again and again, and come back to where they have been.

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

/// After so many meetings the warps of a block may be going round for ever.
const PATIENCE: u64 = 1 << 10;
/// So many barriers with a name warps pass in a round before others have their turn.
const ARRIVALS: u32 = 64;
/// A block has fewer barriers with a name than this.
const NAMES: u32 = 16;

/// What a warp does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WarpState {
    Ready,
    /// Waits at the barrier of the block in this statement.
    Barrier(u32),
    /// Waits at the barrier of the cluster in this statement.
    Cluster(u32),
    /// Waits at a barrier with a name.
    Named {
        barrier: u32,
        stmt: u32,
    },
    /// Waits for a phase of a barrier in shared memory, when so many were over.
    Phase {
        awaited: AwaitedPhase,
        stmt: u32,
        completed: u64,
    },
    /// Goes round in a loop until something happens, when so much had.
    Polling {
        stmt: u32,
        events: u64,
    },
    Exited,
}

/// What has become of a block, or a cluster, in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockProgress {
    /// Some warp is ready.
    Ready,
    /// None is, before others write memory.
    Stuck,
    Done,
}

/// A block that runs, or those of a cluster.
pub(crate) struct Block<'l> {
    pub(crate) machine: Machine<'l>,
    /// That of the cluster.
    number: u32,
    warps: Vec<Warp>,
    states: Vec<WarpState>,
    named_barriers: NamedBarriers,
    /// The meetings at the last look at all warps, and what they may come back to.
    met: u64,
    livelock: LivelockDetector,
    /// Where they have: how often memory had changed.
    in_vain: Option<u64>,
    /// The warps as they take turns in a round, and how many rounds there have been.
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
            in_vain: None,
            order: Vec::new(),
            rounds: 0,
        }
    }

    /// The warps of a block.
    pub(crate) fn warps(&self) -> usize {
        self.warps.len()
    }

    /// Lets the threads of the blocks that begin here take these turns.
    pub(crate) fn take(&mut self, turns: Interleaving) {
        self.machine.turns = turns;
    }

    /// What the blocks that have run here are charged with.
    pub(crate) fn finish(self) -> Profile {
        self.machine.finish()
    }

    /// Begins the cluster with this number, on the memory of the last one.
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
        // Each cluster draws its own numbers, whoever runs it.
        self.machine.random = Random::new(turns.seed() + (u64::from(number) << 8));
        self.rounds = 0;
        self.states.clear();
        self.states.resize(self.warps.len(), WarpState::Ready);
        self.named_barriers.clear();
        (self.met, self.livelock, self.in_vain) = (0, LivelockDetector::default(), None);
    }

    /// Runs the cluster with this number to its end, alone.
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

    /// Lets every warp that is ready run to where it must wait. `elsewhere` says how much has happened
    /// in other blocks.
    pub(crate) fn round(&mut self, elsewhere: u64) -> Result<BlockProgress, SimError> {
        self.machine.elsewhere = elsewhere;
        if self.in_vain == Some(self.machine.changes()) {
            return Ok(BlockProgress::Stuck);
        }
        self.in_vain = None;
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
                        // One that need not wait hands over in some turns, and goes on in others: so what
                        // follows there comes before what others do, and behind it.
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

    /// A warp arrives at a barrier with a name; where it is the last one, those that wait go on.
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

    /// Whether the block, or cluster, goes on, when every warp has come to where it must wait.
    fn settle(&mut self) -> Result<BlockProgress, Box<Fault>> {
        if self.machine.meetings >= PATIENCE && self.is_livelocked() {
            self.in_vain = Some(self.machine.changes());
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
        self.left_behind().or_else(|| self.never_there()).map_or(Ok(BlockProgress::Done), Err)
    }

    /// The warps of a block of the cluster.
    fn warps_of(&self, rank: u32) -> Range<usize> {
        let warps = self.machine.launch.warps() as usize;
        rank as usize * warps..(rank as usize + 1) * warps
    }

    /// Whether all of these warps have met at a barrier of theirs, and go on. As long as some wait for something else they
    /// may come yet.
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

    /// Whether all warps are where they have been, and met in between, but no memory has changed. A warp
    /// that meets nobody is looked at by itself.
    fn is_livelocked(&mut self) -> bool {
        self.machine.careful = true;
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
