//! Number of launches and of operations between a value and the result, from the tree of a plan.

use gemm_dsl::plan::{Blocks, ReducePlan, Share};

/// Depth of the tree over the values of one result.
///
/// A round reduces `group · items · vector` values. There are `ceil(n / round)` rounds, which are
/// distributed evenly over the parts. A thread executes `ceil(n / (parts · round))` rounds, or all
/// rounds of its run. In each round it combines `items · vector` values in sequence. Then the
/// values of all threads are reduced by halving. If there are partial results, a thread combines
/// `ceil(parts / group)` of them in sequence, before the values of the threads are reduced by
/// halving again. Threads without values add the identity, which changes no value and does not
/// round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Number of values that a thread combines in sequence in one round.
    pub held: u64,
    /// Rounds of a thread.
    pub rounds: u64,
    /// Combinations after the rounds, on the longest path.
    pub combined: u64,
}

impl Depth {
    /// Depth of a plan for `n` values.
    pub fn of(plan: &ReducePlan, n: u64) -> Self {
        let held = u64::from(plan.items()) * u64::from(plan.vector());
        let halvings = u64::from(plan.group().ilog2());
        if plan.share() == Share::Tiles {
            // Each pass has one round and one tree. The values of a vector are combined in pairs.
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

    /// Maximum number of additions on the path of a value to the sum.
    pub fn additions(&self) -> u64 {
        self.held * self.rounds + self.combined
    }

    /// Maximum number of combinations of two partial results on the path of a value.
    pub fn combinations(&self) -> u64 {
        self.rounds + self.combined
    }
}

/// Number of launches for a reduction of an array. A launch computes one value per block, and the
/// last launch has one block. An empty array has no runs.
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
        // Three blocks execute 20 rounds of 256 values, at most 7 each. There are 3 partial
        // results, one per thread.
        assert_eq!(depth("over: all, blocks: 3", 5120), [1, 7, 17]);
        assert_eq!(depth("over: columns, group: 2, blocks: 5", 30), [1, 3, 5]);
        // A run has 4 rounds. There are 5 runs, the last one shorter; or all values are in a part
        // of one run.
        assert_eq!(depth("run: 1024", 4500), [1, 4, 17]);
        assert_eq!(depth("run: 1024", 300), [1, 2, 17]);
        assert_eq!(depth("over: columns, group: 2, run: 2", 30), [1, 1, 10]);
    }
}
