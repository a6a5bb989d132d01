//! Main loop of a warp, by rounds.

use gemm_dsl::ir::{Kernel, Space, Stmt};
use gemm_runtime::sim::watch::{Event, EventKind, Trace};
use std::collections::BTreeMap;
use std::ops::Range;

/// Rounds of a loop as executed by a warp.
pub(crate) struct Rounds {
    /// Index of the loop variable.
    pub(crate) var: usize,
    /// Value of the variable and range of the warp's events, for each round.
    pub(crate) of_events: Vec<(i64, Range<usize>)>,
}

impl Rounds {
    /// Range of the events of all rounds.
    pub(crate) fn events(&self) -> Range<usize> {
        match (self.of_events.first(), self.of_events.last()) {
            (Some((_, first)), Some((_, last))) => first.start..last.end,
            _ => 0..0,
        }
    }
}

/// Returns the rounds of the loop along K.
///
/// Candidates are loops with several rounds that access shared memory, copy tiles or issue matrix
/// instructions. If there are none, all loops are candidates. The outermost candidate that executes
/// at least half of the instructions is chosen, otherwise the candidate with the most instructions.
/// Epilogues and the f32 fallback can take longer, but they are not candidates, because they do not
/// access shared memory.
pub(crate) fn main_loop(kernel: &Kernel, trace: &Trace, events: &[&Event]) -> Option<Rounds> {
    let statements = kernel.statements();
    let is_of_tiles = |event: &Event| match &event.what {
        EventKind::Access { pattern, .. } => {
            kernel.buffers[trace.patterns[*pattern as usize].buffer].space == Space::Shared
        }
        EventKind::Statement => matches!(
            statements.get(event.stmt as usize),
            Some(Stmt::TensorCopy(_) | Stmt::Mma(_) | Stmt::Wgmma(_))
        ),
        EventKind::Refused => false,
    };
    let of_tiles: Vec<&Event> = events.iter().copied().filter(|event| is_of_tiles(event)).collect();
    let var = longest(trace, &of_tiles).or_else(|| longest(trace, events))?;
    Some(rounds(trace, events, var))
}

/// Returns the variable of the outermost loop with several rounds and at least half of the
/// instructions between the first and the last event. Without such a loop, returns that of the loop
/// with the most instructions.
fn longest(trace: &Trace, events: &[&Event]) -> Option<usize> {
    let total = events.last()?.executed[0] - events.first()?.executed[0];
    // Depth of each variable's loop, and instructions in it.
    let mut loops: BTreeMap<usize, (usize, u64)> = BTreeMap::new();
    for (now, next) in events.iter().zip(&events[1..]) {
        for (depth, (var, _)) in trace.rounds[now.rounds as usize].iter().enumerate() {
            let (_, executed) = loops.entry(*var).or_insert((depth, 0));
            *executed += next.executed[0] - now.executed[0];
        }
    }
    let several = loops.into_iter().filter_map(|(var, (depth, executed))| {
        let is_repeated = rounds(trace, events, var).of_events.len() > 1;
        is_repeated.then_some((2 * executed < total, depth, executed, var))
    });
    let best = several.min_by_key(|(is_less, depth, executed, _)| {
        (*is_less, if *is_less { 0 } else { *depth }, std::cmp::Reverse(*executed))
    });
    best.map(|(.., var)| var)
}

/// Splits events into the rounds of a loop. Consecutive events with the same values of this
/// variable and of the outer ones form a round.
fn rounds(trace: &Trace, events: &[&Event], var: usize) -> Rounds {
    let mut of_events: Vec<(i64, Range<usize>)> = Vec::new();
    let mut current: Option<&[(usize, i64)]> = None;
    for (number, event) in events.iter().enumerate() {
        let around = &trace.rounds[event.rounds as usize];
        let place = around.iter().position(|(of, _)| *of == var).map(|at| &around[..=at]);
        match (place, of_events.last_mut()) {
            (Some(_), Some((_, round))) if place == current => round.end = number + 1,
            (Some(place), _) => of_events.push((place[place.len() - 1].1, number..number + 1)),
            (None, _) => {}
        }
        current = place;
    }
    Rounds { var, of_events }
}
