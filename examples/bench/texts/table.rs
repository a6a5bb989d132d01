//! Table of the results.

use gemm_bench::table::{Table, number, text, time};
use gemm_bench::texts::turns::ComparedCase;

/// Lays out a row for each case.
pub fn table(rows: &[ComparedCase], limit: f64) -> Table {
    let mut table = Table::new([
        text("spec"),
        text("case"),
        number("old ms"),
        number("new ms"),
        number("new/old"),
        text("quartiles"),
        text("bits"),
        text(""),
    ]);
    for row in rows {
        let times = row.times;
        table.add([
            row.spec.clone(),
            row.case.clone(),
            time(times.old_ms),
            time(times.new_ms),
            format!("{:.4}", times.ratio),
            format!("{:.4} … {:.4}", times.quartiles[0], times.quartiles[1]),
            if row.same_bits { "same" } else { "other" }.to_owned(),
            row.fault(limit).map_or("", |_| "<--").to_owned(),
        ]);
    }
    table
}
