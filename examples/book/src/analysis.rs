//! Analysis of a spec: builds a report from its launch on the simulator.

mod base;

use super::occupancy::{self, Registers};
use super::report::{Decision, Fallback, Report, UncompiledArch};
use super::steps::{self, Steps};
use super::{access, edges, memory, pipeline, source, sync, units};
use crate::fault::{self, FaultReport};
use crate::observation::{SampleShape, Spec, internal};
use crate::times::StageTimes;
use crate::{
    ablation, deviations, omissions, ownership, partials, raster, suggestion, summary, times, wgmma,
};
use base::{Base, Own};
use gemm_bench::cli::Failure;
use gemm_bench::family::Family;
use gemm_draw::counters::counted;
use gemm_draw::metrics;
use gemm_dsl::cuda;
use gemm_dsl::ir::VerifiedProgram;
use gemm_runtime::sim::SassCounters;
use gemm_runtime::sim::watch::Profile;

/// Spec of a report, with the base for comparison, compiler reports and measured times.
#[derive(Clone, Debug)]
pub struct Subject {
    pub family: Family,
    /// Title of the page. Defaults to the name of the kernel.
    pub title: Option<String>,
    pub line: String,
    /// Title and spec of the base for comparison.
    pub base: Option<(String, String)>,
    /// Compiler reports for the kernel. Empty if no compiler was run.
    pub registers: Vec<Registers>,
    /// Compiler reports for the fallback variant, if it exists.
    pub of_fallback: Vec<Registers>,
    /// Compiler reports for the base.
    pub of_base: Vec<Registers>,
    /// Reason for each missing compiler report.
    pub refused: Vec<UncompiledArch>,
    /// Times measured on the device.
    pub times: Vec<gemm_perf::csv::ProgramTime>,
}

impl Subject {
    /// Returns a subject with an empty spec.
    pub fn new(family: Family) -> Self {
        Self {
            family,
            title: None,
            line: String::new(),
            base: None,
            registers: Vec::new(),
            of_fallback: Vec::new(),
            of_base: Vec::new(),
            refused: Vec::new(),
            times: Vec::new(),
        }
    }
}

/// Maximum number of shown lines of the difference to the base.
const CHANGED: usize = 96;

/// Generates the program of a spec.
///
/// # Errors
/// Returns faults of the spec.
pub fn program(family: Family, line: &str) -> Result<VerifiedProgram, Failure> {
    Spec::parse(family, line)?.program()
}

/// Reports the fault of a kernel without the synchronisation at a line of its source.
///
/// # Errors
/// Returns the errors of [`report`]. Also returns an error if the line has no synchronisation, or
/// if this launch does not need the synchronisation.
pub fn without(subject: &Subject, line: usize) -> Result<FaultReport, Failure> {
    let spec = Spec::parse(subject.family, &subject.line)?;
    let looked = spec.look(spec.at()?)?;
    fault::without(subject.family.macro_name(), spec.line(), &looked, line)
}

/// Reports the fault of the unmodified kernel, or `None` if its launch has none.
///
/// # Errors
/// Returns the faults of the spec, or an error if a block is too large to simulate.
pub fn fault(subject: &Subject) -> Result<Option<FaultReport>, Failure> {
    let spec = Spec::parse(subject.family, &subject.line)?;
    match spec.failed(spec.at()?) {
        Some(failed) => failed.drawn(subject.family.macro_name(), spec.line()),
        None => Ok(None),
    }
}

/// Predicted instructions that belong to no statement.
fn of_no_line(profile: &Profile, total: &SassCounters) -> Option<u64> {
    let of_lines = profile.compiled_statements.iter().map(|of| of.instructions);
    Some(total.instructions? - of_lines.sum::<Option<u64>>()?)
}

fn decisions(spec: &Spec) -> Result<Vec<Decision>, Failure> {
    let decisions = spec.decisions().into_iter().map(|decided| Decision {
        name: decided.name.to_string(),
        value: decided.value,
        reason: decided.reason.to_string(),
    });
    Ok(decisions.collect())
}

fn fallback(spec: &Spec, subject: &Subject) -> Result<Option<Fallback>, Failure> {
    let fallback = spec.fallback()?.filter(|_| !subject.of_fallback.is_empty());
    Ok(fallback.map(|kernel| Fallback {
        variant: kernel.variant.to_string(),
        residents: occupancy::all(&kernel, &subject.of_fallback),
    }))
}

