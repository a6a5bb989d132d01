//! Construction of schedules for distributed GEMMs.

use super::check::extents;
use super::distribution::BlockOwners;
use super::roles::{Roles, find};
use super::schedule::{Distributions, Exchange, Move, Place, Schedule, Size, Step};
use super::work::work;
use super::{Block, Distribution, Factor, FactorExt, ScheduleFault, Strategy, VerifiedSchedule};
use std::ops::Range;

/// Rows and columns of the largest tiles that kernels use. Parts of more than [`FEW`] tiles are cut
/// at multiples of a tile, so that no tile is cut in two.
const TILE: [usize; 2] = [128, 256];
/// Minimum number of tiles per part for cuts at multiples of a tile.
const FEW: usize = 4;

/// Part of A or B that a rank multiplies in one step: its place, and the rows or columns of C,
/// which may wrap from the last to the first.
struct SchedulePart {
    place: Place,
    outer: [Range<usize>; 2],
}

/// Matrix that is cut into parts.
struct Source {
    size: Size,
    factor: Factor,
    /// Distribution of A or B over ranks.
    deal: BlockOwners,
    c: BlockOwners,
    strategy: Strategy,
    /// Bounds of the shards, in order.
    cuts: Vec<usize>,
}

impl Schedule {
    /// Builds the schedule of a GEMM on `ranks` ranks.
    ///
    /// # Errors
    /// * [`ScheduleFault::Distribution`], [`ScheduleFault::Extents`] and
    ///   [`ScheduleFault::TooLarge`] if the distributions do not fit the ranks, or do not belong to
    ///   one GEMM.
    /// * [`ScheduleFault::NoParts`] for [`Strategy::Gather`] with 0 parts.
    #[allow(clippy::new_ret_no_self, reason = "only a verified schedule may be executed")]
    pub fn new(
        distributions: Distributions,
        ranks: usize,
        strategy: Strategy,
    ) -> Result<VerifiedSchedule, ScheduleFault> {
        schedule(distributions, ranks, strategy)?.verify()
    }
}

fn schedule(
    distributions: Distributions,
    ranks: usize,
    strategy: Strategy,
) -> Result<Schedule, ScheduleFault> {
    if strategy == (Strategy::Gather { parts: 0 }) {
        return Err(ScheduleFault::NoParts { strategy });
    }
    let size = Size { m: distributions.c.rows, n: distributions.c.cols, k: distributions.a.cols };
    extents(&distributions, size)?;
    let of = |matrix, distribution: &Distribution| {
        distribution.deal(ranks).map_err(|error| ScheduleFault::Distribution { matrix, error })
    };
    let [a, b, c] =
        [of("A", &distributions.a)?, of("B", &distributions.b)?, of("C", &distributions.c)?];
    let needed = |factor, rank| size.needed(factor, &c.shard(rank));
    let has = |deal: &BlockOwners, factor, rank| deal.shard(rank).contains(&needed(factor, rank));
    let has_all = |deal, factor| (0..ranks).all(|rank| has(deal, factor, rank));
    // The matrix that arrives in parts, and the matrix that is complete before the first part.
    let (factor, deal, other, before) = match has_all(&a, Factor::A) && !has_all(&b, Factor::B) {
        true => (Factor::B, b, Factor::A, a),
        false => (Factor::A, a, Factor::B, b),
    };
    let mut others = vec![Place::Shard; ranks];
    let mut moves = Vec::new();
    for (rank, place) in others.iter_mut().enumerate() {
        if !has(&before, other, rank) {
            *place = Place::Gathered;
            bring(&before, rank, &needed(other, rank), Place::Gathered, &mut moves);
        }
    }
    let mut exchanges = Vec::new();
    let mut exchange = |factor, moves: Vec<Move>| {
        (!moves.is_empty()).then(|| {
            exchanges.push(Exchange { factor, moves });
            exchanges.len() - 1
        })
    };
    let first = exchange(other, moves);
    let source = Source { size, factor, cuts: deal.cuts(factor), deal, c, strategy };
    let (own, parts): (Vec<Range<usize>>, Vec<Vec<SchedulePart>>) =
        (0..ranks).map(|rank| source.parts(rank)).unzip();
    let rounds = parts.iter().map(Vec::len).max().unwrap_or(0);
    let in_parts = (0..rounds).map(|round| exchange(factor, source.moves(&parts, round)));
    let in_parts = in_parts.collect();
    let roles = Roles::new(&exchanges, ranks)?;
    let built = RankParts { source, others, own, parts, first, in_parts, roles };
    let steps = (0..ranks).map(|rank| built.steps(rank)).collect();
    Ok(Schedule { size, distributions, exchanges, steps })
}

