//! Partial results in shared memory.

use super::{COLUMNS, PartialStep, PartialTable, PartialValue, SHOWN, around};
use crate::ownership::moves::written;
use gemm_dsl::cuda::{self, Listing};
use gemm_dsl::ir::{Kernel, Space};
use gemm_runtime::sim::watch::{Kind, Trace, VerifiedKernel};
use std::collections::{BTreeMap, BTreeSet};

struct SharedStep {
    stmt: u32,
    rounds: u32,
    /// Words written in the step.
    written: BTreeSet<u64>,
    threads: BTreeSet<u32>,
    cells: Vec<Option<PartialValue>>,
}

/// Returns a table for each array in shared memory, with the index of the first event that writes
/// the array. Arrays of one element are skipped.
pub(super) fn tables(
    kernel: &VerifiedKernel,
    listing: &Listing,
    trace: &Trace,
) -> Vec<(usize, PartialTable)> {
    let is_kept =
        |buffer: usize| kernel.buffers[buffer].space == Space::Shared && extent(kernel, buffer) > 1;
    // For each buffer: first event, steps, and the step of each statement with its loop values.
    type Found = (usize, Vec<SharedStep>, BTreeMap<(u32, u32), usize>);
    let mut all: BTreeMap<usize, Found> = BTreeMap::new();
    for access in trace.accesses() {
        let (event, pattern) = (access.event, access.pattern);
        if pattern.kind != Kind::Store || !is_kept(pattern.buffer) {
            continue;
        }
        let elem = kernel.buffers[pattern.buffer].elem;
        let elements = crate::ownership::moves::elements_of(&access, elem.size());
        let bits = written(pattern.bytes, access.words, elem.size()).into_iter().flatten();
        let (_, steps, known) = all.entry(pattern.buffer).or_insert_with(|| {
            let first = trace.events.iter().position(|other| std::ptr::eq(other, event));
            (first.unwrap_or(0), Vec::new(), BTreeMap::new())
        });
        let key = (event.stmt, event.rounds);
        let at = *known.entry(key).or_insert_with(|| {
            // A write belongs to the last step if it is by the same statement and its words are
            // not yet written in the step.
            let is_beside = |step: &SharedStep| {
                step.stmt == event.stmt && !elements.iter().any(|(_, at)| step.written.contains(at))
            };
            if !steps.last().is_some_and(is_beside) {
                let cells = vec![None; SHOWN];
                let (written, threads) = (BTreeSet::new(), BTreeSet::new());
                steps.push(SharedStep {
                    stmt: event.stmt,
                    rounds: event.rounds,
                    written,
                    threads,
                    cells,
                });
            }
            steps.len() - 1
        });
        let Some(step) = steps.get_mut(at) else { continue };
        for ((thread, element), bits) in elements.into_iter().zip(bits) {
            step.written.insert(element);
            step.threads.insert(thread);
            if let Some(cell) = step.cells.get_mut(element as usize) {
                *cell = Some(PartialValue::new(elem, bits, Some(thread), true));
            }
        }
    }
    let statements = kernel.statements();
    let table = |(buffer, (first, steps, _)): (usize, Found)| {
        let stmt = steps.first()?.stmt as usize;
        let name = &kernel.buffers[buffer].name;
        let used = steps.iter().flat_map(|step| step.written.iter()).max()? + 1;
        let rows = (0..used.min(SHOWN as u64)).map(|word| place(kernel, buffer, word));
        let rows: Vec<String> = rows.collect();
        let column = |step: &SharedStep| {
            let around = around(kernel, &trace.rounds[step.rounds as usize]);
            let line = listing.lines[step.stmt as usize].start + 1;
            let name = match around.is_empty() {
                true => format!("line {line}"),
                false => around,
            };
            let cells = step.cells.iter().take(rows.len()).cloned().collect();
            PartialStep { name, active: step.threads.len(), cells }
        };
        let columns = steps.iter().take(COLUMNS).map(column).collect();
        let line = listing.lines[stmt].start + 1;
        let text = cuda::statement(kernel, statements[stmt]);
        Some((first, PartialTable { line, text, array: Some(name.clone()), rows, columns }))
    };
    all.into_iter().filter_map(table).collect()
}

/// Number of elements of an array.
fn extent(kernel: &Kernel, buffer: usize) -> u64 {
    let dims = kernel.buffers[buffer].physical_dims().unwrap_or_default();
    let of = |dim| kernel.eval_const(dim).ok().and_then(|dim| u64::try_from(dim).ok());
    dims.iter().map(|dim| of(dim).unwrap_or(1)).product()
}

/// Word of an array in the notation of the source.
fn place(kernel: &Kernel, buffer: usize, word: u64) -> String {
    let buffer = &kernel.buffers[buffer];
    let dims: Option<Vec<u64>> = buffer.physical_dims().and_then(|dims| {
        let of = |dim| u64::try_from(kernel.eval_const(dim).ok()?).ok();
        dims.iter().map(of).collect()
    });
    let mut rest = word;
    let mut index: Vec<String> = Vec::new();
    for dim in dims.iter().flatten().rev() {
        index.push(format!("[{}]", rest % dim.max(&1)));
        rest /= dim.max(&1);
    }
    if index.is_empty() {
        index.push(format!("[{word}]"));
    }
    index.reverse();
    format!("{}{}", buffer.name, index.concat())
}
