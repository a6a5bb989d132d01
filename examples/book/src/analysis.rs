//! Launches a spec on the simulator, looks on, and makes a report of what was seen.

mod base;
mod recorder;

use super::occupancy::{self, Registers};
use super::report::{Decision, Fallback, Report, UncompiledArch};
use super::steps::{self, Steps};
use super::{access, edges, memory, pipeline, source, sync, units};
use crate::diff::Counts;
use crate::fault::{self, FaultReport};
use crate::times::StageTimes;
use crate::{
    ablation, deviations, omissions, ownership, partials, raster, suggestion, summary, times, wgmma,
};
use base::{Base, Own};
use gemm_bench::cli::Failure;
use gemm_bench::epilogue::few;
use gemm_bench::family::Family;
use gemm_bench::products::Products;
use gemm_bench::sample;
use gemm_bench::sample::{Arrays, SampleLaunch};
pub(super) use gemm_draw::counters::counted;
use gemm_draw::metrics;
use gemm_dsl::Plan as _;
use gemm_dsl::ir::VerifiedProgram;
use gemm_dsl::plan::{Decision as Decided, ReducePlan, SgemmPlan};
use gemm_dsl::spec::Instruction;
use gemm_dsl::{cuda, parse};
use gemm_oracle::product::Size;
use gemm_runtime::watch::{Arguments, Profile, Trace, VerifiedKernel};
use gemm_runtime::{Device, Error, SassCounters};
use recorder::{Recorder, Recording};
use std::sync::Arc;

/// What a report is made of.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Which macro makes it.
    pub family: Family,
    /// What it is called; its kernel's name without it.
    pub title: Option<String>,
    /// The spec.
    pub line: String,
    /// What it is compared with: what that is called, and its spec.
    pub base: Option<(String, String)>,
    /// What the compiler has said of it, where it was asked.
    pub registers: Vec<Registers>,
    /// What it has said of the kernel that stands in for this one, if one does.
    pub of_fallback: Vec<Registers>,
    /// And of what it is compared with.
    pub of_base: Vec<Registers>,
    /// Why it has not, where it was asked.
    pub refused: Vec<UncompiledArch>,
    /// How long it took on the device that was measured.
    pub times: Vec<gemm_perf::csv::ProgramTime>,
}

impl Subject {
    /// Of a family, with a spec that has no keys yet.
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

/// A spec of either family, with its plan.
#[derive(Clone, Debug)]
pub(super) enum Spec {
    Reduce(Box<ReducePlan>),
    Sgemm(Box<SgemmPlan>),
}

/// A shape that a spec is simulated at.
#[derive(Clone, Copy, Debug)]
pub(super) enum SampleShape {
    Arrays(Arrays),
    Products(Products),
    /// Of as few products as a spec takes.
    Size(Size),
}

/// So many lines of what has changed of a text are shown.
const CHANGED: usize = 96;

/// How many blocks are looked on at: all of a grid.
const ALL: fn([u32; 3]) -> u32 = |grid| grid.iter().product();

/// A launch that was looked on at.
pub(super) struct Observation {
    pub(super) kernel: VerifiedKernel,
    pub(super) grid: [u32; 3],
    pub(super) profile: Profile,
    pub(super) trace: Trace,
    pub(super) arguments: Arguments,
    pub(super) ran: SampleLaunch,
}

impl Spec {
    pub(super) fn parse(family: Family, line: &str) -> Result<Self, Failure> {
        Ok(match family {
            Family::Reduce => Self::Reduce(Box::new(line.parse()?)),
            Family::Sgemm => Self::Sgemm(Box::new(line.parse()?)),
        })
    }

    fn line(&self) -> String {
        match self {
            Self::Reduce(plan) => plan.spec().to_string(),
            Self::Sgemm(plan) => plan.spec().to_string(),
        }
    }

    fn decisions(&self) -> Vec<Decided> {
        match self {
            Self::Reduce(plan) => plan.decisions(),
            Self::Sgemm(plan) => plan.decisions(),
        }
    }

    /// The kernel that stands in for the preferred one, if there is one.
    fn fallback(&self) -> Result<Option<VerifiedKernel>, Failure> {
        Ok(self.program()?.variants().nth(1).cloned())
    }

    fn program(&self) -> Result<VerifiedProgram, Failure> {
        Ok(match self {
            Self::Reduce(plan) => plan.program()?,
            Self::Sgemm(plan) => plan.program()?,
        })
    }

    /// Where it is simulated.
    pub(super) fn at(&self) -> Result<SampleShape, Failure> {
        let shape = match self {
            Self::Reduce(plan) => sample::arrays(plan).map(SampleShape::Arrays),
            Self::Sgemm(plan) => sample::products(plan).map(SampleShape::Products),
        };
        shape.map_err(Failure::Usage)
    }

