//! One block: its warps are coroutines that take turns, and this is who is next.
//!
//! In a round every warp that is ready runs to where it must wait. A barrier that all have reached
//! makes its warps ready again; one that goes round in a loop is ready when something has happened.
//! Where no warp is ready and some have not left, the block waits for others, or for ever.

use super::code::Code;
use super::counters::Counters;
use super::error::{Fault, FaultKind, Waiting, WaitsFor};
use super::exec::{Progress, Warp};
use super::lanes::WARP;
use super::launch::Launch;
use super::machine::{Machine, Registers};
use super::meter::Meter;
use super::named::{Named, TooEarly};
use super::observe::{Observer, Stop, Sync};
use super::race::Between;
use crate::ir::Space;

/// What a warp does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    /// Waits at the barrier of the block in this statement.
    Barrier(u32),
    /// Waits at a barrier with a name.
    Named {
        barrier: u32,
        stmt: u32,
    },
    /// Goes round in a loop until something happens, when so much had.
    Polling {
        stmt: u32,
        events: u64,
    },
    Exited,
}

/// What has become of a block in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// Some warp is ready.
    Ready,
    /// None is, before others write memory.
    Stuck,
    Done,
    /// The launch has executed as many instructions as it may.
    Spent,
}

/// A block that runs.
pub(super) struct Block<'l> {
    pub(super) machine: Machine<'l>,
    number: u32,
    warps: Vec<Warp>,
    states: Vec<State>,
    named: Named,
    /// Whether warps take turns from the last to the first, and lanes too.
    reversed: bool,
}

impl<'l> Block<'l> {
    pub(super) fn new(
        launch: &'l Launch<'l>,
        code: &'l Code<'l>,
        between: Between<'l>,
        meter: &'l Meter,
    ) -> Self {
        let warps = launch.kernel.geometry.threads().div_ceil(WARP as u32);
        Self {
            machine: Machine::new(launch, code, between, meter),
            number: 0,
            warps: (0..warps).map(|number| Warp::new(number, Registers::new(code.slots))).collect(),
            states: Vec::new(),
            named: Named::default(),
            reversed: false,
        }
    }

    /// Lets warps, and lanes at atomics, take turns from the last to the first.
    pub(super) fn reverse(&mut self) {
        (self.reversed, self.machine.reversed) = (true, true);
    }

    /// Counters of the blocks that have run here.
    pub(super) fn finish(self) -> Counters {
        let Machine { observers, profile, code, .. } = self.machine;
        let mut counters = observers.traffic.finish();
        profile.charge(&code.costs, &mut counters);
        counters
    }

    /// Begins the block with this number, on the memory of the last one.
    pub(super) fn start(&mut self, number: u32) {
        self.number = number;
        self.machine.begin(number);
        for warp in &mut self.warps {
            warp.restart(&mut self.machine);
        }
        self.states.clear();
        self.states.resize(self.warps.len(), State::Ready);
        self.named.clear();
    }

    /// Runs the block with this number to its end, alone.
    pub(super) fn run(&mut self, number: u32) -> Result<Round, Box<Fault>> {
        self.start(number);
        loop {
            match self.round(0)? {
                Round::Ready => {}
                Round::Stuck => return Err(self.deadlock(std::iter::empty(), 0)),
                end @ (Round::Done | Round::Spent) => return Ok(end),
            }
        }
    }

    /// Lets every warp that is ready run to where it must wait. `elsewhere` says how much has happened
    /// in other blocks.
    pub(super) fn round(&mut self, elsewhere: u64) -> Result<Round, Box<Fault>> {
        self.machine.elsewhere = elsewhere;
        for turn in 0..self.warps.len() {
            let i = if self.reversed { self.warps.len() - 1 - turn } else { turn };
            if let State::Polling { events, .. } = self.states[i]
                && events != self.machine.events()
            {
                self.states[i] = State::Ready;
            }
            if self.states[i] != State::Ready {
                continue;
            }
            let reached = self.warps[i].run(&mut self.machine);
            self.states[i] = match reached.map_err(|stop| self.faulted(i, *stop))? {
                Progress::Barrier(stmt) => State::Barrier(stmt),
                Progress::Named { barrier, threads, wait, stmt } => {
                    self.arrive(i, (barrier, threads), wait, stmt)?
                }
                Progress::Polling(stmt) => State::Polling { stmt, events: self.machine.events() },
                Progress::Turn => State::Ready,
                Progress::Spent => return Ok(Round::Spent),
                Progress::Exit => State::Exited,
            };
        }
        self.settle()
    }

    /// A warp arrives at a barrier with a name; where it is the last one, those that wait go on.
    fn arrive(
        &mut self,
        i: usize,
        (barrier, threads): (u32, u32),
        wait: bool,
        stmt: u32,
    ) -> Result<State, Box<Fault>> {
        let warp = i as u32;
        let clocks = &self.machine.observers.race.clocks;
        if let Err(TooEarly) = self.named.come(clocks, barrier, (warp, wait), threads) {
            let kind = FaultKind::NamedBarrierTooEarly { barrier };
            return Err(self.fault(warp * WARP as u32, stmt, kind));
        }
        self.machine.happened += 1;
        self.machine.observers.sync(Sync::Arrive { barrier, warp });
        let Some(waited) = self.named.complete(barrier) else {
            return Ok(if wait { State::Named { barrier, stmt } } else { State::Ready });
        };
        self.machine.observers.sync(Sync::Complete { barrier, warps: &waited });
        for warp in waited {
            self.states[warp as usize] = State::Ready;
        }
        Ok(State::Ready)
    }

