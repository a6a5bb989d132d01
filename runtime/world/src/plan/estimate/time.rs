//! Start and end times of multiplications and exchanges.

use crate::plan::work::work;
use crate::plan::{Block, ClusterModel, Factor, Place, Step, VerifiedSchedule};
use std::collections::BTreeMap;

/// Seconds, for the slowest rank.
pub(super) struct Times {
    pub(super) products: f64,
    pub(super) exchanges: f64,
    pub(super) all: f64,
}

struct ProductTime {
    /// Time at which all its operands are present.
    there: f64,
    /// Duration if no exchange slows it.
    alone: f64,
}

/// State of a rank in the simulation.
#[derive(Default)]
struct RankTime {
    /// Seconds to split the rank's own shards, before all other work.
    before: f64,
    steps: usize,
    /// Number of exchanges in which the rank has taken part, and the end of the last of them.
    taken: usize,
    exchanged: f64,
    /// End of the last exchange if there were no multiplications.
    alone: f64,
    /// Time at which all awaited data is present.
    there: f64,
    /// Multiplications begun so far, and the known end times of the first ones.
    products: Vec<ProductTime>,
    ends: Vec<f64>,
    /// Last multiplication that reads each slot.
    reads: BTreeMap<(Factor, usize), usize>,
    /// Intervals of this rank's exchanges, and the number that end before the next multiplication.
    busy: Vec<[f64; 2]>,
    over: usize,
}

/// Predicts the seconds of a multiplication that no exchange slows. Splits of the rank's whole
/// shards may exist already.
fn product(
    schedule: &VerifiedSchedule,
    machine: &ClusterModel,
    rank: usize,
    block: &Block,
    places: [Place; 2],
) -> f64 {
    let gpu = &machine.gpu;
    let of = |factor: Factor| {
        let needed = schedule.size.needed(factor, block);
        let is_own = places[factor as usize] == Place::Shard
            && needed == schedule.shards().of_factor(factor)[rank];
        match gpu.splits.once && is_own {
            true => 0.0,
            false => gpu.splits(needed.rows.len(), needed.cols.len()),
        }
    };
    let extents = [block.rows.len(), block.cols.len(), schedule.size.k];
    gpu.multiplied(extents) + of(Factor::A) + of(Factor::B)
}

/// Simulates the exchanges in the order of their numbers. An exchange depends only on earlier
/// exchanges: those for which its ranks have waited, and those that slowed a multiplication whose
/// slot it overwrites. All its inputs are therefore known when the simulation reaches it.
pub(super) fn times(schedule: &VerifiedSchedule, machine: &ClusterModel, times: &[f64]) -> Times {
    let mut ranks: Vec<RankTime> =
        (0..schedule.ranks()).map(|rank| RankTime::new(schedule, machine, rank)).collect();
    // End time of each exchange.
    let mut over = vec![0.0; times.len()];
    // Participants of each exchange, without duplicates.
    let mut taking_part: Vec<Vec<usize>> = vec![Vec::new(); times.len()];
    for rank in 0..schedule.ranks() {
        for role in schedule.roles.rank(rank) {
            work(1);
            taking_part[role.exchange].push(rank);
        }
    }
    for (exchange, time) in times.iter().enumerate() {
        let (mut begin, mut alone) = (0.0_f64, 0.0_f64);
        for number in &taking_part[exchange] {
            let rank = &mut ranks[*number];
            rank.go(schedule, machine, *number, &over);
            begin = begin.max(rank.exchanged).max(rank.may_write(schedule, machine, *number));
            alone = alone.max(rank.alone);
        }
        over[exchange] = begin + time;
        for number in &taking_part[exchange] {
            let rank = &mut ranks[*number];
            rank.busy.push([begin, begin + time]);
            (rank.exchanged, rank.alone) = (begin + time, alone + time);
            rank.taken += 1;
            // Skips the step `Begin` of the exchange.
            rank.steps += 1;
        }
    }
    let mut all = Times { products: 0.0, exchanges: 0.0, all: 0.0 };
    for (number, rank) in ranks.iter_mut().enumerate() {
        rank.go(schedule, machine, number, &over);
        rank.end(rank.products.len(), machine.lost);
        let products = rank.products.iter().map(|product| product.alone).sum::<f64>() + rank.before;
        let end = rank.ends.last().copied().unwrap_or(rank.before);
        all.products = all.products.max(products);
        all.exchanges = all.exchanges.max(rank.alone);
        all.all = all.all.max(end).max(rank.exchanged);
    }
    all
}

impl RankTime {
    fn new(schedule: &VerifiedSchedule, machine: &ClusterModel, number: usize) -> Self {
        let own = Factor::BOTH.map(|factor| &schedule.shards().of_factor(factor)[number]);
        let splits = |block: &Block| machine.gpu.splits(block.rows.len(), block.cols.len());
        let before = if machine.gpu.splits.once { own.into_iter().map(splits).sum() } else { 0.0 };
        Self { before, there: before, exchanged: before, ..Self::default() }
    }

    /// Simulates the steps up to the next exchange that the rank begins.
    fn go(
        &mut self,
        schedule: &VerifiedSchedule,
        machine: &ClusterModel,
        number: usize,
        over: &[f64],
    ) {
        for step in &schedule.steps[number][self.steps..] {
            work(1);
            match step {
                Step::Begin(_) => break,
                Step::Wait(exchange) => self.there = self.there.max(over[*exchange]),
                Step::Multiply { block, a, b } => {
                    for (factor, place) in [(Factor::A, a), (Factor::B, b)] {
                        if let Place::Slot(slot) = place {
                            self.reads.insert((factor, *slot), self.products.len());
                        }
                    }
                    let alone = product(schedule, machine, number, block, [*a, *b]);
                    self.products.push(ProductTime { there: self.there, alone });
                }
            }
            self.steps += 1;
        }
    }

    /// Returns the time from which the next exchange may overwrite its slots, because they have
    /// been read.
    fn may_write(
        &mut self,
        schedule: &VerifiedSchedule,
        machine: &ClusterModel,
        number: usize,
    ) -> f64 {
        let role = &schedule.roles.rank(number)[self.taken];
        let mut read = None;
        for of in schedule.roles.got(&schedule.exchanges, role) {
            work(1);
            if let Place::Slot(slot) = of.into {
                read = read.max(self.reads.get(&(role.factor, slot)).copied());
            }
        }
        let Some(last) = read else { return 0.0 };
        self.end(last + 1, machine.lost);
        self.ends[last]
    }

    /// Computes the end times of the first `products` multiplications.
    fn end(&mut self, products: usize, lost: f64) {
        let speed = 1.0 - lost.clamp(0.0, 1.0);
        let known = self.ends.len().min(products);
        for product in &self.products[known..products] {
            work(1);
            let mut now = product.there.max(self.ends.last().copied().unwrap_or(0.0));
            let mut rest = product.alone;
            while let Some([begin, end]) = self.busy.get(self.over).copied() {
                work(1);
                let before = (begin - now).max(0.0);
                if rest <= before {
                    break;
                }
                rest -= before;
                now = now.max(begin);
                let beside = (end - now).max(0.0);
                if rest < beside * speed {
                    now += rest / speed;
                    rest = 0.0;
                    break;
                }
                rest -= beside * speed;
                now = now.max(end);
                self.over += 1;
            }
            self.ends.push(now + rest);
        }
    }
}
