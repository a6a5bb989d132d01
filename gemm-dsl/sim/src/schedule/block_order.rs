//! Execution of blocks that synchronise. They run in several orders, and the results must agree.
//!
//! The GPU chooses which blocks are resident at once, and their order. A kernel with atomics on
//! global memory is therefore run with one block at a time, in ascending, descending and shuffled
//! order. It is also run with several resident blocks whose warps yield at every atomic. Each block
//! order has a different thread interleaving. A block that waits for a block that is not resident
//! waits forever, because nothing guarantees that both are resident at the same time.

use crate::buffer::numbered_memory::NumberedMemory;
use crate::counters::Profile;
use crate::error::{Fault, SimError};
use crate::exec::budget::Budget;
use crate::exec::interleaving::{Interleaving, SHUFFLES, Shuffle, more};
use crate::launch::Launch;
use crate::lower::code::Code;
use crate::options::Options;
use crate::race::access_history::AccessHistory;
use crate::race::detector::InterBlock;
use crate::schedule::block::{Block, BlockProgress};
use crate::schedule::launch_lock::LaunchLock;
use crate::schedule::snapshot::Snapshot;
use std::cell::RefCell;
use std::rc::Rc;

/// Order of blocks, sequential or interleaved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockOrder {
    Ascending,
    Descending,
    Shuffled(Shuffle),
    Interleaved,
}

pub(crate) const BLOCK_ORDERS: [BlockOrder; 5] = [
    BlockOrder::Ascending,
    BlockOrder::Descending,
    BlockOrder::Shuffled(SHUFFLES[0]),
    BlockOrder::Shuffled(SHUFFLES[1]),
    BlockOrder::Interleaved,
];
/// Number of blocks that are resident at once in interleaved order.
const RESIDENT: u32 = 8;
/// Maximum number of blocks that are shuffled as a whole. A larger grid is shuffled in pieces of
/// this size.
const PIECE: u32 = 1 << 16;

impl BlockOrder {
    pub(crate) fn name(self) -> &'static str {
        match self {
            BlockOrder::Ascending => "ascending",
            BlockOrder::Descending => "descending",
            BlockOrder::Shuffled(shuffle) => shuffle.name,
            BlockOrder::Interleaved => "interleaved",
        }
    }

    /// Thread interleaving that is used with this block order.
    fn turns(self) -> Interleaving {
        match self {
            BlockOrder::Ascending => Interleaving::Forward,
            BlockOrder::Descending => Interleaving::Reversed,
            BlockOrder::Shuffled(shuffle) => Interleaving::Shuffled(shuffle),
            BlockOrder::Interleaved => Interleaving::Interleaved { reversed: false },
        }
    }

    /// Returns the block numbers of a launch in this order. The iterator is lazy, because a grid
    /// may be too large for a list.
    pub(crate) fn blocks(self, count: u32) -> Box<dyn Iterator<Item = u32>> {
        match self {
            BlockOrder::Ascending | BlockOrder::Interleaved => Box::new(0..count),
            BlockOrder::Descending => Box::new((0..count).rev()),
            BlockOrder::Shuffled(shuffle) => {
                let pieces = shuffle.order(count.div_ceil(PIECE), 0);
                Box::new(pieces.into_iter().flat_map(move |piece| {
                    let first = piece * PIECE;
                    let blocks = shuffle.order(PIECE.min(count - first), piece.into());
                    blocks.into_iter().map(move |block| first + block)
                }))
            }
        }
    }
}

