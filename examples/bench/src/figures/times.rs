//! Times of stages and of specs in the data of the time model, which the book shows.

use super::{Figure, Figures};
use gemm_perf::csv::cells;
use std::collections::{BTreeMap, BTreeSet};

/// File of the times, from the root of the repository.
pub const PATH: &str = "tests/data/profiler/times.csv";

const FILE: &str = include_str!("../../../../tests/data/profiler/times.csv");

/// Start of the ids of figures that are times. The ladder and the stem of a stage follow, or the
/// name of a set of specs.
const PREFIX: &str = "times/";

/// Times in milliseconds by size, as text of the file.
pub type Times = BTreeMap<String, String>;

/// Returns the specs of a set whose programs are named by their specs.
pub fn specs(set: &str) -> BTreeSet<String> {
    let rows =
        FILE.lines().skip(2).map(cells).filter(|row| row.first().is_some_and(|of| of == set));
    let names = rows.filter_map(|row| row.into_iter().nth(1));
    names.filter(|name| name.contains(':')).collect()
}

/// Returns the figure that the times of a program belong to, by its set and its name.
pub fn figure<'f>(figures: &'f Figures, set: &str, name: &str) -> Option<&'f Figure> {
    let of_set = || figures.all.iter().find(|of| of.id.strip_prefix(PREFIX) == Some(set));
    figures.all.iter().find(|of| rows_of(of) == Some((set, name))).or_else(of_set)
}

/// True for times that the book shows.
pub fn is_shown(figure: &Figure) -> bool {
    figure.id.starts_with(PREFIX)
}

/// Returns the set and the name of a figure's rows in the file.
fn rows_of(figure: &Figure) -> Option<(&str, &str)> {
    let (ladder, stem) = figure.id.strip_prefix(PREFIX)?.split_once('/')?;
    // The file has `1_naive` for the stem `01_naive`.
    let is_digit = |digit: Option<char>| digit.is_some_and(|digit| digit.is_ascii_digit());
    let short = stem.strip_prefix('0').filter(|rest| is_digit(rest.chars().next()));
    Some((ladder, short.unwrap_or(stem)))
}

/// Returns the times of a figure in the text of the file.
pub fn of_file(file: &str, figure: &Figure) -> Option<Times> {
    let (set, name) = rows_of(figure)?;
    let rows = file.lines().skip(2).map(cells);
    let own = rows.filter(|row| row.len() > 3 && row[0] == set && row[1] == name);
    Some(own.map(|row| (row[2].clone(), row[3].clone())).collect())
}

/// Returns the times of a figure's values.
pub fn of_values(figure: &Figure) -> Option<Times> {
    rows_of(figure)?;
    let series = figure.series.iter().find(|series| series.name == "time")?;
    let times = figure.at.iter().cloned().zip(series.values.iter().map(f64::to_string));
    Some(times.collect())
}

/// Returns the text of the file with the times of all figures. Loads are not counted again.
pub fn write(file: &str, figures: &Figures) -> String {
    let mut text = file.to_owned();
    for figure in &figures.all {
        let (Some((set, name)), Some(times)) = (rows_of(figure), of_values(figure)) else {
            continue;
        };
        for (size, time) in &times {
            let start = format!("{set},{name},{size},");
            let line = |line: &str| match line.strip_prefix(&start).and_then(|r| r.split_once(','))
            {
                Some((_, rest)) => format!("{start}{time},{rest}\n"),
                None => format!("{line}\n"),
            };
            text = text.lines().map(line).collect();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Series;

    #[test]
    fn times_are_written_into_their_rows() {
        let series =
            Series { name: "time".to_owned(), values: vec![0.5, 2.0], ..Series::default() };
        let figure = Figure {
            id: "times/sgemm/01_naive_uncoalesced".to_owned(),
            at: vec!["512".to_owned(), "4096".to_owned()],
            series: vec![series],
            ..Figure::default()
        };
        let figures = Figures { all: vec![figure] };
        let figure = &figures.all[0];
        let written = write(FILE, &figures);
        let [before, after] = [FILE, &*written].map(|text| of_file(text, figure).expect("times"));
        assert_eq!(after.len(), 5);
        for (size, time) in &before {
            let own = of_values(figure).expect("times").get(size).cloned();
            assert_eq!(after[size], own.unwrap_or_else(|| time.clone()), "{size}");
        }
        let changed = FILE.lines().zip(written.lines()).filter(|(before, after)| before != after);
        assert_eq!((changed.count(), FILE.lines().count()), (2, written.lines().count()));
        assert!(super::figure(&figures, "sgemm", "1_naive_uncoalesced").is_some());
        assert!(super::figure(&figures, "sgemm", "2_naive").is_none());
    }
}
