//! Compilation of kernels before their first launch, several in parallel.

#[cfg(test)]
mod tests;

use crate::backend::Backend;
use crate::device::{Device, dispatch};
use crate::error::{Error, Result};
use crate::program::{CachedProgram, KernelLoad};
use gemm_dsl::Family;
use gemm_dsl::ir::program::KernelId;
use std::collections::HashSet;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Builder};

/// Compiles each kernel of these specs that is not yet loaded, once, for aligned and for unaligned
/// arrays. Later launches compile nothing. Nothing is compiled on the simulator.
///
/// # Errors
/// [`Error::Ahead`] for the first spec that fails, after all others have been tried.
pub(crate) fn warm_up<'l, S: Family>(
    device: &Device,
    lines: impl IntoIterator<Item = &'l str>,
) -> Result<()> {
    let mut seen = HashSet::new();
    let lines: Vec<&str> = lines.into_iter().filter(|line| seen.insert(*line)).collect();
    let programs = in_parallel(&lines, |line| device.programs().get::<S>(line));
    make(device, &lines, programs)
}

/// Compiles all kernels of the programs of these specs.
///
/// # Errors
/// Returns the errors of [`warm_up`].
pub(crate) fn make(
    device: &Device,
    lines: &[&str],
    programs: Vec<Result<Arc<CachedProgram>>>,
) -> Result<()> {
    let (mut kernels, mut failures) = (Vec::new(), Vec::new());
    for (number, program) in programs.into_iter().enumerate() {
        match program {
            Ok(program) => {
                kernels.extend(program.ids().map(|id| (number, Arc::clone(&program), id)));
            }
            Err(error) => failures.push((number, error)),
        }
    }
    let made = in_parallel(&kernels, |(_, program, id)| ready(device, program, *id));
    let made = kernels.iter().zip(made);
    failures.extend(made.filter_map(|((number, ..), made)| Some((*number, made.err()?))));
    failures.sort_by_key(|(number, _)| *number);
    let others = failures.len().saturating_sub(1);
    match failures.into_iter().next() {
        None => Ok(()),
        Some((number, error)) => {
            Err(Error::Ahead { line: lines[number].to_owned(), error: Box::new(error), others })
        }
    }
}

/// Compiles all kernels of a program, unless the device has already loaded them or is a simulator.
///
/// # Errors
/// Returns the error of the first kernel that fails.
pub fn load(device: &Device, program: &CachedProgram) -> Result<()> {
    if device.is_simulator() || program.is_loaded() {
        return Ok(());
    }
    let kernels: Vec<KernelId> = program.ids().collect();
    let made = in_parallel(&kernels, |id| ready(device, program, *id));
    made.into_iter().try_for_each(|made| made.map(drop))
}

fn ready(device: &Device, program: &CachedProgram, id: KernelId) -> Result<Option<KernelLoad>> {
    let contract = program.contract(id);
    dispatch!(device, on => match contract.is_optional && !on.backend.runs(contract) {
        true => Ok(None),
        false => on.backend.ready(program, id),
    })
}

/// Results of all items, in the order of the items, computed by at most one thread per processor.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number) else { return done };
            done.push((number, work(item)));
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
    let mut all = thread::scope(|scope| {
        // If the system cannot start more threads, the existing threads do the work.
        let others = (1..threads).map_while(|_| Builder::new().spawn_scoped(scope, worker).ok());
        let others: Vec<_> = others.collect();
        let mut all = worker();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    });
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, done)| done).collect()
}
