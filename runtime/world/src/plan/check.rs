//! Verification of schedules: a verified schedule computes its GEMM for any timing of the ranks.
//!
//! * **No deadlock.** Each rank begins its exchanges in the order of their numbers. Every rank of
//!   the first unfinished exchange therefore has begun this exchange or can begin it, and does not
//!   wait for a later exchange.
//! * **Data is complete.** Every operand of a multiplication is in the rank's shard, or the rank
//!   has waited for its arrival.
//! * **Data is not overwritten too early.** An exchange into a slot waits for all multiplications
//!   that began before the exchange. Multiplications that begin after the exchange must not use the
//!   old contents of the slot.
//!
//! Verification takes O(n log n) steps for n moves and steps.

mod arrived;

use super::block::overlap;
use super::roles::{Role, Roles, by_slot, find, staging};
use super::schedule::{Distributions, Exchange, Move, Place, Schedule, Size, Step};
use super::work::work;
use super::{Block, Distribution, Factor, FactorExt, ScheduleFault, Shards, VerifiedSchedule};
use arrived::Arrived;
use std::collections::BTreeMap;

/// Maximum number of elements of a matrix. Sizes in bytes, and differences between them, then fit
/// in an integer.
const MOST: usize = isize::MAX as usize / 4;

/// Checks that the distributions belong to one GEMM.
pub(super) fn extents(distributions: &Distributions, size: Size) -> Result<(), ScheduleFault> {
    let Size { m, n, k } = size;
    for (matrix, distribution, needed) in [
        ("A", &distributions.a, [m, k]),
        ("B", &distributions.b, [k, n]),
        ("C", &distributions.c, [m, n]),
    ] {
        let has = [distribution.rows, distribution.cols];
        if has != needed {
            return Err(ScheduleFault::Extents { matrix, has, needed, size });
        }
        if distribution.all().len() > MOST {
            return Err(ScheduleFault::TooLarge { matrix, has });
        }
    }
    Ok(())
}

impl Schedule {
    /// Verifies that the schedule computes its GEMM for any timing of the ranks.
    ///
    /// # Errors
    /// Returns the first [`ScheduleFault`] found.
    pub fn verify(self) -> Result<VerifiedSchedule, ScheduleFault> {
        let Distributions { a, b, c } = &self.distributions;
        extents(&self.distributions, self.size)?;
        let of = |matrix, distribution: &Distribution| {
            let shards = distribution.shards(self.ranks());
            shards.map_err(|error| ScheduleFault::Distribution { matrix, error })
        };
        let shards = Shards { a: of("A", a)?, b: of("B", b)?, c: of("C", c)? };
        let roles = Roles::new(&self.exchanges, self.ranks())?;
        for (exchange, Exchange { factor, moves }) in self.exchanges.iter().enumerate() {
            work(moves.len());
            moves.iter().try_for_each(|of| one_move(&self, &shards, exchange, *factor, of))?;
        }
        for rank in 0..self.ranks() {
            of_rank(&self, &shards, &roles, rank)?;
        }
        let staging = staging(&self, &roles, &shards.c);
        Ok(VerifiedSchedule { shards, staging, roles, schedule: self })
    }
}

fn one_move(
    schedule: &Schedule,
    shards: &Shards,
    exchange: usize,
    factor: Factor,
    of: &Move,
) -> Result<(), ScheduleFault> {
    let Move { from, to, block, into } = of;
    let needed = schedule.size.needed(factor, &shards.c[*to]);
    let why = if block.is_empty() {
        "the block is empty"
    } else if !shards.of_factor(factor)[*from].contains(block) {
        "the sender does not have all of the block"
    } else if *into == Place::Shard {
        "a shard must not be overwritten"
    } else if !needed.contains(block) {
        "the receiver does not need all of the block"
    } else {
        return Ok(());
    };
    Err(ScheduleFault::Move {
        exchange,
        from: *from,
        to: *to,
        block: block.clone(),
        into: *into,
        why,
    })
}

