//! The whole book: a page for each stage, the front page and the glossary.

use super::glossary::TERMS;
use super::ideas::Idea;
use super::live::address;
use super::page::{self, Ladder, LadderRow, Link, UnitCell};
use super::report::Report;
use super::roofline::{self, Roofline};
use super::units::{Unit, UnitName};
use super::{compiler, ideas};
use crate::analysis::{Subject, report};
use crate::observation::{entries, internal};
use crate::times::{StageTimes, TimePoint};
use crate::{diff, times};
use gemm_bench::change::number;
use gemm_bench::cli::Failure;
use gemm_bench::family::Family;
use gemm_bench::table::percent;
use gemm_dsl::Plan as _;
use gemm_dsl::ir::Variant;
use gemm_dsl::plan::{KernelKind, SgemmPlan};
use gemm_dsl::stages::{self, Stage};
use gemm_runtime::{ReduceSpec, SgemmSpec};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Command that creates the book.
pub const COMMAND: &str = "ladder --html DIR";
/// Sizes at which the tables show measured rates: m = n = k of GEMMs, and elements of reductions.
const SHOWN: [u64; 2] = [4096, 1 << 28];
/// Amount of work to which bars refer, in multiply-adds of a GEMM or elements of a reduction.
const WORK: f64 = 1000.0;

/// Stage of either ladder, with its base and variants.
#[derive(Clone, Debug)]
struct LadderStage {
    ladder: &'static str,
    stem: String,
    title: String,
    family: Family,
    line: String,
    base: Option<u32>,
    index: u32,
    variant: Variant,
    /// Variant of the fallback, if the spec has one.
    fallback: Option<Variant>,
}

impl LadderStage {
    fn idea(&self) -> Option<&'static Idea> {
        // Stems start with the number of the stage.
        ideas::of_stage(self.ladder, self.stem.split_once('_').map_or("", |(_, name)| name))
    }
}

/// Renders all pages but the live one, by file name. `live` is the file name of the live page, if
/// it exists.
///
/// # Errors
/// Returns the error of a launch, or of a page that cannot be rendered.
pub fn pages(
    progress: &(dyn Fn(&str) + Sync),
    live: Option<&str>,
) -> Result<BTreeMap<String, String>, Failure> {
    let gather = |_: &str, _: u32, subject: &Subject| {
        let report = report(subject)?;
        progress(&report.title);
        Ok(Some(Arc::new(report)))
    };
    pages_of(&gather, live)
}

/// Stage with its report and page.
struct StagePage<'s> {
    step: &'s LadderStage,
    report: Arc<Report>,
    html: String,
}

