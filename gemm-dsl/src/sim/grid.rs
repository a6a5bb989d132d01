//! Execution of blocks: warps take turns at barriers, blocks run in parallel.

use super::code::Code;
use super::counters::Counters;
use super::error::{Earlier, Fault, FaultKind, SimError};
use super::exec::{Progress, Warp};
use super::grid_race::GridRace;
use super::lanes::WARP;
use super::launch::Launch;
use super::machine::{Machine, Registers};
use super::observe::{Observer, Stop, Sync};
use crate::ir::{Scope, Space};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// Runs all blocks of a launch.
pub(super) fn run(launch: &Launch<'_>, code: &Code<'_>) -> Result<Counters, SimError> {
    let watched = launch.regions.iter().enumerate().map(|(i, region)| {
        let memory = region.memory.as_ref().filter(|_| code.stored[i])?;
        Some((memory.len(), code.loaded[i]))
    });
    let grid_race = GridRace::new(watched);
    let blocks = launch.grid.0 * launch.grid.1 * launch.grid.2;
    let next = AtomicU32::new(0);
    // Blocks are taken in order, so all below the lowest one with a fault are run to their end:
    // which fault is reported does not depend on timing.
    let faulty = AtomicU32::new(u32::MAX);
    let work = |_| {
        let mut worker: Option<Worker<'_>> = None;
        let mut fault = None;
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= blocks || block > faulty.load(Ordering::Relaxed) {
                break;
            }
            let worker = worker.get_or_insert_with(|| Worker::new(launch, code, &grid_race));
            if let Err(found) = worker.block(block) {
                faulty.fetch_min(block, Ordering::Relaxed);
                fault = Some((block, found));
                break;
            }
        }
        (worker.map(Worker::finish).unwrap_or_default(), fault)
    };
    let workers = rayon::current_num_threads().min(blocks as usize);
    let results: Vec<_> = (0..workers).into_par_iter().map(work).collect();
    let mut counters = Counters::default();
    let mut first = None;
    for (counted, fault) in results {
        counters += counted;
        if let Some((block, fault)) = fault
            && first.as_ref().is_none_or(|(b, _)| block < *b)
        {
            first = Some((block, fault));
        }
    }
    if let Some((_, fault)) = first {
        return Err(SimError::Fault(fault));
    }
    match grid_race.conflict() {
        None => Ok(counters),
        Some(conflict) => {
            let region = &launch.regions[conflict.buffer];
            let kind = FaultKind::Race {
                place: region.element(conflict.element as u64),
                writes: conflict.higher_writes,
                earlier: Earlier {
                    block: launch.block(conflict.lower.block),
                    thread: launch.thread(conflict.lower.thread),
                    wrote: conflict.lower_writes,
                    by_copy: false,
                },
            };
            let higher = conflict.higher;
            let fault = fault(launch, code, higher.block, higher.thread, higher.stmt, kind);
            Err(SimError::Fault(fault))
        }
    }
}

fn fault(
    launch: &Launch<'_>,
    code: &Code<'_>,
    block: u32,
    thread: u32,
    stmt: u32,
    kind: FaultKind,
) -> Box<Fault> {
    Box::new(Fault {
        kernel: launch.kernel.name.clone(),
        block: launch.block(block),
        thread: launch.thread(thread),
        statement: text(launch, code, stmt),
        kind,
    })
}

fn text(launch: &Launch<'_>, code: &Code<'_>, stmt: u32) -> String {
    let stmt = code.stmts.get(stmt as usize);
    stmt.map_or_else(String::new, |stmt| crate::cuda::statement(launch.kernel, stmt))
}

/// Runs one block after the other on the same memory.
struct Worker<'l> {
    machine: Machine<'l>,
    warps: Vec<Warp>,
}

