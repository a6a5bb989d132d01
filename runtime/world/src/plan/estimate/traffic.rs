//! Traffic and duration of each exchange.

use super::ELEMENT;
use crate::plan::work::work;
use crate::plan::{
    Block, ClusterModel, Exchange, Factor, FactorExt, Hosts, Move, Place, VerifiedSchedule,
};
use std::collections::BTreeMap;

pub(super) struct Traffic {
    /// Bytes that each rank receives from other ranks.
    pub(super) bytes: Vec<u64>,
    /// Bytes of blocks that each rank packs or unpacks.
    pub(super) staged: Vec<u64>,
    /// Seconds of each exchange, once all its ranks have reached it.
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
        // Bytes that stay on a rank are read once and written once.
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

/// Model of packing and unpacking, for transports that require contiguous rows.
struct Staging<'s> {
    schedule: &'s VerifiedSchedule,
    machine: &'s ClusterModel,
}

impl<'s> Staging<'s> {
    fn new(schedule: &'s VerifiedSchedule, machine: &'s ClusterModel) -> Self {
        Self { schedule, machine }
    }

    /// Adds the bytes that each rank packs and unpacks in an exchange. Returns the largest rank's
    /// total.
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

    /// Returns true if the rows of a block, as stored, are not contiguous within a block that
    /// contains it.
    fn is_apart(&self, factor: Factor, block: &Block, of: &Block) -> bool {
        match factor.is_transposed(self.machine.layout) {
            false => block.is_apart_in(of),
            true => block.t().is_apart_in(&of.t()),
        }
    }
}

/// Bytes of each rank or host in one exchange: kept, received and sent.
struct Flows(Vec<[u64; 3]>);

impl Flows {
    /// Adds a move. Returns the largest totals of its participants: kept bytes, and received or
    /// sent bytes.
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

/// Returns the largest number of bytes that a host receives from others, or sends to them.
fn between(flows: &mut Flows, hosts: &Hosts, factor: Factor, moves: &[Move]) -> u64 {
    let host = |rank: usize| rank / hosts.gpus.max(1);
    let crossing = moves.iter().filter(|of| host(of.from) != host(of.to));
    // Sender, receiving host, range along K, and range along M or N.
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
            // End of the range that the host already has from earlier moves: moves are sorted by
            // their start.
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
