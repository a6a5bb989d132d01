//! Runs of the programs that take figures.
//!
//! A command is a call of a program of this repository, or several calls, separated by `; `. Words
//! in capitals are filled in: `PARTS` with the parts of all figures of the run, separated by
//! commas; `FILE` with a file for JSON; `PLOTS` with the files of the plots. Without `FILE`, the
//! program prints one JSON object per line.

use super::select::select;
use super::{Figure, Figures, Series, Taken};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Words of a command that are filled in.
pub const PARTS: &str = "PARTS";
pub const FILE: &str = "FILE";
pub const PLOTS: &str = "PLOTS";

/// Digits of a value in the data.
const DIGITS: usize = 4;

/// Calls of programs, and the figures that they take together.
#[derive(Debug, PartialEq)]
pub struct Run<'f> {
    pub calls: Vec<Call<'f>>,
    pub figures: Vec<&'f Figure>,
}

/// Call of a program.
#[derive(Debug, PartialEq)]
pub struct Call<'f> {
    pub program: &'f str,
    /// Arguments; files are not filled in.
    pub arguments: Vec<String>,
}

impl fmt::Display for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.program, self.arguments.join(" "))
    }
}

/// Figures taken by `figures measure`, for `figures write`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Measured {
    pub device: String,
    pub driver: String,
    pub date: String,
    /// Figures by their ids.
    pub figures: BTreeMap<String, MeasuredFigure>,
}

/// Values of a figure.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct MeasuredFigure {
    /// Hash of the texts; none if no text decides the figure.
    pub hash: Option<String>,
    /// Values of each series.
    pub series: Vec<Vec<f64>>,
}

/// Returns the runs that take some figures: one for all figures with the same command.
pub fn runs<'f>(figures: impl IntoIterator<Item = &'f Figure>) -> Vec<Run<'f>> {
    let mut by_command: Vec<(&str, Vec<&Figure>)> = Vec::new();
    for figure in figures {
        let Some(command) = &figure.command else { continue };
        match by_command.iter_mut().find(|(other, _)| other == command) {
            Some((_, figures)) => figures.push(figure),
            None => by_command.push((command, vec![figure])),
        }
    }
    let run = |(command, figures): (&'f str, Vec<&'f Figure>)| {
        let mut parts: Vec<&str> = Vec::new();
        for part in
            figures.iter().filter_map(|figure| figure.part.as_ref()).flat_map(|p| p.split(','))
        {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        let parts = parts.join(",");
        let fill = |word: &str| if word == PARTS { parts.clone() } else { word.to_owned() };
        let call = |command: &'f str| {
            let mut words = command.split_whitespace();
            let program = words.next().unwrap_or_default();
            Call { program, arguments: words.map(fill).collect() }
        };
        Run { calls: command.split("; ").map(call).collect(), figures }
    };
    by_command.into_iter().map(run).collect()
}

/// Takes the values of a figure from the output of its run.
///
/// # Errors
/// Returns a message for each value that is missing.
pub fn take(figure: &Figure, output: &[Value]) -> Result<Vec<Vec<f64>>, String> {
    let values = |series: &Series| {
        let Some(selector) = &series.select else { return Ok(series.values.clone()) };
        if !selector.contains("{}") {
            return Ok(vec![rounded(select(selector, output)?)]);
        }
        let one = |at: &String| Ok(rounded(select(&selector.replace("{}", at), output)?));
        figure.at.iter().map(one).collect()
    };
    let all: Result<_, String> = figure.series.iter().map(values).collect();
    all.map_err(|reason| format!("{}: {reason}", figure.id))
}

/// Rounds a value to the digits of the data.
fn rounded(value: f64) -> f64 {
    format!("{value:.*e}", DIGITS - 1).parse().unwrap_or(value)
}