impl<'l> Worker<'l> {
    fn new(launch: &'l Launch<'l>, code: &'l Code<'l>, grid_race: &'l GridRace) -> Self {
        let warps = launch.kernel.geometry.threads().div_ceil(WARP as u32);
        Self {
            machine: Machine::new(launch, code, grid_race),
            warps: (0..warps).map(|number| Warp::new(number, Registers::new(code.slots))).collect(),
        }
    }

    fn finish(self) -> Counters {
        let Machine { observers, profile, code, .. } = self.machine;
        let mut counters = observers.traffic.finish();
        profile.charge(&code.costs, &mut counters);
        counters
    }

    fn block(&mut self, block: u32) -> Result<(), Box<Fault>> {
        self.machine.begin(block);
        for warp in &mut self.warps {
            warp.restart(&mut self.machine);
        }
        while let Some(first) = self.phase(block)? {
            let Progress::Barrier(_) = first else { break };
            self.machine.observers.sync(Sync::Barrier(Scope::Block, 0));
        }
        Ok(())
    }

    /// Runs every warp to its next barrier; all must come to the same one, or all to the end.
    fn phase(&mut self, block: u32) -> Result<Option<Progress>, Box<Fault>> {
        let mut progress: Vec<Progress> = Vec::with_capacity(self.warps.len());
        for i in 0..self.warps.len() {
            match self.warps[i].run(&mut self.machine) {
                Ok(reached) => progress.push(reached),
                Err(stop) => return Err(self.faulted(block, i, *stop)),
            }
        }
        let Some(&first) = progress.first() else {
            return Ok(None);
        };
        let Some(odd) = progress.iter().position(|&p| p != first) else {
            return Ok(Some(first));
        };
        let (waiting, at, kind) = match (first, progress[odd]) {
            (Progress::Barrier(a), Progress::Barrier(b)) => {
                let other = text(self.machine.launch, self.machine.code, a);
                (odd, b, FaultKind::BarrierMismatch { other })
            }
            (Progress::Barrier(at), Progress::Exit) => (0, at, self.after_exit(&progress)),
            (_, Progress::Barrier(at)) => (odd, at, self.after_exit(&progress)),
            (Progress::Exit, Progress::Exit) => return Ok(Some(first)),
        };
        Err(self.fault(block, (waiting * WARP) as u32, at, kind))
    }

    fn after_exit(&self, progress: &[Progress]) -> FaultKind {
        let threads = self.machine.launch.kernel.geometry.threads();
        let lanes = |warp: usize| (threads - (warp * WARP) as u32).min(WARP as u32);
        let out = progress.iter().enumerate();
        let out = out.filter(|(_, p)| **p == Progress::Exit);
        let exited = out.map(|(warp, _)| lanes(warp)).sum();
        FaultKind::BarrierAfterExit { exited }
    }

    /// The fault of a warp that stopped.
    ///
    /// Of two warps that exchange data without a barrier the first finds memory that nobody has
    /// written yet. Whether that is a race shows when the others have run.
    fn faulted(&mut self, block: u32, warp: usize, stop: Stop) -> Box<Fault> {
        let Stop { lane, mut kind } = stop;
        let stmt = self.machine.stmt;
        if let FaultKind::Uninitialised { place } = &kind
            && place.space == Space::Shared
        {
            for other in self.warps.iter_mut().skip(warp + 1) {
                // Its own fault, if any, is not the first.
                _ = other.run(&mut self.machine);
            }
            let regions = self.machine.launch.regions.iter();
            let element = regions
                .filter(|r| r.space == Space::Shared && r.name == place.buffer)
                .map(|r| r.shadow + r.offset(&place.index))
                .next();
            if let Some(earlier) = element.and_then(|w| self.machine.observers.race.writer(w)) {
                kind = FaultKind::Race { place: place.clone(), writes: false, earlier };
            }
        }
        self.fault(block, (warp * WARP) as u32 + lane, stmt, kind)
    }

    fn fault(&self, block: u32, thread: u32, stmt: u32, kind: FaultKind) -> Box<Fault> {
        fault(self.machine.launch, self.machine.code, block, thread, stmt, kind)
    }
}
