//! Roles of ranks in exchanges.

use super::schedule::{Exchange, Move, Place, Schedule, StagingBuffer};
use super::work::work;
use super::{Block, Factor, ScheduleFault};
use std::collections::BTreeMap;
use std::ops::Range;

/// Role of a rank in an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) exchange: usize,
    pub(super) factor: Factor,
    /// Range of its received moves within `Roles::got`.
    got: Range<usize>,
}

impl Role {
    /// Returns true if the rank receives anything.
    pub(super) fn gets(&self) -> bool {
        !self.got.is_empty()
    }
}

/// Roles of all ranks in all exchanges, found in one pass over all moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Roles {
    /// Roles by rank, then by exchange.
    roles: Vec<Role>,
    /// Index of each rank's first role.
    first: Vec<usize>,
    /// Indices of received moves within their exchange, by role.
    got: Vec<usize>,
}

impl Roles {
    /// Collects the roles.
    ///
    /// # Errors
    /// [`ScheduleFault::Unknown`] if a move names a rank that does not exist.
    pub(super) fn new(exchanges: &[Exchange], ranks: usize) -> Result<Self, ScheduleFault> {
        // Per rank: number of its exchanges, number of moves it receives, and its last exchange.
        let mut counts = vec![(0, 0, None); ranks];
        for (exchange, Exchange { moves, .. }) in exchanges.iter().enumerate() {
            work(moves.len());
            for Move { from, to, .. } in moves {
                for rank in [*from, *to] {
                    let unknown =
                        ScheduleFault::Unknown { rank: *from, what: "rank", number: rank };
                    let (taken, _, last) = counts.get_mut(rank).ok_or(unknown)?;
                    *taken += usize::from(*last != Some(exchange));
                    *last = Some(exchange);
                }
                counts[*to].1 += 1;
            }
        }
        let mut first = vec![0; ranks + 1];
        // Next free index of each rank in `got`.
        let mut next = vec![0; ranks + 1];
        for (rank, (taken, got, _)) in counts.into_iter().enumerate() {
            first[rank + 1] = first[rank] + taken;
            next[rank + 1] = next[rank] + got;
        }
        let empty = || Role { exchange: 0, factor: Factor::A, got: 0..0 };
        let mut roles: Vec<Role> = (0..first[ranks]).map(|_| empty()).collect();
        let mut all = vec![0; next[ranks]];
        // Index after the last role of each rank so far.
        let mut ends = first.clone();
        for (exchange, Exchange { factor, moves }) in exchanges.iter().enumerate() {
            for (number, of) in moves.iter().enumerate() {
                for rank in [of.from, of.to] {
                    let end = ends[rank];
                    if end == first[rank] || roles[end - 1].exchange != exchange {
                        roles[end] =
                            Role { exchange, factor: *factor, got: next[rank]..next[rank] };
                        ends[rank] += 1;
                    }
                }
                all[next[of.to]] = number;
                next[of.to] += 1;
                roles[ends[of.to] - 1].got.end = next[of.to];
            }
        }
        Ok(Self { roles, first, got: all })
    }

    /// Returns the roles of a rank, in the order of the exchanges.
    pub(super) fn rank(&self, rank: usize) -> &[Role] {
        &self.roles[self.first[rank]..self.first[rank + 1]]
    }

    /// Returns the moves that a rank receives in an exchange.
    pub(super) fn got<'s>(
        &self,
        exchanges: &'s [Exchange],
        role: &Role,
    ) -> impl Iterator<Item = &'s Move> {
        let moves = &exchanges[role.exchange].moves;
        self.got[role.got.clone()].iter().map(|number| &moves[*number])
    }
}

/// Returns the index of a rank's role in an exchange.
pub(super) fn find(roles: &[Role], exchange: usize) -> Option<usize> {
    roles.binary_search_by_key(&exchange, |role| role.exchange).ok()
}

/// Collects the blocks received into slots, sorted by slot.
pub(super) fn by_slot<'m>(got: impl Iterator<Item = &'m Move>, into: &mut Vec<(usize, &'m Block)>) {
    into.clear();
    into.extend(got.filter_map(|of| match of.into {
        Place::Slot(slot) => Some((slot, &of.block)),
        Place::Shard | Place::Gathered => None,
    }));
    into.sort_by_key(|(slot, _)| *slot);
}

/// Returns the staging buffers of each rank.
pub(super) fn staging(schedule: &Schedule, roles: &Roles, c: &[Block]) -> Vec<Vec<StagingBuffer>> {
    let mut into = Vec::new();
    let of_rank = |(rank, shard): (usize, &Block)| {
        let mut staging: BTreeMap<(Factor, Place), usize> = BTreeMap::new();
        for role in roles.rank(rank) {
            let (factor, got) = (role.factor, || roles.got(&schedule.exchanges, role));
            if got().any(|of| of.into == Place::Gathered) {
                staging
                    .insert((factor, Place::Gathered), schedule.size.needed(factor, shard).len());
            }
            by_slot(got(), &mut into);
            work(into.len());
            for blocks in into.chunk_by(|(a, _), (b, _)| a == b) {
                let held =
                    blocks.iter().fold(Block::new(0..0, 0..0), |all, (_, block)| all.with(block));
                let len = staging.entry((factor, Place::Slot(blocks[0].0))).or_default();
                *len = held.len().max(*len);
            }
        }
        staging
            .into_iter()
            .map(|((factor, place), len)| StagingBuffer { factor, place, len })
            .collect()
    };
    c.iter().enumerate().map(of_rank).collect()
}
