//! What travels in each exchange, and how long that takes.

use super::ELEMENT;
use crate::plan::work::work;
use crate::plan::{
    Block, ClusterModel, Exchange, Factor, FactorExt, Hosts, Move, Place, VerifiedSchedule,
};
use std::collections::BTreeMap;

/// What travels.
pub(super) struct Traffic {
    /// Bytes that come to each rank from others.
    pub(super) bytes: Vec<u64>,
    /// Bytes of blocks of each rank that are packed, or unpacked.
    pub(super) staged: Vec<u64>,
    /// Seconds of each exchange, once all are at it.
    pub(super) times: Vec<f64>,
}

pub(super) fn traffic(schedule: &VerifiedSchedule, machine: &ClusterModel) -> Traffic {
    let mut bytes = vec![0_u64; schedule.ranks()];
    let mut staged = vec![0_u64; schedule.ranks()];
    let staging = machine.staging.then(|| Staging::new(schedule, machine));
    let mut ranks = Flows(vec![[0; 3]; schedule.ranks()]);
    let hosts = machine.hosts.map_or(0, |hosts| schedule.ranks().div_ceil(hosts.gpus.max(1)));
    let mut hosts = Flows(vec![[0; 3]; hosts]);
    let mut times = Vec::with_capacity(schedule.exchanges.len());
    for exchange in &schedule.exchanges {
        let Exchange { factor, moves } = exchange;
        work(moves.len());
        let (mut own, mut others) = (0, 0);
        for Move { from, to, block, .. } in moves {
            let moved = (block.len() as u64).saturating_mul(ELEMENT);
            if from != to {
                bytes[*to] = bytes[*to].saturating_add(moved);
            }
            let [most_own, most_others] = ranks.add(*from, *to, moved);
            (own, others) = (most_own.max(own), most_others.max(others));
        }
        ranks.clear(moves.iter().map(|of| [of.from, of.to]));
        // What stays on a rank is read and written.
        let copied = |bytes: u64| 2.0 * bytes as f64 / machine.gpu.memory;
        let mut time = copied(own).max(machine.link.time(others));
        if let Some(of) = &machine.hosts {
            time = time.max(of.network.time(between(&mut hosts, of, *factor, moves)));
        }
        if let Some(staging) = &staging {
            time += copied(staging.staged_bytes(exchange, &mut ranks, &mut staged));
        }
        times.push(time);
    }
    Traffic { bytes, staged, times }
}

/// What is packed, or unpacked, where rows have to lie one after the other.
struct Staging<'s> {
    schedule: &'s VerifiedSchedule,
    machine: &'s ClusterModel,
}

impl<'s> Staging<'s> {
    fn new(schedule: &'s VerifiedSchedule, machine: &'s ClusterModel) -> Self {
        Self { schedule, machine }
    }

    /// Adds the bytes that each rank packs and unpacks in an exchange; those of who has most.
    fn staged_bytes(&self, exchange: &Exchange, flows: &mut Flows, all: &mut [u64]) -> u64 {
        let Exchange { factor, moves } = exchange;
        let shards = self.schedule.shards();
        let mut slots: BTreeMap<(usize, Place), Block> = BTreeMap::new();
        work(moves.len());
        for of in moves.iter().filter(|of| matches!(of.into, Place::Slot(_))) {
            let held = slots.entry((of.to, of.into)).or_insert(Block::new(0..0, 0..0));
            *held = held.with(&of.block);
        }
        let mut most = 0;
        for of in moves.iter().filter(|of| of.from != of.to) {
            let gathered = || self.schedule.size.needed(*factor, &shards.c[of.to]);
            let to = match slots.get(&(of.to, of.into)) {
                Some(held) => self.is_apart(*factor, &of.block, held),
                None => self.is_apart(*factor, &of.block, &gathered()),
            };
            let from = self.is_apart(*factor, &of.block, &shards.of_factor(*factor)[of.from]);
            let bytes = (of.block.len() as u64).saturating_mul(ELEMENT);
            for rank in [(from, of.from), (to, of.to)]
                .into_iter()
                .filter_map(|(is, rank)| is.then_some(rank))
            {
                all[rank] = all[rank].saturating_add(bytes);
                most = most.max(flows.add(rank, rank, bytes)[0]);
            }
        }
        flows.clear(moves.iter().map(|of| [of.from, of.to]));
        most
    }

    /// Whether something lies between the rows of a block where another one is stored that it is a part of.
    fn is_apart(&self, factor: Factor, block: &Block, of: &Block) -> bool {
        match factor.is_transposed(self.machine.layout) {
            false => block.is_apart_in(of),
            true => block.t().is_apart_in(&of.t()),
        }
    }
}

/// Of each rank or host, in one exchange: the bytes that stay, those that come and those that go.
struct Flows(Vec<[u64; 3]>);

impl Flows {
    /// Adds a move; the most bytes of who has a part in it, of those that stay and of those that come or go.
    fn add(&mut self, from: usize, to: usize, bytes: u64) -> [u64; 2] {
        let mut add = |who: usize, which: usize| {
            self.0[who][which] = self.0[who][which].saturating_add(bytes);
            self.0[who][which]
        };
        match from == to {
            true => [add(to, 0), 0],
            false => [0, add(to, 1).max(add(from, 2))],
        }
    }

    fn clear(&mut self, who: impl Iterator<Item = [usize; 2]>) {
        who.flatten().for_each(|who| self.0[who] = [0; 3]);
    }
}

/// The most bytes that come to a host from others, or go from it to them.
fn between(flows: &mut Flows, hosts: &Hosts, factor: Factor, moves: &[Move]) -> u64 {
    let host = |rank: usize| rank / hosts.gpus.max(1);
    let crossing = moves.iter().filter(|of| host(of.from) != host(of.to));
    // Sender and host, and which terms of which rows of A, or columns of B.
    let key = |of: &Move| {
        let (terms, outer) = (factor.terms(&of.block), factor.outer(&of.block));
        (of.from, host(of.to), [terms.start, terms.end], [outer.start, outer.end])
    };
    let mut all: Vec<_> = crossing.map(key).collect();
    work(all.len());
    if hosts.once {
        all.sort();
    }
    let mut most = 0;
    let mut last = None;
    for (from, to, terms, [mut start, end]) in all.iter().copied() {
        if hosts.once {
            // What the host has got of these terms by what came before, which began no later.
            let group = (from, to, terms);
            let until = last.filter(|(of, _)| *of == group).map_or(0, |(_, until)| until);
            start = start.max(until).min(end);
            last = Some((group, end.max(until)));
        }
        let elements = ((end - start) as u64).saturating_mul((terms[1] - terms[0]) as u64);
        most = most.max(flows.add(host(from), to, elements.saturating_mul(ELEMENT))[1]);
    }
    flows.clear(all.iter().map(|(from, to, ..)| [host(*from), *to]));
    most
}
