//! Steps of a kernel. For a GEMM, they are the ranges of K in each slot of shared memory, round by
//! round. For a reduction, they are the numbers of active threads in each step.

use super::pipeline::rounds;
use crate::ownership::NumberedRun;
use crate::ownership::moves::elements;
use crate::pipeline::event;
use crate::pipeline::event::{TileArrays, WarpAction};
use gemm_dsl::cuda::Listing;
use gemm_dsl::ir::{Kernel, Space};
use gemm_runtime::sim::watch::{self, Event, EventKind, Kind, Price, Trace};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// Number of rounds shown at the start and at the end of a long loop.
const FIRST: usize = 8;
const LAST: usize = 4;
/// Maximum number of shown steps of a reduction.
const LEVELS: usize = 48;

/// Rounds of a GEMM, or steps of a reduction.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Steps {
    /// Name of the loop variable.
    pub var: String,
    /// Number of slots in shared memory.
    pub slots: u64,
    /// State before the loop, followed by its rounds.
    pub rounds: Vec<Round>,
    /// Number of omitted rounds before the last rounds.
    pub left_out: usize,
    pub levels: Vec<Level>,
}

/// Round of the loop, with the state of each slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Round {
    /// Value of the variable, or `None` before the loop.
    pub value: Option<i64>,
    pub slots: Vec<StepSlot>,
}

/// Slot of shared memory in a round. Ranges of K are given by first and last index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StepSlot {
    /// Range of K that is read.
    pub read: Option<[u64; 2]>,
    /// Range of K that is written.
    pub written: Option<[u64; 2]>,
    /// True if copies to the slot are pending at the end of the round.
    pub in_flight: bool,
    /// Range of K that the slot contains at the end of the round.
    pub holds: Option<[u64; 2]>,
}

/// Step in which threads write shared memory or shuffle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Level {
    /// Line of the source, counted from 1.
    pub line: usize,
    /// Values of the variables of the surrounding loops.
    pub round: String,
    /// Kind of the step: `store` or `shuffle`.
    pub what: &'static str,
    pub threads: u64,
    /// Number of warps with an active thread.
    pub warps: u64,
    /// Wavefronts of the stores, or 0 for shuffles.
    pub wavefronts: u64,
}

/// Returns the rounds of a GEMM from its run on numbered elements, or the steps of another kernel.
pub(super) fn steps(
    kernel: &Kernel,
    listing: &Listing,
    trace: &Trace,
    named: Option<&NumberedRun>,
) -> Steps {
    match named {
        Some(named) => ring(kernel, named).unwrap_or_default(),
        None => Steps { levels: levels(kernel, listing, trace), ..Steps::default() },
    }
}

/// Extends a range by an index of K.
fn widen(range: &mut Option<[u64; 2]>, term: u64) {
    *range = Some(range.map_or([term; 2], |[from, to]| [from.min(term), to.max(term)]));
}

/// Returns the contents of the slots, or `None` if threads copy nothing to shared memory in a loop.
fn ring(kernel: &Kernel, named: &NumberedRun) -> Option<Steps> {
    let trace = &named.trace;
    let ring = TileArrays::new(kernel);
    let of_first: Vec<&Event> = trace.events.iter().filter(|event| event.warp == 0).collect();
    let looped = rounds::main_loop(kernel, trace, &of_first)?;
    let values: Vec<i64> = looped.of_events.iter().map(|(value, _)| *value).collect();
    // Row of an event: 0 before the loop, then the number of the round from 1. Events after the
    // loop have no row.
    let row = |event: &Event, is_begun: bool| {
        let around = &trace.rounds[event.rounds as usize];
        let value = around.iter().find(|(var, _)| *var == looped.var).map(|(_, value)| *value);
        match value {
            Some(value) => values.iter().position(|of| *of == value).map(|at| at + 1),
            None => (!is_begun).then_some(0),
        }
    };
    let slots = ring.slots as usize;
    let mut rows = vec![vec![StepSlot::default(); slots]; values.len() + 1];
    let mut held: HashMap<(usize, u64), u64> = HashMap::new();
    let mut begun: BTreeSet<u32> = BTreeSet::new();
    for access in trace.accesses() {
        let (event, pattern, words) = (access.event, access.pattern, access.words);
        let at = row(event, begun.contains(&event.warp));
        if at.is_some_and(|at| at > 0) {
            begun.insert(event.warp);
        }
        let (Some(at), Space::Shared) = (at, kernel.buffers[pattern.buffer].space) else {
            continue;
        };
        let slot = |element: u64| ring.slot(pattern.buffer, element as u32).unwrap_or(0) as usize;
        let elements = elements(&access);
        if pattern.kind == Kind::Load {
            for (_, element) in elements {
                if let Some(term) = held.get(&(pattern.buffer, element))
                    && let Some(slot) = rows[at].get_mut(slot(element))
                {
                    widen(&mut slot.read, *term);
                }
            }
        } else if elements.len() == words.len() {
            for ((_, element), word) in elements.into_iter().zip(words) {
                let [a, b, _] = &named.matrices;
                let place = |of: &Option<crate::ownership::GlobalMatrix>| {
                    of.as_ref()?.named((*word).into())
                };
                let term = place(a).map(|(_, term)| term).or(place(b).map(|(term, _)| term));
                if let Some(term) = term
                    && let Some(slot) = rows[at].get_mut(slot(element))
                {
                    held.insert((pattern.buffer, element), term);
                    widen(&mut slot.written, term);
                }
            }
        }
    }
    let is_of_tiles = rows.iter().flatten().any(|slot| slot.written.is_some())
        && rows[1..].iter().flatten().any(|slot| slot.read.is_some());
    is_of_tiles.then_some(())?;
    in_flight(kernel, trace, &ring, &of_first, &looped, &mut rows);
    let mut holds = vec![None; slots];
    for row in &mut rows {
        for (slot, holds) in row.iter_mut().zip(&mut holds) {
            *holds = slot.written.or(*holds);
            slot.holds = *holds;
        }
    }
    let values = std::iter::once(None).chain(values.into_iter().map(Some));
    let mut rounds: Vec<Round> =
        values.zip(rows).map(|(value, slots)| Round { value, slots }).collect();
    let left_out = rounds.len().saturating_sub(1 + FIRST + LAST);
    let hidden = 1 + FIRST..1 + FIRST + left_out;
    let mut number = 0;
    rounds.retain(|_| {
        number += 1;
        !hidden.contains(&(number - 1))
    });
    let var = kernel.vars[looped.var].name.clone();
    Some(Steps { var, slots: ring.slots, rounds, left_out, levels: Vec::new() })
}