/// Contents of a slot, arrived or under way.
struct Slot {
    /// Index of the rank's role in which the contents arrive.
    role: usize,
    awaited: bool,
    arrived: Arrived,
}

/// State of one rank during verification.
struct CheckState<'s> {
    schedule: &'s Schedule,
    shards: &'s Shards,
    rank: usize,
    all: &'s Roles,
    roles: &'s [Role],
    /// Number of roles begun so far.
    begun: usize,
    /// True for each role that the rank has waited for.
    awaited: Vec<bool>,
    gathered: [Arrived; 2],
    slots: BTreeMap<(Factor, usize), Slot>,
    computed: Vec<&'s Block>,
    /// Reused buffers: the blocks of an exchange by slot, and the blocks of one slot.
    scratch: (Vec<(usize, &'s Block)>, Vec<&'s Block>),
}

fn of_rank(
    schedule: &Schedule,
    shards: &Shards,
    all: &Roles,
    rank: usize,
) -> Result<(), ScheduleFault> {
    let roles = all.rank(rank);
    let mut gathered = [Arrived::default(), Arrived::default()];
    for (factor, arrived) in Factor::BOTH.into_iter().zip(&mut gathered) {
        // Each gathered element must be written once, in any exchange.
        let roles = roles.iter().filter(|role| role.factor == factor);
        let got = roles.flat_map(|role| all.got(&schedule.exchanges, role));
        let blocks: Vec<&Block> =
            got.filter(|of| of.into == Place::Gathered).map(|of| &of.block).collect();
        once(rank, factor, &blocks)?;
        arrived.expect(factor, blocks.into_iter());
    }
    let mut state = CheckState {
        schedule,
        shards,
        rank,
        all,
        roles,
        begun: 0,
        awaited: vec![false; roles.len()],
        gathered,
        slots: BTreeMap::new(),
        computed: Vec::new(),
        scratch: Default::default(),
    };
    work(schedule.steps[rank].len());
    for step in &schedule.steps[rank] {
        match step {
            Step::Begin(exchange) => state.begin(*exchange)?,
            Step::Wait(exchange) => state.wait(*exchange)?,
            Step::Multiply { block, a, b } => state.multiply(block, *a, *b)?,
        }
    }
    state.end()
}

fn once(rank: usize, matrix: impl ToString, blocks: &[&Block]) -> Result<(), ScheduleFault> {
    match overlap(blocks) {
        None => Ok(()),
        Some((first, second)) => {
            let (first, second) = (first.clone(), second.clone());
            Err(ScheduleFault::Twice { rank, matrix: matrix.to_string(), first, second })
        }
    }
}

impl<'s> CheckState<'s> {
    fn begin(&mut self, exchange: usize) -> Result<(), ScheduleFault> {
        let role = match self.roles.get(self.begun) {
            _ if exchange >= self.schedule.exchanges.len() => {
                let (rank, what) = (self.rank, "exchange");
                return Err(ScheduleFault::Unknown { rank, what, number: exchange });
            }
            Some(role) if role.exchange == exchange => role,
            Some(role) if role.exchange < exchange => {
                return Err(self.fault(
                    role.exchange,
                    "the rank begins a later exchange, but others wait for this one",
                ));
            }
            _ => {
                return Err(self
                    .fault(exchange, "the rank has no part in this exchange, or began it before"));
            }
        };
        let (mut into, mut blocks) = std::mem::take(&mut self.scratch);
        by_slot(self.all.got(&self.schedule.exchanges, role), &mut into);
        work(into.len());
        for of_slot in into.chunk_by(|(a, _), (b, _)| a == b) {
            blocks.clear();
            blocks.extend(of_slot.iter().map(|(_, block)| *block));
            once(self.rank, role.factor, &blocks)?;
            let (rank, factor, slot) = (self.rank, role.factor, of_slot[0].0);
            let held = self.slots.entry((factor, slot));
            let held = held.or_insert_with(|| Slot {
                role: 0,
                awaited: true,
                arrived: Arrived::default(),
            });
            if !held.awaited {
                let before = self.roles[held.role].exchange;
                return Err(ScheduleFault::Unawaited { rank, exchange, before, factor, slot });
            }
            (held.role, held.awaited) = (self.begun, false);
            held.arrived.expect(factor, blocks.iter().copied());
            blocks.iter().for_each(|block| held.arrived.come(factor, block));
        }
        self.scratch = (into, blocks);
        self.begun += 1;
        Ok(())
    }