    /// Where it is simulated beside another one: at a shape that both take.
    fn at_beside(&self, other: &Self) -> Result<SampleShape, Failure> {
        match (self, other) {
            (Self::Sgemm(own), Self::Sgemm(other)) => {
                let products = sample::products_of_both(own, other);
                products.map(SampleShape::Products).map_err(Failure::Usage)
            }
            _ => self.at(),
        }
    }

    /// Rows and columns of the tile of a block of a product.
    pub(super) fn block_tile(&self) -> Option<(u32, u32)> {
        match self {
            Self::Reduce(_) => None,
            Self::Sgemm(plan) => Some(plan.block_tile()),
        }
    }

    /// Rows and columns of the tile of a cluster of blocks, and the terms of one of K, of a product.
    pub(super) fn cluster_tile(&self) -> ([usize; 2], usize) {
        match self {
            Self::Reduce(_) => ([1; 2], 1),
            Self::Sgemm(plan) => {
                let (rows, columns) = plan.block_tile();
                let rows = rows * plan.spec().cluster;
                ([rows, columns].map(|of| of as usize), plan.depth() as usize)
            }
        }
    }

    /// Bits of what tensor cores multiply, if they do.
    fn bits(&self) -> Option<u32> {
        match self {
            Self::Reduce(_) => None,
            Self::Sgemm(plan) => plan.spec().arith.format().map(|format| format.bits()),
        }
    }

    /// Few terms of which its kernel makes a product: none, but for one that reads boxes, of which none is empty, those of a tile.
    pub(super) fn few_terms(&self) -> usize {
        match self {
            Self::Sgemm(plan) if plan.spec().mma == Instruction::Wgmma => plan.depth() as usize,
            _ => 0,
        }
    }

    /// Bytes of a number of A or of B as the kernel of a product reads it: of its planes, where some are made.
    pub(super) fn bytes_of_number(&self) -> u64 {
        match self {
            Self::Sgemm(plan) if plan.spec().mma == Instruction::Wgmma => {
                let arith = plan.spec().arith;
                let bits = arith.format().map_or(32, |format| format.bits());
                u64::from(arith.planes() * bits / 8)
            }
            _ => 4,
        }
    }

    fn launch(&self, at: SampleShape, device: &Device) -> Result<SampleLaunch, Failure> {
        match (self, self.taken(at)) {
            (Self::Reduce(plan), SampleShape::Arrays(arrays)) => {
                sample::reduce(plan.spec(), arrays, device)
            }
            (Self::Sgemm(plan), SampleShape::Products(products)) => {
                sample::product(plan.spec(), products, device)
            }
            (Self::Sgemm(plan), SampleShape::Size(size)) => {
                sample::product(plan.spec(), few(plan, size), device)
            }
            _ => Err(internal("a shape of the other family").into()),
        }
    }

    /// What one launch takes of a shape: of several products one, where it is of no batch.
    fn taken(&self, at: SampleShape) -> SampleShape {
        match (self, at) {
            (Self::Sgemm(plan), SampleShape::Products(Products { size, .. }))
                if plan.batch().is_none() =>
            {
                SampleShape::Products(Products::single(size))
            }
            _ => at,
        }
    }

    /// Launches for all of a shape: one, but as many as there are products where it is of no batch.
    fn launches(&self, at: SampleShape) -> usize {
        match (self, at) {
            (Self::Sgemm(plan), SampleShape::Products(products)) if plan.batch().is_none() => {
                products.count()
            }
            _ => 1,
        }
    }

    /// Products that a block computes; 1 of a reduction.
    fn products(&self) -> u32 {
        match self {
            Self::Reduce(_) => 1,
            Self::Sgemm(plan) => plan.products(),
        }
    }

    /// Launches it, and looks on at the first block of the kernel that does most.
    pub(super) fn look(&self, at: SampleShape) -> Result<Observation, Failure> {
        let seen = self.watched(at, Recorder::new(|_| 1))?;
        let (looked, _) = seen.ok_or_else(|| internal("the main launch was not seen"))?;
        Ok(looked)
    }

    /// The same of all blocks: with what happened in those behind the first.
    pub(super) fn look_at_all(
        &self,
        at: SampleShape,
    ) -> Result<(Observation, Vec<Trace>), Failure> {
        let seen = self.watched(at, Recorder::new(ALL))?;
        Ok(seen.ok_or_else(|| internal("the main launch was not seen"))?)
    }

