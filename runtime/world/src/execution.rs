//! Follows the steps of a schedule on the device of a rank: exchanges by a carrier, products by whatever computes one.

use super::rank::Talk;
use super::{Block, Exchange, Move, Place, Rank, Sharded, Side, Step, VerifiedSchedule};
use crate::staging::{Rooms, area, area_of, part};
use crate::transport::{Begun, Carrier, Leg, Own, Work, carry};
use crate::transposition::Stored;
use crate::{Error, Result};
use gemm_runtime::Buffer;
use gemm_runtime::internal::Areas;
use gemm_runtime::internal::Keeps;
use gemm_runtime::internal::On;
use gemm_runtime::{MatrixMut, MatrixRef};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// A product whose matrices are dealt out.
pub(crate) struct Product<'p> {
    pub(crate) schedule: &'p VerifiedSchedule,
    /// How A and B are stored, here and on all other ranks.
    pub(crate) stored: Stored,
    pub(crate) a: &'p Sharded,
    pub(crate) b: &'p Sharded,
    pub(crate) c: &'p mut Sharded,
}

/// Where the matrices of one of its steps are.
pub(crate) struct Part<'p> {
    pub(crate) a: MatrixRef<'p>,
    pub(crate) b: MatrixRef<'p>,
    pub(crate) c: MatrixMut<'p>,
    /// Which part it is of what the rank has of C, with its rows and columns counted from there.
    pub(crate) of_c: Block,
    /// Whether A and B are all that the rank has of them itself.
    pub(crate) is_own: [bool; 2],
}

impl Part<'_> {
    /// Whether something lies between the rows of one of them, as they are stored.
    pub(crate) fn is_padded(&self) -> bool {
        [self.a.shape(), self.b.shape(), self.c.shape()].iter().any(|shape| shape.is_padded())
    }
}

/// What computes the parts of a product.
pub(crate) trait Multiplies {
    /// Has all that a part will launch: nothing is compiled or loaded while exchanges are under way, as a kernel of NCCL that waits
    /// for another GPU of this process may hold up what loads it, and that GPU's rank with it.
    fn ready(&mut self, part: &Part<'_>) -> Result<()>;

    /// Whether ranks are still to be asked something before any of them multiplies.
    fn asks(&self) -> bool;

    /// Asks it.
    fn ask(&mut self) -> Result<()>;

    /// Launches a part.
    fn multiply(&mut self, part: Part<'_>) -> Result<()>;

    /// What is left when all parts are launched, or where this rank has none: others may wait for what it says, and it says so
    /// before it waits for them to have fetched what they need.
    fn end(&mut self) -> Result<()>;
}

/// Follows the steps of this rank, when all that they launch is loaded and there is memory for what comes: where that is not known of
/// all ranks, they see to it first.
pub(crate) fn follow(
    rank: &mut Rank,
    talk: &Talk,
    product: Product<'_>,
    multiplies: &mut dyn Multiplies,
    is_ready: bool,
) -> Result<()> {
    let number = rank.number();
    let schedule = product.schedule;
    // What this product has no use for makes room.
    let rooms = &schedule.rooms()[number];
    rank.rooms.retain(|at| rooms.iter().any(|room| (room.side, room.place) == *at));
    for room in rooms {
        rank.rooms.reserve(&rank.device, (room.side, room.place), room.len)?;
    }
    let Rank { device, rooms, links, .. } = rank;
    let gathered = Side::ALL.map(|side| schedule.size.needed(side, product.c.block()));
    let got = Got { rooms, stored: product.stored, gathered, slots: HashMap::new() };
    let mut run = Run { number, got, product, multiplies };
    if !is_ready {
        run.ready()?;
        links.all_ready(talk)?;
    }
    carry::<f32>(device, links, talk, run)
}

/// A schedule under way on one rank.
struct Run<'r> {
    number: usize,
    got: Got<'r>,
    product: Product<'r>,
    multiplies: &'r mut dyn Multiplies,
}

/// What the rank has of others.
struct Got<'r> {
    rooms: &'r Rooms,
    stored: Stored,
    /// What is in the room for all that the rank needs of A and of B.
    gathered: [Block; 2],
    /// What is in each slot, or will be.
    slots: HashMap<(Side, Place), Block>,
}

