//! Overlap of copies with the work of a warp.

use super::rounds::Rounds;
use crate::pipeline::event::{ActionAt, WarpAction};
use gemm_bench::change::number;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// Work of a warp between the start of copies and their use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overlap {
    /// Start and end of the interval in words.
    pub between: &'static str,
    /// Number of occurrences in the rounds of the loop.
    pub times: usize,
    /// Minimum and maximum number of multiply-adds in the interval.
    pub fma: [u64; 2],
    /// Minimum and maximum number of matrix instructions in the interval.
    pub matrix: [u64; 2],
}

impl Overlap {
    pub fn text(&self) -> String {
        let range = |[least, most]: [u64; 2]| match least == most {
            true => number(least as f64),
            false => format!("{} to {}", number(least as f64), number(most as f64)),
        };
        match (self.fma[1], self.matrix[1]) {
            (0, 0) => "this warp executes no multiplications".to_owned(),
            (_, 0) => format!("{} multiply-adds", range(self.fma)),
            (0, _) => format!("{} matrix instructions", range(self.matrix)),
            _ => format!(
                "{} multiply-adds and {} matrix instructions",
                range(self.fma),
                range(self.matrix)
            ),
        }
    }
}

/// Returns the overlap of each kind of copy or load that a warp uses in its loop.
pub(super) fn overlaps(acts: &[ActionAt], rounds: Option<&Rounds>) -> Vec<Overlap> {
    let looped = rounds.map(Rounds::events).unwrap_or_default();
    let mut found: BTreeMap<&'static str, Vec<[u64; 2]>> = BTreeMap::new();
    let mut matrix = 0;
    let mut copies = 0;
    // Pending groups of copies, including empty ones.
    let mut groups: VecDeque<Option<[u64; 2]>> = VecDeque::new();
    let mut boxes: BTreeMap<usize, VecDeque<Option<[u64; 2]>>> = BTreeMap::new();
    let mut loads: Vec<[u64; 2]> = Vec::new();
    for act in acts {
        let now = [act.executed[1], matrix];
        let start = looped.contains(&act.event).then_some(now);
        let mut used = |between, start: [u64; 2]| {
            found.entry(between).or_default().push([now[0] - start[0], now[1] - start[1]]);
        };
        match act.act {
            WarpAction::Copy => copies += 1,
            WarpAction::Commit => {
                groups.push_back(start.filter(|_| copies > 0));
                copies = 0;
            }
            WarpAction::Wait(pending) => {
                while groups.len() as u64 > pending {
                    if let Some(start) = groups.pop_front().flatten() {
                        used("the commit of copies and the wait for them", start);
                    }
                }
            }
            WarpAction::Expect(barrier) => boxes.entry(barrier).or_default().push_back(start),
            WarpAction::Await(barrier) => {
                let asked = boxes.get_mut(&barrier).and_then(VecDeque::pop_front);
                if let Some(start) = asked.flatten() {
                    used("the request of a tile and the wait for it", start);
                }
            }
            WarpAction::Load => loads.extend(start),
            WarpAction::Write => {
                for start in loads.drain(..) {
                    used("a load from global memory and the next store to shared memory", start);
                }
            }
            WarpAction::Matrix => matrix += 1,
            WarpAction::Box
            | WarpAction::Barrier
            | WarpAction::Arrive
            | WarpAction::Read
            | WarpAction::Sums
            | WarpAction::Store => {}
        }
    }
    let hidden = |(between, all): (&'static str, Vec<[u64; 2]>)| {
        let of = |unit: usize| {
            let counts = || all.iter().map(|counts| counts[unit]);
            [counts().min().unwrap_or(0), counts().max().unwrap_or(0)]
        };
        Overlap { between, times: all.len(), fma: of(0), matrix: of(1) }
    };
    found.into_iter().map(hidden).collect()
}
