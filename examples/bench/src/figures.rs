//! Measured figures as data: values with the hash of the texts that they were measured with, and
//! the pages that show them.

pub mod pages;
pub mod runs;
pub mod select;
pub mod subject;
pub mod times;

use crate::cli::Failure;
use pages::Page;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use toml::{Table, Value};

/// File of all figures, from the root of the repository.
pub const PATH: &str = "tests/data/figures.toml";

/// First lines of the file.
const HEADER: &str = "# Measured figures; examples/bench/README.md describes the fields. \
                      `figures write` formats this file.\n";

/// All figures, in the order of the tables.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    #[serde(rename = "figure")]
    pub all: Vec<Figure>,
}

/// Figure: values that one command measures at once.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Name in pages and on the command line.
    pub id: String,
    /// Section of the tables of `examples/bench/README.md`; without one it is in no table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// Name for a reader.
    pub what: String,
    /// Texts that decide the values, as [`subject`] names them; empty if none does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Command that takes the figure again, see [`runs`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Part of the command's work that is for this figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Number of GPUs that the command needs, if more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<usize>,
    /// Sizes or other points that the values of each series belong to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<String>,
    /// Plots of the command, from the root of the repository.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plots: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub taken: Taken,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
}

/// Circumstances of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    pub device: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    pub date: String,
    /// Commit that was measured, or that wrote the figure down.
    pub commit: String,
    /// Hash of the texts that were measured; none if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Commit as of which a text differs, or may differ if the hash is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// Values of one quantity.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Name in pages.
    pub name: String,
    /// Unit; none for a ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Values, one for each point of the figure, or one.
    pub values: Vec<f64>,
    /// Selection of a value from the output of the command, see [`select`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<String>,
}

/// Figures of this build.
///
/// # Errors
/// Returns the fault of a file that cannot be parsed; a test parses it.
pub fn recorded() -> Result<&'static Figures, &'static str> {
    static RECORDED: OnceLock<Result<Figures, String>> = OnceLock::new();
    const FILE: &str = include_str!("../../../tests/data/figures.toml");
    let recorded = RECORDED.get_or_init(|| Figures::parse(FILE).map_err(|fault| fault.to_string()));
    recorded.as_ref().map_err(String::as_str)
}

/// Relation of a figure to the texts of this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The texts are those that were measured.
    Current,
    /// A text has changed, but the figure is not marked.
    Stale,
    /// A text has changed, and the figure names a commit that is newer than its texts.
    Marked,
    /// The texts are those that were measured, but the figure is marked.
    WronglyMarked,
}

impl Figures {
    /// Parses the file.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] with the fault and its place.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        toml::from_str(text).map_err(|fault| Failure::Usage(format!("{PATH}: {fault}")))
    }

    /// Prints the file, each field and each series on a line.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] for data that the format cannot express.
    pub fn print(&self) -> Result<String, Failure> {
        let mut text = HEADER.to_owned();
        for figure in &self.all {
            let fields = Table::try_from(figure);
            let fields = fields.map_err(|fault| Failure::Usage(format!("{PATH}: {fault}")))?;
            text += "\n[[figure]]\n";
            for (key, value) in &fields {
                text += &match value {
                    Value::Array(items) if items.iter().any(Value::is_table) => {
                        let items: String =
                            items.iter().map(|item| format!("    {item},\n")).collect();
                        format!("{key} = [\n{items}]\n")
                    }
                    value => format!("{key} = {value}\n"),
                };
            }
        }
        Ok(text)
    }

    pub fn find(&self, id: &str) -> Option<&Figure> {
        self.all.iter().find(|figure| figure.id == id)
    }

    /// Returns the hashes of all texts of this build that decide a figure, by the figure's id.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] for an unknown text.
    pub fn hashes(&self) -> Result<BTreeMap<String, String>, Failure> {
        let bound: Vec<&Figure> =
            self.all.iter().filter(|figure| !figure.texts.is_empty()).collect();
        let hashes = subject::hashes(bound.iter().map(|figure| &*figure.texts))?;
        Ok(bound.iter().map(|figure| figure.id.clone()).zip(hashes).collect())
    }
}

impl Figure {
    /// Compares the recorded hash with that of the texts of this build.
    pub fn state(&self, today: &BTreeMap<String, String>) -> State {
        let Some(today) = today.get(&self.id) else { return State::Current };
        match (self.taken.hash.as_ref() == Some(today), &self.taken.before) {
            (true, None) => State::Current,
            (true, Some(_)) => State::WronglyMarked,
            (false, None) => State::Stale,
            (false, Some(_)) => State::Marked,
        }
    }

