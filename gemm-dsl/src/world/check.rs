//! Whether a schedule computes its product, whatever order things happen in.
//!
//! Ranks begin the exchanges that they take part in in the order of their numbers, so the first one that is not done is one
//! that everybody in it has begun, or can begin: none of them waits for a later one. Whatever a product reads is in the
//! shard or has been waited for, and is not overwritten before it has been read.

use super::block::overlap;
use super::schedule::{Exchange, Layouts, Move, Place, Schedule, Side, Size, Step};
use super::{Block, LayoutError};
use std::collections::HashMap;
use std::ops::Deref;
use thiserror::Error;

/// A schedule that computes its product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedSchedule(Schedule);

impl VerifiedSchedule {
    /// The schedule, to be changed.
    pub fn into_inner(self) -> Schedule {
        self.0
    }
}

impl Deref for VerifiedSchedule {
    type Target = Schedule;

    fn deref(&self) -> &Schedule {
        &self.0
    }
}

/// What is wrong with a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScheduleFault {
    /// A layout that is not for these ranks.
    #[error("{matrix}: {error}")]
    Layout {
        /// `A`, `B` or `C`.
        matrix: &'static str,
        /// Why not.
        error: LayoutError,
    },
    /// Layouts of other extents than those of the product.
    #[error("{matrix} is {}x{}, but that of a product of {}x{}x{} is {}x{}", has[0], has[1], size.m, size.n, size.k, needed[0], needed[1])]
    Extents {
        /// `A`, `B` or `C`.
        matrix: &'static str,
        /// Rows and columns of the layout.
        has: [usize; 2],
        /// Those of the product's matrix.
        needed: [usize; 2],
        /// The product.
        size: Size,
    },
    /// An exchange or a rank that is not there.
    #[error("rank {rank}: there is no {what} {number}")]
    Unknown {
        /// Whose step or move it is.
        rank: usize,
        /// `exchange` or `rank`.
        what: &'static str,
        /// Its number.
        number: usize,
    },
    /// A move of what the sender does not have, or to where it cannot go.
    #[error("exchange {exchange}: {from} -> {to} {block} into {into}: {why}")]
    Move {
        /// The exchange.
        exchange: usize,
        /// Who sends.
        from: usize,
        /// Who receives.
        to: usize,
        /// What.
        block: Block,
        /// Where to.
        into: Place,
        /// What is wrong.
        why: &'static str,
    },
    /// A rank that does not take part where others wait for it, or more than once, or in another order than others.
    #[error("rank {rank}, exchange {exchange}: {why}")]
    Begin {
        /// The rank.
        rank: usize,
        /// The exchange.
        exchange: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// A product that reads what is not there.
    #[error("rank {rank} multiplies with {block} of {side}, but not all of it is in its {place} {why}")]
    Read {
        /// The rank.
        rank: usize,
        /// The matrix.
        side: Side,
        /// What it reads.
        block: Block,
        /// Where.
        place: Place,
        /// Since when it should be.
        why: &'static str,
    },
    /// A block that is written twice.
    #[error("rank {rank}: {first} and {second} of {matrix} have elements in common")]
    Twice {
        /// The rank.
        rank: usize,
        /// `A`, `B` or `C`.
        matrix: String,
        /// One of the two.
        first: Block,
        /// The other one.
        second: Block,
    },
    /// A product of elements that are another rank's.
    #[error("rank {rank} computes {block} of C, of which it keeps {shard}")]
    Foreign {
        /// The rank.
        rank: usize,
        /// What it computes.
        block: Block,
        /// What it has of C.
        shard: Block,
    },
    /// Elements of C that nobody computes.
    #[error("rank {rank} computes {computed} of the {len} elements of C that it keeps")]
    Uncomputed {
        /// The rank.
        rank: usize,
        /// How many elements it computes.
        computed: usize,
        /// How many it has.
        len: usize,
    },
}

/// What each rank has of each matrix.
pub(super) struct Shards {
    a: Vec<Block>,
    b: Vec<Block>,
    pub(super) c: Vec<Block>,
}

impl Shards {
    pub(super) fn of(layouts: &Layouts, ranks: usize) -> Result<Self, ScheduleFault> {
        let of = |matrix, layout: &super::Layout| {
            layout.shards(ranks).map_err(|error| ScheduleFault::Layout { matrix, error })
        };
        Ok(Self { a: of("A", &layouts.a)?, b: of("B", &layouts.b)?, c: of("C", &layouts.c)? })
    }