/// Parts of all ranks, and the exchanges in which they arrive.
struct RankParts {
    source: Source,
    /// Place of the complete matrix on each rank.
    others: Vec<Place>,
    /// Rows or columns of C that each rank can multiply with its own shard.
    own: Vec<Range<usize>>,
    parts: Vec<Vec<SchedulePart>>,
    /// Exchange in which the complete matrix arrives.
    first: Option<usize>,
    /// Exchange of each round of parts.
    in_parts: Vec<Option<usize>>,
    roles: Roles,
}

impl RankParts {
    fn steps(&self, rank: usize) -> Vec<Step> {
        let Self { own, parts, first, in_parts, .. } = self;
        let roles = self.roles.rank(rank);
        let role = |exchange: Option<usize>| exchange.and_then(|exchange| find(roles, exchange));
        let begin = |exchange| role(exchange).map(|role| Step::Begin(roles[role].exchange));
        let wait = |exchange| {
            let gets = role(exchange).filter(|role| roles[*role].gets());
            gets.map(|role| Step::Wait(roles[role].exchange))
        };
        let shard = self.source.c.shard(rank);
        let multiply = |outer: &Range<usize>, place| self.multiply(rank, &shard, outer, place);
        let mut steps = Vec::with_capacity(roles.len() + 2 * parts[rank].len() + 2);
        steps.extend(begin(*first));
        // Number of exchanges that begin before the current part is multiplied.
        let ahead = match self.source.strategy {
            Strategy::Sequential | Strategy::Gather { .. } => in_parts.len(),
            Strategy::Rotate => in_parts.len().min(2),
        };
        steps.extend(in_parts[..ahead].iter().filter_map(|exchange| begin(*exchange)));
        steps.extend(wait(*first));
        steps.extend(multiply(&own[rank], Place::Shard));
        for round in 0..in_parts.len() {
            work(1);
            if let Some(SchedulePart { place, outer }) = parts[rank].get(round) {
                steps.extend(wait(in_parts[round]));
                steps.extend(outer.iter().filter_map(|outer| multiply(outer, *place)));
            }
            // This exchange refills the slot that the multiplication has just read.
            steps.extend(in_parts.get(round + ahead).and_then(|exchange| begin(*exchange)));
        }
        steps
    }

    /// Returns the step for these rows or columns of a rank's C, or `None` if they are empty.
    fn multiply(
        &self,
        rank: usize,
        shard: &Block,
        outer: &Range<usize>,
        place: Place,
    ) -> Option<Step> {
        let other = self.others[rank];
        let (block, a, b) = match self.source.factor {
            Factor::A => (Block::new(outer.clone(), shard.cols.clone()), place, other),
            Factor::B => (Block::new(shard.rows.clone(), outer.clone()), other, place),
        };
        (!block.is_empty()).then_some(Step::Multiply { block, a, b })
    }
}

/// Adds the moves that transfer a block to a rank, each element once. A rank takes its own elements
/// first, then the elements of the next ranks in turn. Ranks therefore start with different
/// senders.
fn bring(deal: &BlockOwners, to: usize, needed: &Block, into: Place, moves: &mut Vec<Move>) {
    if needed.is_empty() {
        return;
    }
    let first = moves.len();
    moves.extend(deal.owners_of(needed, to).map(|(from, block)| Move { from, to, block, into }));
    let new = &mut moves[first..];
    work(new.len());
    new.sort_by_key(|of| (of.from < to, of.from));
}

