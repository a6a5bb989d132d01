//! Which schedule a product follows, and by which kernel.

use super::call::{Said, check_divided, check_layout, sums_alike};
use super::kernels::asks_late;
use super::stored::Stored;
use super::{
    Chosen, Estimate, Layout, Layouts, Machine, Place, Rank, Schedule, ScheduleFault, Side, Step,
    VerifiedSchedule, Way, WorldError,
};
use crate::error::Result;
use gemm_dsl::spec::{self, SgemmSpec};
use std::sync::Arc;

/// A product as it is asked for.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    /// The line of a kernel, or of the row of a table.
    pub(super) line: &'a str,
    /// Whether it is that of a row, which is made for matrices however they lie.
    pub(super) is_made_for: bool,
    /// How A, B and C are dealt out, as they are stored.
    pub(super) layouts: [&'a Layout; 3],
    /// What the caller has said of how A and B are stored, and of the way.
    pub(super) said: Said,
}

/// What is known of a product that was asked for.
pub(super) struct KnownProduct {
    asked_line: String,
    asked_layouts: [Layout; 3],
    said: Said,
    pub(super) is_made_for: bool,
    pub(super) spec: SgemmSpec,
    /// The line of that spec.
    pub(super) line: String,
    pub(super) stored: Stored,
    /// What all ranks have to have alike: the product, and all else that the schedule and the bits depend on, but for the numbers
    /// that are given.
    pub(super) texts: [String; 2],
    machine: Machine,
    /// Once all ranks have agreed on it.
    pub(super) picked: Option<Picked>,
    /// Once they are made, the lines of the kernels for parts that lie as whole matrices do, and for those between whose rows
    /// something lies.
    pub(super) kernels: Option<[String; 2]>,
    /// Whether all that this rank launches for it is loaded.
    pub(super) is_loaded: bool,
}

/// What the ranks do for a product.
#[derive(Clone)]
pub(super) struct Picked {
    pub(super) schedule: Arc<VerifiedSchedule>,
    pub(super) chosen: Option<Arc<Chosen>>,
    pub(super) estimate: Estimate,
    /// Whether ranks are asked for lost numbers when they have all that they need.
    pub(super) asks_late: bool,
}

impl KnownProduct {
    fn is(&self, asked: &Asked<'_>) -> bool {
        let Asked { line, is_made_for, layouts, said } = asked;
        (self.asked_line.as_str(), self.is_made_for, self.said) == (*line, *is_made_for, *said)
            && self.asked_layouts.iter().eq(*layouts)
    }
}

impl Rank {
    /// What is known of a product, before all ranks have agreed on it where it is a new one.
    pub(super) fn known_product(&mut self, asked: &Asked<'_>) -> Result<KnownProduct> {
        if let Some(known) = self.products.take(|known| known.is(asked)) {
            return Ok(known);
        }
        let Asked { line, is_made_for, layouts: [a, b, c], said } = *asked;
        let mut spec: SgemmSpec = line.parse()?;
        if is_made_for {
            // What is one line of a packed matrix need not be one of each part.
            spec = spec.for_matrices(said.lies.unwrap_or(spec::GemmLayout::Nn), false);
        }
        let (asked_line, line, stored) = (line.to_owned(), spec.to_string(), Stored::of(&spec));
        let (machine, memory) = (self.machine.computing(&spec), self.memory);
        let texts = [
            format!("`{line}` of A {a}, B {b}, C {c}{said}"),
            format!("{is_made_for} {memory:?} {machine:?}"),
        ];
        Ok(KnownProduct {
            asked_line,
            asked_layouts: [a, b, c].map(Layout::clone),
            said,
            is_made_for,
            spec,
            line,
            stored,
            texts,
            machine,
            picked: None,
            kernels: None,
            is_loaded: false,
        })
    }

    /// Whether there is memory for all that comes of others for a product: none is taken while another GPU waits for what this one
    /// sends.
    pub(super) fn has_room(&self, known: &KnownProduct) -> bool {
        known.picked.as_ref().is_some_and(|Picked { schedule, .. }| {
            let mut rooms = schedule.rooms()[self.number()].iter();
            rooms.all(|room| self.rooms.has((room.side, room.place), room.len))
        })
    }

    /// What the ranks do for a product on which all of them have agreed.
    pub(super) fn picked(&self, known: &mut KnownProduct) -> Result<Picked> {
        if let Some(picked) = &known.picked {
            return Ok(picked.clone());
        }
        let KnownProduct { spec, line, stored, said, .. } = &*known;
        check_layout(spec, said.lies)?;
        check_divided(line, spec)?;
        let [a, b, c] = &known.asked_layouts;
        let layouts = stored.layouts(a, b, c);
        // Nothing is multiplied before all of it is known.
        let asks_late = asks_late(spec, &layouts, self.ranks())?;
        let way = if asks_late { Some(Way::Sequential) } else { said.way };
        let takes_pitches = spec.pitched || known.is_made_for || sums_alike(spec);
        let of_kernel = (line.as_str(), takes_pitches);
        let (schedule, chosen) =
            self.schedule((layouts, *stored), way, of_kernel, &known.machine)?;
        let estimate = schedule.estimate(&known.machine);
        let (schedule, chosen) = (Arc::new(schedule), chosen.map(Arc::new));
        let picked = Picked { schedule, chosen, estimate, asks_late };
        Ok(known.picked.insert(picked).clone())
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