    /// Whether the block goes on, when every warp has come to where it must wait.
    fn settle(&mut self) -> Result<Round, Box<Fault>> {
        let now = self.machine.events();
        let ready = |state: &State| match state {
            State::Polling { events, .. } => *events != now,
            state => *state == State::Ready,
        };
        if self.states.iter().any(ready) {
            return Ok(Round::Ready);
        }
        if self.states.iter().any(|s| matches!(s, State::Named { .. } | State::Polling { .. })) {
            return Ok(Round::Stuck);
        }
        let Some(&first) = self.states.first() else { return Ok(Round::Done) };
        let Some(odd) = self.states.iter().position(|&state| state != first) else {
            if first == State::Exited {
                return Ok(Round::Done);
            }
            self.machine.happened += 1;
            self.machine.observers.sync(Sync::Block);
            self.states.fill(State::Ready);
            return Ok(Round::Ready);
        };
        let (waiting, at, kind) = match (first, self.states[odd]) {
            (State::Barrier(a), State::Barrier(b)) => {
                let other = self.machine.launch.text(self.machine.code, a);
                (odd, b, FaultKind::BarrierMismatch { other })
            }
            (State::Barrier(at), _) => (0, at, self.after_exit()),
            (_, State::Barrier(at)) => (odd, at, self.after_exit()),
            states => unreachable!("{states:?}: a warp is at the barrier of the block or has left"),
        };
        Err(self.fault((waiting * WARP) as u32, at, kind))
    }

    fn after_exit(&self) -> FaultKind {
        let threads = self.machine.launch.kernel.geometry.threads();
        let lanes = |warp: usize| (threads - (warp * WARP) as u32).min(WARP as u32);
        let out = self.states.iter().enumerate();
        let out = out.filter(|(_, state)| **state == State::Exited);
        let exited = out.map(|(warp, _)| lanes(warp)).sum();
        FaultKind::BarrierAfterExit { exited }
    }

    /// The warps that wait, and for what.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Waiting> {
        let what = move |state: State| match state {
            State::Barrier(stmt) => Some((stmt, WaitsFor::Block)),
            State::Named { barrier, stmt } => {
                let (arrived, expected) = self.named.count(barrier);
                Some((stmt, WaitsFor::Named { barrier, arrived, expected }))
            }
            State::Polling { stmt, .. } => Some((stmt, WaitsFor::Change)),
            State::Ready | State::Exited => None,
        };
        let states = self.states.iter().enumerate();
        states.filter_map(move |(warp, &state)| {
            let (stmt, waits_for) = what(state)?;
            Some(Waiting {
                block: self.machine.launch.block(self.number),
                warp: warp as u32,
                statement: self.machine.launch.text(self.machine.code, stmt),
                waits_for,
            })
        })
    }

    /// The fault of a block that is stuck, with the warps of others that are and the number of blocks
    /// that have not begun.
    pub(super) fn deadlock(
        &self,
        others: impl Iterator<Item = Waiting>,
        to_come: u32,
    ) -> Box<Fault> {
        let at = self.states.iter().enumerate().find_map(|(warp, state)| match *state {
            State::Barrier(stmt) | State::Named { stmt, .. } | State::Polling { stmt, .. } => {
                Some(((warp * WARP) as u32, stmt))
            }
            State::Ready | State::Exited => None,
        });
        let (thread, stmt) =
            at.unwrap_or_else(|| unreachable!("some warp of a block that is stuck waits"));
        let waiting = self.waiting().chain(others).collect();
        self.fault(thread, stmt, FaultKind::Deadlock { waiting, to_come })
    }

    /// The fault of a warp that stopped.
    ///
    /// Of two warps that exchange data without a barrier the first finds memory that nobody has
    /// written yet. Whether that is a race shows when the others have run.
    fn faulted(&mut self, warp: usize, stop: Stop) -> Box<Fault> {
        let Stop { lane, mut kind } = stop;
        let stmt = self.machine.stmt;
        if let FaultKind::Uninitialised { place } = &kind
            && place.space == Space::Shared
        {
            for (i, (other, state)) in self.warps.iter_mut().zip(&self.states).enumerate() {
                if i != warp && *state == State::Ready {
                    // Its own fault, if any, is not the first.
                    _ = other.run(&mut self.machine);
                }
            }
            let regions = self.machine.launch.regions.iter().enumerate();
            let element = regions
                .filter(|(_, r)| r.space == Space::Shared && r.name == place.buffer)
                .map(|(buffer, r)| (buffer, r.offset(&place.index)))
                .next();
            let race = &self.machine.observers.race;
            if let Some(earlier) = element.and_then(|(buffer, at)| race.writer(buffer, at)) {
                kind = FaultKind::Race { place: place.clone(), writes: false, earlier };
            }
        }
        self.fault((warp * WARP) as u32 + lane, stmt, kind)
    }

    fn fault(&self, thread: u32, stmt: u32, kind: FaultKind) -> Box<Fault> {
        self.machine.launch.fault(self.machine.code, (self.number, thread, stmt), kind)
    }
}
