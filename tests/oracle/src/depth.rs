//! How many launches and operations stand between a value and its result, by the tree of a plan.

use gemm_dsl::plan::{Blocks, ReducePlan, Share};

/// The tree over the values of one result.
///
/// A round takes in `group · items · vector` of them, and there are `ceil(n / round)`, which the parts share
/// evenly: a thread goes through `ceil(n / (parts · round))` of them, of a run through all of its own, and takes
/// `items · vector` values in sequence in each. Then the threads of a result halve their number until one is left, and where there are
/// partials, a thread takes `ceil(parts / group)` of them in sequence, before the threads halve again.
/// Threads that have none of either add the identity, which changes no value and is no rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Values that a thread takes in one by one in a round.
    pub held: u64,
    /// The rounds of a thread.
    pub rounds: u64,
    /// What is combined behind them, on the longest way.
    pub combined: u64,
}

impl Depth {
    /// That of a plan over so many values.
    pub fn of(plan: &ReducePlan, n: u64) -> Self {
        let held = u64::from(plan.items()) * u64::from(plan.vector());
        let halvings = u64::from(plan.group().ilog2());
        if plan.share() == Share::Tiles {
            // Each of the passes is a round and a tree; in a vector the values are folded in pairs.
            let passes = passes(plan, n as usize) as u64;
            return Self { held, rounds: passes, combined: passes * halvings };
        }
        let rounds = n.div_ceil(plan.elements_per_round()).max(1);
        if !plan.has_partials() {
            return Self { held, rounds, combined: halvings };
        }
        let (parts, rounds) = match plan.blocks() {
            Blocks::One => (1, rounds),
            Blocks::InTurn(most) => {
                let parts = rounds.min(most.into());
                (parts, rounds.div_ceil(parts))
            }
            Blocks::Runs(run) => {
                let of_run = u64::from(run) / plan.elements_per_round();
                (n.div_ceil(run.into()), rounds.min(of_run))
            }
        };
        let in_sequence = parts.div_ceil(plan.group().into());
        Self { held, rounds, combined: 2 * halvings + in_sequence }
    }

    /// The additions that a term passes in a sum, at most.
    pub fn additions(&self) -> u64 {
        self.held * self.rounds + self.combined
    }

    /// How often what was folded of some values is combined with what was folded of others.
    pub fn combinations(&self) -> u64 {
        self.rounds + self.combined
    }
}

/// The launches that a reduction of an array takes: each leaves one value a block, the last one value. Of no elements
/// there are no runs.
pub fn passes(plan: &ReducePlan, len: usize) -> usize {
    if plan.share() != Share::Tiles {
        let leaves = len > 0 || !matches!(plan.blocks(), Blocks::Runs(_));
        return if plan.has_partials() && !plan.is_once() && leaves { 2 } else { 1 };
    }
    let mut left = (len as u64).div_ceil(plan.elements_per_block());
    let mut passes = 1;
    while left > 1 {
        left = left.div_ceil(plan.elements_per_block());
        passes += 1;
    }
    passes
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_dsl::spec::ReduceSpec;

    fn depth(line: &str, n: u64) -> [u64; 3] {
        let spec: ReduceSpec = line.parse().expect("a line");
        let Depth { held, rounds, combined } = Depth::of(&spec.plan().expect("a sound spec"), n);
        [held, rounds, combined]
    }

    #[test]
    fn counts_what_a_term_passes() {
        assert_eq!(depth("block: 256, items: 4", 1000), [4, 1, 8]);
        assert_eq!(depth("block: 256, items: 4", 1025), [4, 2, 16]);
        assert_eq!(depth("over: rows, items: 2", 0), [2, 1, 5]);
        assert_eq!(depth("over: rows, items: 2", 129), [2, 3, 5]);
        assert_eq!(depth("over: rows, group: 1", 100), [1, 100, 0]);
        assert_eq!(depth("over: columns, group: 4", 17), [1, 5, 2]);
        // 20 rounds of 256 by 3 blocks: 7 at most, 3 partials of which a thread has one.
        assert_eq!(depth("over: all, blocks: 3", 5120), [1, 7, 17]);
        assert_eq!(depth("over: columns, group: 2, blocks: 5", 30), [1, 3, 5]);
        // Runs of 4 rounds: 5 of them, the last one shorter, or all in a part of one.
        assert_eq!(depth("run: 1024", 4500), [1, 4, 17]);
        assert_eq!(depth("run: 1024", 300), [1, 2, 17]);
        assert_eq!(depth("over: columns, group: 2, run: 2", 30), [1, 1, 10]);
    }
}
