//! Which schedule a product follows.

use super::stored::Stored;
use super::{
    Chosen, Estimate, Layouts, Machine, Place, Rank, Schedule, ScheduleFault, Side, Step,
    VerifiedSchedule, Way, WorldError,
};
use std::sync::Arc;

/// What the ranks do for a product.
#[derive(Clone)]
pub(super) struct Picked {
    pub(super) schedule: Arc<VerifiedSchedule>,
    pub(super) chosen: Option<Arc<Chosen>>,
    pub(super) estimate: Estimate,
}

/// What has been picked by what all ranks have agreed on, the latest last: to choose takes longer than to launch.
#[derive(Default)]
pub(super) struct Known(Vec<(String, Picked)>);

impl Known {
    /// How many products of other extents, layouts or kernels may come between two that are alike.
    const MOST: usize = 16;

    fn get(&self, agreed: &str) -> Option<Picked> {
        self.0.iter().find(|(of, _)| of == agreed).map(|(_, picked)| picked.clone())
    }

    fn keep(&mut self, agreed: String, picked: Picked) {
        if self.0.len() == Self::MOST {
            self.0.remove(0);
        }
        self.0.push((agreed, picked));
    }
}

impl Rank {
    /// What the ranks do for a product, which is chosen where these have not agreed on the same before.
    pub(super) fn picked(
        &mut self,
        agreed: String,
        of_all: (Layouts, Stored),
        way: Option<Way>,
        of_kernel: (&str, bool),
        machine: &Machine,
    ) -> Result<Picked, WorldError> {
        if let Some(picked) = self.known.get(&agreed) {
            return Ok(picked);
        }
        let (schedule, chosen) = self.schedule(of_all, way, of_kernel, machine)?;
        let estimate = schedule.estimate(machine);
        let (schedule, chosen) = (Arc::new(schedule), chosen.map(Arc::new));
        let picked = Picked { schedule, chosen, estimate };
        self.known.keep(agreed, picked.clone());
        Ok(picked)
    }

    /// What the ranks do for a product: in the way that the caller says, or in the fastest that is predicted on a machine. A
    /// kernel that does not take matrices with padding is given none.
    fn schedule(
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
                stored.block(side, &needed).is_apart_in(&stored.block(side, &lies_in))
            };
            block.is_apart_in(kept) || is_part_of(Side::A, a) || is_part_of(Side::B, b)
        })
    })
}