impl Figures {
    /// Writes the values that were measured at a commit into the figures.
    ///
    /// # Errors
    /// Returns a message for an unknown figure, and for one that was measured with other texts.
    pub fn update(
        &mut self,
        measured: &Measured,
        today: &BTreeMap<String, String>,
        commit: &str,
    ) -> Result<(), String> {
        let ids: BTreeSet<&String> = self.all.iter().map(|figure| &figure.id).collect();
        if let Some(id) = measured.figures.keys().find(|id| !ids.contains(id)) {
            return Err(format!("there is no figure `{id}`"));
        }
        for figure in &mut self.all {
            let Some(MeasuredFigure { hash, series }) = measured.figures.get(&figure.id) else {
                continue;
            };
            if hash.as_ref() != today.get(&figure.id) {
                return Err(format!(
                    "`{}` was measured with other texts than those of this build. Build both from \
                     the same commit",
                    figure.id
                ));
            }
            if series.len() != figure.series.len() {
                return Err(format!("`{}` has other series than those measured", figure.id));
            }
            for (own, values) in figure.series.iter_mut().zip(series) {
                own.values.clone_from(values);
            }
            figure.taken = Taken {
                device: measured.device.clone(),
                driver: Some(measured.driver.clone()),
                date: measured.date.clone(),
                commit: commit.to_owned(),
                hash: hash.clone(),
                before: None,
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const FIGURES: &str = r#"
[[figure]]
id = "naive"
what = "stage 2"
texts = ["sgemm/02_naive"]
command = "ladder sgemm --stage PARTS --size 512,1024 --json"
part = "2"
at = ["512", "1024"]
taken = { device = "", date = "", commit = "old", before = "new" }
series = [{ name = "ratio", values = [], select = "stage=naive n={}: vs_cublas" }]

[[figure]]
id = "shared"
what = "stages 2 and 5"
command = "ladder sgemm --stage PARTS --size 512,1024 --json"
part = "2,5"
taken = { device = "", date = "", commit = "old", hash = "none" }
series = [
    { name = "least", values = [0.5], select = "least: vs_cublas" },
    { name = "of another program", values = [27.0] },
]

[[figure]]
id = "grid"
what = "the grid"
command = "grid --json FILE; rows --only whole --json FILE"
taken = { device = "", date = "", commit = "" }

[[figure]]
id = "by hand"
what = "a figure without a command"
taken = { device = "", date = "", commit = "" }
"#;

    #[test]
    fn figures_of_one_command_share_a_run() {
        let figures = Figures::parse(FIGURES).expect("sound");
        let runs = runs(&figures.all);
        let calls = runs.iter().map(|run| run.calls.iter().map(Call::to_string));
        let calls: Vec<Vec<String>> = calls.map(Iterator::collect).collect();
        assert_eq!(
            calls,
            [
                vec!["ladder sgemm --stage 2,5 --size 512,1024 --json"],
                vec!["grid --json FILE", "rows --only whole --json FILE"]
            ]
        );
        assert_eq!(runs[0].figures.len(), 2);
    }

    #[test]
    fn values_are_taken_and_written() {
        let mut figures = Figures::parse(FIGURES).expect("sound");
        let output = [
            json!({"stage": "naive", "n": 512, "vs_cublas": 0.123_456}),
            json!({"stage": "naive", "n": 1024, "vs_cublas": 2.0}),
        ];
        let today = figures.hashes().expect("a stage");
        let of = |figure: &Figure| MeasuredFigure {
            hash: today.get(&figure.id).cloned(),
            series: take(figure, &output).expect("all values"),
        };
        let mut measured = Measured { driver: "580".to_owned(), ..Measured::default() };
        for figure in &figures.all[..2] {
            measured.figures.insert(figure.id.clone(), of(figure));
        }
        assert_eq!(measured.figures["naive"].series, [vec![0.1235, 2.0]]);
        assert_eq!(measured.figures["shared"].series, [vec![0.1235], vec![27.0]]);
        figures.update(&measured, &today, "abc").expect("sound");
        let taken: Vec<&Taken> = figures.all.iter().map(|figure| &figure.taken).collect();
        let [naive, shared, grid, _] = taken[..] else { panic!("four figures") };
        assert_eq!((&*naive.commit, naive.before.as_ref()), ("abc", None));
        assert_eq!(naive.hash.as_ref(), today.get("naive"));
        assert_eq!((shared.hash.as_ref(), shared.driver.as_deref()), (None, Some("580")));
        assert_eq!(grid.commit, "");

        let error = take(&figures.all[0], &output[..1]).expect_err("a size is missing");
        assert!(error.contains("naive: `stage=naive n=1024: vs_cublas`: 0 values"), "{error}");
        let other = BTreeMap::from([("naive".to_owned(), "other".to_owned())]);
        let error = figures.update(&measured, &other, "abc").expect_err("other texts");
        assert!(error.contains("Build both from the same commit"), "{error}");
    }
}
