//! Tables and plots of the ladder of GEMMs.

use super::{Rung, SgemmResult, gflops};
use crate::stage::{StageOutcome, mark, speed_up};
use gemm_bench::change;
use gemm_bench::change::{Quantity, describe};
use gemm_bench::cli::Failure;
use gemm_bench::plot;
use gemm_bench::plot::{Bars, Lines, Series};
use gemm_bench::table;
use gemm_bench::table::{Column, Table, number, text};
use gemm_bench::timing::Fusion;
use gemm_dsl::stages::Stage;
use gemm_runtime::SgemmSpec;
use gemm_runtime::sim::Counters;
use std::path::Path;

/// Maximum number of changed counters in a row.
const CHANGES: usize = 2;

/// Quantities that explain the speed of a stage: first ratios that show its bottleneck, then
/// totals.
fn quantities(counters: &Counters, flops: f64) -> [Quantity; 7] {
    let ratio = |a: u64, b: u64| a as f64 / b as f64;
    [
        ("FMA/sector", ratio(counters.fmas, counters.global_sectors)),
        ("FMA/shared load", ratio(counters.fma, counters.shared_loads)),
        ("FLOP/byte", flops / counters.global_bytes() as f64),
        ("conflicts", counters.shared_bank_conflicts as f64),
        ("wavefronts", counters.shared_wavefronts as f64),
        ("barriers", counters.block_barriers as f64),
        ("FMA share", 100.0 * ratio(counters.fma, counters.instructions)),
    ]
    .map(|(name, value)| Quantity { name, value })
}

/// Table of the counters of each stage and their changes.
pub(super) fn counters(rung: &Rung) -> Table {
    let mut table = Table::new(first_columns().into_iter().chain([
        number("FMA per\nsector").optional(5),
        number("FMA per\nshared load").optional(2),
        number("FLOP per\nglobal byte").optional(6),
        number("bank\nconflicts").optional(3),
        number("shared\nwavefronts").optional(4),
        number("block\nbarriers").optional(7),
        number("FMA %\nof instr.").optional(1),
        text("since the previous stage").wrapping(),
    ]));
    let mut before: Option<[Quantity; 7]> = None;
    for (stage, ran) in &rung.rows {
        let mut cells = first_cells(stage, ran, rung);
        if let Some(counters) = ran.done().and_then(|done| done.counters.as_ref()) {
            let now = quantities(counters, rung.products.flops());
            cells.extend(now.map(|quantity| change::number(quantity.value)));
            cells.push(before.map(|old| describe(&old, &now, CHANGES)).unwrap_or_default());
            before = Some(now);
        }
        table.add(cells);
    }
    table
}

/// Table of the time of each stage, compared with cuBLAS and the peak FMA rate.
pub(super) fn times(rung: &Rung, fma_rate: f64) -> Table {
    let columns = [
        number("time").optional(1),
        number("GFLOP/s"),
        number("of cuBLAS"),
        number("of FMA rate").optional(2),
        number("faster by").optional(3),
    ];
    let mut table = Table::new(first_columns().into_iter().chain(columns));
    let mut before = None;
    for (stage, ran) in &rung.rows {
        let mut cells = first_cells(stage, ran, rung);
        if let Some(times) = ran.done().and_then(|done| done.times) {
            let rate = gflops(times.kernel, rung.products);
            cells.push(table::time(times.kernel));
            cells.push(format!("{rate:.0}"));
            cells.push(times.vs_blas().map_or_else(|| "–".to_owned(), table::percent));
            cells.push(table::percent(rate / fma_rate));
            cells.push(speed_up(before, Some(times.kernel)));
            before = Some(times.kernel);
        }
        table.add(cells);
        for (label, time) in ran.done().and_then(|done| done.fusion).iter().flat_map(compared) {
            let rate = gflops(time, rung.products);
            let share =
                blas_rate(rung).map_or_else(|| "–".to_owned(), |b| table::percent(rate / b));
            table.add(["", "", &label, ""].map(str::to_owned).into_iter().chain([
                table::time(time),
                format!("{rate:.0}"),
                share,
                table::percent(rate / fma_rate),
            ]));
        }
    }
    if let Some(rate) = blas_rate(rung) {
        let time = rung.products.flops() / rate / 1e6;
        table.add(["", "", "cuBLAS", ""].map(str::to_owned).into_iter().chain([
            table::time(time),
            format!("{rate:.0}"),
            table::percent(1.0),
            table::percent(rate / fma_rate),
        ]));
    }
    table
}