    /// The same of the kernel that it prefers, whether or not that does most; none where it is not launched.
    pub(super) fn look_at_preferred(
        &self,
        at: SampleShape,
    ) -> Result<Option<(Observation, Vec<Trace>)>, Failure> {
        let name = self.program()?.preferred().name.clone();
        self.watched(at, Recorder::new(ALL).at(name))
    }

    fn watched(
        &self,
        at: SampleShape,
        eye: Recorder,
    ) -> Result<Option<(Observation, Vec<Trace>)>, Failure> {
        let eye = Arc::new(eye);
        let ran = self.launch(at, &eye.device())?;
        Ok(eye.seen().map(|Recording { kernel, grid, profile, trace, others, arguments }| {
            (Observation { kernel, grid, profile, trace, arguments, ran }, others)
        }))
    }

    /// Launches it, and draws the fault of the kernel that comes to one.
    fn fault(&self, family: Family, at: SampleShape) -> Result<Option<FaultReport>, Failure> {
        let eye = Arc::new(Recorder::new(|_| 1));
        match (self.launch(at, &eye.device()), eye.failed()) {
            (Err(_), Some(failed)) => failed.drawn(family.macro_name(), self.line()),
            _ => Ok(None),
        }
    }

    /// What is counted of it at a shape, of all its launches.
    pub(super) fn counts(&self, at: SampleShape) -> Result<Counts, Failure> {
        let ran = self.launch(at, &Device::simulator_compiled())?;
        let (text, compiled) = sample::compiled_of_main(&ran.launched)?;
        Ok(Counts { text: *text, compiled: *compiled }.times(self.launches(at)))
    }
}

/// The instructions that a launch may execute which does what another one has done.
const INSTRUCTIONS: u64 = 1 << 36;

impl Observation {
    /// What was counted of it.
    pub(super) fn counts(&self) -> Result<Counts, Failure> {
        Ok(Counts { text: self.profile.total, compiled: *self.compiled()? })
    }

    /// What its first block does when it runs once more, with other elements in the same arrays.
    pub(super) fn again(&self, arguments: &Arguments) -> Result<Option<Trace>, Failure> {
        let replay = arguments.replay(&self.kernel, &[0], INSTRUCTIONS).map_err(Error::from)?;
        replay.ran.map_err(Error::from)?;
        Ok(replay.traces.into_iter().next())
    }

    /// What the profiler would count of it.
    pub(super) fn compiled(&self) -> Result<&SassCounters, Failure> {
        let compiled = self.profile.compiled.as_ref();
        Ok(compiled.ok_or_else(|| internal("the launch was not counted as compiled"))?)
    }
}

pub(super) fn internal(what: &str) -> Error {
    Error::Internal(what.to_owned())
}

/// The entries of a line, each as it is written.
pub(super) fn entries(line: &str) -> Result<Vec<String>, Failure> {
    let entries = parse::entries(line)?;
    Ok(entries.into_iter().map(|alternatives| alternatives.join(" | ")).collect())
}

/// The program of a line.
///
/// # Errors
/// Faults of the spec.
pub fn program(family: Family, line: &str) -> Result<VerifiedProgram, Failure> {
    Spec::parse(family, line)?.program()
}

/// Draws what becomes of a kernel without the synchronisation at a line of its text.
///
/// # Errors
/// As those of [`report`], a line without a synchronisation, and one that the launch does not need.
pub fn without(subject: &Subject, line: usize) -> Result<FaultReport, Failure> {
    let spec = Spec::parse(subject.family, &subject.line)?;
    let looked = spec.look(spec.at()?)?;
    fault::without(subject.family.macro_name(), spec.line(), &looked, line)
}

/// Draws the fault that the launch of a spec comes to by itself; nothing of one that comes to none.
///
/// # Errors
/// Faults of the spec, and a block that is too large to simulate.
pub fn fault(subject: &Subject) -> Result<Option<FaultReport>, Failure> {
    let spec = Spec::parse(subject.family, &subject.line)?;
    spec.fault(subject.family, spec.at()?)
}

/// The instructions as compiled that are no statement's.
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
        Spec::Sgemm(plan) => times::product(&subject.times, times::matrices_beside(plan.spec())),
    }
}

/// Makes the report of a kernel.
///
/// # Errors
/// Faults of the spec, a block that is too large to simulate, and what the launch finds.
pub fn report(subject: &Subject) -> Result<Report, Failure> {
    let spec = Spec::parse(subject.family, &subject.line)?;
    let base = Base::new(subject)?;
    let at = base.as_ref().map_or_else(|| spec.at(), |base| spec.at_beside(&base.spec))?;
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
        units: units::asked(&looked.profile.total, Some(counts), spec.bits(), least),
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
            .map_err(|why| internal(&format!("what tensor cores do cannot be drawn: {why}")))?,
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