impl Work for Run<'_> {
    fn run<B: Keeps + Areas>(mut self, on: On<'_, B>, carrier: &mut dyn Carrier<B>) -> Result<()> {
        let schedule = self.product.schedule;
        let shards = [(Side::A, self.product.a), (Side::B, self.product.b)];
        let own = shards.into_iter().map(|(side, shard)| own(side, shard));
        let own = own.collect::<Result<Vec<Own<B>>>>()?;
        carrier.start(on.backend, &own)?;
        let steps = &schedule.steps[self.number];
        // What ranks are asked, they are when the first exchanges are on their way.
        let first = steps.iter().position(|step| !matches!(step, Step::Begin(_)));
        let first = first.unwrap_or(steps.len());
        for (number, step) in steps.iter().enumerate() {
            if number == first {
                self.ask(on.backend, carrier)?;
            }
            match step {
                Step::Begin(exchange) => {
                    let of_all = &schedule.exchanges[*exchange];
                    self.got.fill(of_all, self.number);
                    let Exchange { side, moves } = of_all;
                    let (own_number, mut legs) = (self.number, Vec::new());
                    for of in moves.iter().filter(|of| [of.from, of.to].contains(&own_number)) {
                        legs.push(self.leg(&own[*side as usize], of)?);
                    }
                    let is_slot = |of: &Move| matches!(of.into, Place::Slot(_));
                    let behind = moves.iter().any(|of| of.to == own_number && is_slot(of));
                    let begun = Begun { exchange: *exchange, side: *side, legs, behind };
                    carrier.begin(on.backend, begun)?;
                }
                Step::Wait(exchange) => carrier.wait(on.backend, *exchange)?,
                Step::Multiply { block, a, b } => {
                    let (part, multiplies) = self.part(block, [*a, *b])?;
                    multiplies.multiply(part)?;
                }
            }
        }
        if first == steps.len() {
            self.ask(on.backend, carrier)?;
        }
        self.multiplies.end()?;
        carrier.end(on.backend)
    }
}

impl Run<'_> {
    /// Asks all ranks what is to be asked before any of them multiplies.
    fn ask<B: Keeps + Areas>(&mut self, backend: &B, carrier: &mut dyn Carrier<B>) -> Result<()> {
        if !self.multiplies.asks() {
            return Ok(());
        }
        carrier.send_off(backend)?;
        self.multiplies.ask()
    }

    /// Goes through the steps once, so that whatever is multiplied finds its kernel.
    fn ready(&mut self) -> Result<()> {
        let schedule = self.product.schedule;
        for step in &schedule.steps[self.number] {
            match step {
                Step::Begin(exchange) => {
                    self.got.fill(&schedule.exchanges[*exchange], self.number);
                }
                Step::Wait(_) => {}
                Step::Multiply { block, a, b } => {
                    let (part, multiplies) = self.part(block, [*a, *b])?;
                    multiplies.ready(&part)?;
                }
            }
        }
        self.got.slots.clear();
        Ok(())
    }

    /// Where the matrices of a part of the product are, and who multiplies them.
    fn part(
        &mut self,
        of_c: &Block,
        places: [Place; 2],
    ) -> Result<(Part<'_>, &mut dyn Multiplies)> {
        let Product { schedule, stored, a, b, c } = &mut self.product;
        let needed = Side::ALL.map(|side| schedule.size.needed(side, of_c));
        let [of_a, of_b] = [*a, *b];
        let is_own = [(Side::A, of_a), (Side::B, of_b)].map(|(side, shard)| {
            let all = stored.block(side, shard.block());
            places[side as usize] == Place::Shard && needed[side as usize] == all
        });
        let a = self.got.view((Side::A, places[0]), of_a, &needed[0])?;
        let b = self.got.view((Side::B, places[1]), of_b, &needed[1])?;
        let of_c = within(c.block(), of_c)?;
        let c = c.view_mut();
        let c = c.into_part(of_c.rows.clone(), of_c.cols.clone())?;
        Ok((Part { a, b, c, of_c, is_own }, &mut *self.multiplies))
    }

    /// What a move is to this rank, one of those of an exchange.
    fn leg<B: Keeps>(&self, own: &Own<B>, of: &Move) -> Result<Leg<B>> {
        let stored = |block: &Block| self.product.stored.block(own.side, block);
        let from = || part(&own.area, &own.block, &stored(&of.block));
        if of.to != self.number {
            return Ok(Leg::Send { to: of.to, from: from()? });
        }
        let at = (own.side, of.into);
        let (origin, block) = (stored(self.got.origin(at)?), stored(&of.block));
        let room = area(self.got.rooms.buffer(at)?, &origin)?;
        let to = part(&room, &origin, &block)?;
        Ok(match of.from == self.number {
            true => Leg::Copy { from: from()?, to },
            false => Leg::Receive { from: of.from, block, to },
        })
    }
}

