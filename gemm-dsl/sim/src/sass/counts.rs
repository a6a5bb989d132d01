//! Execution counts. Each value is charged with a count, which is known after the launch.

use super::super::counters::Executions;
use std::iter::Sum;
use std::ops::{AddAssign, Mul, RangeInclusive};

pub(super) type CountId = usize;

/// Number of iterations that are unrolled together in a loop with an unroll pragma.
pub(super) const MARKED: RangeInclusive<u32> = 2..=16;
/// Number of groups of such iterations that ptxas unrolls together. Without a pragma, it unrolls as
/// many iterations together.
pub(super) const UNROLLED: u32 = 4;

/// Number of executions or instructions, in fractions of [`Self::ONE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts(u128);

impl Parts {
    /// Number of fractions per unit. It is divisible by every number of iterations that are
    /// unrolled together.
    const ONE: u128 = 64 * 9 * 5 * 7 * 11 * 13;

    const fn whole(number: u64) -> Self {
        Self(number as u128 * Self::ONE)
    }

    /// Returns a share of the number, rounded down to a whole fraction.
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

/// Iterations of an unrolled loop to which a count applies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// Site of the body. `begun` is the count of entries to the loop.
    body: u32,
    begun: CountId,
    /// Number of iterations that are executed together.
    together: u64,
    /// Group size of the unrolled loop before this one, whose remaining iterations this loop
    /// executes; 0 if this loop executes all iterations.
    left_by: u64,
}

impl Rounds {
    pub(super) fn new(body: u32, begun: CountId, together: u32, left_by: u32) -> Self {
        Self { body, begun, together: together.into(), left_by: left_by.into() }
    }

    /// Number of groups of this loop if the source's loop has `trips` iterations.
    fn groups_of(&self, trips: u64) -> u64 {
        trips.checked_rem(self.left_by).unwrap_or(trips) / self.together
    }
}

/// Execution count of a piece of code.
#[derive(Clone, Copy, Debug)]
struct Count {
    /// Site whose executions the simulator counts. Code that is not predicated is executed by all
    /// existing lanes.
    site: u32,
    /// If the code is predicated, the count of the code around it.
    predicated: Option<CountId>,
    /// Iterations of an unrolled loop to which the count applies.
    rounds: Option<Rounds>,
    /// Number of copies: one for each iteration of the completely unrolled loops around it.
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

    /// Marks a count as predicated, so that its code is executed as often as that of `by`.
    pub(super) fn predicate(&mut self, count: CountId, by: CountId) {
        self.0[count].predicated = Some(by);
    }

    pub(super) fn rounds(&self, count: CountId) -> Option<Rounds> {
        self.0[count].rounds
    }

    pub(super) fn copies(&self, count: CountId) -> u64 {
        self.0[count].copies
    }

    /// Executions of one copy by warps, in the iterations of the count.
    pub(super) fn warps(&self, count: CountId, executions: &Executions) -> Parts {
        let own = &self.0[count];
        match own.predicated {
            Some(by) => self.warps(by, executions),
            None => self.in_rounds(own, executions.at_site(own.site)[0], executions),
        }
    }

    /// Executions of one copy by lanes, in the iterations of the count.
    pub(super) fn lanes(&self, count: CountId, executions: &Executions) -> Parts {
        let own = &self.0[count];
        self.in_rounds(own, executions.at_site(own.site)[1], executions)
    }

    /// Part of a site's executions that belongs to one copy and to the iterations of a count.
    fn in_rounds(&self, own: &Count, executions: u64, counted: &Executions) -> Parts {
        let all = Parts::whole(executions).share(1, own.copies);
        let Some(rounds) = own.rounds else { return all };
        let begun = self.warps(rounds.begun, counted).0 / Parts::ONE;
        let gone = u128::from(counted.at_site(rounds.body)[0]);
        // Assumes that all warps execute the same number of iterations.
        let trips = gone.checked_div(begun).map_or(0, |trips| trips as u64);
        match (gone, trips) {
            (0, _) => Parts::default(),
            // If only few warps enter the loop, they are assumed to execute one iteration.
            (_, 0) if rounds.together == 1 => all,
            (_, 0) => Parts::default(),
            (_, trips) => all.share(rounds.groups_of(trips), trips),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each iteration belongs to exactly one group.
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
