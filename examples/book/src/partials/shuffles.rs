//! Values exchanged by the lanes of the first warp.

use super::{COLUMNS, PartialStep, PartialTable, PartialValue, SHOWN, around, given};
use crate::ownership::moves::written;
use gemm_dsl::cuda::{self, Listing};
use gemm_dsl::ir::{Elem, Expr, Kernel, Space, Stmt, Var};
use gemm_runtime::sim::watch::{Action, Detail, EventKind, Kind, Trace, VerifiedKernel};
use std::collections::BTreeSet;
use std::ops::Range;

/// Shuffles of one statement, in order.
struct ShuffleRun<'t> {
    stmt: u32,
    elem: Elem,
    steps: Vec<&'t Detail>,
}

/// Store of the warp after a shuffle.
struct WarpStore<'k> {
    stmt: u32,
    /// Bits of the first element that each lane stores.
    bits: Vec<Option<u64>>,
    /// Type of the element, if each lane stores only one.
    elem: Option<Elem>,
    /// Variables that the stored value is computed from.
    of: Vec<&'k Var>,
}

/// Returns a table for each statement that shuffles values, with the number of events before its
/// first step.
pub(super) fn tables(
    kernel: &VerifiedKernel,
    listing: &Listing,
    trace: &Trace,
) -> Vec<(usize, PartialTable)> {
    let statements = kernel.statements();
    let read = |stmt: u32| read(statements[stmt as usize]);
    let mut runs: Vec<ShuffleRun<'_>> = Vec::new();
    let own = |detail: &&Detail| {
        (detail.rank, detail.warp) == (0, 0) && matches!(detail.did, Action::Shuffle { .. })
    };
    for step in trace.details.iter().filter(own) {
        let elem = given(kernel, statements[step.stmt as usize]);
        // Shuffled values have 32 or 64 bits.
        let Some(elem) = elem.filter(|elem| elem.size() >= 4) else { continue };
        let is_new = |other: &&Detail| other.rounds != step.rounds;
        let run = runs.iter_mut().rev().find(|run| run.stmt == step.stmt);
        match run.filter(|run| run.steps.iter().all(is_new) && goes_on(trace, run, step)) {
            Some(run) => run.steps.push(step),
            None => runs.push(ShuffleRun { stmt: step.stmt, elem, steps: vec![step] }),
        }
    }
    // The parts of a composite value are shuffled by separate statements.
    let shuffled: Vec<&Var> = runs.iter().flat_map(|run| read(run.stmt)).collect();
    let table = |run: &ShuffleRun<'_>| {
        let (first, last) = (run.steps.first()?, run.steps.last()?);
        let later = trace.details.iter().filter(own).map(|step| step.event);
        let until = later.filter(|event| *event > last.event).min().unwrap_or(usize::MAX);
        let stores = stored(kernel, &statements, trace, last.event..until);
        let mut counts: BTreeSet<usize> = match stores.first() {
            Some(stored) => {
                let is_there = |(lane, bits): (usize, &Option<u64>)| bits.map(|_| lane);
                stored.bits.iter().enumerate().filter_map(is_there).collect()
            }
            None => (0..SHOWN).collect(),
        };
        let mut columns = Vec::new();
        let is_made_of = |parts: &[&Var], stored: &WarpStore<'_>| {
            stored.of.iter().any(|var| parts.contains(var))
        };
        let own = read(run.stmt);
        let result = stores.iter().find(|stored| is_made_of(&own, stored));
        // If a store is computed only from other parts, it is not the result of this part. A store
        // that is computed from a result is not a part.
        let result = result.or(stores.first().filter(|stored| !is_made_of(&shuffled, stored)));
        if let Some(WarpStore { stmt, bits, elem: Some(elem), .. }) = result {
            let line = listing.lines[*stmt as usize].start + 1;
            let cell =
                |bits: &Option<u64>| bits.map(|bits| PartialValue::new(*elem, bits, None, true));
            let cells: Vec<Option<PartialValue>> = bits.iter().map(cell).collect();
            let active = cells.iter().flatten().count();
            columns.push(PartialStep { name: format!("stored, line {line}"), active, cells });
        }
        for step in run.steps.iter().rev() {
            let Action::Shuffle { values, sources } = &step.did else { continue };
            let taken = counts.iter().filter_map(|lane| sources[*lane].map(usize::from));
            let taken: Vec<usize> = taken.collect();
            counts.extend(taken);
            let cell = |lane: usize| {
                let counts = counts.contains(&lane);
                let given = PartialValue::new(run.elem, values[lane], None, counts);
                sources[lane].map(|_| given)
            };
            let innermost = trace.rounds[step.rounds as usize].last().copied();
            let name = around(kernel, &innermost.into_iter().collect::<Vec<_>>());
            let name = if name.is_empty() { "before".to_owned() } else { format!("before {name}") };
            let cells = (0..SHOWN).map(cell).collect();
            columns.push(PartialStep { name, active: counts.len(), cells });
        }
        columns.reverse();
        columns.truncate(COLUMNS);
        let line = listing.lines[run.stmt as usize].start + 1;
        let text = cuda::statement(kernel, statements[run.stmt as usize]);
        let rows = (0..SHOWN).map(|lane| lane.to_string()).collect();
        Some((first.event, PartialTable { line, text, array: None, rows, columns }))
    };
    runs.iter().filter_map(table).collect()
}

/// Returns true if a step is in the same iteration of all outer loops as the previous steps. Only
/// the innermost loop may advance.
fn goes_on(trace: &Trace, run: &ShuffleRun<'_>, step: &Detail) -> bool {
    let outer = |rounds: u32| {
        let all = &trace.rounds[rounds as usize];
        &all[..all.len().saturating_sub(1)]
    };
    run.steps.first().is_some_and(|first| outer(first.rounds) == outer(step.rounds))
}

/// Variables that a statement reads for the value it assigns or stores.
fn read(stmt: &Stmt) -> Vec<&Var> {
    let mut read = Vec::new();
    if let Stmt::Let { value, .. } | Stmt::Assign { value, .. } | Stmt::Store { value, .. } = stmt {
        value.visit(&mut |expr| {
            if let Expr::Var(var) = expr {
                read.push(var);
            }
        });
    }
    read
}

/// Stores of the first warp in a range of the block's events, in order.
fn stored<'k>(
    kernel: &Kernel,
    statements: &[&'k Stmt],
    trace: &Trace,
    among: Range<usize>,
) -> Vec<WarpStore<'k>> {
    let events = trace.events.iter().take(among.end).skip(among.start);
    let stores = events.filter(|event| event.warp == 0).filter_map(|event| {
        let EventKind::Access { pattern, words, .. } = &event.what else { return None };
        let pattern = &trace.patterns[*pattern as usize];
        let buffer = &kernel.buffers[pattern.buffer];
        if pattern.kind != Kind::Store || buffer.space == Space::Register {
            return None;
        }
        let size = buffer.elem.size();
        let mut given = written(pattern.bytes, words, size).into_iter();
        let bits = pattern.lanes.iter().map(|at| at.and_then(|_| given.next()?.first().copied()));
        Some(WarpStore {
            stmt: event.stmt,
            bits: bits.collect(),
            elem: Some(buffer.elem).filter(|_| pattern.bytes == size),
            of: read(statements[event.stmt as usize]),
        })
    });
    stores.collect()
}