    pub(super) fn side(&self, side: Side) -> &[Block] {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }
}

/// Checks that layouts are of one product.
pub(super) fn extents(layouts: &Layouts, size: Size) -> Result<(), ScheduleFault> {
    let Size { m, n, k } = size;
    for (matrix, layout, needed) in
        [("A", &layouts.a, [m, k]), ("B", &layouts.b, [k, n]), ("C", &layouts.c, [m, n])]
    {
        let has = [layout.rows, layout.cols];
        if has != needed {
            return Err(ScheduleFault::Extents { matrix, has, needed, size });
        }
    }
    Ok(())
}

pub(super) fn verify(schedule: Schedule) -> Result<VerifiedSchedule, ScheduleFault> {
    extents(&schedule.layouts, schedule.size)?;
    let shards = Shards::of(&schedule.layouts, schedule.ranks())?;
    let taking_part = moves(&schedule, &shards)?;
    for (rank, taking_part) in taking_part.iter().enumerate() {
        of_rank(&schedule, &shards, rank, taking_part)?;
    }
    Ok(VerifiedSchedule(schedule))
}

/// What an exchange is to a rank: what it gets.
type TakingPart<'s> = Vec<(usize, Vec<&'s Move>)>;

/// Checks every move, and says what each rank takes part in.
fn moves<'s>(schedule: &'s Schedule, shards: &Shards) -> Result<Vec<TakingPart<'s>>, ScheduleFault> {
    let ranks = schedule.ranks();
    let mut all: Vec<TakingPart<'s>> = vec![Vec::new(); ranks];
    for (exchange, Exchange { side, moves }) in schedule.exchanges.iter().enumerate() {
        for of @ Move { from, to, block, into } in moves {
            for rank in [from, to] {
                if *rank >= ranks {
                    return Err(ScheduleFault::Unknown { rank: *from, what: "rank", number: *rank });
                }
                if all[*rank].last().is_none_or(|(last, _)| *last != exchange) {
                    all[*rank].push((exchange, Vec::new()));
                }
            }
            let needed = schedule.size.needed(*side, &shards.c[*to]);
            let why = if block.is_empty() {
                "nothing is moved"
            } else if !shards.side(*side)[*from].contains(block) {
                "the sender does not have all of it"
            } else if *into == Place::Shard {
                "a shard stays as it is"
            } else if !needed.contains(block) {
                "the receiver needs less"
            } else {
                if let Some((_, got)) = all[*to].last_mut() {
                    got.push(of);
                }
                continue;
            };
            let (from, to, block, into) = (*from, *to, block.clone(), *into);
            return Err(ScheduleFault::Move { exchange, from, to, block, into, why });
        }
    }
    Ok(all)
}

/// What a rank has come to.
struct State<'s> {
    schedule: &'s Schedule,
    shards: &'s Shards,
    rank: usize,
    taking_part: &'s TakingPart<'s>,
    /// How many of those it has begun.
    begun: usize,
    awaited: Vec<usize>,
    /// The exchange that last brings something into a slot.
    slots: HashMap<(Side, usize), usize>,
    computed: Vec<&'s Block>,
}

fn of_rank(
    schedule: &Schedule,
    shards: &Shards,
    rank: usize,
    taking_part: &TakingPart<'_>,
) -> Result<(), ScheduleFault> {
    for side in Side::ALL {
        // What is gathered is written once. What is in a slot is, in an exchange.
        let of_side = |exchange: usize| schedule.exchanges[exchange].side == side;
        let got = || taking_part.iter().filter(|(exchange, _)| of_side(*exchange));
        let gathered = got().flat_map(|(_, got)| got).filter(|of| of.into == Place::Gathered);
        once(rank, side, gathered.map(|of| &of.block).collect())?;
        for (_, got) in got() {
            let mut slots: HashMap<Place, Vec<&Block>> = HashMap::new();
            for of in got.iter().filter(|of| of.into != Place::Gathered) {
                slots.entry(of.into).or_default().push(&of.block);
            }
            slots.into_values().try_for_each(|blocks| once(rank, side, blocks))?;
        }
    }
    let mut state = State {
        schedule,
        shards,
        rank,
        taking_part,
        begun: 0,
        awaited: Vec::new(),
        slots: HashMap::new(),
        computed: Vec::new(),
    };
    for step in &schedule.steps[rank] {
        state.step(step)?;
    }
    state.end()
}