/// Function that returns the report of a stage, given by ladder, number and subject. It returns
/// `None` to leave the stage out.
pub type ReportSource<'g> =
    dyn Fn(&'static str, u32, &Subject) -> Result<Option<Arc<Report>>, Failure> + Sync + 'g;

/// Renders all pages but the live one from the reports that `gather` returns.
///
/// # Errors
/// Returns the errors of [`pages`].
pub fn pages_of(
    gather: &ReportSource<'_>,
    live: Option<&str>,
) -> Result<BTreeMap<String, String>, Failure> {
    let [reduce, sgemm] = ladders()?;
    let all: Vec<&LadderStage> = reduce.iter().chain(&sgemm).collect();
    let made: Result<Vec<Option<StagePage<'_>>>, Failure> = all
        .par_iter()
        .map(|&step| {
            let ladder = if step.ladder == "reduce" { &reduce } else { &sgemm };
            let Some(report) = gather(step.ladder, step.index, &subject(step, ladder))? else {
                return Ok(None);
            };
            let html = page::kernel(&report, step.idea(), &links(step, ladder, live), COMMAND)?;
            Ok(Some(StagePage { step, report, html }))
        })
        .collect();
    let made: Vec<StagePage<'_>> = made?.into_iter().flatten().collect();
    let mut pages = BTreeMap::new();
    for StagePage { step, html, .. } in &made {
        pages.insert(file(step), html.clone());
    }
    let first_sgemm = made.partition_point(|page| page.step.ladder == "reduce");
    let (of_reduce, of_sgemm) = made.split_at(first_sgemm);
    let table = |id, title, steps: &[LadderStage], made: &[StagePage<'_>]| {
        let is_asked = |name: &UnitName| {
            made.iter().any(|page| page.report.units.iter().any(|unit| unit.name == *name))
        };
        let units: Vec<UnitName> = UnitName::ALL.into_iter().filter(is_asked).collect();
        let rows = made.iter().map(|page| row(page.step, steps, &page.report, &units));
        let stages = rows.collect::<Result<_, Failure>>()?;
        Ok::<_, Failure>(Ladder { id, title, units, stages, roofline: roofline(made) })
    };
    let ladders = vec![
        table("sgemm", "GEMMs, C = A·B", &sgemm, of_sgemm)?,
        table("reduce", "Reductions", &reduce, of_reduce)?,
    ];
    pages.insert("index.html".to_owned(), page::index(&ladders, live, COMMAND)?);
    pages.insert("glossary.html".to_owned(), page::glossary(&TERMS)?);
    Ok(pages)
}

/// Renders the page of one stage and returns it with its file name. `live` is the file of the live
/// page, if it exists.
///
/// # Errors
/// Returns the errors of [`pages`], or an error for an unknown stage.
pub fn page_of(ladder: &str, index: u32, live: Option<&str>) -> Result<(String, String), Failure> {
    let (step, steps) = find(ladder, index)?;
    let html = page::kernel(
        &report(&subject(&step, &steps))?,
        step.idea(),
        &links(&step, &steps, live),
        COMMAND,
    )?;
    Ok((file(&step), html))
}

/// Builds the report of one stage.
///
/// # Errors
/// Returns the errors of [`page_of`].
pub fn report_of(ladder: &str, index: u32) -> Result<Report, Failure> {
    let (step, steps) = find(ladder, index)?;
    report(&subject(&step, &steps))
}

/// Returns the stage with this number, and all stages of its ladder.
fn find(ladder: &str, index: u32) -> Result<(LadderStage, Vec<LadderStage>), Failure> {
    let missing = || Failure::Usage(format!("the ladder `{ladder}` has no stage {index}"));
    let mut ladders = ladders()?.into_iter();
    let steps = ladders.find(|steps| steps.iter().any(|step| step.ladder == ladder));
    let steps = steps.ok_or_else(missing)?;
    let step = steps.iter().find(|step| step.index == index).ok_or_else(missing)?.clone();
    Ok((step, steps))
}

/// Stages of both ladders, reductions first.
fn ladders() -> Result<[Vec<LadderStage>; 2], Failure> {
    let reduce = steps("reduce", Family::Reduce, &stages::reduce(), |spec: &ReduceSpec| {
        Ok(spec.plan()?.program()?.variants().map(|kernel| kernel.variant).collect())
    })?;
    let sgemm = steps("sgemm", Family::Sgemm, &stages::sgemm(), |spec: &SgemmSpec| {
        Ok(spec.plan()?.program()?.variants().map(|kernel| kernel.variant).collect())
    })?;
    Ok([reduce, sgemm])
}

fn steps<S: Clone + std::fmt::Display>(
    ladder: &'static str,
    family: Family,
    stages: &[Stage<S>],
    variants: impl Fn(&S) -> Result<Vec<Variant>, Failure>,
) -> Result<Vec<LadderStage>, Failure> {
    let step = |stage: &Stage<S>| {
        let mut variants = variants(&stage.spec)?.into_iter();
        Ok(LadderStage {
            ladder,
            stem: stage.stem(),
            title: format!("{} {}", stage.index, stage.name.replace('_', " ")),
            family,
            line: stage.spec.to_string(),
            base: stage.base,
            index: stage.index,
            variant: variants
                .next()
                .ok_or_else(|| Failure::from(internal("a program without a kernel")))?,
            fallback: variants.next(),
        })
    };
    stages.iter().map(step).collect()
}

fn file(step: &LadderStage) -> String {
    format!("{}_{}.html", step.ladder, step.stem)
}

/// Base of a stage. By default, this is the previous stage.
fn base_of<'s>(step: &LadderStage, ladder: &'s [LadderStage]) -> Option<&'s LadderStage> {
    match step.base {
        Some(base) => ladder.iter().find(|other| other.index == base),
        None => ladder.iter().rev().find(|other| other.index < step.index),
    }
}

fn subject(step: &LadderStage, ladder: &[LadderStage]) -> Subject {
    let base = base_of(step, ladder);
    let registers = |of: &LadderStage, variant| compiler::registers(of.ladder, &of.stem, variant);
    Subject {
        title: Some(step.title.clone()),
        line: step.line.clone(),
        base: base.map(|base| (base.title.clone(), base.line.clone())),
        registers: registers(step, step.variant),
        of_fallback: step.fallback.map_or(Vec::new(), |variant| registers(step, variant)),
        of_base: base.map_or(Vec::new(), |base| registers(base, base.variant)),
        times: times::times(step.ladder, &step.stem),
        ..Subject::new(step.family)
    }
}

