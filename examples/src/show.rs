//! Tables for people.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// No frame, and a line under the header.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A table; columns whose title starts with `>` are aligned to the right, for numbers.
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(STYLE)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header.iter().map(|title| title.trim_start_matches('>')));
    for (number, title) in header.iter().enumerate() {
        if title.starts_with('>')
            && let Some(column) = table.column_mut(number)
        {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// An error relative to its scale, as in `1.2e-7`.
pub fn error(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(value) => format!("{value:.1e}"),
    }
}

/// A time in milliseconds, in the unit that reads best.
pub fn time(ms: f64) -> String {
    if ms < 1.0 { format!("{:.1} µs", ms * 1e3) } else { format!("{ms:.3} ms") }
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_on_the_right_under_a_line() {
        let mut table = table(&["stage", ">conflicts"]);
        table.add_row(["interleaved", "480"]).add_row(["sequential", "0"]);
        let text = table.trim_fmt();
        let lines: Vec<&str> = text.lines().collect();
        let line = "─".repeat(lines[1].chars().count());
        let expected = [
            " stage         conflicts",
            &line,
            " interleaved         480",
            " sequential            0",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn units_follow_the_magnitude() {
        assert_eq!(time(0.0123), "12.3 µs");
        assert_eq!(time(2.5), "2.500 ms");
        assert_eq!(error(Some(1.234e-7)), "1.2e-7");
        assert_eq!(percent(0.905), "90.5 %");
    }
}