    fn wait(&mut self, exchange: usize) -> Result<(), ScheduleFault> {
        let begun = find(&self.roles[..self.begun], exchange);
        let number = begun.ok_or_else(|| {
            self.fault(exchange, "the rank waits for an exchange that it has not begun")
        })?;
        if std::mem::replace(&mut self.awaited[number], true) {
            return Ok(());
        }
        let role = &self.roles[number];
        for of in self.all.got(&self.schedule.exchanges, role) {
            match of.into {
                Place::Gathered => self.gathered[role.factor as usize].come(role.factor, &of.block),
                Place::Slot(slot) => {
                    // The slot still has this data: overwriting it would have required this wait.
                    if let Some(held) = self.slots.get_mut(&(role.factor, slot)) {
                        held.awaited = true;
                    }
                }
                Place::Shard => (),
            }
        }
        Ok(())
    }

    fn multiply(&mut self, block: &'s Block, a: Place, b: Place) -> Result<(), ScheduleFault> {
        let shard = &self.shards.c[self.rank];
        if block.is_empty() || !shard.contains(block) {
            let (block, shard) = (block.clone(), shard.clone());
            return Err(ScheduleFault::Foreign { rank: self.rank, block, shard });
        }
        self.read(Factor::A, block, a)?;
        self.read(Factor::B, block, b)?;
        self.computed.push(block);
        Ok(())
    }

    /// Checks that a factor's operand for a block of C is complete in its place.
    fn read(&self, factor: Factor, block: &Block, place: Place) -> Result<(), ScheduleFault> {
        let needed = self.schedule.size.needed(factor, block);
        let outer = factor.outer(block);
        let (there, why) = match place {
            // An empty block has no buffer.
            Place::Gathered | Place::Slot(_) if needed.is_empty() => (false, ""),
            Place::Shard => (self.shards.of_factor(factor)[self.rank].contains(&needed), ""),
            Place::Gathered => {
                (self.gathered[factor as usize].within(outer) == needed.len(), " at that time")
            }
            Place::Slot(slot) => {
                let held = self.slots.get(&(factor, slot)).filter(|held| held.awaited);
                let within = held.map_or(0, |held| held.arrived.within(outer));
                (within == needed.len(), " at that time (missing or overwritten)")
            }
        };
        match there {
            true => Ok(()),
            false => {
                Err(ScheduleFault::Read { rank: self.rank, factor, block: needed, place, why })
            }
        }
    }

    fn end(self) -> Result<(), ScheduleFault> {
        if let Some(role) = self.roles.get(self.begun) {
            return Err(self.fault(
                role.exchange,
                "the rank never begins this exchange, for which others wait",
            ));
        }
        once(self.rank, "C", &self.computed)?;
        // The sum is exact, since the blocks are disjoint.
        let computed = self.computed.iter().map(|block| block.len()).sum();
        let len = self.shards.c[self.rank].len();
        match computed == len {
            true => Ok(()),
            false => Err(ScheduleFault::Uncomputed { rank: self.rank, computed, len }),
        }
    }

    fn fault(&self, exchange: usize, why: &'static str) -> ScheduleFault {
        ScheduleFault::Begin { rank: self.rank, exchange, why }
    }
}
