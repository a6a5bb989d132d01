//! How often code is executed: each value is charged with one of these counts, and what the counts are says the launch.

use super::super::counters::Executions;
use std::iter::Sum;
use std::ops::{AddAssign, Mul, RangeInclusive};

/// The number of a count.
pub(super) type CountId = usize;

/// Rounds of a loop that a marked loop may have unrolled together.
pub(super) const MARKED: RangeInclusive<u32> = 2..=16;
/// Groups of them that ptxas unrolls together, and rounds of a loop of which nothing is said.
pub(super) const UNROLLED: u32 = 4;

/// Executions, or instructions, in whole parts of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts(u128);

impl Parts {
    /// The parts of one: every number of rounds that are unrolled together divides it.
    const ONE: u128 = 64 * 9 * 5 * 7 * 11 * 13;

    const fn whole(number: u64) -> Self {
        Self(number as u128 * Self::ONE)
    }

    /// This share of it, rounded down to a part.
    fn share(self, numerator: u64, denominator: u64) -> Self {
        Self(self.0 * u128::from(numerator) / u128::from(denominator))
    }

    /// The nearest whole number.
    pub(super) fn rounded(self) -> u64 {
        u64::try_from((self.0 + Self::ONE / 2) / Self::ONE).unwrap_or(u64::MAX)
    }
}

impl AddAssign for Parts {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sum for Parts {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        Self(parts.map(|parts| parts.0).sum())
    }
}

impl Mul<u32> for Parts {
    type Output = Self;

    fn mul(self, by: u32) -> Self {
        Self(self.0 * u128::from(by))
    }
}

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

    /// Of so many rounds the groups that this is.
    fn groups_of(&self, trips: u64) -> u64 {
        trips.checked_rem(self.left_by).unwrap_or(trips) / self.together
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

    /// How often warps execute it.
    pub(super) fn warps(&self, count: CountId, executions: &Executions) -> Parts {
        let own = &self.0[count];
        match own.predicated {
            Some(by) => self.warps(by, executions),
            None => self.in_rounds(own, executions.at_site(own.site)[0], executions),
        }
    }

    /// How often lanes do.
    pub(super) fn lanes(&self, count: CountId, executions: &Executions) -> Parts {
        let own = &self.0[count];
        self.in_rounds(own, executions.at_site(own.site)[1], executions)
    }

    /// Of so many executions in all rounds and copies those of one copy, in the rounds that a count is of.
    fn in_rounds(&self, own: &Count, executions: u64, counted: &Executions) -> Parts {
        let all = Parts::whole(executions).share(1, own.copies);
        let Some(rounds) = own.rounds else { return all };
        let begun = self.warps(rounds.begun, counted).0 / Parts::ONE;
        let gone = u128::from(counted.at_site(rounds.body)[0]);
        // As if every warp went round equally often.
        let trips = gone.checked_div(begun).map_or(0, |trips| trips as u64);
        match (gone, trips) {
            (0, _) => Parts::default(),
            // Few warps go round at all: those do so once.
            (_, 0) if rounds.together == 1 => all,
            (_, 0) => Parts::default(),
            (_, trips) => all.share(rounds.groups_of(trips), trips),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each round is in one group, and groups are counted without a rest.
    #[test]
    fn groups_have_each_round_once() {
        let marked = MARKED.map(|by| (by * UNROLLED, by));
        for (all, by) in marked.chain([(UNROLLED * UNROLLED, UNROLLED)]) {
            assert_eq!(Parts::ONE % u128::from(all), 0, "{all}");
            for trips in 0..200 {
                let groups = [(all, 0), (by, all), (1, by)];
                let rounds = groups.map(|(together, left_by)| {
                    let rounds = Rounds::new(0, 0, together, left_by);
                    rounds.groups_of(trips) * u64::from(together)
                });
                assert_eq!(rounds.iter().sum::<u64>(), trips, "{by}: {rounds:?}");
            }
        }
    }
}