fn links(step: &LadderStage, ladder: &[LadderStage], live: Option<&str>) -> Vec<Link> {
    let at = ladder.iter().position(|other| other.index == step.index).unwrap_or(0);
    let to = |other: &LadderStage, rel, what: &str| Link {
        href: file(other),
        rel: Some(rel),
        text: format!("{what}: {}", other.title),
    };
    let all = Link { href: "index.html".into(), rel: None, text: "All stages".into() };
    let glossary = Link { href: "glossary.html".into(), rel: None, text: "Glossary".into() };
    let before = at.checked_sub(1).and_then(|at| ladder.get(at));
    let before = before.map(|other| to(other, "prev", "Before"));
    let next = ladder.get(at + 1).map(|other| to(other, "next", "Next"));
    let change = live.map(|live| Link {
        href: format!("{live}{}", address(step.family.macro_name(), &step.line)),
        rel: None,
        text: "Change the spec".into(),
    });
    [Some(all), Some(glossary), before, next, change].into_iter().flatten().collect()
}

fn row(
    step: &LadderStage,
    ladder: &[LadderStage],
    report: &Report,
    units: &[UnitName],
) -> Result<LadderRow, Failure> {
    // Work and cycles are those of the measured size, so that no unit needs longer than the
    // measured time.
    let shown = report.measured.as_ref().and_then(|of| Some((of, at_shown_size(of)?)));
    let of_unit = |unit: &Unit| match shown {
        Some((measured, point)) => {
            let load = UnitName::ALL.iter().zip(point.load);
            let cycles = load.filter(|(name, _)| **name == unit.name).map(|(_, cycles)| cycles);
            cycles.sum::<f64>() * WORK / measured.work(point)
        }
        None => unit.cycles * WORK / report.work.max(1) as f64,
    };
    let most = report.units.iter().max_by(|a, b| of_unit(a).total_cmp(&of_unit(b)));
    let longest = most.map_or(0.0, of_unit);
    let is_once = shown.is_some() && has_no_tiles(step);
    let cell = |unit: &Unit| UnitCell {
        cycles: number(of_unit(unit)) + if unit.is_from_source { ", from source" } else { "" },
        percent: (100.0 * of_unit(unit) / longest).round() as u64,
        is_once: is_once && unit.name == UnitName::L2,
    };
    let of = |name: &UnitName| report.units.iter().find(|unit| unit.name == *name).map(cell);
    let base = base_of(step, ladder);
    let before = base.map(|base| entries(&base.line)).transpose()?;
    let own = entries(&step.line)?;
    let keys = match before {
        None => own.clone(),
        Some(before) => {
            let keys = diff::keys(&before, &own);
            let new = |key: diff::Key| match key.now.is_empty() {
                true => format!("without {}", key.before),
                false => key.now,
            };
            keys.into_iter().map(new).collect()
        }
    };
    let registers = report.residents.iter().find(|resident| resident.arch == "sm_90");
    Ok(LadderRow {
        href: file(step),
        title: step.title.clone(),
        base: base.map(|base| (file(base), base.title.clone())),
        keys,
        bound: most.map_or(String::new(), |unit| unit.name.to_string()),
        cells: units.iter().map(of).collect(),
        conflicts: number(report.wavefronts.conflicts as f64 * WORK / report.work.max(1) as f64),
        registers: registers.map_or("–".to_owned(), |resident| resident.registers.to_string()),
        measured: shown.map_or("not measured".to_owned(), |(of, point)| written(of, point)),
        entries: serde_json::Value::from(own).to_string(),
    })
}

/// True for a GEMM without tiles. Its counts at the measured size assume that a block requests each
/// element from L2 once, and that the L1 cache serves all other reads.
fn has_no_tiles(step: &LadderStage) -> bool {
    let plan = step.line.parse::<SgemmPlan>().ok().filter(|_| step.family == Family::Sgemm);
    plan.is_some_and(|plan| matches!(plan.kind(), KernelKind::Naive(_) | KernelKind::Direct(_)))
}

/// Roofline of a ladder at the size shown in the tables.
fn roofline(made: &[StagePage<'_>]) -> Option<Roofline> {
    let (mut stages, mut absent) = (Vec::new(), Vec::new());
    for StagePage { step, report, .. } in made {
        let shown = report.measured.as_ref().and_then(|of| Some((of, at_shown_size(of)?)));
        match shown {
            Some((measured, point)) => {
                let (index, title) = (step.index, &*step.title);
                stages.push(roofline::Stage { index, title, measured, point });
            }
            None => absent.push(step.title.clone()),
        }
    }
    roofline::roofline(&stages, absent)
}

/// Measurement at the size shown in the tables.
fn at_shown_size(measured: &StageTimes) -> Option<&TimePoint> {
    measured.points.iter().find(|point| SHOWN.contains(&point.n))
}

/// Formats the measured rate and its share of the roof.
fn written(measured: &StageTimes, point: &TimePoint) -> String {
    let share = point.share().map_or(String::new(), |share| format!(", {}", percent(share)));
    let before = measured
        .before
        .map_or(String::new(), |of| format!(" (with a kernel older than commit {of})"));
    format!("{} {}{share}{before}", times::rate(point.rate), measured.unit)
}
