//! Schedules for products whose matrices are dealt out in some way.

use super::check::{ScheduleFault, Shards, extents};
use super::schedule::{Exchange, Layouts, Move, Place, Schedule, Side, Size, Step};
use super::Block;
use std::ops::Range;

/// How a rank comes by what it needs of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// It gathers all of it, and multiplies while it comes: first what it has, then the rest in so many parts, at least 1.
    Gather {
        /// How many.
        parts: usize,
    },
    /// It has room for two of the parts alone, one of which comes while the other is multiplied: each is what one other rank
    /// has, and the memory of the one before the last.
    Rotate,
}

/// What a rank multiplies next.
struct Part {
    /// Rows of C where those of A come in parts, and columns where those of B do.
    range: Range<usize>,
    /// Where what it reads of the matrix that comes in parts is, and which moves bring it.
    place: Place,
    moves: Vec<Move>,
}

pub(super) fn schedule(layouts: Layouts, ranks: usize, way: Way) -> Result<Schedule, ScheduleFault> {
    let size = Size { m: layouts.c.rows, n: layouts.c.cols, k: layouts.a.cols };
    extents(&layouts, size)?;
    let shards = Shards::of(&layouts, ranks)?;
    let needed = |side, rank: usize| size.needed(side, &shards.c[rank]);
    let has_all = |side| (0..ranks).all(|rank| shards.side(side)[rank].contains(&needed(side, rank)));
    // The one that comes in parts, and the one that is there before.
    let (side, other) = match has_all(Side::A) && !has_all(Side::B) {
        true => (Side::B, Side::A),
        false => (Side::A, Side::B),
    };
    let mut schedule = Schedule { size, layouts, exchanges: Vec::new(), steps: vec![Vec::new(); ranks] };
    let mut others = vec![Place::Shard; ranks];
    let mut moves = Vec::new();
    for (rank, place) in others.iter_mut().enumerate() {
        let needed = needed(other, rank);
        if !shards.side(other)[rank].contains(&needed) {
            *place = Place::Gathered;
            moves.extend(brought(shards.side(other), rank, &needed, Place::Gathered));
        }
    }
    let first = schedule.exchange(other, moves);
    let mut all: Vec<Vec<Part>> = (0..ranks).map(|rank| parts(&shards, size, (side, rank), way)).collect();
    let rounds = all.iter().map(Vec::len).max().unwrap_or(0);
    // Exchange by exchange: the n-th parts of all ranks travel together.
    let exchanges: Vec<Option<usize>> = (0..rounds)
        .map(|round| {
            let of_round = all.iter_mut().filter_map(|parts| parts.get_mut(round));
            let moves = of_round.flat_map(|part| std::mem::take(&mut part.moves)).collect();
            schedule.exchange(side, moves)
        })
        .collect();
    for (rank, parts) in all.iter().enumerate() {
        let multiply = |part: &Part| {
            let Block { rows, cols } = shards.c[rank].clone();
            match side {
                Side::A => Step::Multiply {
                    block: Block::new(part.range.clone(), cols),
                    a: part.place,
                    b: others[rank],
                },
                Side::B => Step::Multiply {
                    block: Block::new(rows, part.range.clone()),
                    a: others[rank],
                    b: part.place,
                },
            }
        };
        let takes_part = |exchange: &usize| {
            let moves = &schedule.exchanges[*exchange].moves;
            moves.iter().any(|of| of.from == rank || of.to == rank)
        };
        let gets = |exchange: &usize| schedule.exchanges[*exchange].moves.iter().any(|of| of.to == rank);
        let mut steps = Vec::new();
        let begin = |exchange: Option<usize>| exchange.filter(takes_part).map(Step::Begin);
        let wait = |exchange: Option<usize>| exchange.filter(gets).map(Step::Wait);
        steps.extend(begin(first));
        // How many exchanges are under way before the part that is multiplied.
        let ahead = match way {
            Way::Gather { .. } => rounds,
            Way::Rotate => 2,
        };
        steps.extend(exchanges.iter().take(ahead).copied().filter_map(begin));
        steps.extend(wait(first));
        for round in 0..rounds {
            let part = parts.get(round).filter(|part| !part.range.is_empty());
            if let Some(part) = part {
                steps.extend(wait(exchanges[round]));
                steps.push(multiply(part));
            }
            // Into the slot that has been read.
            steps.extend(exchanges.get(round + ahead).copied().and_then(begin));
        }
        schedule.steps[rank] = steps;
    }
    Ok(schedule)
}

