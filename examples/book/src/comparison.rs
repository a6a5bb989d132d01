//! Comparison of the access patterns of two kernels on the same arrays.

use super::access::Access;
use gemm_draw::view::{AccessView, drawing};
use serde::Serialize;
use std::collections::BTreeSet;

/// Maximum number of drawn comparisons.
const DRAWN: usize = 3;

/// Array and direction in which the access patterns of two kernels differ.
#[derive(Clone, Debug, Serialize)]
pub struct AccessComparison {
    pub buffer: String,
    /// Direction: `read`, `written` or `atomic`.
    pub done: &'static str,
    /// For the base and for this kernel, the pattern furthest above its minimum cost. It is unique
    /// to the kernel, unless none of its patterns is.
    pub ways: [Access; 2],
    /// Number of further patterns unique to the base and to this kernel.
    pub others: [usize; 2],
    /// True for the comparisons with the largest cost ratios, which are drawn.
    pub is_drawn: bool,
}

impl AccessComparison {
    pub fn drawn(&self) -> [AccessView<'_>; 2] {
        [drawing(&self.ways[0]), drawing(&self.ways[1])]
    }

    /// Ratio of the larger to the smaller cost, in thousandths.
    fn factor(&self) -> u64 {
        let [before, now] = [0, 1].map(|side| self.ways[side].cost.max(1));
        1000 * before.max(now) / before.min(now)
    }

    /// Caption with the array and both costs.
    pub fn said(&self) -> String {
        let [before, now] = self.drawn().map(|of| match of.cost > of.least {
            true => format!("{} {} (minimum {})", of.cost, of.unit, of.least),
            false => format!("{} {}", of.cost, of.unit),
        });
        format!("{}, {}: {before} → {now}", self.buffer, self.done)
    }

    /// Sentence about the patterns of one kernel that are not drawn.
    pub fn left_out(&self, side: &usize) -> String {
        match self.others[*side] {
            0 => String::new(),
            1 => "Not drawn: 1 more pattern that the other kernel lacks, no further above its \
                  minimum."
                .to_owned(),
            others => {
                format!(
                    "Not drawn: {others} more patterns that the other kernel lacks, none further \
                     above its minimum."
                )
            }
        }
    }
}

/// Direction of an access, regardless of the instruction.
fn done(access: &Access) -> &'static str {
    match access.kind {
        "load" | "read by a copy" => "read",
        "store" | "written by a copy" => "written",
        other => other,
    }
}

/// Returns true if two patterns are equal, regardless of their count and line.
fn are_alike(a: &Access, b: &Access) -> bool {
    let way = |of: &Access| (of.kind, of.bytes, of.lanes, of.cost, of.least, of.strides.clone());
    let rows = |of: &Access| of.grid.rows.iter().map(|row| row.cells.clone()).collect::<Vec<_>>();
    way(a) == way(b) && rows(a) == rows(b)
}

/// Sort key: the pattern furthest above its minimum cost is last.
fn order(access: &&Access) -> (u64, u64, u64) {
    (access.cost - access.least.min(access.cost), access.cost, access.times)
}

/// Compares the patterns of each array that both kernels access.
pub(super) fn compare(before: &[Access], now: &[Access]) -> Vec<AccessComparison> {
    let what = |of: &Access| (of.buffer.clone(), done(of));
    let both: BTreeSet<_> = now.iter().map(what).collect();
    let beside = |(buffer, done): (String, &'static str)| {
        let own = |all: &'_ [Access]| -> Vec<Access> {
            all.iter().filter(|of| what(of) == (buffer.clone(), done)).cloned().collect()
        };
        let [before, now] = [own(before), own(now)];
        let new = |all: &[Access], others: &[Access]| -> Vec<Access> {
            let is_new = |of: &&Access| !others.iter().any(|other| are_alike(of, other));
            all.iter().filter(is_new).cloned().collect()
        };
        let only = [new(&before, &now), new(&now, &before)];
        if only.iter().all(Vec::is_empty) {
            return None;
        }
        let worst = |only: &[Access], all: &[Access]| {
            only.iter().max_by_key(order).or(all.iter().max_by_key(order)).cloned()
        };
        let ways = [worst(&only[0], &before)?, worst(&only[1], &now)?];
        let others = only.map(|only| only.len().saturating_sub(1));
        Some(AccessComparison { buffer, done, ways, others, is_drawn: false })
    };
    let mut all: Vec<AccessComparison> = both.into_iter().filter_map(beside).collect();
    // The sort is stable: ties keep the order of the arrays.
    all.sort_by_key(|both| std::cmp::Reverse(both.factor()));
    for both in all.iter_mut().filter(|both| both.factor() > 1000).take(DRAWN) {
        both.is_drawn = true;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access;
    use crate::observation::looked;
    use gemm_bench::family::Family;
    use gemm_dsl::{cuda, stages};

    fn accesses(line: &str) -> Vec<Access> {
        let looked = looked(Family::Sgemm, line);
        access::all(&looked.kernel, &cuda::listing(&looked.kernel).lines, &looked.trace)
    }

    /// Stage 16 splits the fragments of stage 15: only reads of B and writes of C change.
    #[test]
    fn only_changed_accesses_are_drawn() {
        let stages = stages::sgemm();
        let line = |name: &str| {
            stages.iter().find(|stage| stage.name == name).expect(name).spec.to_string()
        };
        let [before, now] = [line("transpose"), line("split_fragment")].map(|line| accesses(&line));
        assert!(compare(&now, &now).is_empty());
        let found = compare(&before, &now);
        assert!(found.iter().any(|of| (&*of.buffer, of.done) == ("Bs", "read")), "{found:#?}");
        let differ = found.iter().filter(|both| both.ways[0].cost != both.ways[1].cost);
        let drawn = found.iter().filter(|both| both.is_drawn);
        assert_eq!(drawn.count(), differ.count().min(DRAWN));
        for both in &found {
            let [theirs, own] = &both.ways;
            assert!(before.iter().any(|of| are_alike(of, theirs)));
            assert!(now.iter().any(|of| are_alike(of, own)));
            assert!(!are_alike(theirs, own), "{both:?}");
            let all = |of: &&Access| of.buffer == both.buffer && done(of) == both.done;
            let only = now
                .iter()
                .filter(all)
                .filter(|of| !before.iter().any(|other| are_alike(of, other)));
            let only: Vec<&Access> = only.collect();
            assert_eq!(both.others[1], only.len().saturating_sub(1));
            assert!(only.iter().all(|of| order(of) <= order(&own)));
        }
        // Arrays without a drawn comparison have the same patterns in both kernels.
        let drawn = |of: &Access| {
            found.iter().any(|both| both.buffer == of.buffer && both.done == done(of))
        };
        for own in now.iter().filter(|of| !drawn(of)) {
            let is_there = before.iter().any(|other| are_alike(own, other));
            let is_new = !before.iter().any(|of| of.buffer == own.buffer && done(of) == done(own));
            assert!(is_there || is_new, "{own:?}");
        }
    }
}
