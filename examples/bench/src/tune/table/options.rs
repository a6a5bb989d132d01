//! Command-line options of `tune` for tables.

use super::fit::First;
use super::lines;
use super::times::TimesFile;
use crate::cli::{Failure, seconds, writable};
use crate::grid::arena;
use crate::grid::options::{Shapes, accuracy};
use crate::shapes::{self, GemmShape};
use gemm_dsl::spec::{Accuracy, GemmLayout, SgemmSpec};
use std::path::PathBuf;

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Tables")]
pub struct TableOptions {
    /// Instead of searching, measure specs over a grid of shapes, and write the fitted table to a
    /// file as `sgemm_table!`
    #[arg(long, value_name = "FILE.rs", conflicts_with_all = ["family", "preset", "space", "size",
        "batch", "json"])]
    table: Option<PathBuf>,
    /// Candidate specs, one per line, with alternatives as in --space. A spec must not have a
    /// layout; each is measured in all layouts. Default: a list of proven specs
    #[arg(long, value_name = "FILE", requires = "table")]
    lines: Option<PathBuf>,
    /// File of times. Times that it contains are not measured again. Without a GPU the table is
    /// fitted to these times
    #[arg(long, value_name = "FILE", requires = "table")]
    times: Option<PathBuf>,
    /// Measure only shapes in the file of times, and there only specs without a time
    #[arg(long, requires = "times", conflicts_with_all = ["random", "m", "n", "k", "layout",
        "only"])]
    again: bool,
    /// Measure this many random sizes in addition to the grid, with extents from 1 to 8192, in all
    /// layouts
    #[arg(long, value_name = "N", default_value_t = 0, requires = "table")]
    random: usize,
    /// Time limit of the measurements, in seconds; 0 measures nothing
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = seconds,
        allow_negative_numbers = true, requires = "table")]
    limit: u64,
    /// Accuracy class of the rules: `bound` and `norm` also try specs that emulate f32 on tensor
    /// cores
    #[arg(long, value_name = "CLASS", default_value = "ieee", value_parser = accuracy,
        requires = "table")]
    accuracy: Accuracy,
    /// Largest number of rules in the table
    #[arg(long, value_name = "N", default_value_t = 40, requires = "table")]
    rows: usize,
    /// Manual rules, in the grammar of tables. They precede the fitted rules and count towards
    /// --rows. The other rules are fitted to the remaining shapes
    #[arg(long, value_name = "FILE", requires = "table")]
    first: Option<PathBuf>,
    #[command(flatten)]
    shapes: Shapes,
}

/// Limit of the DSL on the rules of a table.
const MOST_ROWS: usize = 256;

/// Table to measure and write.
#[derive(Clone, Debug)]
pub struct Task {
    pub table: PathBuf,
    pub times: Option<PathBuf>,
    pub lines: Vec<SgemmSpec>,
    pub shapes: Vec<GemmShape>,
    /// Time limit of the measurements, in seconds.
    pub limit: u64,
    /// Accuracy class of the rules.
    pub accuracy: Accuracy,
    pub first: First,
    /// Largest number of fitted rules.
    pub rows: usize,
}

