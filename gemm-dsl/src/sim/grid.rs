//! Execution of blocks that do not speak to one another: in parallel.

use super::code::Code;
use super::counters::Counters;
use super::error::{Earlier, Fault, FaultKind, SimError};
use super::grid_race::{GridConflict, GridRace};
use super::launch::Launch;
use super::meter::{Meter, Options};
use super::race::Between;
use super::repeat::Repeated;
use super::schedule::Round;
use super::timeline::MODEL;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Runs all blocks of a launch.
pub(super) fn run(
    launch: &Launch<'_>,
    code: &Code<'_>,
    options: &Options<'_>,
) -> Result<Counters, SimError> {
    let watched = launch.regions.iter().enumerate().map(|(i, region)| {
        let memory = region.memory.as_ref().filter(|_| code.stored[i])?;
        Some((memory.len(), code.loaded[i]))
    });
    let grid_race = GridRace::new(watched);
    let meter = Meter::new(options.instructions);
    let blocks = launch.blocks();
    let (next, done) = (AtomicU32::new(0), AtomicU64::new(0));
    // Blocks are taken in order, so all below the lowest one with a fault are run to their end:
    // which fault is reported does not depend on timing.
    let faulty = AtomicU32::new(u32::MAX);
    let work = |_| {
        let mut worker: Option<Repeated<'_>> = None;
        let mut end = None;
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= blocks || block > faulty.load(Ordering::Relaxed) {
                break;
            }
            let between = || Between::Isolated(&grid_race);
            let worker =
                worker.get_or_insert_with(|| Repeated::new(launch, code, between(), &meter));
            let found = worker.run(block);
            if !matches!(found, Ok(Round::Done)) {
                faulty.fetch_min(block, Ordering::Relaxed);
                end = Some((block, found));
                break;
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            options.progress.iter().for_each(|progress| progress(done, blocks.into()));
        }
        (worker.map(Repeated::finish).unwrap_or_default(), end)
    };
    let workers = rayon::current_num_threads().min(blocks as usize);
    let results: Vec<_> = (0..workers).into_par_iter().map(work).collect();
    let mut counters = Counters::default();
    let (mut first, mut spent) = (None::<(u32, SimError)>, false);
    for (counted, end) in results {
        counters += counted;
        match end {
            Some((block, Err(error))) if first.as_ref().is_none_or(|(b, _)| block < *b) => {
                first = Some((block, error));
            }
            Some((_, Ok(_))) => spent = true,
            _ => {}
        }
    }
    match (first, grid_race.conflict()) {
        (Some((_, error)), _) => Err(error),
        (None, _) if spent => Err(options.spent(launch)),
        (None, None) => Ok(counters),
        (None, Some(conflict)) => Err(SimError::Fault(fault(launch, code, &conflict))),
    }
}

/// The fault of two blocks that access one element.
fn fault(launch: &Launch<'_>, code: &Code<'_>, conflict: &GridConflict) -> Box<Fault> {
    let region = &launch.regions[conflict.buffer];
    let kind = FaultKind::Race {
        place: region.element(conflict.element as u32),
        writes: conflict.higher_writes,
        earlier: Earlier {
            block: launch.block(conflict.lower.block),
            thread: launch.thread(conflict.lower.thread),
            wrote: conflict.lower_writes,
            by: MODEL.timelines[conflict.lower.on.0].by,
        },
    };
    let higher = conflict.higher;
    launch.fault(code, (higher.block, higher.thread, higher.stmt), kind)
}
