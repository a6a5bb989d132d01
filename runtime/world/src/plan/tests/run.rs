//! Adversarial execution of a schedule on integers. Data arrives as late as the waits allow, and
//! overwritten data disappears as early as possible. Ranks take their steps in any order.

use crate::plan::*;
use std::collections::{HashMap, VecDeque};

/// Contents of an element.
#[derive(Clone, Copy, PartialEq)]
enum Cell {
    Missing,
    Value(i64),
    /// The element was written twice, or sent by a rank that does not have it.
    Wrong,
}

/// Memory for a block.
struct Memory {
    block: Block,
    cells: Vec<Cell>,
    /// True after a write outside the block.
    beside: bool,
    /// Exchange that fills it, for a slot.
    of: Option<usize>,
}

impl Memory {
    fn new(block: Block, of: Option<usize>) -> Self {
        Self { cells: vec![Cell::Missing; block.len()], block, beside: false, of }
    }

    fn at(&mut self, row: usize, col: usize) -> Option<&mut Cell> {
        let Block { rows, cols } = &self.block;
        let inside = rows.contains(&row) && cols.contains(&col);
        let at = inside.then(|| (row - rows.start) * cols.len() + col - cols.start)?;
        self.cells.get_mut(at)
    }

    fn write(&mut self, row: usize, col: usize, new: Cell) {
        match self.at(row, col) {
            Some(cell) if *cell == Cell::Missing || *cell == new => *cell = new,
            Some(cell) => *cell = Cell::Wrong,
            None => self.beside = true,
        }
    }
}

/// Pseudorandom element of A or B.
fn element(factor: Factor, row: usize, col: usize) -> i64 {
    let mixed =
        (row as i64 * 1009 + col as i64 * 31 + factor as i64 * 7 + 1).wrapping_mul(2_654_435_761);
    (mixed >> 7) % 1000
}

struct Rank<'s> {
    steps: VecDeque<&'s Step>,
    /// Exchanges begun and not complete, in order.
    begun: VecDeque<usize>,
    memory: HashMap<(Factor, Place), Memory>,
    c: Memory,
}

/// Returns true if every rank finishes with the correct block of C.
pub(super) fn is_right(schedule: &Schedule, seed: u64) -> bool {
    let ranks = schedule.ranks();
    let Distributions { a, b, c } = &schedule.distributions;
    let (Ok(a), Ok(b), Ok(c)) = (a.shards(ranks), b.shards(ranks), c.shards(ranks)) else {
        return false;
    };
    let shards = Shards { a, b, c };
    let mut all: Vec<Rank<'_>> = (0..ranks)
        .map(|rank| Rank {
            steps: schedule.steps[rank].iter().collect(),
            begun: VecDeque::new(),
            memory: HashMap::new(),
            c: Memory::new(shards.c[rank].clone(), None),
        })
        .collect();
    let mut done = vec![false; schedule.exchanges.len()];
    let mut rng = fastrand::Rng::with_seed(seed);
    loop {
        let mut order: Vec<usize> = (0..ranks).collect();
        rng.shuffle(&mut order);
        let mut moved = false;
        for rank in order {
            for _ in 0..rng.usize(1..4) {
                moved |= step(schedule, &shards, &mut all[rank], rank, &done);
            }
        }
        moved |= complete(schedule, &mut all, &mut done);
        if !moved {
            break;
        }
    }
    // All ranks have finished, nothing is under way or out of place, and C is correct.
    all.iter_mut().zip(&shards.c).all(|(rank, shard)| {
        let places =
            shard.rows.clone().flat_map(|row| shard.cols.clone().map(move |col| (row, col)));
        let product = |row, col| {
            let terms = (0..schedule.size.k)
                .map(|k| element(Factor::A, row, k) * element(Factor::B, k, col));
            Cell::Value(terms.sum())
        };
        rank.steps.is_empty()
            && rank.begun.is_empty()
            && !rank.c.beside
            && !rank.memory.values().any(|memory| memory.beside)
            && places
                .into_iter()
                .all(|(row, col)| rank.c.at(row, col).copied() == Some(product(row, col)))
    })
}

/// Takes the next step of a rank, if possible.
fn step(
    schedule: &Schedule,
    shards: &Shards,
    rank: &mut Rank<'_>,
    number: usize,
    done: &[bool],
) -> bool {
    let Some(step) = rank.steps.front() else { return false };
    match step {
        Step::Begin(exchange) => {
            let Exchange { factor, moves } = &schedule.exchanges[*exchange];
            for of in moves.iter().filter(|of| of.to == number && matches!(of.into, Place::Slot(_)))
            {
                // The earlier multiplications are complete, so the old contents of the slot may
                // disappear.
                let held = schedule.exchanges[*exchange].held(number, of.into);
                rank.memory.insert((*factor, of.into), Memory::new(held, Some(*exchange)));
            }
            rank.begun.push_back(*exchange);
        }
        Step::Wait(exchange) if !done[*exchange] => return false,
        Step::Wait(exchange) => {
            let Exchange { factor, moves } = &schedule.exchanges[*exchange];
            for of in moves.iter().filter(|of| of.to == number) {
                let needed = schedule.size.needed(*factor, &shards.c[number]);
                let place = rank
                    .memory
                    .entry((*factor, of.into))
                    .or_insert_with(|| Memory::new(needed, None));
                if place.of.is_some_and(|of| of != *exchange) {
                    continue;
                }
                for row in of.block.rows.clone() {
                    for col in of.block.cols.clone() {
                        let from = &shards.of_factor(*factor)[of.from];
                        let has = from.rows.contains(&row) && from.cols.contains(&col);
                        let sent =
                            if has { Cell::Value(element(*factor, row, col)) } else { Cell::Wrong };
                        place.write(row, col, sent);
                    }
                }
            }
        }
        Step::Multiply { block, a, b } => {
            let mut read = |factor: Factor, place: Place, row: usize, col: usize| {
                let shard = &shards.of_factor(factor)[number];
                if place == Place::Shard {
                    let has = shard.rows.contains(&row) && shard.cols.contains(&col);
                    return has.then(|| element(factor, row, col));
                }
                match rank
                    .memory
                    .get_mut(&(factor, place))
                    .and_then(|memory| memory.at(row, col).copied())
                {
                    Some(Cell::Value(value)) => Some(value),
                    _ => None,
                }
            };
            for row in block.rows.clone() {
                for col in block.cols.clone() {
                    let term =
                        |k| Some(read(Factor::A, *a, row, k)? * read(Factor::B, *b, k, col)?);
                    let sum: Option<i64> = (0..schedule.size.k).map(term).sum();
                    rank.c.write(row, col, sum.map_or(Cell::Wrong, Cell::Value));
                }
            }
        }
    }
    rank.steps.pop_front();
    true
}

/// Completes exchanges that all participants have reached. A rank's earlier exchanges must be
/// complete.
fn complete(schedule: &Schedule, all: &mut [Rank<'_>], done: &mut [bool]) -> bool {
    let mut moved = false;
    for (exchange, Exchange { moves, .. }) in schedule.exchanges.iter().enumerate() {
        let at = |rank: &usize| all[*rank].begun.front() == Some(&exchange);
        if !done[exchange] && moves.iter().flat_map(|of| [&of.from, &of.to]).all(at) {
            (done[exchange], moved) = (true, true);
        }
    }
    for rank in all {
        while rank.begun.front().is_some_and(|exchange| done[*exchange]) {
            rank.begun.pop_front();
            moved = true;
        }
    }
    moved
}
