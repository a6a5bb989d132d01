//! Branches: which of them are jumps, and which predicates.

use super::Compiler;
use super::cost::{self, Class, Cost};
use super::counts::CountId;
use super::form::Id;
use std::collections::HashMap;

/// An `if`.
pub(super) struct Branch {
    pub(super) cond: Id,
    /// What it is part of.
    pub(super) by: CountId,
    /// Its branches, where they have anything in them.
    pub(super) arms: [Option<CountId>; 2],
    pub(super) divergent: bool,
    /// Whether there are barriers in it.
    pub(super) speaks: bool,
    /// Whether there are atomics or fences in it.
    pub(super) asks: bool,
    /// Whether the kernel ends behind it.
    pub(super) is_last: bool,
    pub(super) stmt: Option<u32>,
}

impl Compiler<'_, '_> {
    /// Decides about all branches, those inside others first.
    pub(super) fn decide(&mut self) {
        let mut spent: HashMap<CountId, u32> = HashMap::new();
        for value in self.values.all.iter().filter(|value| value.needed) {
            *spent.entry(value.count).or_default() += value.cost.instructions();
        }
        for (count, _, cost) in &self.spent {
            *spent.entry(*count).or_default() += cost.instructions();
        }
        // What is no straight code jumps itself.
        let mut jumps: std::collections::HashSet<CountId> =
            self.branches_of_loops.iter().copied().collect();
        let mut cases: HashMap<(Id, Id), u32> = HashMap::new();
        for branch in &self.branches {
            self.equal
                .get(&branch.cond)
                .iter()
                .for_each(|what| *cases.entry(**what).or_default() += 1);
        }
        for branch in std::mem::take(&mut self.branches) {
            let arms = || branch.arms.into_iter().flatten();
            let of = |arm: &CountId| spent.get(arm).copied().unwrap_or(0);
            let all: u32 = arms().map(|arm| of(&arm)).sum();
            let is_straight = arms().all(|arm| !jumps.contains(&arm));
            let most = match (branch.speaks, branch.divergent) {
                (true, _) => cost::PREDICATED_BARRIERS,
                (false, true) => cost::PREDICATED_LANES,
                (false, false) => cost::PREDICATED,
            };
            // One of several that ask which constant a number is: a jump by a table.
            let is_case = self.equal.get(&branch.cond).is_some_and(|what| cases[what] > 2);
            if is_straight && all <= most && !branch.is_last && !branch.asks && !is_case {
                arms().for_each(|arm| self.counts.predicate(arm, branch.by));
                *spent.entry(branch.by).or_default() += all;
                continue;
            }
            jumps.insert(branch.by);
            let both = arms().count() == 2;
            let jump = Self::divergence(branch.divergent, branch.is_last) + u32::from(both);
            *spent.entry(branch.by).or_default() += jump;
            let cost = Cost { class: Class::Other, count: 0, others: jump };
            self.spent.push((branch.by, branch.stmt, cost));
        }
    }
}
