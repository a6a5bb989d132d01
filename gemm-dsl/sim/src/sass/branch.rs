//! Branches: which of them are jumps, and which predicates.

use super::charge::Charge;
use super::cost::{self, SassCost};
use super::counts::{CountId, Counts};
use super::values::MergedValues;
use crate::sass::polynomial::ValueId;
use std::collections::{HashMap, HashSet};

/// An `if`.
pub(super) struct Branch {
    pub(super) cond: ValueId,
    /// What it is part of.
    pub(super) by: CountId,
    /// Its branches, where they have anything in them.
    pub(super) arms: [Option<CountId>; 2],
    pub(super) divergent: bool,
    /// Whether there are barriers in it.
    pub(super) has_barriers: bool,
    /// Whether there are atomics or fences in it.
    pub(super) asks: bool,
    /// Whether the kernel ends behind it.
    pub(super) is_last: bool,
    pub(super) stmt: Option<u32>,
}

/// The branches of a kernel.
#[derive(Default)]
pub(super) struct Branches {
    /// Those inside others first.
    pub(super) all: Vec<Branch>,
    /// What has loops in it.
    pub(super) of_loops: Vec<CountId>,
    /// Comparisons for equality but for a constant, and what they compare.
    pub(super) equal: HashMap<ValueId, (ValueId, ValueId)>,
}

impl Branches {
    /// Decides about all branches, by the instructions of values and the others that are executed. These are given back with
    /// those of jumps; what is predicated is counted with what it is part of.
    pub(super) fn predicate(
        self,
        values: &MergedValues,
        counts: &mut Counts,
        mut others: Vec<Charge>,
    ) -> Vec<Charge> {
        let mut spent: HashMap<CountId, u32> = HashMap::new();
        for charge in values.charges().chain(others.iter().copied()) {
            *spent.entry(charge.count).or_default() += charge.cost.instructions();
        }
        // What is no straight code jumps itself.
        let mut jumps: HashSet<CountId> = self.of_loops.into_iter().collect();
        let mut cases: HashMap<(ValueId, ValueId), u32> = HashMap::new();
        for what in self.all.iter().filter_map(|branch| self.equal.get(&branch.cond)) {
            *cases.entry(*what).or_default() += 1;
        }
        for branch in self.all {
            let arms = || branch.arms.into_iter().flatten();
            let all: u32 = arms().filter_map(|arm| spent.get(&arm)).sum();
            let is_straight = arms().all(|arm| !jumps.contains(&arm));
            let most = match (branch.has_barriers, branch.divergent) {
                (true, _) => cost::PREDICATED_BARRIERS,
                (false, true) => cost::PREDICATED_LANES,
                (false, false) => cost::PREDICATED,
            };
            // One of several that ask which constant a number is: a jump by a table.
            let is_case = self.equal.get(&branch.cond).is_some_and(|what| cases[what] > 2);
            if is_straight && all <= most && !branch.is_last && !branch.asks && !is_case {
                arms().for_each(|arm| counts.predicate(arm, branch.by));
                *spent.entry(branch.by).or_default() += all;
                continue;
            }
            jumps.insert(branch.by);
            let jump = branch.jump();
            *spent.entry(branch.by).or_default() += jump;
            others.push(Charge {
                count: branch.by,
                stmt: branch.stmt,
                cost: SassCost::others(jump),
            });
        }
        others
    }
}

impl Branch {
    /// Instructions of the jump, and of another one past the second branch.
    fn jump(&self) -> u32 {
        let jump = match (self.divergent, self.is_last) {
            // Lanes that have nothing left to do leave.
            (_, true) => 1,
            (true, false) => cost::DIVERGENT_BRANCH,
            (false, false) => 1,
        };
        jump + u32::from(self.arms.iter().flatten().count() == 2)
    }
}
