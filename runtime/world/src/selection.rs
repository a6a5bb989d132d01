//! Which schedule a product follows, and by which kernel.

use super::call::{CallOptions, check_divided, check_layout, sums_alike};
use super::kernels::asks_late;
use super::{
    Distribution, Distributions, Estimate, Factor, Machine, Place, Rank, Schedule, ScheduleChoice,
    ScheduleFault, Step, Strategy, VerifiedSchedule, WorldError,
};
use crate::Result;
use crate::transposition::Transposition;
use gemm_dsl::spec::{self, SgemmSpec};
use std::sync::Arc;

/// A product as it is asked for.
#[derive(Clone, Copy)]
pub(crate) struct ProductRequest<'a> {
    /// The line of a kernel, or of the row of a table.
    pub(crate) line: &'a str,
    /// Whether it is that of a row, which is made for matrices however they lie.
    pub(crate) is_made_for: bool,
    /// How A, B and C are dealt out, as they are stored.
    pub(crate) distributions: [&'a Distribution; 3],
    /// What the caller has said of how A and B are stored, and of the way.
    pub(crate) said: CallOptions,
}

/// What is known of a product that was asked for.
pub(crate) struct CachedProduct {
    asked_line: String,
    asked_layouts: [Distribution; 3],
    said: CallOptions,
    pub(crate) is_made_for: bool,
    pub(crate) spec: SgemmSpec,
    /// The line of that spec.
    pub(crate) line: String,
    pub(crate) transposition: Transposition,
    /// What all ranks have to have alike: the product, and all else that the schedule and the bits depend on, but for the numbers
    /// that are given.
    pub(crate) texts: [String; 2],
    machine: Machine,
    /// Once all ranks have agreed on it.
    pub(crate) picked: Option<Selection>,
    /// Once they are made, the lines of the kernels for parts that lie as whole matrices do, and for those between whose rows
    /// something lies.
    pub(crate) kernels: Option<[String; 2]>,
    /// Whether all that this rank launches for it is loaded.
    pub(crate) is_loaded: bool,
}

/// What the ranks do for a product.
#[derive(Clone)]
pub(crate) struct Selection {
    pub(crate) schedule: Arc<VerifiedSchedule>,
    pub(crate) chosen: Option<Arc<ScheduleChoice>>,
    pub(crate) estimate: Estimate,
    /// Whether ranks are asked for lost numbers when they have all that they need.
    pub(crate) asks_late: bool,
}

impl CachedProduct {
    fn is(&self, asked: &ProductRequest<'_>) -> bool {
        let ProductRequest { line, is_made_for, distributions, said } = asked;
        (self.asked_line.as_str(), self.is_made_for, self.said) == (*line, *is_made_for, *said)
            && self.asked_layouts.iter().eq(*distributions)
    }
}

impl Rank {
    /// What is known of a product, before all ranks have agreed on it where it is a new one.
    pub(crate) fn known_product(&mut self, asked: &ProductRequest<'_>) -> Result<CachedProduct> {
        if let Some(known) = self.products.take(|known| known.is(asked)) {
            return Ok(known);
        }
        let ProductRequest { line, is_made_for, distributions: [a, b, c], said } = *asked;
        let mut spec: SgemmSpec = line.parse()?;
        if is_made_for {
            // What is one line of a packed matrix need not be one of each part.
            spec = spec.for_matrices(said.lies.unwrap_or(spec::GemmLayout::Nn), false);
        }
        let (asked_line, line, transposition) =
            (line.to_owned(), spec.to_string(), Transposition::from_spec(&spec));
        let (machine, memory) = (self.machine.computing(&spec), self.memory);
        let texts = [
            format!("`{line}` of A {a}, B {b}, C {c}{said}"),
            format!("{is_made_for} {memory:?} {machine:?}"),
        ];
        Ok(CachedProduct {
            asked_line,
            asked_layouts: [a, b, c].map(Distribution::clone),
            said,
            is_made_for,
            spec,
            line,
            transposition,
            texts,
            machine,
            picked: None,
            kernels: None,
            is_loaded: false,
        })
    }

    /// Whether there is memory for all that comes of others for a product: none is taken while another GPU waits for what this one
    /// sends.
    pub(crate) fn has_staging(&self, known: &CachedProduct) -> bool {
        known.picked.as_ref().is_some_and(|Selection { schedule, .. }| {
            let mut staging = schedule.staging()[self.number()].iter();
            staging.all(|room| self.staging.has((room.factor, room.place), room.len))
        })
    }