impl Source {
    /// Returns the moves of a round: the parts that have the number `round` on any rank.
    fn moves(&self, parts: &[Vec<SchedulePart>], round: usize) -> Vec<Move> {
        let mut moves = Vec::new();
        for (rank, parts) in parts.iter().enumerate() {
            work(1);
            let Some(SchedulePart { place, outer }) = parts.get(round) else { continue };
            for outer in outer {
                let block = self.factor.block(outer.clone(), 0..self.size.k);
                bring(&self.deal, rank, &block, *place, &mut moves);
            }
        }
        moves
    }

    /// Returns the rows or columns that a rank can multiply with its own shard, and the parts in
    /// which the other rows or columns arrive.
    fn parts(&self, rank: usize) -> (Range<usize>, Vec<SchedulePart>) {
        let Self { size, factor, strategy, .. } = self;
        let shard = self.c.shard(rank);
        if shard.is_empty() {
            return (0..0, Vec::new());
        }
        let all = factor.outer(&shard).clone();
        let has = self.deal.shard(rank);
        let has_all = |outer: &Range<usize>| has.contains(&factor.block(outer.clone(), 0..size.k));
        if has_all(&all) {
            return (all, Vec::new());
        }
        let outer = factor.outer(&has);
        let start = outer.start.clamp(all.start, all.end);
        let mut own = start..outer.end.clamp(start, all.end);
        if *strategy == Strategy::Sequential || !has_all(&own) || own.is_empty() {
            own = all.start..all.start;
        }
        // The rest starts after the rank's own elements and wraps to the beginning.
        let rest = [own.end..all.end, all.start..own.start];
        let part = |(number, outer)| {
            let place = match strategy {
                Strategy::Sequential | Strategy::Gather { .. } => Place::Gathered,
                Strategy::Rotate => Place::Slot(number % 2),
            };
            SchedulePart { place, outer }
        };
        let cut = match strategy {
            Strategy::Sequential => evenly(rest, 1, TILE[*factor as usize]),
            Strategy::Gather { parts } => evenly(rest, *parts, TILE[*factor as usize]),
            Strategy::Rotate => at(rest, &self.cuts),
        };
        (own, cut.into_iter().enumerate().map(part).collect())
    }
}

/// Cuts two consecutive ranges into at most `parts` parts of about equal length. Long parts are cut
/// at multiples of `unit`.
fn evenly([first, second]: [Range<usize>; 2], parts: usize, unit: usize) -> Vec<[Range<usize>; 2]> {
    let all = first.len() + second.len();
    let parts = parts.min(all);
    // Number of elements before the start of a part.
    let before = |part: usize| {
        let before = (all as u128 * part as u128 / parts as u128) as usize;
        if part == parts || all / parts < FEW * unit {
            return before;
        }
        let down = |at: usize, start: usize| (at / unit * unit).max(start) - start;
        match before.checked_sub(first.len()) {
            None => down(first.start + before, first.start),
            Some(beyond) => first.len() + down(second.start + beyond, second.start),
        }
    };
    let part = |part: usize| {
        let (from, to) = (before(part), before(part + 1));
        let of = |range: &Range<usize>, skipped: usize| {
            let within = |at: usize| range.start + at.saturating_sub(skipped).min(range.len());
            within(from)..within(to)
        };
        [of(&first, 0), of(&second, first.len())]
    };
    work(parts);
    (0..parts).map(part).collect()
}

/// Cuts ranges at the given positions, in order.
fn at(ranges: [Range<usize>; 2], cuts: &[usize]) -> Vec<[Range<usize>; 2]> {
    let mut cut = Vec::new();
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        let first = cuts.partition_point(|at| *at <= range.start);
        let end = cuts.partition_point(|at| *at < range.end).max(first);
        let mut start = range.start;
        for end in cuts[first..end].iter().chain([&range.end]) {
            work(1);
            cut.push([start..*end, *end..*end]);
            start = *end;
        }
    }
    cut
}
