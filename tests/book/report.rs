//! Statements of a report agree with its counts, and drawings agree with statements.

use crate::{is_tested, report_of};
use gemm_bench::family::Family;
use gemm_book::access::Access;
use gemm_book::analysis;
use gemm_book::analysis::Subject;
use gemm_book::report::{Counter, Report};
use gemm_book::times::TimePoint;
use gemm_book::units::Wavefronts;
use gemm_runtime::sim::SassCounters;
use libtest_mimic::Failed;
use std::collections::BTreeSet;

/// Stages of both ladders that cover conflicts, vectors, copies, roles, tree segments and device
/// functions.
const STAGES: [(&str, u32); 18] = [
    ("reduce", 0),
    ("reduce", 1),
    ("reduce", 6),
    ("reduce", 8),
    ("reduce", 10),
    ("sgemm", 1),
    ("sgemm", 6),
    ("sgemm", 7),
    ("sgemm", 9),
    ("sgemm", 14),
    ("sgemm", 16),
    ("sgemm", 22),
    ("sgemm", 25),
    ("sgemm", 27),
    ("sgemm", 28),
    ("sgemm", 32),
    ("sgemm", 34),
    ("sgemm", 39),
];

/// GEMMs whose warps have much work after their K loop. They write partial sums, add the partial
/// sums of other blocks, or multiply in parts.
const LONG_ENDS: [u32; 3] = [22, 32, 36];
/// Stage whose blocks have a single tile each, without a loop that loads tiles.
const OF_ONE_TILE: (&str, u32) = ("sgemm", 31);

/// The rounds in a report are those of the loop that loads tiles, and the tile of each round is
/// read.
pub fn rounds_are_of_the_loop_along_k() -> Result<(), Failed> {
    for stage in LONG_ENDS.into_iter().filter(|stage| is_tested("sgemm", *stage)) {
        let steps = &report_of("sgemm", stage)?.steps;
        let reads =
            steps.rounds.iter().filter(|round| round.slots.iter().any(|slot| slot.read.is_some()));
        if steps.var != "k0" || reads.count() < 2 {
            return Err(format!("stage {stage}: {} {:?}", steps.var, steps.rounds).into());
        }
    }
    let none = report_of(OF_ONE_TILE.0, OF_ONE_TILE.1)?;
    if none.steps.rounds.is_empty() { Ok(()) } else { Err(format!("{:?}", none.steps).into()) }
}

/// Maximum number of instructions per warp that belong to no line.
const MOST_OF_NO_LINE: u64 = 16;

pub fn adds_up() -> Result<(), Failed> {
    for (ladder, stage) in STAGES.into_iter().filter(|(ladder, stage)| is_tested(ladder, *stage)) {
        let report = report_of(ladder, stage)?;
        lines(&report)?;
        compiled(&report)?;
        conflicts(&report)?;
        for access in &report.accesses {
            drawn(access).map_err(|wrong| format!("{}, {access:?}: {wrong}", report.title))?;
        }
        // Among reductions, only those of whole arrays are measured.
        let points: Vec<TimePoint> =
            report.measured.iter().flat_map(|of| of.points.clone()).collect();
        if points.is_empty() && ladder == "sgemm" {
            return Err(format!("{} is not measured", report.title).into());
        }
        if let Some(point) = points.iter().find(|p| p.share().is_some_and(|s| s > 1.0)) {
            return Err(format!("{} is above its roof: {point:?}", report.title).into());
        }
        if report.accesses.is_empty() || report.answer.len() < 3 || report.ledger.is_empty() {
            return Err(format!("{} says too little", report.title).into());
        }
    }
    Ok(())
}

/// The sum over lines equals the counters of the launch.
fn lines(report: &Report) -> Result<(), Failed> {
    let charged = || report.source.iter().filter_map(|line| line.charged);
    let sums = [
        (Counter::Instructions, charged().map(|c| c.instructions).sum::<u64>()),
        (Counter::Fma, charged().map(|c| c.fma).sum()),
        (Counter::SharedWavefronts, charged().map(|c| c.wavefronts).sum()),
        (Counter::SharedBankConflicts, charged().map(|c| c.conflicts).sum()),
        (Counter::GlobalSectors, charged().map(|c| c.sectors).sum()),
        (Counter::DivergentBranches, charged().map(|c| c.divergent).sum()),
    ];
    for (counter, sum) in sums {
        let all = counter.among(&report.counters);
        if sum != all {
            let name = counter.name();
            return Err(format!("{}: lines have {sum} {name} of {all}", report.title).into());
        }
    }
    Ok(())
}

