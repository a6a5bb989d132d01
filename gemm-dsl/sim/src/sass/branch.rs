//! Branches: decides which become jumps and which become predicated code.

use super::charge::Charge;
use super::cost::{self, SassCost};
use super::counts::{CountId, Counts};
use super::values::MergedValues;
use crate::sass::polynomial::ValueId;
use std::collections::{HashMap, HashSet};

/// `if` statement, which becomes a jump or predicated code.
pub(super) struct Branch {
    pub(super) cond: ValueId,
    /// Count of the code that contains the branch.
    pub(super) by: CountId,
    /// Counts of the non-empty sides of the branch.
    pub(super) arms: [Option<CountId>; 2],
    pub(super) divergent: bool,
    /// True if it contains barriers.
    pub(super) has_barriers: bool,
    /// True if it contains atomics or fences.
    pub(super) asks: bool,
    /// True if the kernel ends after the branch.
    pub(super) is_last: bool,
    pub(super) stmt: Option<u32>,
}

#[derive(Default)]
pub(super) struct Branches {
    /// All branches. Inner branches come before outer ones.
    pub(super) all: Vec<Branch>,
    /// Counts of code that contains loops.
    pub(super) of_loops: Vec<CountId>,
    /// Comparisons of a value with a constant for equality, by the comparison: the value and the
    /// constant.
    pub(super) equal: HashMap<ValueId, (ValueId, ValueId)>,
}

impl Branches {
    /// Decides for all branches by their number of instructions. Predicated code gets the count of
    /// the code around it. Returns `others` together with the instructions of jumps.
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
        // Code with a jump inside is not predicated.
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
            // Several comparisons of the same value with constants become a jump table.
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
    /// Number of instructions of the jump, and of a second jump past the other side.
    fn jump(&self) -> u32 {
        let jump = match (self.divergent, self.is_last) {
            // Lanes that have no more work exit.
            (_, true) => 1,
            (true, false) => cost::DIVERGENT_BRANCH,
            (false, false) => 1,
        };
        jump + u32::from(self.arms.iter().flatten().count() == 2)
    }
}
