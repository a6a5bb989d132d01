//! Follows the steps of a schedule on the device of a rank: exchanges by a transport, products by whatever computes one.

use super::{Block, Exchange, Factor, Move, Place, Rank, Sharded, Step, VerifiedSchedule};
use crate::collective::CollectiveContext;
use crate::staging::{StagingBuffers, area, area_of, part};
use crate::transport::{
    ExchangeStart, OwnBlock, Transfer, Transport, TransportWork, with_transport,
};
use crate::transposition::Transposition;
use crate::{Error, Result};
use gemm_runtime::Buffer;
use gemm_runtime::internal::Areas;
use gemm_runtime::internal::Backend;
use gemm_runtime::internal::On;
use gemm_runtime::{MatrixMut, MatrixRef};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// A product whose matrices are dealt out.
pub(crate) struct ShardedProduct<'p> {
    pub(crate) schedule: &'p VerifiedSchedule,
    /// How A and B are stored, here and on all other ranks.
    pub(crate) transposition: Transposition,
    pub(crate) a: &'p Sharded,
    pub(crate) b: &'p Sharded,
    pub(crate) c: &'p mut Sharded,
}

/// Where the matrices of one of its steps are.
pub(crate) struct ProductPart<'p> {
    pub(crate) a: MatrixRef<'p>,
    pub(crate) b: MatrixRef<'p>,
    pub(crate) c: MatrixMut<'p>,
    /// Which part it is of what the rank has of C, with its rows and columns counted from there.
    pub(crate) of_c: Block,
    /// Whether A and B are all that the rank has of them itself.
    pub(crate) is_own: [bool; 2],
}

impl ProductPart<'_> {
    /// Whether something lies between the rows of one of them, as they are stored.
    pub(crate) fn is_padded(&self) -> bool {
        [self.a.shape(), self.b.shape(), self.c.shape()].iter().any(|shape| shape.is_padded())
    }
}

/// What computes the parts of a product.
pub(crate) trait Multiplies {
    /// Has all that a part will launch: nothing is compiled or loaded while exchanges are under way, as a kernel of NCCL that waits
    /// for another GPU of this process may hold up what loads it, and that GPU's rank with it.
    fn ready(&mut self, part: &ProductPart<'_>) -> Result<()>;

    /// Whether ranks are still to be asked something before any of them multiplies.
    fn asks(&self) -> bool;

    /// Asks it.
    fn ask(&mut self) -> Result<()>;

    /// Launches a part.
    fn multiply(&mut self, part: ProductPart<'_>) -> Result<()>;

    /// What is left when all parts are launched, or where this rank has none: others may wait for what it says, and it says so
    /// before it waits for them to have fetched what they need.
    fn end(&mut self) -> Result<()>;
}

/// Follows the steps of this rank, when all that they launch is loaded and there is memory for what comes: where that is not known of
/// all ranks, they see to it first.
pub(crate) fn follow(
    rank: &mut Rank,
    collective: &CollectiveContext,
    product: ShardedProduct<'_>,
    multiplies: &mut dyn Multiplies,
    is_ready: bool,
) -> Result<()> {
    let number = rank.number();
    let schedule = product.schedule;
    // What this product has no use for makes room.
    let staging = &schedule.staging()[number];
    rank.staging.retain(|at| staging.iter().any(|room| (room.factor, room.place) == *at));
    for room in staging {
        rank.staging.reserve(&rank.device, (room.factor, room.place), room.len)?;
    }
    let Rank { device, staging, links, .. } = rank;
    let gathered = Factor::BOTH.map(|factor| schedule.size.needed(factor, product.c.block()));
    let got = StagedBlocks {
        staging,
        transposition: product.transposition,
        gathered,
        slots: HashMap::new(),
    };
    let mut run = RankExecution { number, got, product, multiplies };
    if !is_ready {
        run.ready()?;
        links.all_ready(collective)?;
    }
    with_transport::<f32>(device, links, collective, run)
}

/// A schedule under way on one rank.
struct RankExecution<'r> {
    number: usize,
    got: StagedBlocks<'r>,
    product: ShardedProduct<'r>,
    multiplies: &'r mut dyn Multiplies,
}

/// What the rank has of others.
struct StagedBlocks<'r> {
    staging: &'r StagingBuffers,
    transposition: Transposition,
    /// What is in the room for all that the rank needs of A and of B.
    gathered: [Block; 2],
    /// What is in each slot, or will be.
    slots: HashMap<(Factor, Place), Block>,
}

impl TransportWork for RankExecution<'_> {
    fn run<B: Areas>(mut self, on: On<'_, B>, transport: &mut dyn Transport<B>) -> Result<()> {
        let schedule = self.product.schedule;
        let shards = [(Factor::A, self.product.a), (Factor::B, self.product.b)];
        let own = shards.into_iter().map(|(factor, shard)| own(factor, shard));
        let own = own.collect::<Result<Vec<OwnBlock<B>>>>()?;
        transport.start(on.backend, &own)?;
        let steps = &schedule.steps[self.number];
        // What ranks are asked, they are when the first exchanges are on their way.
        let first = steps.iter().position(|step| !matches!(step, Step::Begin(_)));
        let first = first.unwrap_or(steps.len());
        for (number, step) in steps.iter().enumerate() {
            if number == first {
                self.ask(on.backend, transport)?;
            }
            match step {
                Step::Begin(exchange) => {
                    let of_all = &schedule.exchanges[*exchange];
                    self.got.fill(of_all, self.number);
                    let Exchange { factor, moves } = of_all;
                    let (own_number, mut transfers) = (self.number, Vec::new());
                    for of in moves.iter().filter(|of| [of.from, of.to].contains(&own_number)) {
                        transfers.push(self.transfer(&own[*factor as usize], of)?);
                    }
                    let is_slot = |of: &Move| matches!(of.into, Place::Slot(_));
                    let behind = moves.iter().any(|of| of.to == own_number && is_slot(of));
                    let begun =
                        ExchangeStart { exchange: *exchange, factor: *factor, transfers, behind };
                    transport.begin(on.backend, begun)?;
                }
                Step::Wait(exchange) => transport.wait(on.backend, *exchange)?,
                Step::Multiply { block, a, b } => {
                    let (part, multiplies) = self.part(block, [*a, *b])?;
                    multiplies.multiply(part)?;
                }
            }
        }
        if first == steps.len() {
            self.ask(on.backend, transport)?;
        }
        self.multiplies.end()?;
        transport.end(on.backend)
    }
}

