//! Selection of the schedule and kernel for a GEMM.

use super::error::impossible;
use super::{
    Block, ClusterModel, Distribution, Distributions, Estimate, Factor, Place, Schedule,
    ScheduleChoice, ScheduleFault, Step, Strategy, VerifiedSchedule, WorldError,
};
use crate::staging::StagingBuffers;
use crate::transposition::Transposition;
use crate::{Error, Result};
use gemm_dsl::spec::{Epilogue, GemmLayout, Lanes, Pairs, SgemmSpec};
use gemm_runtime::internal::CachedProgram;
use std::fmt;
use std::sync::Arc;

#[derive(Clone, Copy)]
pub(crate) struct ProductRequest<'a> {
    /// Spec of a kernel, or of a table's rule.
    pub(crate) line: &'a str,
    /// True for a spec of a table. Such a spec is compiled for any matrix strides.
    pub(crate) is_from_table: bool,
    /// Distributions of A, B and C as stored.
    pub(crate) distributions: [&'a Distribution; 3],
    /// Options set by the caller.
    pub(crate) said: CallOptions,
}

/// Options set by the caller: layout and strategy.
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

/// Cached request for a GEMM, with its selection.
pub(crate) struct CachedGemm {
    asked_line: String,
    asked_layouts: [Distribution; 3],
    said: CallOptions,
    pub(crate) is_from_table: bool,
    pub(crate) spec: SgemmSpec,
    /// Text of `spec`, shown to users.
    pub(crate) line: String,
    pub(crate) transposition: Transposition,
    /// Texts that must be equal on all ranks: the GEMM, and everything else that determines the
    /// schedule and the bits, except scalar operands.
    pub(crate) texts: [String; 2],
    machine: ClusterModel,
    /// Limit in bytes on each rank's memory beside its shards.
    memory: Option<u64>,
    /// Selection, once all ranks have agreed.
    pub(crate) picked: Option<Selection>,
    /// Programs for packed and for padded parts, compiled by an earlier call.
    pub(crate) kernels: Option<[Arc<CachedProgram>; 2]>,
    /// True if this rank has loaded everything it launches for the GEMM.
    pub(crate) is_loaded: bool,
}

/// Selected schedule, with the alternatives and the predicted time.
#[derive(Clone)]
pub(crate) struct Selection {
    pub(crate) schedule: Arc<VerifiedSchedule>,
    pub(crate) chosen: Option<Arc<ScheduleChoice>>,
    pub(crate) estimate: Estimate,
    /// True if the ranks ask each other for unrepresentable values only after all data has arrived.
    pub(crate) asks_late: bool,
}

