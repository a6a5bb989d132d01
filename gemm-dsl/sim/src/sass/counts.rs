//! Execution counts: each value is charged with a count, which the launch determines.

use super::super::counters::Executions;
use std::iter::Sum;
use std::ops::{AddAssign, Mul, RangeInclusive};

pub(super) type CountId = usize;

/// Rounds unrolled together in a loop with an unroll pragma.
pub(super) const MARKED: RangeInclusive<u32> = 2..=16;
/// Groups of such rounds that ptxas unrolls together, and rounds of a loop without a pragma.
pub(super) const UNROLLED: u32 = 4;

/// Executions, or instructions, in fractions of [`Self::ONE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts(u128);

impl Parts {
    /// Fractions per unit, divisible by every number of rounds that are unrolled together.
    const ONE: u128 = 64 * 9 * 5 * 7 * 11 * 13;

    const fn whole(number: u64) -> Self {
        Self(number as u128 * Self::ONE)
    }

    /// Share of it, rounded down to one fraction.
    fn share(self, numerator: u64, denominator: u64) -> Self {
        Self(self.0 * u128::from(numerator) / u128::from(denominator))
    }

    /// Rounds to the nearest integer.
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

/// Rounds of an unrolled loop that a count covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// Site of the body. `begun` counts the entries to the loop.
    body: u32,
    begun: CountId,
    /// Number of rounds executed together.
    together: u64,
    /// Group size of the preceding unrolled loop, whose remainder this loop executes; 0 if it
    /// executes all rounds.
    left_by: u64,
}

impl Rounds {
    pub(super) fn new(body: u32, begun: CountId, together: u32, left_by: u32) -> Self {
        Self { body, begun, together: together.into(), left_by: left_by.into() }
    }

    /// Number of groups of this loop within `trips` rounds.
    fn groups_of(&self, trips: u64) -> u64 {
        trips.checked_rem(self.left_by).unwrap_or(trips) / self.together
    }
}

/// Execution count of a piece of code.
#[derive(Clone, Copy, Debug)]
struct Count {
    /// Site whose executions the simulator counts; if not predicated, executed by all existing
    /// lanes.
    site: u32,
    /// Count of the surrounding code, if predicated.
    predicated: Option<CountId>,
    /// Rounds of an unrolled loop that it covers.
    rounds: Option<Rounds>,
    /// Number of copies, one for each round of completely unrolled loops around it.
    copies: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counts(Vec<Count>);

impl Counts {
    /// Adds the count of a site.
    pub(super) fn add(&mut self, site: u32, rounds: Option<Rounds>, copies: u64) -> CountId {
        self.0.push(Count { site, predicated: None, rounds, copies });
        self.0.len() - 1
    }

    /// Marks a count as predicated: it is executed as often as `by`.
    pub(super) fn predicate(&mut self, count: CountId, by: CountId) {
        self.0[count].predicated = Some(by);
    }

    pub(super) fn rounds(&self, count: CountId) -> Option<Rounds> {
        self.0[count].rounds
    }

    pub(super) fn copies(&self, count: CountId) -> u64 {
        self.0[count].copies
    }

    /// Executions by warps, of one copy and in the covered rounds.
    pub(super) fn warps(&self, count: CountId, executions: &Executions) -> Parts {
        let own = &self.0[count];
        match own.predicated {
            Some(by) => self.warps(by, executions),
            None => self.in_rounds(own, executions.at_site(own.site)[0], executions),
        }
    }

    /// Executions by lanes, of one copy and in the covered rounds.
    pub(super) fn lanes(&self, count: CountId, executions: &Executions) -> Parts {
        let own = &self.0[count];
        self.in_rounds(own, executions.at_site(own.site)[1], executions)
    }

    /// Executions of one copy, in the rounds that a count covers, out of all executions of its
    /// site.
    fn in_rounds(&self, own: &Count, executions: u64, counted: &Executions) -> Parts {
        let all = Parts::whole(executions).share(1, own.copies);
        let Some(rounds) = own.rounds else { return all };
        let begun = self.warps(rounds.begun, counted).0 / Parts::ONE;
        let gone = u128::from(counted.at_site(rounds.body)[0]);
        // Assumes that all warps execute the same number of rounds.
        let trips = gone.checked_div(begun).map_or(0, |trips| trips as u64);
        match (gone, trips) {
            (0, _) => Parts::default(),
            // If few warps enter the loop at all, they execute one round.
            (_, 0) if rounds.together == 1 => all,
            (_, 0) => Parts::default(),
            (_, trips) => all.share(rounds.groups_of(trips), trips),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each round belongs to one group, and no round is left over.
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
