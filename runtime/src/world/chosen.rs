//! Which schedule a product follows.

use super::stored::Stored;
use super::{
    Block, Chosen, Estimate, Layouts, Machine, Place, Rank, Schedule, ScheduleFault, Side, Step,
    VerifiedSchedule, Way, WorldError,
};

impl Rank {
    /// What the ranks do for a product: in the way that the caller says, or in the fastest that is predicted on a machine. A
    /// kernel that does not take matrices with padding is given none.
    pub(super) fn schedule(
        &self,
        (layouts, stored): (Layouts, Stored),
        way: Option<Way>,
        (line, takes_pitches): (&str, bool),
        machine: &Machine,
    ) -> Result<(VerifiedSchedule, Option<Chosen>), WorldError> {
        let ranks = self.ranks();
        let fits =
            |estimate: &Estimate| self.memory.is_none_or(|most| estimate.most_memory() <= most);
        let is_for = |schedule: &VerifiedSchedule| takes_pitches || !has_padding(schedule, stored);
        let unpitched = || WorldError::Unpitched { line: line.to_owned() };
        if let Some(way) = way {
            let schedule = Schedule::new(layouts, ranks, way).map_err(|f| named(f, stored))?;
            let estimate = schedule.estimate(machine);
            if !fits(&estimate) {
                let (limit, least) = (self.memory.unwrap_or(0), estimate.most_memory());
                return Err(ScheduleFault::Memory { limit, least, way }.into());
            }
            return if is_for(&schedule) { Ok((schedule, None)) } else { Err(unpitched()) };
        }
        let chosen = Schedule::cheapest(layouts.clone(), ranks, machine, self.memory);
        let mut chosen = chosen.map_err(|fault| named(fault, stored))?;
        if is_for(&chosen.schedule) {
            return Ok((chosen.schedule.clone(), Some(chosen)));
        }
        let mut others: Vec<_> =
            chosen.tried.iter().filter(|(_, estimate)| fits(estimate)).cloned().collect();
        others.sort_by(|(_, one), (_, other)| one.time.total_cmp(&other.time));
        for (way, estimate) in others {
            let schedule = Schedule::new(layouts.clone(), ranks, way)?;
            if is_for(&schedule) {
                chosen = Chosen { schedule, way, estimate, ..chosen };
                return Ok((chosen.schedule.clone(), Some(chosen)));
            }
        }
        Err(unpitched())
    }
}

/// A fault of layouts, with what a matrix is called of which the transpose is stored.
fn named(fault: ScheduleFault, stored: Stored) -> ScheduleFault {
    let name = |matrix| match matrix {
        "A" => stored.name(Side::A),
        "B" => stored.name(Side::B),
        other => other,
    };
    match fault {
        ScheduleFault::Extents { matrix, has, needed, size } => {
            ScheduleFault::Extents { matrix: name(matrix), has, needed, size }
        }
        other => other,
    }
}

/// Whether something lies between the rows of what some rank multiplies, as they are stored: of C, of which it computes some
/// columns, or of A or B, of which it has more.
fn has_padding(schedule: &VerifiedSchedule, stored: Stored) -> bool {
    let shards = schedule.shards();
    let is_part =
        |block: &Block, of: &Block| block.rows.len() > 1 && block.cols.len() < of.cols.len();
    (0..schedule.ranks()).any(|rank| {
        let kept = &shards.c[rank];
        schedule.steps[rank].iter().any(|step| {
            let Step::Multiply { block, a, b } = step else { return false };
            let is_part_of = |side: Side, place: &Place| {
                let needed = schedule.size.needed(side, block);
                let lies_in = match place {
                    Place::Shard => shards.of(side)[rank].clone(),
                    Place::Gathered => schedule.size.needed(side, kept),
                    // A slot may hold more than one product takes: its rows lie as those of what came there.
                    Place::Slot(_) => schedule.size.needed(side, kept),
                };
                is_part(&stored.block(side, &needed), &stored.block(side, &lies_in))
            };
            is_part(block, kept) || is_part_of(Side::A, a) || is_part_of(Side::B, b)
        })
    })
}
