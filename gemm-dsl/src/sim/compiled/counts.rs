//! How often code is executed: each value is charged with one of these counts, and what the counts are says the launch.

use super::super::counters::Executions;

/// The number of a count.
pub(super) type CountId = usize;

/// The parts of an instruction in which costs are kept: every number of rounds that are unrolled together divides it.
pub(super) const PARTS: u64 = 240;

/// Which rounds of a loop that the compiler unrolls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// The site of the body, and how often the loop is begun.
    body: u32,
    begun: CountId,
    /// So many rounds are executed together.
    together: u64,
    /// Of those that are left when all groups of so many are done; 0 of all.
    left_by: u64,
}

impl Rounds {
    pub(super) fn new(body: u32, begun: CountId, together: u32, left_by: u32) -> Self {
        Self { body, begun, together: together.into(), left_by: left_by.into() }
    }
}

/// How often a piece of code is executed.
#[derive(Clone, Copy, Debug)]
struct Count {
    /// What the simulator counts of it: where it is not predicated, by all lanes that are there.
    site: u32,
    /// Where it is executed under a predicate: as often as this other one.
    predicated: Option<CountId>,
    /// The rounds that it is of.
    rounds: Option<Rounds>,
    /// So many copies of it there are, one for each round of the loops that are unrolled completely.
    copies: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counts(Vec<Count>);

impl Counts {
    /// What is executed with a site.
    pub(super) fn add(&mut self, site: u32, rounds: Option<Rounds>, copies: u64) -> CountId {
        self.0.push(Count { site, predicated: None, rounds, copies });
        self.0.len() - 1
    }

    /// What is executed with another one, whatever the condition.
    pub(super) fn predicate(&mut self, count: CountId, by: CountId) {
        self.0[count].predicated = Some(by);
    }

    /// The rounds that it is of.
    pub(super) fn rounds(&self, count: CountId) -> Option<Rounds> {
        self.0[count].rounds
    }

    /// How many copies of it there are.
    pub(super) fn copies(&self, count: CountId) -> u64 {
        self.0[count].copies
    }

    /// How often warps execute it, in parts.
    pub(super) fn warps(&self, count: CountId, executions: &Executions) -> u64 {
        let own = &self.0[count];
        if let Some(by) = own.predicated {
            return self.warps(by, executions);
        }
        self.of(own.rounds, executions.of(own.site)[0], executions) / own.copies
    }

    /// How many lanes do, in parts.
    pub(super) fn lanes(&self, count: CountId, executions: &Executions) -> u64 {
        let own = &self.0[count];
        self.of(own.rounds, executions.of(own.site)[1], executions) / own.copies
    }

    /// So many executions in all rounds, in those that this is of.
    fn of(&self, rounds: Option<Rounds>, executions: u64, counted: &Executions) -> u64 {
        let Some(rounds) = rounds else { return executions * PARTS };
        let (body, begun) = (counted.of(rounds.body)[0], self.warps(rounds.begun, counted) / PARTS);
        if body == 0 || begun == 0 {
            return 0;
        }
        // As if every warp went round equally often.
        let trips = body / begun;
        let left = trips.checked_rem(rounds.left_by).unwrap_or(trips);
        let own = (left / rounds.together) * rounds.together;
        let share =
            |n: u64| u64::try_from(u128::from(n) * u128::from(own) / u128::from(trips.max(1)));
        // What is left over by rounding down goes with the last group, that of single rounds.
        let of_all = share(executions).unwrap_or(u64::MAX);
        if rounds.together > 1 {
            return of_all * PARTS / rounds.together;
        }
        let others = share_of_groups(trips, rounds.left_by, executions);
        (executions - others) * PARTS
    }
}

/// The executions in groups of rounds that come before single ones.
fn share_of_groups(trips: u64, left_by: u64, executions: u64) -> u64 {
    let left = trips.checked_rem(left_by).unwrap_or(trips);
    let grouped = u128::from(trips - left);
    u64::try_from(u128::from(executions) * grouped / u128::from(trips.max(1))).unwrap_or(u64::MAX)
}