    /// What the ranks do for a product on which all of them have agreed.
    pub(crate) fn picked(&self, known: &mut CachedProduct) -> Result<Selection> {
        if let Some(picked) = &known.picked {
            return Ok(picked.clone());
        }
        let CachedProduct { spec, line, transposition, said, .. } = &*known;
        check_layout(spec, said.lies)?;
        check_divided(line, spec)?;
        let [a, b, c] = &known.asked_layouts;
        let distributions = transposition.distributions(a, b, c);
        // Nothing is multiplied before all of it is known.
        let asks_late = asks_late(spec, &distributions, self.ranks())?;
        let strategy = if asks_late { Some(Strategy::Sequential) } else { said.strategy };
        let takes_pitches = spec.pitched || known.is_made_for || sums_alike(spec);
        let (schedule, chosen) = self.schedule(
            distributions,
            *transposition,
            strategy,
            line,
            takes_pitches,
            &known.machine,
        )?;
        let estimate = schedule.estimate(&known.machine);
        let (schedule, chosen) = (Arc::new(schedule), chosen.map(Arc::new));
        let picked = Selection { schedule, chosen, estimate, asks_late };
        Ok(known.picked.insert(picked).clone())
    }

    /// What the ranks do for a product: in the way that the caller says, or in the fastest that is predicted on a machine. A
    /// kernel that does not take matrices with padding is given none.
    fn schedule(
        &self,
        distributions: Distributions,
        transposition: Transposition,
        strategy: Option<Strategy>,
        line: &str,
        takes_pitches: bool,
        machine: &Machine,
    ) -> Result<(VerifiedSchedule, Option<ScheduleChoice>), WorldError> {
        let ranks = self.ranks();
        let fits =
            |estimate: &Estimate| self.memory.is_none_or(|most| estimate.most_memory() <= most);
        let is_for =
            |schedule: &VerifiedSchedule| takes_pitches || !has_padding(schedule, transposition);
        let unpitched = || WorldError::Unpitched { line: line.to_owned() };
        if let Some(strategy) = strategy {
            let schedule = Schedule::new(distributions, ranks, strategy)
                .map_err(|f| named(f, transposition))?;
            let estimate = schedule.estimate(machine);
            if !fits(&estimate) {
                let (limit, least) = (self.memory.unwrap_or(0), estimate.most_memory());
                return Err(ScheduleFault::Memory { limit, least, strategy }.into());
            }
            return if is_for(&schedule) { Ok((schedule, None)) } else { Err(unpitched()) };
        }
        let chosen = Schedule::cheapest(distributions.clone(), ranks, machine, self.memory);
        let mut chosen = chosen.map_err(|fault| named(fault, transposition))?;
        if is_for(&chosen.schedule) {
            return Ok((chosen.schedule.clone(), Some(chosen)));
        }
        let mut others: Vec<_> =
            chosen.tried.iter().filter(|(_, estimate)| fits(estimate)).cloned().collect();
        others.sort_by(|(_, one), (_, other)| one.time.total_cmp(&other.time));
        for (strategy, estimate) in others {
            let schedule = Schedule::new(distributions.clone(), ranks, strategy)?;
            if is_for(&schedule) {
                chosen = ScheduleChoice { schedule, strategy, estimate, ..chosen };
                return Ok((chosen.schedule.clone(), Some(chosen)));
            }
        }
        Err(unpitched())
    }
}

/// A fault of layouts, with what a matrix is called of which the transpose is stored.
fn named(fault: ScheduleFault, transposition: Transposition) -> ScheduleFault {
    let name = |matrix| match matrix {
        "A" => transposition.name(Factor::A),
        "B" => transposition.name(Factor::B),
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
fn has_padding(schedule: &VerifiedSchedule, transposition: Transposition) -> bool {
    let shards = schedule.shards();
    (0..schedule.ranks()).any(|rank| {
        let kept = &shards.c[rank];
        schedule.steps[rank].iter().any(|step| {
            let Step::Multiply { block, a, b } = step else { return false };
            let is_part_of = |factor: Factor, place: &Place| {
                let needed = schedule.size.needed(factor, block);
                let lies_in = match place {
                    Place::Shard => shards.of_factor(factor)[rank].clone(),
                    Place::Gathered => schedule.size.needed(factor, kept),
                    // A slot may hold more than one product takes: its rows lie as those of what came there.
                    Place::Slot(_) => schedule.size.needed(factor, kept),
                };
                transposition
                    .block(factor, &needed)
                    .is_apart_in(&transposition.block(factor, &lies_in))
            };
            block.is_apart_in(kept) || is_part_of(Factor::A, a) || is_part_of(Factor::B, b)
        })
    })
}
