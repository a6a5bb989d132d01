//! Execution of blocks that speak to one another: in several orders, whose results must agree.
//!
//! Which blocks run at the same time, and which first, is the machine's choice. So a kernel with
//! atomics on global memory is run as if one block fitted the machine, in ascending, descending and
//! shuffled order, and as if several did, whose warps hand over at every atomic. In each order the threads
//! of a block take other turns. A block that waits for one that is not there waits for ever: that another
//! block runs at the same time nothing guarantees.

use super::Buffer;
use super::code::Code;
use super::counters::Counters;
use super::error::{Fault, SimError};
use super::launch::Launch;
use super::meter::{Meter, Options};
use super::race::Between;
use super::schedule::{Block, Round};
use super::turns::{Random, SHUFFLES, Shuffle, Turns};
use super::words::Words;
use std::cell::RefCell;
use std::rc::Rc;

/// In which order blocks run, one after the other or some at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Ascending,
    Descending,
    Shuffled(Shuffle),
    Interleaved,
}

/// The orders in which blocks that speak to one another run.
pub(super) const ORDERS: [Order; 5] = [
    Order::Ascending,
    Order::Descending,
    Order::Shuffled(SHUFFLES[0]),
    Order::Shuffled(SHUFFLES[1]),
    Order::Interleaved,
];
/// Blocks that run at the same time, where some do.
const RESIDENT: u32 = 8;
/// So many blocks are shuffled as one; of more, pieces of that size are.
const PIECE: u32 = 1 << 16;

impl Order {
    pub(super) fn name(self) -> &'static str {
        match self {
            Order::Ascending => "ascending",
            Order::Descending => "descending",
            Order::Shuffled(shuffle) => shuffle.name,
            Order::Interleaved => "interleaved",
        }
    }

    /// How the threads of a block take turns in it.
    fn turns(self) -> Turns {
        match self {
            Order::Ascending => Turns::Forward,
            Order::Descending => Turns::Reversed,
            Order::Shuffled(shuffle) => Turns::Shuffled(shuffle),
            Order::Interleaved => Turns::Interleaved { reversed: false },
        }
    }

    /// The blocks of a launch in this order. As many as there may be are not all kept at once.
    pub(super) fn blocks(self, count: u32) -> Box<dyn Iterator<Item = u32>> {
        match self {
            Order::Ascending | Order::Interleaved => Box::new(0..count),
            Order::Descending => Box::new((0..count).rev()),
            Order::Shuffled(shuffle) => {
                let mut random = Random::new(shuffle.seed);
                let mut pieces: Vec<u32> = (0..count.div_ceil(PIECE)).collect();
                random.shuffle(&mut pieces);
                Box::new(pieces.into_iter().flat_map(move |piece| {
                    let first = piece * PIECE;
                    let mut blocks: Vec<u32> =
                        (first..first.saturating_add(PIECE).min(count)).collect();
                    random.shuffle(&mut blocks);
                    blocks
                }))
            }
        }
    }
}

/// Runs all blocks of a launch in every order. The results and counters are those of the ascending one.
pub(super) fn run(
    launch: &Launch<'_>,
    code: &Code<'_>,
    options: &Options<'_>,
) -> Result<Counters, SimError> {
    let written: Vec<(usize, &Buffer)> = launch
        .regions
        .iter()
        .enumerate()
        .filter_map(|(i, region)| Some((i, region.memory.as_ref().filter(|_| code.stored[i])?)))
        .collect();
    let contents = || -> Vec<Vec<u64>> { written.iter().map(|(_, b)| b.bits()).collect() };
    let restore = |contents: &[Vec<u64>]| {
        for ((_, buffer), bits) in written.iter().zip(contents) {
            bits.iter().enumerate().for_each(|(at, &bits)| buffer.write(at, bits));
        }
    };
    let before = contents();
    let meter = Meter::new(options.instructions);
    let mut execution = Execution { launch, code, meter: &meter, options, done: 0 };
    let counters = execution.run(ORDERS[0])?;
    let results = contents();
    for &order in &ORDERS[1..] {
        restore(&before);
        execution.run(order)?;
        for ((&(region, _), expected), found) in written.iter().zip(&results).zip(contents()) {
            if launch.kernel.buffers[region].unordered {
                continue;
            }
            if let Some(at) = expected.iter().zip(&found).position(|(a, b)| a != b) {
                return Err(SimError::OrderDependent {
                    kernel: launch.kernel.name.clone(),
                    place: Box::new(launch.regions[region].element(at as u32)),
                    order: order.name(),
                    bits: [expected[at], found[at]],
                });
            }
        }
    }
    restore(&results);
    Ok(counters)
}

struct Execution<'e, 'l> {
    launch: &'l Launch<'l>,
    code: &'l Code<'l>,
    meter: &'l Meter,
    options: &'e Options<'e>,
    /// Blocks that have run, in all orders.
    done: u64,
}

impl<'l> Execution<'_, 'l> {
    fn run(&mut self, order: Order) -> Result<Counters, SimError> {
        let words = Rc::new(RefCell::new(Words::default()));
        let count = self.launch.blocks();
        let fitting = count.min(if order == Order::Interleaved { RESIDENT } else { 1 });
        let (mut fitting, mut to_come) = (fitting as usize, count - fitting);
        let resident = std::iter::repeat_with(|| {
            let between = Between::Speaking(Rc::clone(&words));
            let mut block = Block::new(self.launch, self.code, between, self.meter);
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
        let fault = |mut fault: Box<Fault>| {
            fault.order = Some(order.name());
            SimError::Fault(fault)
        };
        // Those that still run are the first `fitting`.
        while fitting > 0 {
            let (before, mut stuck) = (happened(&resident), true);
            for i in (0..fitting).rev() {
                let elsewhere = happened(&resident) - resident[i].machine.happened;
                let round = resident[i].round(elsewhere).map_err(fault)?;
                stuck &= round == Round::Stuck;
                match round {
                    Round::Ready | Round::Stuck => {}
                    Round::Spent => return Err(self.options.spent(self.launch)),
                    Round::Done => {
                        self.done += 1;
                        let all = u64::from(count) * ORDERS.len() as u64;
                        self.options.progress.iter().for_each(|progress| progress(self.done, all));
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
                return Err(fault(deadlock(&resident[..fitting], to_come)));
            }
        }
        let mut counters = Counters::default();
        resident.into_iter().for_each(|block| counters += block.finish());
        Ok(counters)
    }
}

/// The fault of blocks none of which goes on, while others have not begun.
fn deadlock(blocks: &[Block<'_>], to_come: u32) -> Box<Fault> {
    let Some((first, others)) = blocks.split_first() else { unreachable!("some block is stuck") };
    first.deadlock(others.iter().flat_map(Block::waiting), to_come)
}