/// Runs all blocks of a launch in every order. Returns the results and counters of the ascending
/// order.
pub(crate) fn run(
    launch: &Launch<'_>,
    code: &Code<'_>,
    options: &Options<'_>,
) -> Result<Profile, SimError> {
    let _lock = LaunchLock::acquire(launch, code)?;
    let before = Snapshot::take(launch, code);
    let budget = Budget::new(options.instructions);
    let more = more(launch.blocks() as usize).iter().copied().map(BlockOrder::Shuffled);
    let orders = BLOCK_ORDERS.into_iter().chain(more);
    let orders: Vec<BlockOrder> =
        orders.take(if options.unchecked { 1 } else { usize::MAX }).collect();
    let all = u64::from(launch.blocks()) * orders.len() as u64;
    let regions = launch.regions.iter().zip(&code.stored);
    let written = regions.map(|(r, &stored)| {
        let memory = r.memory.as_ref().filter(|_| stored);
        vec![false; memory.map_or(0, NumberedMemory::len)]
    });
    let written = written.collect();
    let mut execution = Execution { launch, code, budget: &budget, options, written, done: 0, all };
    let mut first = None;
    for order in orders {
        let profile = execution.run(order).map_err(|error| match launch.blocks() {
            1 if order.turns() == Interleaving::Forward => error,
            1 => error.in_turns(order.turns().name()),
            _ => error.in_order(order.name()),
        })?;
        let written = |region: usize, element: usize| execution.written[region][element];
        let Some((results, _)) = &first else {
            first = Some((Snapshot::take(launch, code), profile));
            before.restore(written);
            continue;
        };
        let is_result = |region: usize| !launch.kernel.buffers[region].unordered;
        let differing = results.differing(|region, at| is_result(region) && written(region, at));
        if let Some(((region, element), bits)) = differing {
            let place = Box::new(launch.regions[region].element(element as u32));
            let kernel = launch.kernel.name.clone();
            let turns = order.turns().name();
            return Err(match launch.blocks() {
                1 => {
                    SimError::InterleavingDependent { kernel, block: (0, 0, 0), place, turns, bits }
                }
                _ => SimError::OrderDependent { kernel, place, order: order.name(), bits },
            });
        }
        before.restore(written);
    }
    let Some((results, profile)) = first else { unreachable!("there is an ascending order") };
    results.restore(|region, element| execution.written[region][element]);
    Ok(profile)
}

struct Execution<'e, 'l> {
    launch: &'l Launch<'l>,
    code: &'l Code<'l>,
    budget: &'l Budget,
    options: &'e Options<'e>,
    /// For each buffer and element, true if the element was written in some order.
    written: Vec<Vec<bool>>,
    /// Number of finished blocks in all orders; `all` is the number at the end.
    done: u64,
    all: u64,
}

impl<'l> Execution<'_, 'l> {
    fn run(&mut self, order: BlockOrder) -> Result<Profile, SimError> {
        let history = Rc::new(RefCell::new(AccessHistory::default()));
        let count = self.launch.blocks();
        let fitting = count.min(if order == BlockOrder::Interleaved { RESIDENT } else { 1 });
        let (mut fitting, mut to_come) = (fitting as usize, count - fitting);
        let resident = std::iter::repeat_with(|| {
            let between = InterBlock::Synchronising(Rc::clone(&history));
            let mut block = Block::new(self.launch, self.code, between, self.budget);
            block.take(order.turns());
            block
        });
        let mut resident: Vec<Block<'l>> = resident.take(fitting).collect();
        let mut next = order.blocks(count);
        for (block, number) in resident.iter_mut().zip(next.by_ref()) {
            block.start(number);
        }
        let happened = |resident: &[Block<'l>]| -> u64 {
            resident.iter().map(|block| block.machine.happened).sum()
        };
        // The first `fitting` blocks are the ones that are running.
        while fitting > 0 {
            let (before, mut stuck) = (happened(&resident), true);
            for i in (0..fitting).rev() {
                let elsewhere = happened(&resident) - resident[i].machine.happened;
                let round = resident[i].round(elsewhere)?;
                stuck &= round == BlockProgress::Stuck;
                match round {
                    BlockProgress::Ready | BlockProgress::Stuck => {}
                    BlockProgress::Done => {
                        self.done += 1;
                        let progress = self.options.progress.iter();
                        progress.for_each(|progress| progress(self.done, self.all));
                        match next.next() {
                            Some(number) => {
                                to_come -= 1;
                                resident[i].start(number);
                            }
                            None => {
                                fitting -= 1;
                                resident.swap(i, fitting);
                            }
                        }
                    }
                }
            }
            if stuck && happened(&resident) == before {
                return Err(SimError::Fault(deadlock(&resident[..fitting], to_come)));
            }
        }
        for (region, written) in self.written.iter_mut().enumerate() {
            history.borrow().written(region, |element| written[element as usize] = true);
        }
        let mut profile = Profile::default();
        resident.into_iter().for_each(|block| profile += &block.finish());
        Ok(profile)
    }
}

/// Returns the fault of resident blocks that are all stuck, if other blocks have not started.
fn deadlock(blocks: &[Block<'_>], to_come: u32) -> Box<Fault> {
    let Some((first, others)) = blocks.split_first() else { unreachable!("some block is stuck") };
    first.deadlock(others.iter().flat_map(Block::waiting), to_come)
}