    /// Returns true if a run would give other values: a text has changed, or a value is missing.
    pub fn is_outdated(&self, today: &BTreeMap<String, String>) -> bool {
        let missing = |series: &Series| series.select.is_some() && series.values.is_empty();
        let changed = matches!(self.state(today), State::Stale | State::Marked);
        changed || self.series.iter().any(missing)
    }

    /// Describes a figure that is stale or wrongly marked, with the pages that show it and the
    /// command that takes it again. Returns `None` for others.
    pub fn fault(&self, today: &BTreeMap<String, String>, pages: &[Page]) -> Option<String> {
        let Self { id, taken: Taken { hash, before, .. }, .. } = self;
        let reason = match self.state(today) {
            State::Current | State::Marked => return None,
            State::WronglyMarked => format!(
                "is marked as older than commit {}, but its texts are those of today; run `cargo \
                 bless-figures`",
                before.as_deref().unwrap_or_default()
            ),
            State::Stale => {
                let again = match &self.command {
                    Some(command) => format!(
                        "take it again with `figures measure FOLDER --only {id}` ({command}), or \
                         mark it with `figures mark`"
                    ),
                    None => "no command takes it again; mark it with `figures mark`".to_owned(),
                };
                format!(
                    "was measured with other texts than today's: hash {} of {}, today {}; {again}",
                    hash.as_deref().unwrap_or("not known"),
                    self.texts.join(", "),
                    today.get(id).map_or("none", String::as_str),
                )
            }
        };
        let pages = pages::showing(self, pages).join(", ");
        Some(format!("`{id}`, shown in {pages}, {reason}"))
    }

    /// Returns the note that a page shows after the date of values of older texts.
    pub fn mark(&self) -> Option<String> {
        self.taken
            .before
            .as_ref()
            .map(|commit| format!("with kernels older than commit `{commit}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// File without its header.
    const FILE: &str = r#"
[[figure]]
id = "it"
what = "stage 2"
texts = ["sgemm/02_naive"]
command = "ladder sgemm --stage PARTS --json"
at = ["1024", "2048"]
taken = { device = "H200", date = "2026-11-25", commit = "b11c428e", hash = "0123456789abcdef" }
series = [
    { name = "ratio", values = [0.1, 0.0000001], select = "stage=naive n={}: vs_cublas" },
    { name = "time", unit = "ms", values = [2.0] },
]
"#;

    #[test]
    fn a_file_is_printed_as_it_is_read() {
        let figures = Figures::parse(FILE).expect("sound");
        assert_eq!(figures.print().expect("sound"), format!("{HEADER}{FILE}"));
        let error = Figures::parse(&FILE.replace("what", "why")).expect_err("no such field");
        assert!(error.to_string().contains("unknown field `why`"), "{error}");
    }

    #[test]
    fn a_figure_is_stale_if_its_text_has_changed() {
        let figures = Figures::parse(FILE).expect("sound");
        let mut today = figures.hashes().expect("a stage");
        let mut figure = figures.all[0].clone();
        assert_eq!(figure.state(&today), State::Stale);
        assert!(figure.is_outdated(&today));
        let page = |name: &str, text: &str| Page { name: name.to_owned(), text: text.to_owned() };
        let pages =
            [page("README.md", "<!--=it.ratio-->1<!--/-->"), page("guide", "<!--=its.a-->")];
        let fault = figure.fault(&today, &pages).expect("stale");
        let start = "`it`, shown in README.md, was measured with other texts than today's: hash \
                     0123456789abcdef of sgemm/02_naive, today ";
        let end = "`figures measure FOLDER --only it` (ladder sgemm --stage PARTS --json), or mark \
                   it with `figures mark`";
        assert!(fault.starts_with(start) && fault.ends_with(end), "{fault}");
        figure.taken.before = Some("b11c428e".to_owned());
        assert_eq!(figure.state(&today), State::Marked);
        assert_eq!(figure.fault(&today, &pages), None);
        today.insert("it".to_owned(), "0123456789abcdef".to_owned());
        assert_eq!(figure.state(&today), State::WronglyMarked);
        assert!(figure.fault(&today, &pages).is_some_and(|fault| fault.contains("b11c428e")));
        figure.taken.before = None;
        assert_eq!(figure.state(&today), State::Current);
        assert!(!figure.is_outdated(&today));
        figure.series[0].values.clear();
        assert!(figure.is_outdated(&today));
        figure.taken.hash = None;
        assert_eq!(figure.state(&today), State::Stale);
    }
}