impl Got<'_> {
    /// From an exchange on the slots of this rank hold what it brings there.
    fn fill(&mut self, exchange: &Exchange, number: usize) {
        let own = exchange.moves.iter().filter(|of| of.to == number).map(|of| of.into);
        let slots: HashSet<Place> = own.filter(|into| matches!(into, Place::Slot(_))).collect();
        for slot in slots {
            self.slots.insert((exchange.side, slot), exchange.held(number, slot));
        }
    }

    /// What is in a place that others bring something to.
    fn origin(&self, at: (Side, Place)) -> Result<&Block> {
        let (side, place) = at;
        let origin = match place {
            Place::Gathered => Some(&self.gathered[side as usize]),
            Place::Shard | Place::Slot(_) => self.slots.get(&at),
        };
        origin.ok_or_else(|| {
            Error::internal(format!("nothing has been brought to {place} of {side}"))
        })
    }

    /// A block of a matrix in its place.
    fn view<'v>(
        &'v self,
        at: (Side, Place),
        shard: &'v Sharded,
        block: &Block,
    ) -> Result<MatrixRef<'v>> {
        let (side, place) = at;
        let stored = |block: &Block| self.stored.block(side, block);
        let matrix = |buffer: &'v Buffer, block: &Block| {
            MatrixRef::new(buffer, block.rows.len(), block.cols.len())
        };
        // Of no elements there is neither a room nor a place in the shard, which may have other rows.
        let view = if block.is_empty() {
            matrix(shard.matrix().buffer(), &stored(block))?
        } else {
            let (whole, origin) = match place {
                Place::Shard => (shard.view(), shard.block().clone()),
                Place::Gathered | Place::Slot(_) => {
                    let origin = stored(self.origin(at)?);
                    (matrix(self.rooms.buffer(at)?, &origin)?, origin)
                }
            };
            let Block { rows, cols } = within(&origin, &stored(block))?;
            whole.part(rows, cols)?
        };
        Ok(self.stored.view(side, view))
    }
}

/// What the rank has of a matrix.
fn own<B: Keeps>(side: Side, shard: &Sharded) -> Result<Own<B>> {
    let matrix = shard.matrix();
    let area = area_of(matrix.buffer(), matrix.rows(), matrix.cols(), matrix.pitch())?;
    Ok(Own { side, block: shard.block().clone(), area })
}

/// A block with its rows and columns counted from the first ones of another.
fn within(origin: &Block, block: &Block) -> Result<Block> {
    let shifted = |range: &Range<usize>, by: usize| {
        Some(range.start.checked_sub(by)?..range.end.checked_sub(by)?)
    };
    let rows = shifted(&block.rows, origin.rows.start);
    let cols = shifted(&block.cols, origin.cols.start);
    let both = rows.zip(cols).map(|(rows, cols)| Block { rows, cols });
    both.ok_or_else(|| Error::internal(format!("{block} is no part of {origin}")))
}
