//! Tables for the terminal. They are fitted to its width, or have their full width if the width is
//! unknown.

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle, Width,
};
use std::fmt::Write;

/// Style without a frame and with a line under the header.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Number of blanks beside a cell and between two cells.
const PADDING: usize = 3;

/// Arrow with non-breaking blanks, which replaces the arrow with plain blanks.
const TIED: &str = "\u{a0}→\u{a0}";
const ARROW: &str = " → ";

/// Minimum width of a wrapping text column. If it would be narrower, other columns are left out.
const LEAST_TEXT: usize = 24;

#[derive(Clone, Debug)]
pub struct Column {
    title: String,
    alignment: CellAlignment,
    wraps: bool,
    rank: u8,
}

/// Creates a right-aligned column of numbers.
pub fn number(title: &str) -> Column {
    Column { alignment: CellAlignment::Right, ..text(title) }
}

/// Creates a left-aligned column of text.
pub fn text(title: &str) -> Column {
    Column { title: title.to_owned(), alignment: CellAlignment::Left, wraps: false, rank: 0 }
}

impl Column {
    /// Breaks the column's cells into lines if the table is too wide. At most one column of a table
    /// may wrap.
    #[must_use]
    pub fn wrapping(self) -> Self {
        Self { wraps: true, ..self }
    }

    /// Leaves the column out if the table is still too wide. Columns with the highest rank are left
    /// out first.
    #[must_use]
    pub fn optional(self, rank: u8) -> Self {
        Self { rank, ..self }
    }
}

/// Table of text cells, for a terminal or a file.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row, which may be shorter than the header.
    pub fn add(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }

    /// Returns the table for the standard output.
    pub fn text(&self) -> String {
        self.fitted(terminal_width())
    }

    /// Returns the table in lines of at most `width` characters, if that is possible.
    fn fitted(&self, width: Option<usize>) -> String {
        let Some(width) = width else {
            return self.drawn(&self.all(), None);
        };
        let mut shown = self.all();
        let mut left_out = Vec::new();
        loop {
            let (fixed, wrapping) = self.widths(&shown);
            let room = width.saturating_sub(fixed);
            let optional = shown.iter().copied().filter(|&i| self.columns[i].rank > 0);
            let last = optional.max_by_key(|&i| self.columns[i].rank);
            match last {
                Some(last) if fixed > width || room < wrapping.min(LEAST_TEXT) => {
                    shown.retain(|&i| i != last);
                    left_out.push(last);
                }
                _ => {
                    let text = (wrapping > room).then(|| room.max(LEAST_TEXT));
                    return self.drawn(&shown, text) + &self.note(left_out, width);
                }
            }
        }
    }

    fn all(&self) -> Vec<usize> {
        (0..self.columns.len()).collect()
    }

    /// Returns the total width of the fixed columns, and the width of the wrapping column.
    fn widths(&self, shown: &[usize]) -> (usize, usize) {
        let width = |i: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(i));
            let cells = cells.chain([&self.columns[i].title]).flat_map(|cell| cell.lines());
            cells.map(|line| line.chars().count()).max().unwrap_or(0) + PADDING
        };
        let sum = |wraps| {
            shown.iter().filter(|&&i| self.columns[i].wraps == wraps).map(|&i| width(i)).sum()
        };
        (sum(false), sum(true))
    }

    /// Draws the shown columns. `text` is the width of the wrapping column, or `None` for its
    /// natural width.
    fn drawn(&self, shown: &[usize], text: Option<usize>) -> String {
        let mut table = comfy_table::Table::new();
        let arrangement = match text {
            None => ContentArrangement::Disabled,
            Some(_) => ContentArrangement::Dynamic,
        };
        table
            .load_style(STYLE)
            .set_content_arrangement(arrangement)
            .set_header(shown.iter().map(|&i| &self.columns[i].title));
        for row in &self.rows {
            let cell = |&i: &usize| row.get(i).map_or("", String::as_str).replace(ARROW, TIED);
            table.add_row(shown.iter().map(cell));
        }
        for (number, &i) in shown.iter().enumerate() {
            let column = &self.columns[i];
            if let Some(drawn) = table.column_mut(number) {
                drawn.set_cell_alignment(column.alignment);
                let wide = text.filter(|_| column.wraps).and_then(|text| u16::try_from(text).ok());
                drawn.set_constraint(match wide {
                    Some(wide) => ColumnConstraint::Absolute(Width::Fixed(wide)),
                    None => ColumnConstraint::ContentWidth,
                });
            }
        }
        table.trim_fmt().replace(TIED, ARROW)
    }

    /// Returns the note that names the columns left out.
    fn note(&self, mut left_out: Vec<usize>, width: usize) -> String {
        if left_out.is_empty() {
            return String::new();
        }
        left_out.sort_unstable();
        let titles = left_out.iter().map(|&i| self.columns[i].title.replace('\n', " "));
        let titles: Vec<String> = titles.collect();
        let text = format!("Too narrow for: {}.", titles.join(", "));
        let mut note = String::from("\n");
        let mut column = width;
        for word in text.split(' ') {
            let length = word.chars().count() + 1;
            if column + length > width {
                note += "\n";
                column = 0;
            }
            _ = write!(note, " {word}");
            column += length;
        }
        note
    }
}

