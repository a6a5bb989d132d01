//! Which schedule a product follows, and by which kernel.

use super::error::impossible;
use super::{
    Block, ClusterModel, Distribution, Distributions, Estimate, Factor, Place, Schedule,
    ScheduleChoice, ScheduleFault, Step, Strategy, VerifiedSchedule, WorldError,
};
use crate::staging::StagingBuffers;
use crate::transposition::Transposition;
use crate::{Error, Result};
use gemm_dsl::spec::{GemmLayout, Lanes, SgemmSpec};
use std::fmt;
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

/// What the caller has said of how A and B are stored, and of the way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallOptions {
    pub(crate) lies: Option<GemmLayout>,
    pub(crate) strategy: Option<Strategy>,
}

impl fmt::Display for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lies, strategy } = self;
        lies.map_or(Ok(()), |lies| write!(f, " stored as {lies}"))?;
        strategy.map_or(Ok(()), |strategy| write!(f, ", {strategy}"))
    }
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
    machine: ClusterModel,
    /// The most memory of each rank beside its shards.
    memory: Option<u64>,
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
    /// What is known of a product before all ranks have agreed on it.
    pub(crate) fn new(
        asked: &ProductRequest<'_>,
        machine: &ClusterModel,
        memory: Option<u64>,
    ) -> Result<Self> {
        let ProductRequest { line, is_made_for, distributions: [a, b, c], said } = *asked;
        let mut spec: SgemmSpec = line.parse()?;
        if is_made_for {
            // What is one line of a packed matrix need not be one of each part.
            spec = spec.for_matrices(said.lies.unwrap_or(GemmLayout::Nn), false);
        }
        let (asked_line, line, transposition) =
            (line.to_owned(), spec.to_string(), Transposition::from_spec(&spec));
        let machine = machine.computing(&spec);
        let texts = [
            format!("`{line}` of A {a}, B {b}, C {c}{said}"),
            format!("{is_made_for} {memory:?} {machine:?}"),
        ];
        Ok(Self {
            asked_line,
            asked_layouts: [a, b, c].map(Distribution::clone),
            said,
            is_made_for,
            spec,
            line,
            transposition,
            texts,
            machine,
            memory,
            picked: None,
            kernels: None,
            is_loaded: false,
        })
    }

    pub(crate) fn is(&self, asked: &ProductRequest<'_>) -> bool {
        let ProductRequest { line, is_made_for, distributions, said } = asked;
        (self.asked_line.as_str(), self.is_made_for, self.said) == (*line, *is_made_for, *said)
            && self.asked_layouts.iter().eq(*distributions)
    }

    /// Whether a rank has memory for all that comes of others: none is taken while another GPU waits for what this one sends.
    pub(crate) fn has_staging(&self, staging: &StagingBuffers, rank: usize) -> bool {
        self.picked.as_ref().is_some_and(|Selection { schedule, .. }| {
            let mut rooms = schedule.staging()[rank].iter();
            rooms.all(|room| staging.has((room.factor, room.place), room.len))
        })
    }

    /// What the ranks do for the product, on which all of them have agreed.
    pub(crate) fn selection(&mut self, ranks: usize) -> Result<Selection> {
        if let Some(picked) = &self.picked {
            return Ok(picked.clone());
        }
        let Self { spec, line, transposition, said, .. } = &*self;
        check_layout(spec, said.lies)?;
        check_divided(line, spec)?;
        let [a, b, c] = &self.asked_layouts;
        let distributions = transposition.distributions(a, b, c);
        // Nothing is multiplied before all of it is known.
        let asks_late = asks_late(spec, &distributions, ranks)?;
        let strategy = if asks_late { Some(Strategy::Sequential) } else { said.strategy };
        let (schedule, chosen) = self.schedule(distributions, ranks, strategy)?;
        let estimate = schedule.estimate(&self.machine);
        let (schedule, chosen) = (Arc::new(schedule), chosen.map(Arc::new));
        let picked = Selection { schedule, chosen, estimate, asks_late };
        Ok(self.picked.insert(picked).clone())
    }

    /// What the ranks do for the product: in the way that the caller says, or in the fastest that is predicted on a machine. A
    /// kernel that does not take matrices with padding is given none.
    fn schedule(
        &self,
        distributions: Distributions,
        ranks: usize,
        strategy: Option<Strategy>,
    ) -> Result<(VerifiedSchedule, Option<ScheduleChoice>), WorldError> {
        let Self { transposition, machine, memory, .. } = self;
        let takes_pitches = self.spec.pitched || self.is_made_for || sums_alike(&self.spec);
        let fits = |estimate: &Estimate| memory.is_none_or(|most| estimate.most_memory() <= most);
        let is_for =
            |schedule: &VerifiedSchedule| takes_pitches || !has_padding(schedule, *transposition);
        let unpitched = || WorldError::Unpitched { line: self.line.clone() };
        if let Some(strategy) = strategy {
            let schedule = Schedule::new(distributions, ranks, strategy)
                .map_err(|fault| named(fault, *transposition))?;
            let estimate = schedule.estimate(machine);
            if !fits(&estimate) {
                let (limit, least) = (memory.unwrap_or(0), estimate.most_memory());
                return Err(ScheduleFault::Memory { limit, least, strategy }.into());
            }
            return if is_for(&schedule) { Ok((schedule, None)) } else { Err(unpitched()) };
        }
        let chosen = Schedule::cheapest(distributions.clone(), ranks, machine, *memory);
        let mut chosen = chosen.map_err(|fault| named(fault, *transposition))?;
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

/// Whether the bits of a kernel are those of the same `pitched`.
pub(crate) fn sums_alike(spec: &SgemmSpec) -> bool {
    spec.lanes != Lanes::K && spec.partials <= 1 && spec.slices <= 1
}

/// Whether it is known only of whole rows of A and columns of B if splits hold their numbers, and some rank has parts of them:
/// each then has to be asked when it has all that it needs.
fn asks_late(
    spec: &SgemmSpec,
    distributions: &Distributions,
    ranks: usize,
) -> Result<bool, WorldError> {
    if !(spec.loses_as_a_whole() && spec.arith.is_scaled()) {
        return Ok(false);
    }
    let Distributions { a, b, .. } = distributions;
    let cuts_row = |block: &Block| !block.is_empty() && block.cols.len() < a.cols;
    let cuts_column = |block: &Block| !block.is_empty() && block.rows.len() < b.rows;
    Ok(a.shards(ranks)?.iter().any(cuts_row) || b.shards(ranks)?.iter().any(cuts_column))
}

/// A kernel takes matrices as its line says.
pub(crate) fn check_layout(spec: &SgemmSpec, lies: Option<GemmLayout>) -> Result<()> {
    match lies.filter(|lies| *lies != spec.layout) {
        None => Ok(()),
        Some(lies) => Err(impossible(
            format!("a product by `{spec}` of matrices that are stored as `{lies}`"),
            &format!(
                "its A and B are stored as `{}`: give them so, or take `layout: {lies}` into its line",
                spec.layout
            ),
        )),
    }
}

/// A kernel whose sums depend on the extents would give each part other bits than the whole.
fn check_divided(line: &str, spec: &SgemmSpec) -> Result<()> {
    match spec.depends_on_size() {
        None => Ok(()),
        Some(key) => Err(Error::World(WorldError::Divided { line: line.to_owned(), key })),
    }
}
