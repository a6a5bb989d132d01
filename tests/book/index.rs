//! The tables of the front page agree with the reports.

use crate::html::{all, attribute, parse, text};
use crate::{is_tested, page, report_of};
use gemm_book::report::Report;
use gemm_book::units::{DEVICE, Unit, UnitName};
use gemm_dsl::plan::KernelKind;
use gemm_dsl::stages;
use libtest_mimic::Failed;
use markup5ever_rcdom::Handle;

/// Stages whose rows are checked number by number: one without conflicts, one with conflicts, and
/// one with tensor cores.
const STAGES: [(&str, u32); 3] = [("reduce", 6), ("sgemm", 9), ("sgemm", 39)];

/// Sizes at which stages are shown: GEMMs and reductions.
const SHOWN: [u64; 2] = [4096, 1 << 28];

/// Number of columns before the units' columns: the changes, and the bottleneck.
const BEFORE: usize = 2;

/// Mark on a number that assumes L1 cache hits.
const ONCE: &str = " †";

/// Row with its stage, its named unit, and the bar and cycles of each unit in use.
struct Row {
    stage: String,
    named: String,
    bars: Vec<(String, u64, String)>,
    conflicts: String,
    measured: String,
}

/// In each row, the longest bar belongs to the unit that is named as the bottleneck.
pub fn names_the_longest_bar() -> Result<(), Failed> {
    let rows = rows()?;
    let products = stages::sgemm().into_iter().filter(|of| is_tested("sgemm", of.index));
    let stages = stages::reduce().len() + products.count();
    if rows.len() != stages {
        return Err(format!("{} rows of {stages} stages", rows.len()).into());
    }
    for Row { stage, named, bars, .. } in &rows {
        let longest = bars.iter().map(|(_, percent, _)| *percent).max();
        let own = bars.iter().find(|(unit, ..)| unit == named).map(|(_, percent, _)| *percent);
        if own != Some(100) || own != longest {
            return Err(format!("{stage}: {named} has {own:?}, the longest bar {longest:?}").into());
        }
    }
    if !rows.iter().any(|row| row.named == "tensor cores") {
        return Err("no stage is bound by tensor cores".into());
    }
    Ok(())
}

/// Cycles and conflicts per 1,000 multiply-adds or elements agree with the report. Cycles are those
/// at the measured size.
pub fn says_what_reports_do() -> Result<(), Failed> {
    let rows = rows()?;
    for (ladder, stage) in STAGES {
        let report = report_of(ladder, stage)?;
        let row = rows.iter().find(|row| row.stage == report.title).ok_or("a row")?;
        let expected: Vec<(String, String)> = report
            .units
            .iter()
            .map(|unit| (unit.name.to_string(), of_the_size(&report, unit)))
            .collect();
        let found = |unit: &str| row.bars.iter().find(|(of, ..)| of == unit);
        for (unit, cycles) in &expected {
            if found(unit).map(|(.., found)| found) != Some(cycles) {
                return Err(format!("{}: {unit}, {cycles}: {:?}", report.title, row.bars).into());
            }
        }
        let conflicts = of_a_thousand(&report, report.wavefronts.conflicts as f64);
        if row.bars.len() != expected.len() || row.conflicts != conflicts {
            return Err(format!("{}: {} conflicts", report.title, row.conflicts).into());
        }
    }
    Ok(())
}

/// Cycles of a unit at the size in the tables, or in the small launch for a stage without
/// measurements.
fn of_the_size(report: &Report, unit: &Unit) -> String {
    let measured = report.measured.as_ref();
    let shown = measured.and_then(|of| of.points.iter().find(|point| SHOWN.contains(&point.n)));
    let Some(point) = shown else { return of_a_thousand(report, unit.cycles) };
    let cycles = point.load[UnitName::ALL.iter().position(|of| *of == unit.name).unwrap_or(0)];
    let work = if point.n == SHOWN[0] { (point.n as f64).powi(3) } else { point.n as f64 };
    gemm_bench::change::number(1000.0 * cycles / work)
}