/// Times with which a fused epilogue is compared.
fn compared(fusion: &Fusion) -> Vec<(String, f64)> {
    let over = table::signed_percent(fusion.over_plain());
    let plain = (format!("  without epilogue (with: {over})"), fusion.plain);
    let separate = fusion.separate.map(|time| ("  cuBLAS plus epilogue kernel".to_owned(), time));
    [Some(plain), separate].into_iter().flatten().collect()
}

fn first_columns() -> [Column; 4] {
    [text(""), number("#"), text("stage"), number("error").optional(8)]
}

fn first_cells(
    stage: &Stage<SgemmSpec>,
    ran: &StageOutcome<SgemmResult>,
    rung: &Rung,
) -> Vec<String> {
    vec![
        mark(ran.ok(|done| done.verdict.ok)).to_owned(),
        stage.index.to_string(),
        label(stage, rung),
        table::error(ran.done().map(|done| done.verdict.error)),
    ]
}

/// Name of the stage, with its tile size if the ladder has several variants of it.
fn label(stage: &Stage<SgemmSpec>, rung: &Rung) -> String {
    let same = rung.rows.iter().filter(|(other, _)| other.index == stage.index).count();
    let size = stage.spec.tile.map(|tile| tile.to_string());
    match size.or_else(|| stage.spec.block.map(|block| block.to_string())) {
        Some(size) if same > 1 => format!("{} {size}", stage.name),
        _ => stage.name.to_owned(),
    }
}

/// Median rate of cuBLAS over the runs of all stages, in GFLOP/s.
fn blas_rate(rung: &Rung) -> Option<f64> {
    let times = rung.rows.iter().filter_map(|(_, ran)| ran.done()?.times?.blas);
    let mut times: Vec<f64> = times.collect();
    let time = gemm_bench::gpu::median(&mut times);
    (!times.is_empty()).then(|| gflops(time, rung.products))
}

/// GFLOP/s on a GPU, or the percentage of FMAs among the instructions on the simulator.
fn value(ran: &StageOutcome<SgemmResult>, rung: &Rung, timed: bool) -> Option<f64> {
    let done = ran.done()?;
    if timed {
        return Some(gflops(done.times?.kernel, rung.products));
    }
    let counters = done.counters?;
    Some(100.0 * counters.fma as f64 / counters.instructions.max(1) as f64)
}

/// Plots the stages over the sizes, or as bars for a single size.
pub(super) fn save_picture(
    rungs: &[Rung],
    device: &str,
    timed: bool,
    path: &Path,
) -> Result<(), Failure> {
    let Some(first) = rungs.first() else {
        return Ok(());
    };
    let unit = if timed { "GFLOP/s" } else { "FMAs, % of the instructions" };
    let name = |stage: &Stage<SgemmSpec>| format!("{} {}", stage.index, label(stage, first));
    if rungs.len() == 1 {
        let bars = first.rows.iter();
        let bars = bars.filter_map(|(s, ran)| Some((name(s), value(ran, first, timed)?)));
        let picture = Bars {
            title: format!("SGEMM of {} on {device}", first.products),
            x_label: unit.to_owned(),
            bars: bars.collect(),
            ceiling: blas_rate(first).map(|rate| ("cuBLAS".to_owned(), rate)),
        };
        return Ok(plot::save(&picture, path)?);
    }
    let stages = first.rows.iter().enumerate().map(|(i, (stage, _))| Series {
        name: name(stage),
        values: rungs.iter().map(|r| value(&r.rows.get(i)?.1, r, timed)).collect(),
        emphasis: false,
    });
    let mut series: Vec<Series> = stages.collect();
    let blas: Vec<_> = rungs.iter().map(blas_rate).collect();
    if blas.iter().any(Option::is_some) {
        series.push(Series { name: "cuBLAS".to_owned(), values: blas, emphasis: true });
    }
    let picture = Lines {
        title: match first.products.batch {
            None => format!("SGEMM, f32, on {device}"),
            Some(count) => format!("Batches of {count} SGEMMs, f32, on {device}"),
        },
        x_label: "m = n = k".to_owned(),
        y_label: unit.to_owned(),
        x: rungs.iter().map(|rung| rung.products.size.to_string()).collect(),
        series,
    };
    Ok(plot::save(&picture, path)?)
}