impl RankExecution<'_> {
    /// Asks all ranks what is to be asked before any of them multiplies.
    fn ask<B: Areas>(&mut self, backend: &B, transport: &mut dyn Transport<B>) -> Result<()> {
        if !self.multiplies.asks() {
            return Ok(());
        }
        transport.send_off(backend)?;
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
    ) -> Result<(ProductPart<'_>, &mut dyn Multiplies)> {
        let ShardedProduct { schedule, transposition, a, b, c } = &mut self.product;
        let needed = Factor::BOTH.map(|factor| schedule.size.needed(factor, of_c));
        let [of_a, of_b] = [*a, *b];
        let is_own = [(Factor::A, of_a), (Factor::B, of_b)].map(|(factor, shard)| {
            let all = transposition.block(factor, shard.block());
            places[factor as usize] == Place::Shard && needed[factor as usize] == all
        });
        let a = self.got.view((Factor::A, places[0]), of_a, &needed[0])?;
        let b = self.got.view((Factor::B, places[1]), of_b, &needed[1])?;
        let of_c = within(c.block(), of_c)?;
        let c = c.view_mut();
        let c = c.into_part(of_c.rows.clone(), of_c.cols.clone())?;
        Ok((ProductPart { a, b, c, of_c, is_own }, &mut *self.multiplies))
    }

    /// What a move is to this rank, one of those of an exchange.
    fn transfer<B: Backend>(&self, own: &OwnBlock<B>, of: &Move) -> Result<Transfer<B>> {
        let transposition = |block: &Block| self.product.transposition.block(own.factor, block);
        let from = || part(&own.area, &own.block, &transposition(&of.block));
        if of.to != self.number {
            return Ok(Transfer::Send { to: of.to, from: from()? });
        }
        let at = (own.factor, of.into);
        let (origin, block) = (transposition(self.got.origin(at)?), transposition(&of.block));
        let room = area(self.got.staging.buffer(at)?, &origin)?;
        let to = part(&room, &origin, &block)?;
        Ok(match of.from == self.number {
            true => Transfer::Copy { from: from()?, to },
            false => Transfer::Receive { from: of.from, block, to },
        })
    }
}

impl StagedBlocks<'_> {
    /// From an exchange on the slots of this rank hold what it brings there.
    fn fill(&mut self, exchange: &Exchange, number: usize) {
        let own = exchange.moves.iter().filter(|of| of.to == number).map(|of| of.into);
        let slots: HashSet<Place> = own.filter(|into| matches!(into, Place::Slot(_))).collect();
        for slot in slots {
            self.slots.insert((exchange.factor, slot), exchange.held(number, slot));
        }
    }

    /// What is in a place that others bring something to.
    fn origin(&self, at: (Factor, Place)) -> Result<&Block> {
        let (factor, place) = at;
        let origin = match place {
            Place::Gathered => Some(&self.gathered[factor as usize]),
            Place::Shard | Place::Slot(_) => self.slots.get(&at),
        };
        origin.ok_or_else(|| {
            Error::internal(format!("nothing has been brought to {place} of {factor}"))
        })
    }

    /// A block of a matrix in its place.
    fn view<'v>(
        &'v self,
        at: (Factor, Place),
        shard: &'v Sharded,
        block: &Block,
    ) -> Result<MatrixRef<'v>> {
        let (factor, place) = at;
        let transposition = |block: &Block| self.transposition.block(factor, block);
        let matrix = |buffer: &'v Buffer, block: &Block| {
            MatrixRef::new(buffer, block.rows.len(), block.cols.len())
        };
        // Of no elements there is neither a room nor a place in the shard, which may have other rows.
        let view = if block.is_empty() {
            matrix(shard.matrix().buffer(), &transposition(block))?
        } else {
            let (whole, origin) = match place {
                Place::Shard => (shard.view(), shard.block().clone()),
                Place::Gathered | Place::Slot(_) => {
                    let origin = transposition(self.origin(at)?);
                    (matrix(self.staging.buffer(at)?, &origin)?, origin)
                }
            };
            let Block { rows, cols } = within(&origin, &transposition(block))?;
            whole.part(rows, cols)?
        };
        Ok(self.transposition.view(factor, view))
    }
}

/// What the rank has of a matrix.
fn own<B: Backend>(factor: Factor, shard: &Sharded) -> Result<OwnBlock<B>> {
    let matrix = shard.matrix();
    let area = area_of(matrix.buffer(), matrix.rows(), matrix.cols(), matrix.pitch())?;
    Ok(OwnBlock { factor, block: shard.block().clone(), area })
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