/// Returns the width of the standard output: `COLUMNS`, or the width of the terminal.
///
/// Returns `None` for a file or a pipe, whose lines have no limit.
fn terminal_width() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    said.filter(|columns| *columns > 0).or_else(|| {
        let terminal = console::Term::stdout();
        let (_, columns) = terminal.size_checked().filter(|_| terminal.is_term())?;
        (columns > 0).then_some(columns.into())
    })
}

/// Formats a value of a kernel. Long values are in scientific notation.
pub fn value(value: f32) -> String {
    let plain = value == 0.0 || !value.is_finite() || (1e-4..1e8).contains(&value.abs());
    if plain { value.to_string() } else { format!("{value:e}") }
}

/// Formats a relative error: `1.2e-7`.
pub fn error(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(value) => format!("{value:.1e}"),
    }
}

/// Formats milliseconds, in µs below 1 ms.
pub fn time(ms: f64) -> String {
    if ms < 1.0 { format!("{:.1} µs", ms * 1e3) } else { format!("{ms:.3} ms") }
}

/// Formats a share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Formats a difference in percent, with its sign.
pub fn signed_percent(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let columns = [
            text("stage"),
            number("bank\nconflicts"),
            number("barriers").optional(1),
            number("sectors").optional(2),
            text("since the previous stage").wrapping(),
        ];
        let mut table = Table::new(columns);
        let row = |cells: [&str; 5]| cells.map(str::to_owned);
        table.add(row(["interleaved", "480", "9", "264", ""]));
        let change = "conflicts 480 → 0, block barriers 9 → 2, instructions 100 → 50";
        table.add(row(["sequential", "0", "2", "264", change]));
        table.add(["unable".to_owned()]);
        table
    }

    #[test]
    fn numbers_stand_on_the_right_under_a_line() {
        let mut table = Table::new([text("stage"), number("conflicts")]);
        table.add(["interleaved", "480"].map(str::to_owned));
        table.add(["sequential", "0"].map(str::to_owned));
        let text = table.fitted(None);
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
    fn a_table_fits_the_terminal() {
        let whole = table().fitted(None);
        assert_eq!(whole.lines().count(), 6, "{whole}");
        assert_eq!(table().fitted(Some(200)), whole);
        for width in 51..130 {
            let text = table().fitted(Some(width));
            let most = text.lines().map(|line| line.chars().count()).max();
            assert!(most <= Some(width), "{width}:\n{text}");
            let said = text.replace('\n', " ").split_whitespace().collect::<Vec<_>>().join(" ");
            for word in ["480", "unable", "barriers", "sectors", "instructions", "50"] {
                assert!(said.contains(word), "{width}: {word}:\n{text}");
            }
        }
    }

    #[test]
    fn the_highest_rank_is_left_out_first() {
        let without = |width| {
            let text = table().fitted(Some(width));
            text.lines().find(|line| line.contains("Too narrow")).map(|line| line.trim().to_owned())
        };
        assert_eq!(without(80), None);
        assert_eq!(without(66).as_deref(), Some("Too narrow for: sectors."));
        assert_eq!(without(53).as_deref(), Some("Too narrow for: barriers, sectors."));
        // Columns that must stay are shown even if the table is too wide.
        assert!(table().fitted(Some(10)).contains("480"));
    }

    #[test]
    fn long_values_are_scientific() {
        for (given, text) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (-0.0001, "-0.0001"),
            (2e-38, "2e-38"),
            (1.25e9, "1.25e9"),
            (f32::NEG_INFINITY, "-inf"),
            (f32::NAN, "NaN"),
        ] {
            assert_eq!(value(given), text);
        }
    }

    #[test]
    fn units_follow_the_magnitude() {
        assert_eq!(time(0.0123), "12.3 µs");
        assert_eq!(time(2.5), "2.500 ms");
        assert_eq!(error(Some(1.234e-7)), "1.2e-7");
        assert_eq!(percent(0.905), "90.5 %");
    }
}
