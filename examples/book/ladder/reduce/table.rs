//! Tables and plot of the ladder of reductions.

use super::{ReduceBench, ReduceResult, ReduceRows, rate};
use crate::stage::{StageOutcome, mark, speed_up};
use gemm_bench::change;
use gemm_bench::change::{Quantity, describe};
use gemm_bench::plot::Bars;
use gemm_bench::table;
use gemm_bench::table::{Column, Table, number, text};
use gemm_dsl::stages::Stage;
use gemm_runtime::sim::Counters;
use gemm_runtime::spec::ReduceSpec;

/// Maximum number of changed counters in a row.
const CHANGES: usize = 2;

fn quantities(counters: &Counters) -> Vec<Quantity> {
    [
        ("divergent branches", counters.divergent_branches),
        ("conflicts", counters.shared_bank_conflicts),
        ("block barriers", counters.block_barriers),
        ("wavefronts", counters.shared_wavefronts),
        ("instructions", counters.instructions),
        ("sectors", counters.global_sectors),
    ]
    .map(|(name, value)| Quantity { name, value: value as f64 })
    .to_vec()
}

/// Table of the counters of each stage and their changes.
pub(super) fn counters(rows: &ReduceRows) -> Table {
    let mut table = Table::new(first_columns().into_iter().chain([
        number("block\nbarriers").optional(1),
        number("warp\nbarriers").optional(7),
        number("divergent\nbranches").optional(4),
        number("bank\nconflicts").optional(2),
        number("shared\nwavefronts").optional(5),
        number("global\nsectors").optional(6),
        number("instructions").optional(3),
        text("since the previous stage").wrapping(),
    ]));
    let mut before: Option<Vec<Quantity>> = None;
    for (stage, ran) in rows {
        let mut cells = first_cells(stage, ran);
        if let Some(counters) = ran.done().and_then(|done| done.counters.as_ref()) {
            let counts = [
                counters.block_barriers,
                counters.warp_barriers,
                counters.divergent_branches,
                counters.shared_bank_conflicts,
                counters.shared_wavefronts,
                counters.global_sectors,
                counters.instructions,
            ];
            cells.extend(counts.map(|count| change::number(count as f64)));
            let now = quantities(counters);
            cells.push(before.map(|old| describe(&old, &now, CHANGES)).unwrap_or_default());
            before = Some(now);
        }
        table.add(cells);
    }
    table
}

/// Table of the time of each stage.
pub(super) fn times(rows: &ReduceRows, n: usize, bench: &ReduceBench<'_>) -> Table {
    let columns = [
        number("time").optional(1),
        number("GB/s"),
        number("of read rate").optional(2),
        number("faster by").optional(3),
    ];
    let mut table = Table::new(first_columns().into_iter().chain(columns));
    let mut before = None;
    for (stage, ran) in rows {
        let mut cells = first_cells(stage, ran);
        let time = ran.done().and_then(|done| done.time_ms);
        if let (Some(ms), Some(rate)) = (time, rate(time, n)) {
            cells.push(table::time(ms));
            cells.push(format!("{rate:.0}"));
            cells.push(table::percent(rate / bench.read_rate));
            cells.push(speed_up(before, time));
            before = time;
        }
        table.add(cells);
    }
    table
}

fn first_columns() -> [Column; 5] {
    [text(""), number("#"), text("stage"), number("result"), number("error").optional(8)]
}

fn first_cells(stage: &Stage<ReduceSpec>, ran: &StageOutcome<ReduceResult>) -> Vec<String> {
    let done = ran.done();
    vec![
        mark(ran.ok(|done| done.verdict.ok)).to_owned(),
        stage.index.to_string(),
        stage.name.to_owned(),
        done.map_or_else(|| "–".to_owned(), |done| table::value(done.value)),
        table::error(done.map(|done| done.verdict.error)),
    ]
}

/// Bar chart of the bandwidth on a GPU, or of instructions per element on the simulator.
pub(super) fn picture(
    rows: &ReduceRows,
    n: usize,
    device: &str,
    bench: Option<&ReduceBench<'_>>,
) -> Bars {
    let value = |done: &ReduceResult| match bench {
        Some(_) => rate(done.time_ms, n),
        None => done.counters.map(|c| c.instructions as f64 / n.max(1) as f64),
    };
    let bar = |(stage, ran): &(Stage<ReduceSpec>, StageOutcome<ReduceResult>)| {
        Some((format!("{} {}", stage.index, stage.name), value(ran.done()?)?))
    };
    let x_label = if bench.is_some() { "GB/s" } else { "warp instructions per element" };
    Bars {
        title: format!("Reductions of {n} values on {device}"),
        x_label: x_label.to_owned(),
        bars: rows.iter().filter_map(bar).collect(),
        ceiling: bench.map(|bench| ("reading only".to_owned(), bench.read_rate)),
    }
}