impl TableOptions {
    /// Checks all options and returns the task, if a table is requested. Random shapes depend on
    /// the seed.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] and [`Failure::Output`].
    pub fn task(&self, seed: u64) -> Result<Option<Task>, Failure> {
        let usage = |message: &str| Err(Failure::Usage(message.to_owned()));
        let Some(table) = &self.table else {
            return match self.shapes.is_given() {
                true => usage(
                    "--m, --n, --k, --layout and --only are options of tables. Add --table FILE.rs",
                ),
                false => Ok(None),
            };
        };
        if !(1..=MOST_ROWS).contains(&self.rows) {
            return usage("--rows: a table has between 1 and 256 rules. Give such a number");
        }
        let read = |option: &str, path: &PathBuf| {
            let named = |error| Failure::Usage(format!("{option} {}: {error}", path.display()));
            std::fs::read_to_string(path).map_err(named)
        };
        let lines = match &self.lines {
            None => lines::default(self.accuracy)?,
            Some(path) => lines::read(&read("--lines", path)?, self.accuracy)?,
        };
        let first = match &self.first {
            None => First::default(),
            Some(path) => First::read(&read("--first", path)?, self.accuracy)
                .map_err(|error| Failure::Usage(format!("--first {}: {error}", path.display())))?,
        };
        let rows = self.rows.saturating_sub(first.count());
        if rows == 0 {
            return Err(Failure::Usage(format!(
                "--rows {}: --first has {} rules, and at least one more is fitted. Give more",
                self.rows,
                first.count()
            )));
        }
        let mut shapes = match (&self.times, self.again) {
            (Some(path), true) => TimesFile::open(path)?.shapes().to_vec(),
            _ => self.shapes.all(),
        };
        for drawn in shapes::random(seed, self.random, &[GemmLayout::Nn]) {
            let layouts = match self.shapes.layouts() {
                [] => GemmLayout::ALL,
                given => given,
            };
            shapes.extend(layouts.iter().map(|&layout| GemmShape { layout, ..drawn }));
        }
        arena::elements(&shapes)?;
        writable(table)?;
        if let Some(path) = &self.times {
            writable(path)?;
        }
        let (table, times) = (table.clone(), self.times.clone());
        let (limit, accuracy) = (self.limit, self.accuracy);
        Ok(Some(Task { table, times, lines, shapes, limit, accuracy, first, rows }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::options::TuneOptions;
    use crate::tune::table::times::{Head, Time};
    use clap::Parser;
    use gemm_oracle::product::Size;

    fn task(line: &str) -> Result<Option<Task>, String> {
        let words = std::iter::once("tune").chain(line.split_whitespace());
        let options = TuneOptions::try_parse_from(words).map_err(|error| error.to_string())?;
        options.table.task(3).map_err(|error| error.to_string())
    }

    #[test]
    fn a_table_is_of_the_grid_and_of_drawn_shapes_in_all_layouts() {
        let dir = tempfile::tempdir().expect("a directory");
        let out = dir.path().join("out.rs");
        let of = |line: &str| {
            let line = format!("--table {} {line}", out.display());
            task(&line).expect(&line).expect("a table")
        };
        assert_eq!(of("").shapes.len(), 388);
        let drawn = of("--random 10 --m 64 --n 64 --k 64");
        assert_eq!(drawn.shapes.len(), 4 + 40);
        let of_tt = of("--random 10 --layout tt --only 3x4x5");
        assert_eq!(of_tt.shapes.len(), 11);
        assert!(of_tt.shapes.iter().all(|shape| shape.layout == GemmLayout::Tt));
        let lines = dir.path().join("lines");
        std::fs::write(&lines, "tile: 8x8x8\n").expect("written");
        assert_eq!(of(&format!("--lines {}", lines.display())).lines.len(), 1);
        let times = dir.path().join("times");
        let head = Head { device: "it".to_owned(), arch: 90, sms: 132 };
        let mut known = TimesFile::go_on(&times, head).expect("a file");
        let shape = GemmShape { size: Size::new(3, 4, 5), layout: GemmLayout::Tn };
        known.add(shape, "block: 8x8", Time::Us(1.0)).expect("written");
        assert_eq!(of(&format!("--times {} --again", times.display())).shapes, [shape]);
        let emulated = |line: &str| {
            let lines = of(line).lines;
            lines.iter().filter_map(|spec| spec.arith.accuracy()).max()
        };
        assert_eq!(emulated(""), Some(Accuracy::Ieee));
        assert_eq!(emulated("--accuracy bound"), Some(Accuracy::Bound));
        assert_eq!(emulated("--accuracy norm"), Some(Accuracy::Norm));
        assert_eq!((of("--limit 7").limit, of("").limit, of("--rows 12").rows), (7, 600, 12));
        let first = dir.path().join("first");
        std::fs::write(&first, "m <= 3 => tile: 8x8x8;\nn <= 3 => tile: 8x8x8;\n")
            .expect("written");
        let first = of(&format!("--rows 12 --first {}", first.display()));
        assert_eq!((first.first.count(), first.rows), (2, 10));
    }

    #[test]
    fn unusable_inputs_are_rejected() {
        let dir = tempfile::tempdir().expect("a directory");
        let out = format!("--table {}", dir.path().join("out.rs").display());
        let written = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).expect("written");
            path.display().to_string()
        };
        let first = written("first", "m <= 3 => tile: 8x8x8;");
        let faulty = written("faulty", "m <= 3 => tile: 8x8x;");
        let line = "tile: 64x64x64, arith: bf16x6, mma: wgmma";
        let lines = written("lines", &format!("{line}\n"));
        let emulated = written("emulated", &format!("m > 3 => {line};"));
        let granted = written("granted", &format!("accuracy: bound;\nm > 3 => {line};"));
        for (line, reason) in [
            ("--limit 3".to_owned(), "--table <FILE.rs>"),
            ("--m 4".to_owned(), "Add --table"),
            (format!("{out} --space float4"), "cannot be used with"),
            (format!("{out} --again"), "--times <FILE>"),
            (format!("{out} --times no/times --again"), "no/times"),
            (format!("{out} --times t --again --random 3"), "cannot be used with"),
            (format!("{out} --rows 0"), "between 1 and 256"),
            (format!("{out} --rows 257"), "between 1 and 256"),
            (format!("{out} --lines no-such-file"), "--lines no-such-file"),
            (format!("{out} --first no-such-file"), "--first no-such-file"),
            (format!("{out} --first {faulty}"), "m <= 3 => tile: 8x8x;"),
            (format!("{out} --first {first} --rows 1"), "--first has 1 rules"),
            (format!("{out} --accuracy best"), "`best` is not an accuracy class"),
            (format!("{out} --first {emulated}"), "`accuracy: bound;`"),
            (
                format!("{out} --first {granted}"),
                "its rules are of accuracy `bound`. Add --accuracy bound",
            ),
            (format!("{out} --lines {lines}"), "Add --accuracy bound"),
            (format!("{out} --times nowhere/a"), "nowhere/a"),
            (format!("{out} --limit soon"), "not a whole number of seconds"),
            ("--table nowhere/a.rs".to_owned(), "nowhere/a.rs"),
        ] {
            let error = task(&line).expect_err(&line);
            assert!(error.contains(reason), "{line}: {error}");
        }
        assert!(task("--size 64").expect("a search").is_none());
    }
}
