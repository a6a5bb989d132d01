//! Execution of a schedule on one rank's device. A transport performs the exchanges, and a
//! [`Multiplies`] the GEMMs.

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

pub(crate) struct ShardedProduct<'p> {
    pub(crate) schedule: &'p VerifiedSchedule,
    /// Stored layout of A and B, the same on all ranks.
    pub(crate) transposition: Transposition,
    pub(crate) a: &'p Sharded,
    pub(crate) b: &'p Sharded,
    pub(crate) c: &'p mut Sharded,
}

/// Operands of one multiplication of the schedule.
pub(crate) struct ProductPart<'p> {
    pub(crate) a: MatrixRef<'p>,
    pub(crate) b: MatrixRef<'p>,
    pub(crate) c: MatrixMut<'p>,
    /// Block of this rank's share of C, relative to the share's origin.
    pub(crate) of_c: Block,
    /// For A and for B: true if the operand is the rank's whole shard of this matrix.
    pub(crate) is_own: [bool; 2],
}

impl ProductPart<'_> {
    /// True if the rows of an operand, as stored, are not contiguous.
    pub(crate) fn is_padded(&self) -> bool {
        [self.a.shape(), self.b.shape(), self.c.shape()].iter().any(|shape| shape.is_padded())
    }
}

/// Kernels that compute the parts of a GEMM.
pub(crate) trait Multiplies {
    /// Loads everything that a part will launch. Nothing may be compiled or loaded during
    /// exchanges: an NCCL kernel that waits for another GPU of this process may block the load, and
    /// the blocked rank would then block the other GPU.
    fn ready(&mut self, part: &ProductPart<'_>) -> Result<()>;

    /// Returns true if the ranks must still [ask](Self::ask) each other before any rank multiplies.
    fn asks(&self) -> bool;

    /// Asks all ranks whether their splits represent all values.
    fn ask(&mut self) -> Result<()>;

    fn multiply(&mut self, part: ProductPart<'_>) -> Result<()>;

    /// Completes the GEMM after the last part, or on a rank without parts. Other ranks may wait for
    /// this rank's answer, so the rank answers before it waits until they have fetched its data.
    fn end(&mut self) -> Result<()>;
}

/// Executes the steps of this rank. With `is_ready`, all ranks have already loaded their kernels
/// and allocated their staging buffers. Otherwise the ranks do so first.
pub(crate) fn follow(
    rank: &mut Rank,
    collective: &CollectiveContext,
    product: ShardedProduct<'_>,
    multiplies: &mut dyn Multiplies,
    is_ready: bool,
) -> Result<()> {
    let number = rank.number();
    let schedule = product.schedule;
    // Frees staging buffers that this GEMM does not use.
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

/// Execution of a schedule on one rank.
struct RankExecution<'r> {
    number: usize,
    got: StagedBlocks<'r>,
    product: ShardedProduct<'r>,
    multiplies: &'r mut dyn Multiplies,
}

/// Parts of A and B received from other ranks.
struct StagedBlocks<'r> {
    staging: &'r StagingBuffers,
    transposition: Transposition,
    /// Blocks in the gather buffers: everything that the rank needs of A, and of B.
    gathered: [Block; 2],
    /// Block in each slot, received or under way.
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
        // The ranks ask each other after the first exchanges have begun.
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
    /// Asks all ranks, if required, before any rank multiplies.
    fn ask<B: Areas>(&mut self, backend: &B, transport: &mut dyn Transport<B>) -> Result<()> {
        if !self.multiplies.asks() {
            return Ok(());
        }
        transport.send_off(backend)?;
        self.multiplies.ask()
    }

    /// Loads the kernels of all multiplications without executing them.
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

    /// Returns the operands of one multiplication, and the kernels for it.
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

    /// Converts a move of an exchange into this rank's transfer.
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
    /// Records the blocks that an exchange writes to the slots of this rank.
    fn fill(&mut self, exchange: &Exchange, number: usize) {
        let own = exchange.moves.iter().filter(|of| of.to == number).map(|of| of.into);
        let slots: HashSet<Place> = own.filter(|into| matches!(into, Place::Slot(_))).collect();
        for slot in slots {
            self.slots.insert((exchange.factor, slot), exchange.held(number, slot));
        }
    }

    /// Returns the block that a gather buffer or slot contains.
    fn origin(&self, at: (Factor, Place)) -> Result<&Block> {
        let (factor, place) = at;
        let origin = match place {
            Place::Gathered => Some(&self.gathered[factor as usize]),
            Place::Shard | Place::Slot(_) => self.slots.get(&at),
        };
        origin.ok_or_else(|| {
            Error::internal(format!("no data has arrived in place {place} of {factor}"))
        })
    }

    /// Returns a view of a block in its place.
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
        // An empty block has no buffer, and may lie outside the shard.
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

/// Returns this rank's shard as a source of transfers.
fn own<B: Backend>(factor: Factor, shard: &Sharded) -> Result<OwnBlock<B>> {
    let matrix = shard.matrix();
    let area = area_of(matrix.buffer(), matrix.rows(), matrix.cols(), matrix.pitch())?;
    Ok(OwnBlock { factor, block: shard.block().clone(), area })
}

/// Returns a block relative to the first row and column of another.
fn within(origin: &Block, block: &Block) -> Result<Block> {
    let shifted = |range: &Range<usize>, by: usize| {
        Some(range.start.checked_sub(by)?..range.end.checked_sub(by)?)
    };
    let rows = shifted(&block.rows, origin.rows.start);
    let cols = shifted(&block.cols, origin.cols.start);
    let both = rows.zip(cols).map(|(rows, cols)| Block { rows, cols });
    both.ok_or_else(|| Error::internal(format!("{block} is not a part of {origin}")))
}
