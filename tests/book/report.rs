//! What a report says comes to what was counted, and what it draws to what it says.

use gemm_examples::book::access::Access;
use gemm_examples::book::measured::Point;
use gemm_examples::book::report::Report;
use gemm_examples::book::whole::report_of;
use libtest_mimic::Failed;
use std::collections::BTreeSet;

/// Of both ladders: conflicts, vectors, copies, roles, segments of a tree.
const STAGES: [(&str, u32); 12] = [
    ("reduce", 0),
    ("reduce", 1),
    ("reduce", 6),
    ("reduce", 8),
    ("sgemm", 1),
    ("sgemm", 9),
    ("sgemm", 14),
    ("sgemm", 16),
    ("sgemm", 22),
    ("sgemm", 32),
    ("sgemm", 34),
    ("sgemm", 39),
];

pub fn adds_up() -> Result<(), Failed> {
    for (ladder, stage) in STAGES {
        let report = report_of(ladder, stage)?;
        lines(&report)?;
        for access in &report.accesses {
            drawn(access).map_err(|wrong| format!("{}, {access:?}: {wrong}", report.title))?;
        }
        // Of the reductions those of whole arrays are.
        let points: Vec<Point> = report.measured.iter().flat_map(|of| of.points.clone()).collect();
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

/// The lines come to the counters of the launch.
fn lines(report: &Report) -> Result<(), Failed> {
    let counter = |name: &str| {
        report.counters.iter().find(|counter| counter.name == name).map_or(0, |c| c.value)
    };
    let charged = || report.source.iter().filter_map(|line| line.charged);
    let sums = [
        ("instructions", charged().map(|c| c.instructions).sum::<u64>()),
        ("fma", charged().map(|c| c.fma).sum()),
        ("shared wavefronts", charged().map(|c| c.wavefronts).sum()),
        ("shared bank conflicts", charged().map(|c| c.conflicts).sum()),
        ("global sectors", charged().map(|c| c.sectors).sum()),
        ("divergent branches", charged().map(|c| c.divergent).sum()),
    ];
    for (name, sum) in sums {
        if sum != counter(name) {
            let all = counter(name);
            return Err(format!("{}: lines have {sum} {name} of {all}", report.title).into());
        }
    }
    Ok(())
}

/// A picture has as many rows, or sectors, as the access costs, and each lane that takes part; it is as wide as 32 columns.
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
            let sectors = |row: &gemm_examples::book::access::Row| {
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
    if access
        .cure
        .is_some_and(|cure| cure.wavefronts >= access.cost || cure.wavefronts < access.least)
    {
        return Err("a cure that is none".to_owned());
    }
    Ok(())
}