fn once(rank: usize, matrix: impl ToString, blocks: Vec<&Block>) -> Result<(), ScheduleFault> {
    match overlap(&blocks) {
        None => Ok(()),
        Some((first, second)) => {
            let (first, second) = (first.clone(), second.clone());
            Err(ScheduleFault::Twice { rank, matrix: matrix.to_string(), first, second })
        }
    }
}

impl<'s> State<'s> {
    fn step(&mut self, step: &'s Step) -> Result<(), ScheduleFault> {
        match step {
            Step::Begin(exchange) => self.begin(*exchange),
            Step::Wait(exchange) => {
                let begun = &self.taking_part[..self.begun];
                if !begun.iter().any(|(begun, _)| begun == exchange) {
                    return Err(self.fault(*exchange, "it waits for what it has not begun"));
                }
                self.awaited.push(*exchange);
                Ok(())
            }
            Step::Multiply { block, a, b } => {
                let shard = &self.shards.c[self.rank];
                if !shard.contains(block) {
                    let (block, shard) = (block.clone(), shard.clone());
                    return Err(ScheduleFault::Foreign { rank: self.rank, block, shard });
                }
                self.read(Side::A, block, *a)?;
                self.read(Side::B, block, *b)?;
                self.computed.push(block);
                Ok(())
            }
        }
    }

    fn begin(&mut self, exchange: usize) -> Result<(), ScheduleFault> {
        let exchanges = self.schedule.exchanges.len();
        if exchange >= exchanges {
            let (rank, what) = (self.rank, "exchange");
            return Err(ScheduleFault::Unknown { rank, what, number: exchange });
        }
        match self.taking_part.get(self.begun) {
            Some((next, got)) if *next == exchange => {
                let side = self.schedule.exchanges[exchange].side;
                for of in got {
                    if let Place::Slot(slot) = of.into {
                        self.slots.insert((side, slot), exchange);
                    }
                }
                self.begun += 1;
                Ok(())
            }
            Some((next, _)) if *next < exchange => {
                Err(self.fault(*next, "others wait for it while it is in a later one"))
            }
            _ => Err(self.fault(exchange, "it takes part in it no more, or never")),
        }
    }

    /// Checks that all that a block of C is made of is there.
    fn read(&self, side: Side, block: &Block, place: Place) -> Result<(), ScheduleFault> {
        let needed = self.schedule.size.needed(side, block);
        let of_side = |exchange: usize| self.schedule.exchanges[exchange].side == side;
        let begun = self.taking_part[..self.begun].iter().filter(|(exchange, _)| of_side(*exchange));
        let (has, why) = match place {
            Place::Shard => {
                let has = self.shards.side(side)[self.rank].and(&needed).len();
                (has, "")
            }
            Place::Gathered => {
                let awaited = begun.filter(|(exchange, _)| self.awaited.contains(exchange));
                (within(awaited.flat_map(|(_, got)| got), place, &needed), "by then")
            }
            Place::Slot(slot) => {
                let last = self.slots.get(&(side, slot)).copied();
                let last = last.filter(|last| self.awaited.contains(last));
                let got = begun.filter(|(exchange, _)| last == Some(*exchange));
                (within(got.flat_map(|(_, got)| got), place, &needed), "by then, or no more")
            }
        };
        match has == needed.len() {
            true => Ok(()),
            false => {
                let rank = self.rank;
                Err(ScheduleFault::Read { rank, side, block: needed, place, why })
            }
        }
    }

    fn end(self) -> Result<(), ScheduleFault> {
        if let Some((next, _)) = self.taking_part.get(self.begun) {
            return Err(self.fault(*next, "others wait for it, but it does not begin it"));
        }
        let computed = self.computed.iter().map(|block| block.len()).sum();
        let len = self.shards.c[self.rank].len();
        once(self.rank, "C", self.computed)?;
        match computed == len {
            true => Ok(()),
            false => Err(ScheduleFault::Uncomputed { rank: self.rank, computed, len }),
        }
    }

    fn fault(&self, exchange: usize, why: &'static str) -> ScheduleFault {
        ScheduleFault::Begin { rank: self.rank, exchange, why }
    }
}

/// How many elements of a block were brought to a place, none of them twice.
fn within<'m>(got: impl Iterator<Item = &'m &'m Move>, place: Place, block: &Block) -> usize {
    got.filter(|of| of.into == place).map(|of| of.block.and(block).len()).sum()
}