/// No unit is busy longer than the measured time in the same row.
pub fn no_bar_is_beyond_the_time_beside_it() -> Result<(), Failed> {
    let (rows, mut count) = (rows()?, 0);
    for Row { stage, bars, measured, .. } in &rows {
        let mut words = measured.split(' ');
        let Some(rate) = words.next().and_then(|rate| rate.parse::<f64>().ok()) else { continue };
        // Operations of 1,000 multiply-adds, or bytes of 1,000 elements.
        let work = if words.next() == Some("TFLOP/s,") { 2000.0 } else { 4000.0 };
        let most = work / (rate * 1e12) * DEVICE.hertz() * f64::from(DEVICE.sms);
        for (unit, _, cycles) in bars {
            let cycles = cycles.trim_end_matches(", from source").trim_end_matches(ONCE);
            let cycles: f64 = cycles.replace(',', "").parse()?;
            // Both are printed with three digits.
            if cycles > 1.02 * most {
                return Err(format!("{stage}: {unit} {cycles} of {most}, {measured}").into());
            }
            count += 1;
        }
    }
    if count < 3 * rows.len() { Err(format!("{count} bars").into()) } else { Ok(()) }
}

/// L2 numbers of kernels without tiles are marked, and the mark links to its explanation.
pub fn says_where_a_cache_is_taken_for_granted() -> Result<(), Failed> {
    let mut marked = Vec::new();
    for Row { stage, bars, .. } in rows()? {
        let of_row: Vec<&str> = bars
            .iter()
            .filter(|(.., said)| said.ends_with(ONCE))
            .map(|(unit, ..)| &**unit)
            .collect();
        match &of_row[..] {
            [] => {}
            ["L2 cache"] => marked.push(stage),
            others => return Err(format!("{stage}: {others:?}").into()),
        }
    }
    let mut expected = Vec::new();
    for stage in stages::sgemm().into_iter().filter(|of| is_tested("sgemm", of.index)) {
        if matches!(stage.spec.plan()?.kind(), KernelKind::Naive(_) | KernelKind::Direct(_)) {
            expected.push(format!("{} {}", stage.index, stage.name.replace('_', " ")));
        }
    }
    if marked != expected || marked.len() < 2 {
        return Err(format!("{marked:?} instead of {expected:?}").into());
    }
    let dom = parse(page("index.html")?);
    let note = all(&dom.document, "p")
        .into_iter()
        .find(|p| attribute(p, "id").as_deref() == Some("sgemm-once"));
    let note = note.map(|note| text(&note)).ok_or("no note")?;
    if note.starts_with(ONCE.trim()) { Ok(()) } else { Err(note.into()) }
}

fn of_a_thousand(report: &Report, count: f64) -> String {
    gemm_bench::change::number(1000.0 * count / report.work as f64)
}

fn rows() -> Result<Vec<Row>, Failed> {
    let dom = parse(page("index.html")?);
    let is_ladder = |of: &Handle| attribute(of, "class").as_deref() == Some("ladder");
    let tables: Vec<Handle> = all(&dom.document, "table").into_iter().filter(is_ladder).collect();
    let mut rows = Vec::new();
    for table in &tables {
        let units: Vec<String> = all(table, "th")
            .iter()
            .filter(|th| attribute(th, "class").is_some_and(|class| class.ends_with("unit")))
            .map(text)
            .collect();
        for row in all(table, "tr").iter().skip(1) {
            rows.push(of_row(row, &units).ok_or_else(|| format!("a row: {}", text(row)))?);
        }
    }
    Ok(rows)
}

fn of_row(row: &Handle, units: &[String]) -> Option<Row> {
    let cells = all(row, "td");
    let bar = |(unit, cell): (&String, &Handle)| {
        let meter = all(cell, "meter").into_iter().next()?;
        let cycles = text(cell);
        // The cycles follow the bar, whose own text is for screen readers.
        let cycles = cycles.strip_prefix(&text(&meter))?.trim().to_owned();
        Some((unit.clone(), attribute(&meter, "value")?.parse().ok()?, cycles))
    };
    Some(Row {
        stage: text(all(row, "th").first()?),
        named: text(cells.get(BEFORE - 1)?),
        bars: units.iter().zip(&cells[BEFORE..]).filter_map(bar).collect(),
        conflicts: text(cells.get(BEFORE + units.len())?),
        measured: text(cells.last()?),
    })
}