fn stage_times(spec: &Spec, subject: &Subject) -> Option<StageTimes> {
    match spec {
        Spec::Reduce(_) => times::reduction(&subject.times),
        Spec::Sgemm(plan) => times::product(&subject.times, times::extra_matrices(plan.spec())),
    }
}

/// Checks that the simulator can run the launch that a report describes. Call this quick check
/// before slow work such as compilation.
///
/// # Errors
/// Returns the faults of a spec. Returns an error if a block is too large to simulate, or if no
/// shape suits both the spec and its base.
pub fn check(subject: &Subject) -> Result<(), Failure> {
    let spec = Spec::parse(subject.family, &subject.line)?;
    shape(&spec, Base::new(subject)?.as_ref()).map(drop)
}

fn shape(spec: &Spec, base: Option<&Base<'_>>) -> Result<SampleShape, Failure> {
    base.map_or_else(|| spec.at(), |base| spec.at_beside(&base.spec))
}

/// Builds the report of a kernel.
///
/// # Errors
/// Returns the faults of the spec, an error if a block is too large to simulate, or the error of
/// the launch.
pub fn report(subject: &Subject) -> Result<Report, Failure> {
    let spec = Spec::parse(subject.family, &subject.line)?;
    let base = Base::new(subject)?;
    let at = shape(&spec, base.as_ref())?;
    let looked = spec.look(at)?;
    let listing = cuda::listing(&looked.kernel);
    let line = spec.line();
    let counters = counted(&looked.profile.total);
    let accesses = access::all(&looked.kernel, &listing.lines, &looked.trace);
    let accesses = suggestion::kept(&spec, accesses);
    let own = Own { spec: &spec, looked: &looked, text: &listing.text, accesses: &accesses };
    let compared = base.map(|base| base.compare(at, &own, &subject.of_base)).transpose()?;
    let (change, beside) = compared.unzip();
    let kernel = &looked.kernel;
    let named = ownership::named(&looked)?;
    let counts = looked.compiled()?;
    let fallback = fallback(&spec, subject)?;
    let memory = memory::traffic(&looked)?;
    let least = memory.operands;
    let folds = match subject.family {
        Family::Reduce => partials::partials(&looked, &listing)?,
        Family::Sgemm => None,
    };
    let (order, no_order) = match raster::block_order(&spec)? {
        Ok(order) => (Some(order), None),
        Err(why) => (None, Some(why)),
    };
    let steps = match spec.is_of_lists() {
        true => Steps::default(),
        false => steps::steps(kernel, &listing, &looked.trace, named.as_ref()),
    };
    let mut report = Report {
        family: subject.family.macro_name(),
        title: subject.title.clone().unwrap_or_else(|| kernel.name.clone()),
        kernel: kernel.name.clone(),
        variant: kernel.variant.to_string(),
        shape: looked.ran.shape.clone(),
        grid: looked.grid,
        threads: kernel.geometry.threads(),
        products: spec.products(),
        shared_bytes: kernel.shared_bytes(),
        decisions: decisions(&spec)?,
        answer: Vec::new(),
        memory,
        measured: stage_times(&spec, subject),
        work: looked.ran.work,
        units: units::load(&looked.profile.total, Some(counts), spec.bits(), least),
        wavefronts: units::wavefronts(&looked.profile.total, Some(counts)),
        compiled: metrics::predicted(counts, |quantity| deviations::reason(&kernel.name, quantity)),
        source: source::lines(kernel, &listing.text, &listing.lines, Some(&looked.profile)),
        of_no_line: of_no_line(&looked.profile, counts),
        accesses,
        residents: occupancy::all(kernel, &subject.registers),
        fallback,
        refused: subject.refused.clone(),
        ledger: ablation::ablations(subject.family, &spec, &line, spec.taken(at), &looked)?,
        pipelines: pipeline::all(kernel, &looked.trace),
        owners: named.as_ref().and_then(|named| ownership::ownership(kernel, named, &looked.trace)),
        steps,
        no_folds: (subject.family == Family::Reduce && folds.is_none()).then_some(partials::NONE),
        folds,
        tensor: wgmma::tiles(kernel, &looked.trace)
            .map_err(|why| internal(&format!("tensor-core instructions cannot be drawn: {why}")))?,
        edges: edges::edges(&spec, &looked, &listing)?,
        no_edges: edges::none(&spec),
        order,
        undrawn: Vec::new(),
        syncs: sync::trials(&looked, &listing)?,
        counters,
        change,
        beside: beside.unwrap_or_default(),
        line,
    };
    report.undrawn = omissions::omissions(&spec, &report, no_order);
    report.answer = summary::sentences(&report, &looked.profile.total);
    Ok(report)
}