impl Schedule {
    /// Adds an exchange; none where nothing is moved.
    fn exchange(&mut self, side: Side, moves: Vec<Move>) -> Option<usize> {
        (!moves.is_empty()).then(|| {
            self.exchanges.push(Exchange { side, moves });
            self.exchanges.len() - 1
        })
    }
}

/// The moves that bring a block to a rank, each element once: from its own shard what that has, the rest from the ranks behind
/// it, in turn, so that not all ask the same one first.
fn brought(shards: &[Block], to: usize, needed: &Block, into: Place) -> Vec<Move> {
    let mut moves: Vec<Move> = Vec::new();
    let mut missing = vec![needed.clone()];
    for turn in 0..shards.len() {
        let from = (to + turn) % shards.len();
        let mut rest = Vec::new();
        for block in missing {
            let block_of = block.and(&shards[from]);
            if block_of.is_empty() {
                rest.push(block);
                continue;
            }
            rest.extend(without(&block, &block_of));
            moves.push(Move { from, to, block: block_of, into });
        }
        missing = rest;
        if missing.is_empty() {
            break;
        }
    }
    moves
}

/// What is left of a block without a part of it, as at most four blocks.
fn without(block: &Block, part: &Block) -> Vec<Block> {
    let Block { rows, cols } = block;
    let above = Block::new(rows.start..part.rows.start, cols.clone());
    let below = Block::new(part.rows.end..rows.end, cols.clone());
    let before = Block::new(part.rows.clone(), cols.start..part.cols.start);
    let behind = Block::new(part.rows.clone(), part.cols.end..cols.end);
    [above, below, before, behind].into_iter().filter(|block| !block.is_empty()).collect()
}

/// What a rank multiplies, part by part.
fn parts(shards: &Shards, size: Size, (side, rank): (Side, usize), way: Way) -> Vec<Part> {
    let shard = &shards.c[rank];
    if shard.is_empty() {
        return Vec::new();
    }
    let along = |block: &Block| match side {
        Side::A => block.rows.clone(),
        Side::B => block.cols.clone(),
    };
    let of = |range: &Range<usize>| match side {
        Side::A => Block::new(range.clone(), 0..size.k),
        Side::B => Block::new(0..size.k, range.clone()),
    };
    let all = along(shard);
    let own = &shards.side(side)[rank];
    // Of a matrix without terms there is nothing to bring.
    let needs_none = own.contains(&of(&all));
    let is_whole = |own: &Block| own.contains(&of(&along(&own.and(&of(&all)))));
    let mine = match needs_none {
        true => all.clone(),
        false => {
            let mine = along(&own.and(&of(&all)));
            if is_whole(own) { mine } else { all.start..all.start }
        }
    };
    let mut parts = vec![Part { range: mine.clone(), place: Place::Shard, moves: Vec::new() }];
    // The rest, from behind what it has on, and then from the beginning.
    let rest = match mine.is_empty() {
        true => vec![all],
        false => vec![mine.end..all.end, all.start..mine.start],
    };
    let rest: Vec<Range<usize>> = rest.into_iter().filter(|range| !range.is_empty()).collect();
    let cut = match way {
        Way::Gather { parts } => evenly(&rest, parts.max(1)),
        Way::Rotate => {
            let others: Vec<Range<usize>> = shards.side(side).iter().map(along).collect();
            at(&rest, &others)
        }
    };
    for (number, range) in cut.into_iter().enumerate() {
        let place = match way {
            Way::Gather { .. } => Place::Gathered,
            Way::Rotate => Place::Slot(number % 2),
        };
        let moves = brought(shards.side(side), rank, &of(&range), place);
        parts.push(Part { range, place, moves });
    }
    parts
}

/// Ranges cut into about so many parts of about the same length; none goes beyond a range.
fn evenly(ranges: &[Range<usize>], parts: usize) -> Vec<Range<usize>> {
    let all: usize = ranges.iter().map(Range::len).sum();
    let most = all.div_ceil(parts).max(1);
    let mut cut = Vec::new();
    for range in ranges {
        let pieces = range.len().div_ceil(most);
        let end = |piece: usize| range.start + (range.len() as u128 * piece as u128 / pieces as u128) as usize;
        cut.extend((0..pieces).map(|piece| end(piece)..end(piece + 1)));
    }
    cut
}

/// Ranges cut wherever one of others begins or ends.
fn at(ranges: &[Range<usize>], others: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut cuts: Vec<usize> = others.iter().flat_map(|other| [other.start, other.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut cut = Vec::new();
    for range in ranges {
        let mut start = range.start;
        let inside = cuts.iter().copied().filter(|at| (range.start + 1..range.end).contains(at));
        for end in inside.chain([range.end]) {
            cut.push(start..end);
            start = end;
        }
    }
    cut
}
