//! Parallel execution of blocks that do not synchronise with one another. Blocks of a cluster do
//! synchronise, and run as one block.
//!
//! Reports must not depend on timing. If no block accesses an element that another block writes,
//! each block behaves as if it were alone. The first faulty block is then the same on every run. If
//! two blocks conflict, the behaviour of both is undefined. The buffers are then restored, one
//! worker runs the blocks one after another, and the faults of this run are reported.

use crate::counters::Profile;
use crate::error::{EarlierAccess, Fault, FaultKind, SimError};
use crate::exec::budget::Budget;
use crate::launch::Launch;
use crate::lower::code::{Code, ThreadStmt};
use crate::options::Options;
use crate::race::detector::InterBlock;
use crate::race::grid::{GridAccess, GridConflict, GridRace};
use crate::race::model::MODEL;
use crate::schedule::isolated::IsolatedBlocks;
use crate::schedule::snapshot::Snapshot;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub(crate) fn run(
    launch: &Launch<'_>,
    code: &Code<'_>,
    options: &Options<'_>,
) -> Result<Profile, SimError> {
    let before = Snapshot::take(launch, code);
    let (found, touched) = attempt(launch, code, options, rayon::current_num_threads());
    if touched.conflict().is_none() {
        return found;
    }
    before.restore(|buffer, element| touched.is_written(buffer, element));
    let quiet = Options { progress: None, ..*options };
    let (found, touched) = attempt(launch, code, &quiet, 1);
    match touched.conflict() {
        // A block that has read data of a conflicting block has no meaningful fault of its own.
        Some(conflict) => Err(SimError::Fault(fault(launch, code, &conflict))),
        None => found,
    }
}

/// Runs the blocks on `workers` workers until the first fault. The result is valid only if the
/// returned record contains no conflict.
fn attempt(
    launch: &Launch<'_>,
    code: &Code<'_>,
    options: &Options<'_>,
    workers: usize,
) -> (Result<Profile, SimError>, GridRace) {
    let watched = launch.regions.iter().enumerate().map(|(i, region)| {
        let memory = region.memory.as_ref().filter(|_| code.stored[i])?;
        Some((memory.len(), code.loaded[i]))
    });
    let grid_race = GridRace::new(watched, launch.cluster());
    let budget = Budget::new(options.instructions);
    let clusters = launch.clusters();
    let (next, done) = (AtomicU32::new(0), AtomicU64::new(0));
    // Clusters are started in ascending order, so all clusters below the lowest faulty one run to
    // their end.
    let faulty = AtomicU32::new(u32::MAX);
    let work = |_| {
        let mut worker: Option<IsolatedBlocks<'_>> = None;
        let mut end = None;
        loop {
            let cluster = next.fetch_add(1, Ordering::Relaxed);
            if cluster >= clusters || cluster > faulty.load(Ordering::Relaxed) {
                break;
            }
            let between = || InterBlock::Isolated(&grid_race);
            let worker =
                worker.get_or_insert_with(|| IsolatedBlocks::new(launch, code, between(), &budget));
            if let Err(error) = worker.run(cluster) {
                faulty.fetch_min(cluster, Ordering::Relaxed);
                end = Some((cluster, error));
                break;
            }
            let of = u64::from(launch.cluster());
            let done = done.fetch_add(of, Ordering::Relaxed) + of;
            options.progress.iter().for_each(|progress| progress(done, launch.blocks().into()));
        }
        (worker.map(IsolatedBlocks::finish).unwrap_or_default(), end)
    };
    let workers = workers.min(clusters as usize);
    let results: Vec<_> = (0..workers).into_par_iter().map(work).collect();
    let mut profile = Profile::default();
    let mut errors = Vec::new();
    for (counted, end) in results {
        profile += &counted;
        errors.extend(end);
    }
    // A fault takes precedence over a spent instruction limit, because it is more informative.
    let rank = |(cluster, error): &(u32, SimError)| {
        (matches!(error, SimError::OutOfInstructions { .. }), *cluster)
    };
    let found = match errors.into_iter().min_by_key(rank) {
        Some((_, error)) => Err(error),
        None => Ok(profile),
    };
    (found, grid_race)
}

/// Returns the race fault of two blocks that access the same element.
fn fault(launch: &Launch<'_>, code: &Code<'_>, conflict: &GridConflict) -> Box<Fault> {
    let region = &launch.regions[conflict.buffer];
    let kind = FaultKind::Race {
        place: region.element(conflict.element as u32),
        writes: conflict.higher_writes,
        earlier: EarlierAccess {
            block: launch.block(conflict.lower.block),
            thread: launch.thread(conflict.lower.thread),
            wrote: conflict.lower_writes,
            by: MODEL.timelines[conflict.lower.on.0].by,
        },
    };
    let GridAccess { block, thread, stmt, .. } = conflict.higher;
    code.fault(launch, ThreadStmt { block, thread, stmt }, kind)
}