/// The sum over lines equals the predicted profiler counts, except for instructions that belong to
/// no line.
fn compiled(report: &Report) -> Result<(), Failed> {
    let counted = |names: &[&str]| -> u64 {
        let quantities = SassCounters::QUANTITIES.iter().filter(|of| names.contains(&of.name));
        let names: Vec<String> = quantities.map(|of| of.name.replace('_', " ")).collect();
        let all = report.compiled.iter().filter(|count| names.contains(&count.name));
        all.map(|count| count.value).sum()
    };
    let lines = || report.source.iter().filter_map(|line| line.compiled);
    let instructions: Option<u64> = lines().map(|of| of.instructions).sum();
    let sums = [
        (
            instructions.zip(report.of_no_line).map_or(0, |(of, others)| of + others),
            &["instructions"][..],
        ),
        (
            lines().map(|of| of.wavefronts).sum(),
            &["shared_load_wavefronts", "shared_store_wavefronts"],
        ),
        (
            lines().map(|of| of.conflicts).sum(),
            &["shared_load_conflicts", "shared_store_conflicts"],
        ),
        (lines().map(|of| of.sectors).sum(), &["global_load_sectors", "global_store_sectors"]),
    ];
    for (sum, names) in sums {
        if sum != counted(names) {
            let all = counted(names);
            return Err(format!("{}: lines have {sum} {names:?} of {all}", report.title).into());
        }
    }
    // Only a few instructions belong to no line. Each warp executes them once.
    let blocks: u64 = report.grid.iter().map(|extent| u64::from(*extent)).product();
    let warps = blocks * u64::from(report.threads.div_ceil(32));
    if report.of_no_line.is_some_and(|others| others < warps || others > MOST_OF_NO_LINE * warps) {
        let others = report.of_no_line;
        return Err(format!("{}: {others:?} of {warps} warps are of no line", report.title).into());
    }
    Ok(())
}

/// Sentences about bank conflicts agree with the drawings. If only the source has conflicts, there
/// is a sentence about the source and one about the compiled kernel. For writes of copies there is
/// no compiled count, so the sentence is about the source.
fn conflicts(report: &Report) -> Result<(), Failed> {
    let from_source = Counter::SharedBankConflicts.among(&report.counters);
    let says = |proof: &str, text: &str| {
        report.answer.iter().any(|said| said.proof == proof && said.text.contains(text))
    };
    let denies = says("accesses", "Shared-memory accesses have no bank conflicts");
    let denies_compiled = says("compiled", "As compiled, shared-memory accesses have no");
    let tells_text =
        says("accesses", &format!("In the source, bank conflicts cost {from_source} wavefronts"));
    let is_drawn = report.accesses.iter().any(|of| of.space == "shared" && of.cost > of.least);
    let Wavefronts { conflicts, is_from_source, .. } = report.wavefronts;
    let right = match (is_from_source, conflicts, from_source) {
        (true, conflicts, _) => {
            !denies_compiled && conflicts == from_source && tells_text == (from_source > 0)
        }
        (false, 0, 1..) => denies_compiled && tells_text,
        _ => !denies_compiled && !tells_text,
    };
    if !right || denies && (is_drawn || from_source > 0) {
        return Err(format!("{}: {from_source} of {:?}", report.title, report.answer).into());
    }
    Ok(())
}

/// Conflicts of writes by copies are reported. Loads and stores of the tested kernel have no
/// conflicts.
pub fn conflicts_of_copies_are_told() -> Result<(), Failed> {
    let fastest = report_of("sgemm", 22)?.line.clone();
    let line = fastest.replace(", pad_a: 4", "");
    let subject = Subject { line: line.clone(), ..Subject::new(Family::Sgemm) };
    let report = analysis::report(&subject)?;
    conflicts(&report)?;
    match report.wavefronts {
        Wavefronts { conflicts: 1.., is_from_source: true, .. } if line != fastest => Ok(()),
        other => Err(format!("{line}: {other:?}").into()),
    }
}

/// The number of rows or sectors in a picture is the cost of the access. The picture shows every
/// active lane, and each row is 32 columns wide.
fn drawn(access: &Access) -> Result<(), String> {
    let rows = &access.grid.rows;
    let lanes: BTreeSet<u32> = rows
        .iter()
        .flat_map(|row| &row.cells)
        .flat_map(|cell| cell.lanes.iter().copied())
        .collect();
    if lanes.len() != access.lanes as usize {
        return Err(format!("{} lanes are drawn", lanes.len()));
    }
    if rows.iter().any(|row| row.cells.iter().map(|cell| cell.span).sum::<u32>() != 32) {
        return Err("a row is not 32 columns wide".to_owned());
    }
    let cost = match access.space {
        "shared" => rows.len(),
        _ => {
            let sectors = |row: &gemm_book::access::Row| {
                let (mut column, mut moved) = (0, BTreeSet::new());
                for cell in &row.cells {
                    if cell.is_wasted || !cell.lanes.is_empty() {
                        moved.insert(column / 8);
                    }
                    column += cell.span;
                }
                moved.len()
            };
            rows.iter().map(sectors).sum()
        }
    };
    if cost as u64 != access.cost {
        return Err(format!("{cost} are drawn"));
    }
    let extra = rows.iter().filter(|row| row.is_extra).count() as u64;
    if access.space == "shared" && extra != access.cost - access.least {
        return Err(format!("{extra} rows are marked as conflicts"));
    }
    let collides = access.collision.is_some();
    if access.space == "shared" && collides != (access.cost > access.least) {
        return Err("two lanes collide where it costs more, and nowhere else".to_owned());
    }
    let is_useless = |suggestion: &gemm_book::access::Suggestion| {
        let is_drawn = suggestion.grid.rows.len() as u64 == suggestion.wavefronts;
        suggestion.wavefronts >= access.cost || suggestion.wavefronts < access.least || !is_drawn
    };
    if access.suggestion.as_ref().is_some_and(is_useless) {
        return Err("a suggestion does not reduce the wavefronts".to_owned());
    }
    Ok(())
}