/// Marks the slots to which copies of warp 0 are pending at the end of each round.
fn in_flight(
    kernel: &Kernel,
    trace: &Trace,
    ring: &TileArrays,
    events: &[&Event],
    looped: &rounds::Rounds,
    rows: &mut [Vec<StepSlot>],
) {
    let acts = event::all(kernel, trace, ring, events);
    let ends = std::iter::once(looped.events().start)
        .chain(looped.of_events.iter().map(|(_, events)| events.end));
    let mut acts = acts.iter().peekable();
    let mut groups: VecDeque<BTreeSet<u64>> = VecDeque::new();
    let mut open: BTreeSet<u64> = BTreeSet::new();
    for (end, row) in ends.zip(rows) {
        while let Some(act) = acts.next_if(|act| act.event < end) {
            match act.act {
                WarpAction::Arrive => open.extend([act.slot.unwrap_or(0)]),
                WarpAction::Commit => groups.push_back(std::mem::take(&mut open)),
                WarpAction::Wait(pending) => {
                    while groups.len() as u64 > pending {
                        groups.pop_front();
                    }
                }
                _ => {}
            }
        }
        for slot in groups.iter().flatten().chain(&open) {
            if let Some(slot) = row.get_mut(*slot as usize) {
                slot.in_flight = true;
            }
        }
    }
}