impl CachedGemm {
    /// Prepares a request before the ranks have agreed on it.
    pub(crate) fn new(
        asked: &ProductRequest<'_>,
        machine: &ClusterModel,
        memory: Option<u64>,
    ) -> Result<Self> {
        let ProductRequest { line, is_from_table, distributions: [a, b, c], said } = *asked;
        let mut spec: SgemmSpec = line.parse()?;
        if is_from_table {
            // The spec for packed matrices. Padded parts use a variant of this spec, which
            // `kernels` chooses.
            spec = spec.for_matrices(said.lies.unwrap_or(GemmLayout::Nn), false);
        }
        let (asked_line, line, transposition) =
            (line.to_owned(), spec.to_string(), Transposition::from_spec(&spec));
        let machine = machine.computing(&spec);
        let texts = [
            format!("`{line}` of A {a}, B {b}, C {c}{said}"),
            format!("{is_from_table} {memory:?} {machine:?}"),
        ];
        Ok(Self {
            asked_line,
            asked_layouts: [a, b, c].map(Distribution::clone),
            said,
            is_from_table,
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
        let ProductRequest { line, is_from_table, distributions, said } = asked;
        (self.asked_line.as_str(), self.is_from_table, self.said) == (*line, *is_from_table, *said)
            && self.asked_layouts.iter().eq(*distributions)
    }

    /// Returns true if a rank's staging buffers suffice. No memory may be allocated while another
    /// GPU waits for data from this one.
    pub(crate) fn has_staging(&self, staging: &StagingBuffers, rank: usize) -> bool {
        self.picked.as_ref().is_some_and(|Selection { schedule, .. }| {
            let mut rooms = schedule.staging()[rank].iter();
            rooms.all(|room| staging.has((room.factor, room.place), room.len))
        })
    }

    /// Returns the selection for the GEMM on which all ranks have agreed.
    pub(crate) fn selection(&mut self, ranks: usize) -> Result<Selection> {
        if let Some(picked) = &self.picked {
            return Ok(picked.clone());
        }
        let Self { spec, line, transposition, said, .. } = &*self;
        check_layout(spec, said.lies)?;
        check_divided(line, spec)?;
        check_whole_rows(line, spec)?;
        let [a, b, c] = &self.asked_layouts;
        let distributions = transposition.distributions(a, b, c);
        // With the sequential strategy, nothing is multiplied before all data has arrived.
        let asks_late = asks_late(spec, &distributions, ranks)?;
        let strategy = if asks_late { Some(Strategy::Sequential) } else { said.strategy };
        let (schedule, chosen) = self.schedule(distributions, ranks, strategy)?;
        let estimate = schedule.estimate(&self.machine);
        let (schedule, chosen) = (Arc::new(schedule), chosen.map(Arc::new));
        let picked = Selection { schedule, chosen, estimate, asks_late };
        Ok(self.picked.insert(picked).clone())
    }

    /// Selects the schedule: the one with the caller's strategy, or the one with the shortest
    /// predicted time. For a kernel that cannot take padded matrices, the schedule must not have
    /// any.
    fn schedule(
        &self,
        distributions: Distributions,
        ranks: usize,
        strategy: Option<Strategy>,
    ) -> Result<(VerifiedSchedule, Option<ScheduleChoice>), WorldError> {
        let Self { transposition, machine, memory, .. } = self;
        let takes_pitches = self.spec.pitched || self.is_from_table || sums_alike(&self.spec);
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

/// Renames a matrix in a fault if its transpose is stored.
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

/// Returns true if some rank multiplies a matrix whose stored rows are padded: a block of columns
/// of its C, or a part of a wider A or B.
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
                    // A slot may contain more than one step uses. It has the row stride of the
                    // received block.
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

/// Returns true if adding `pitched` does not change the kernel's bits.
pub(crate) fn sums_alike(spec: &SgemmSpec) -> bool {
    spec.lanes != Lanes::K && spec.partials <= 1 && spec.slices <= 1
}

/// Returns true if the splits depend on whole rows of A and whole columns of B, and some rank has
/// only parts of them. A rank then knows whether its splits represent all values only after all its
/// data has arrived.
fn asks_late(
    spec: &SgemmSpec,
    distributions: &Distributions,
    ranks: usize,
) -> Result<bool, WorldError> {
    if !(spec.falls_back_as_a_whole() && spec.arith.is_scaled()) {
        return Ok(false);
    }
    let Distributions { a, b, .. } = distributions;
    let cuts_row = |block: &Block| !block.is_empty() && block.cols.len() < a.cols;
    let cuts_column = |block: &Block| !block.is_empty() && block.rows.len() < b.rows;
    Ok(a.shards(ranks)?.iter().any(cuts_row) || b.shards(ranks)?.iter().any(cuts_column))
}

/// Checks that the requested layout is the kernel's.
pub(crate) fn check_layout(spec: &SgemmSpec, lies: Option<GemmLayout>) -> Result<()> {
    match lies.filter(|lies| *lies != spec.layout) {
        None => Ok(()),
        Some(lies) => Err(impossible(
            format!("the kernel `{spec}` for matrices stored as `{lies}`"),
            &format!(
                "it needs A and B stored as `{}`. Pass them in this layout, or add `layout: \
                 {lies}` to the spec",
                spec.layout
            ),
        )),
    }
}

/// Rejects epilogues that fold rows of C or compute pairs of columns, because ranks may have only
/// parts of them.
fn check_whole_rows(line: &str, spec: &SgemmSpec) -> Result<()> {
    if spec.pairs() != Pairs::None {
        return Err(impossible(
            format!("`{line}`"),
            "its epilogue computes pairs of columns, of which a rank may have only one. Compute \
             the pairs after the GEMM, or launch the kernel on one device",
        ));
    }
    match spec.epilogue.as_ref().is_some_and(Epilogue::folds_rows) {
        false => Ok(()),
        true => Err(impossible(
            format!("`{line}`"),
            "its epilogue folds the rows of C, of which a rank may have only a part. Fold C after \
             the GEMM, or launch the kernel on one device",
        )),
    }
}

/// Rejects a kernel whose order of summation depends on the extents, because a part would have
/// other bits than the same elements of the whole GEMM.
fn check_divided(line: &str, spec: &SgemmSpec) -> Result<()> {
    match spec.depends_on_size() {
        None => Ok(()),
        Some(key) => Err(Error::World(WorldError::Divided { line: line.to_owned(), key })),
    }
}
