//! Reports for a block that cannot continue: deadlocks, faults and spent limits.

use super::{Block, NAMES, WarpState};
use crate::error::{Fault, FaultKind, SimError, UnfinishedWarp, WaitReason, WaitingWarp};
use crate::exec::machine::Machine;
use crate::exec::warp::Progress;
use crate::lower::code::ThreadStmt;
use crate::mask::WARP;
use crate::observe::Trap;
use crate::race::mbarrier::{Issuer, PhaseState};
use crate::region::ElementId;
use gemm_dsl::ir::Space;
use std::ops::Range;

/// Maximum number of times that a warp is resumed to find the cause of another warp's fault.
const HAND_OVERS: u32 = 1 << 10;

impl Block<'_> {
    pub(super) fn after_exit(&self, warps: Range<usize>) -> FaultKind {
        let launch = self.machine.launch;
        let (threads, of_block) = (launch.kernel.geometry.threads(), launch.warps() as usize);
        let lanes = |warp: usize| (threads - (warp % of_block * WARP) as u32).min(WARP as u32);
        let exited = warps.filter(|&warp| self.states[warp] == WarpState::Exited).map(lanes).sum();
        FaultKind::BarrierAfterExit { exited }
    }

    /// `blockIdx` of a warp's block, and the warp's number in that block.
    fn place_of(&self, warp: usize) -> ((u32, u32, u32), u32) {
        let launch = self.machine.launch;
        let (rank, warp) = (warp as u32 / launch.warps(), warp as u32 % launch.warps());
        (launch.block(launch.of_cluster(self.number, rank)), warp)
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = WaitingWarp> {
        let what = move |state: WarpState| match state {
            WarpState::Barrier(stmt) => Some((stmt, WaitReason::Block)),
            WarpState::Cluster(stmt) => Some((stmt, WaitReason::Cluster)),
            WarpState::Named { barrier, stmt } => {
                let (arrived, expected) = self.named_barriers.count(barrier);
                let barrier = barrier % NAMES;
                Some((stmt, WaitReason::Named { barrier, arrived, expected }))
            }
            WarpState::Phase { awaited, stmt, .. } => {
                let (barrier, index) = self.machine.name_of_barrier(awaited.slot as usize);
                let lacks = self.machine.mbarriers.state(awaited.slot as usize);
                let PhaseState { phase, arrivals, bytes } = lacks;
                let parity = awaited.parity;
                let lacks = WaitReason::Phase { barrier, index, parity, phase, arrivals, bytes };
                Some((stmt, lacks))
            }
            WarpState::Polling { stmt, .. } => Some((stmt, WaitReason::Change)),
            WarpState::Ready | WarpState::Exited => None,
        };
        let states = self.states.iter().enumerate();
        states.filter_map(move |(warp, &state)| {
            let (stmt, waits_for) = match self.livelocked_at {
                Some(_) => (self.at_stmt(warp)?, WaitReason::Change),
                None => what(state)?,
            };
            let (block, warp) = self.place_of(warp);
            Some(WaitingWarp { block, warp, statement: self.machine.code.text(stmt), waits_for })
        })
    }

    /// Returns the fault of a finished block if a copy, or an arrival from another block, may still
    /// be in flight.
    pub(super) fn left_behind(&self) -> Option<Box<Fault>> {
        let Machine { launch, mbarriers, observers, .. } = &self.machine;
        let threads_of = |slot| {
            let warps = self.warps_of(self.machine.rank_of_barrier(slot));
            warps.start * WARP..warps.end * WARP
        };
        let left = mbarriers.left_behind(&observers.race.clocks, threads_of);
        let (slot, Issuer { thread, stmt }, wrong) = left?;
        let seen_by = thread / WARP as u32 / launch.warps();
        Some(self.fault(thread, stmt, self.machine.at_barrier(slot, seen_by, wrong)))
    }

    /// Returns the fault of a store to shared memory of another block that may come after this
    /// block's exit.
    pub(super) fn stores_after_exit(&self) -> Option<Box<Fault>> {
        let Machine { launch, observers, remote_stores, .. } = &self.machine;
        let threads_of = |rank| {
            let warps = self.warps_of(rank);
            warps.start * WARP..warps.end * WARP
        };
        let (rank, Issuer { thread, stmt }) =
            remote_stores.left_behind(&observers.race.clocks, threads_of)?;
        let block = launch.block(launch.of_cluster(self.number, rank));
        Some(self.fault(thread, stmt, FaultKind::RemoteStore { block, exited: true }))
    }

    /// Returns the fault of a warp that requests registers which never become free.
    pub(super) fn register_deadlock(&self) -> Option<Box<Fault>> {
        let mut blocks = 0..self.machine.launch.cluster();
        blocks.find_map(|rank| {
            let (warp, stmt, [asked, given]) =
                self.machine.limits.register_deadlock(self.warps_of(rank))?;
            let kind = FaultKind::TooManyRegisters { asked, given };
            Some(self.fault((warp * WARP) as u32, stmt, kind))
        })
    }

    /// Current statement of a warp; `None` if it has exited.
    fn at_stmt(&self, warp: usize) -> Option<u32> {
        match self.states[warp] {
            WarpState::Barrier(stmt)
            | WarpState::Cluster(stmt)
            | WarpState::Named { stmt, .. }
            | WarpState::Phase { stmt, .. }
            | WarpState::Polling { stmt, .. } => Some(stmt),
            WarpState::Ready => Some(self.warps[warp].stmt(self.machine.code)),
            WarpState::Exited => None,
        }
    }

    /// Returns the deadlock fault of a stuck block. It lists the waiting warps of other blocks, and
    /// the number of blocks that have not started.
    pub(crate) fn deadlock(
        &self,
        others: impl Iterator<Item = WaitingWarp>,
        to_come: u32,
    ) -> Box<Fault> {
        let at = (0..self.states.len()).find_map(|warp| {
            let waits = self.livelocked_at.is_some() || self.states[warp] != WarpState::Ready;
            let thread = (warp * WARP) as u32 + self.warps[warp].lane();
            Some((thread, self.at_stmt(warp).filter(|_| waits)?))
        });
        let (thread, stmt) =
            at.unwrap_or_else(|| unreachable!("some warp of a block that is stuck waits"));
        let waiting = self.waiting().chain(others).collect();
        self.fault(thread, stmt, FaultKind::Deadlock { waiting, to_come })
    }

    /// Returns the error for a spent instruction limit. `warp` executed the last instruction.
    pub(super) fn spent(&self, warp: usize) -> SimError {
        let Machine { launch, code, stmt, budget, .. } = &self.machine;
        let ((block, warp), statement) = (self.place_of(warp), code.text(*stmt));
        let at = UnfinishedWarp { block, warp, statement, order: None, turns: None };
        budget.spent(launch, at)
    }

    /// Returns the fault of a warp that stopped with a trap.
    ///
    /// If two warps exchange data without a barrier, one of them may read memory that no thread has
    /// written yet. The other warps continue, which shows if this is a race.
    pub(super) fn faulted(&mut self, warp: usize, trap: Trap) -> Box<Fault> {
        let Trap { lane, mut kind, refused } = trap;
        let stmt = self.machine.stmt;
        if let FaultKind::Uninitialised { place } = &kind
            && place.space == Space::Shared
        {
            for (i, (other, state)) in self.warps.iter_mut().zip(&self.states).enumerate() {
                if i != warp && *state == WarpState::Ready {
                    // If the other warp has a fault, it is ignored, because it is not the first.
                    // The loop is bounded, because the other warp may yield forever.
                    for _ in 0..HAND_OVERS {
                        if !matches!(other.run(&mut self.machine), Ok(Progress::Turn)) {
                            break;
                        }
                    }
                }
            }
            self.machine.enter(warp as u32 / self.machine.launch.warps());
            let regions = self.machine.launch.regions.iter().enumerate();
            let element = regions
                .filter(|(_, r)| r.space == Space::Shared && r.name == place.buffer)
                .map(|(buffer, r)| (buffer, r.offset(&place.index)))
                .next();
            let race = &self.machine.observers.race;
            if let Some(earlier) =
                element.and_then(|(buffer, at)| race.writer(ElementId { buffer, element: at }))
            {
                kind = FaultKind::Race { place: place.clone(), writes: false, earlier };
            }
        }
        let mut fault = self.fault((warp * WARP) as u32 + lane, stmt, kind);
        fault.refused = refused;
        fault
    }

    /// Creates the fault of a thread, which is given by its number in the cluster.
    pub(super) fn fault(&self, thread: u32, stmt: u32, kind: FaultKind) -> Box<Fault> {
        let Machine { launch, code, .. } = self.machine;
        let (block, thread) = launch.whereabouts(self.number, thread);
        code.fault(launch, ThreadStmt { block, thread, stmt }, kind)
    }
}
