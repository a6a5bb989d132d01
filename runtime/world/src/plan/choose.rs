//! Choice of the fastest strategy.

use super::estimate::{Bytes, Estimate, Seconds};
use super::schedule::{Distributions, Schedule, Size};
use super::{ClusterModel, Factor, FactorExt, ScheduleFault, Strategy, VerifiedSchedule};
use std::collections::BTreeSet;
use std::fmt;

/// Maximum number of parts that are tried. With more parts, an exchange costs more time than it
/// hides.
const MOST_PARTS: usize = 32;

/// Chosen schedule, with all candidates. It prints as a table.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleChoice {
    /// Fastest schedule among those that fit in memory.
    pub schedule: VerifiedSchedule,
    /// Strategy of the chosen schedule.
    pub strategy: Strategy,
    /// Predicted cost of the schedule.
    pub estimate: Estimate,
    /// All candidate strategies with their predicted costs, including the chosen one.
    pub tried: Vec<(Strategy, Estimate)>,
    /// Limit in bytes on the memory of each rank beside its shards, or `None` without a limit.
    pub limit: Option<u64>,
    /// Machine for which the schedule was chosen.
    pub machine: ClusterModel,
}

impl Schedule {
    /// Returns the schedule with the shortest time on a machine, as predicted by
    /// [`VerifiedSchedule::estimate`]. Considers only schedules that need at most `limit` bytes
    /// beside any rank's shards. Of equally fast schedules, returns the schedule that needs the
    /// least memory.
    ///
    /// Candidates are all kinds of [`Strategy`]. [`Strategy::Gather`] is tried with 1, 2, 4, …
    /// parts, and with 1, 2, 4, … times the number of other ranks, up to 32 parts. Each part has at
    /// least as many rows or columns as a tile.
    ///
    /// # Errors
    /// Returns the errors of [`Schedule::new`], and [`ScheduleFault::Memory`] if all candidates
    /// need more memory.
    ///
    /// ```
    /// use gemm_world::plan::{ClusterModel, Distribution, Distributions};
    /// use gemm_world::plan::{Schedule, ScheduleFault, Strategy};
    ///
    /// let n = 16384;
    /// let distributions = Distributions {
    ///     a: Distribution::rows(n, n),
    ///     b: Distribution::cols(n, n),
    ///     c: Distribution::cols(n, n),
    /// };
    /// let machine = ClusterModel::h200_copy_engines();
    /// let chosen = Schedule::cheapest(distributions.clone(), 4, &machine, Some(600_000_000))?;
    /// assert_eq!(chosen.strategy, Strategy::Rotate);
    /// println!("{chosen}");
    /// let fault = Schedule::cheapest(distributions, 4, &machine, Some(500_000_000));
    /// let Err(ScheduleFault::Memory { least, strategy, .. }) = fault else { unreachable!() };
    /// assert_eq!((least, strategy), (536_870_912, Strategy::Rotate));
    /// # Ok::<(), ScheduleFault>(())
    /// ```
    pub fn cheapest(
        distributions: Distributions,
        ranks: usize,
        machine: &ClusterModel,
        limit: Option<u64>,
    ) -> Result<ScheduleChoice, ScheduleFault> {
        let first = Self::new(distributions.clone(), ranks, Strategy::Sequential)?;
        let doubled =
            |number: usize| std::iter::successors(Some(number), |parts| parts.checked_mul(2));
        let numbers =
            |number| doubled(number).take_while(|parts| worthwhile(&first, machine, *parts));
        // Without exchanges all strategies are equal.
        let parts: BTreeSet<usize> = match first.exchanges.is_empty() {
            true => BTreeSet::new(),
            false => numbers(1).chain(numbers(ranks.saturating_sub(1).max(1))).collect(),
        };
        let mut strategies: Vec<Strategy> =
            parts.into_iter().map(|parts| Strategy::Gather { parts }).collect();
        if !strategies.is_empty() {
            strategies.push(Strategy::Rotate);
        }
        let mut tried = vec![(Strategy::Sequential, first.estimate(machine))];
        let mut best = None;
        let fits = |estimate: &Estimate| limit.is_none_or(|limit| estimate.most_memory() <= limit);
        if fits(&tried[0].1) {
            best = Some((first, 0));
        }
        for strategy in strategies {
            let schedule = Self::new(distributions.clone(), ranks, strategy)?;
            let estimate = schedule.estimate(machine);
            let cost = |estimate: &Estimate| (estimate.time, estimate.most_memory());
            let better = best
                .as_ref()
                .is_none_or(|(_, best): &(_, usize)| cost(&estimate) < cost(&tried[*best].1));
            if better && fits(&estimate) {
                best = Some((schedule, tried.len()));
            }
            tried.push((strategy, estimate));
        }
        let Some((schedule, number)) = best else {
            let needs =
                tried.iter().map(|(strategy, estimate)| (estimate.most_memory(), *strategy));
            let (least, strategy) =
                needs.min_by_key(|(least, _)| *least).unwrap_or((0, Strategy::Sequential));
            return Err(ScheduleFault::Memory { limit: limit.unwrap_or(0), least, strategy });
        };
        let (strategy, estimate) = tried[number].clone();
        Ok(ScheduleChoice { schedule, strategy, estimate, tried, limit, machine: *machine })
    }
}

/// Returns true if the parts of the rank with the largest share of C have at least as many rows, or
/// columns, as a tile.
fn worthwhile(sequential: &VerifiedSchedule, machine: &ClusterModel, parts: usize) -> bool {
    let factor = sequential.exchanges.last().map_or(Factor::A, |exchange| exchange.factor);
    let most = sequential.shards().c.iter().map(|shard| factor.outer(shard).len()).max();
    parts == 1
        || parts <= MOST_PARTS
            && most.is_some_and(|most| most / parts >= machine.gpu.largest()[factor as usize])
}

impl fmt::Display for ScheduleChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size { m, n, k } = self.schedule.size;
        write!(f, "{m}x{n}x{k} on {} ranks of {}", self.schedule.ranks(), self.machine.name)?;
        match self.limit {
            None => writeln!(f)?,
            Some(limit) => {
                writeln!(f, ", with at most {} beside the shards of a rank", Bytes(limit))?
            }
        }
        writeln!(
            f,
            "  {:<13}{:>12}{:>12}{:>12}{:>12}",
            "way", "bytes in", "memory", "predicted", "efficiency"
        )?;
        for (strategy, estimate) in &self.tried {
            let chosen = if *strategy == self.strategy { '*' } else { ' ' };
            let most = estimate.bytes.iter().copied().max().unwrap_or(0);
            let memory = estimate.most_memory();
            write!(
                f,
                "{chosen} {:<13}{:>12}{:>12}",
                strategy.to_string(),
                Bytes(most),
                Bytes(memory)
            )?;
            write!(f, "{:>12}{:>10.1} %", Seconds(estimate.time), 100.0 * estimate.efficiency())?;
            let fits = self.limit.is_none_or(|limit| memory <= limit);
            writeln!(f, "{}", if fits { "" } else { "  exceeds the memory limit" })?;
        }
        Ok(())
    }
}