/// Returns the steps of a reduction in which threads write shared memory or shuffle, in the order
/// of the trace.
fn levels(kernel: &Kernel, listing: &Listing, trace: &Trace) -> Vec<Level> {
    /// Kind of a step, number of threads, warps, and wavefronts.
    type Known = (&'static str, u64, BTreeSet<u32>, u64);
    let mut order: Vec<(u32, u32)> = Vec::new();
    let mut all: BTreeMap<(u32, u32), Known> = BTreeMap::new();
    let mut take = |key: (u32, u32), what, threads: usize, warp: u32, wavefronts: u64| {
        let known = all.entry(key).or_insert_with(|| {
            order.push(key);
            (what, 0, BTreeSet::new(), 0)
        });
        known.1 += threads as u64;
        known.2.insert(warp);
        known.3 += wavefronts;
    };
    let mut details = trace.details.iter().peekable();
    for number in 0..=trace.events.len() {
        while let Some(detail) = details.next_if(|detail| detail.event <= number) {
            if let (watch::Action::Shuffle { sources, .. }, 0) = (&detail.did, detail.rank) {
                let threads = sources.iter().flatten().count();
                take((detail.stmt, detail.rounds), "shuffle", threads, detail.warp, 0);
            }
        }
        let Some(event) = trace.events.get(number) else { continue };
        let EventKind::Access { pattern, .. } = &event.what else { continue };
        let pattern = &trace.patterns[*pattern as usize];
        if let (Price::Shared(price), Kind::Store) = (pattern.cost, pattern.kind) {
            let threads = pattern.lanes.iter().flatten().count();
            take((event.stmt, event.rounds), "store", threads, event.warp, price.wavefronts);
        }
    }
    let level = |key: (u32, u32)| {
        let (what, threads, warps, wavefronts) = &all[&key];
        let around = trace.rounds[key.1 as usize].iter();
        let around = around.map(|(var, value)| format!("{} = {value}", kernel.vars[*var].name));
        Level {
            line: listing.lines[key.0 as usize].start + 1,
            round: around.collect::<Vec<_>>().join(", "),
            what,
            threads: *threads,
            warps: warps.len() as u64,
            wavefronts: *wavefronts,
        }
    };
    order.into_iter().take(LEVELS).map(level).collect()
}

impl StepSlot {
    /// Describes the state of the slot.
    pub fn text(&self) -> String {
        let range = |[from, to]: [u64; 2]| match from == to {
            true => from.to_string(),
            false => format!("{from}–{to}"),
        };
        let mut parts = Vec::new();
        parts.extend(self.read.map(|terms| format!("read {}", range(terms))));
        parts.extend(self.written.map(|terms| format!("written {}", range(terms))));
        match (self.holds, self.in_flight) {
            (None, _) => parts.push("empty".to_owned()),
            (Some(terms), true) if self.written.is_none() => {
                parts.push(format!("in flight {}", range(terms)));
            }
            (Some(_), true) => parts.push("in flight".to_owned()),
            (Some(terms), false) if parts.is_empty() => {
                parts.push(format!("holds {}", range(terms)))
            }
            (Some(_), false) => {}
        }
        parts.join(", ")
    }

    /// CSS class of its cell.
    pub fn class(&self) -> &'static str {
        match (self.read, self.written, self.in_flight) {
            (Some(_), Some(_), _) => "both",
            (Some(_), None, _) => "l2",
            (None, Some(_), _) => "l1",
            (None, None, true) => "l0",
            (None, None, false) => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::looked;
    use crate::ownership::named;
    use gemm_bench::family::Family;
    use gemm_dsl::cuda;

    fn steps_of(family: Family, line: &str) -> Steps {
        let looked = looked(family, line);
        let named = named(&looked).expect("the same launch");
        steps(&looked.kernel, &cuda::listing(&looked.kernel), &looked.trace, named.as_ref())
    }

    /// The ring has five slots, and a K tile has 16 terms. Before the loop four slots are filled,
    /// and the warp waits for the first of them. Each round fills the slot that the previous round
    /// read.
    #[test]
    fn slots_of_a_ring_are_filled_in_turn() {
        let line = "tile: 128x256x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, \
                    stages: 5, spread: 10, warp: 32x128";
        let steps = steps_of(Family::Sgemm, line);
        assert_eq!((&*steps.var, steps.slots, steps.rounds.len(), steps.left_out), ("k0", 5, 9, 0));
        let texts =
            |round: usize| steps.rounds[round].slots.iter().map(StepSlot::text).collect::<Vec<_>>();
        assert_eq!(
            texts(0),
            [
                "read 0, written 0–15",
                "written 16–31, in flight",
                "written 32–47, in flight",
                "written 48–63, in flight",
                "empty"
            ]
        );
        assert_eq!(
            texts(1),
            [
                "read 1–15",
                "read 16",
                "in flight 32–47",
                "in flight 48–63",
                "written 64–79, in flight"
            ]
        );
        assert_eq!(texts(2)[0], "written 80–95, in flight");
    }

    #[test]
    fn one_slot_is_read_and_written_in_a_round() {
        let steps = steps_of(Family::Sgemm, "tile: 32x32x32");
        let texts: Vec<String> = steps.rounds.iter().map(|round| round.slots[0].text()).collect();
        assert_eq!(
            texts[..3],
            ["written 0–31", "read 0–31, written 32–63", "read 32–63, written 64–95"]
        );
        assert_eq!(texts[8], "read 224–255");
    }

    /// Divergent tree: each step has half as many active threads as the previous one. A warp stays
    /// active as long as one of its threads is active.
    #[test]
    fn levels_of_a_tree_have_half_the_threads() {
        let of = |tree: &str| -> Vec<(u64, u64)> {
            let steps = steps_of(Family::Reduce, tree);
            steps.levels.iter().map(|level| (level.threads, level.warps)).collect()
        };
        let threads = [256, 128, 64, 32, 16, 8, 4, 2, 1];
        let divergent = threads.iter().copied().zip([8, 8, 8, 8, 8, 8, 4, 2, 1]);
        assert_eq!(of("tree: interleaved_divergent"), divergent.collect::<Vec<_>>());
        let together = threads.iter().copied().zip([8, 4, 2, 1, 1, 1, 1, 1, 1]);
        assert_eq!(of("tree: sequential"), together.collect::<Vec<_>>());
    }
}
