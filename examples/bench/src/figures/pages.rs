//! Pages that show figures. A page refers to a value by comments around it, for example
//! `<!--=random.ratio-->1.79<!--/-->`; the number of decimals is the page's. The tables of
//! [`TABLES`] are written as a whole.

use super::{Figure, Figures, Series, Taken, times};
use crate::cli::{Failure, named};
use std::fs;
use std::path::Path;

/// Page with the tables of all figures, from the root of the repository.
pub const TABLES: &str = "examples/bench/README.md";

/// Pages with single values; every page of [`GUIDE`] is one, too.
const PAGES: [&str; 5] =
    ["README.md", "examples/README.md", TABLES, "runtime/README.md", "runtime/world/README.md"];
const GUIDE: &str = "runtime/docs/guide";

/// Comments around the tables.
const TABLES_START: &str = "<!-- figures -->\n";
const TABLES_END: &str = "<!-- end of figures -->";

/// Comments around a value: the reference is between the first two.
const REFERENCE: &str = "<!--=";
const VALUE: &str = "-->";
const END: &str = "<!--/-->";

/// Units of measured values.
const UNITS: [&str; 8] =
    ["TFLOP/s", "GFLOP/s", "GB/s", "TB/s", "µs", "ms", "% of the speed", "times as fast"];

/// Columns of a page.
pub const WIDTH: usize = 140;

/// Page that shows figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Path from the root of the repository.
    pub name: String,
    pub text: String,
}

/// Reads all pages.
///
/// # Errors
/// Returns an error with the path of a page that cannot be read.
pub fn all(root: &Path) -> Result<Vec<Page>, Failure> {
    let guide = root.join(GUIDE);
    let mut names = Vec::new();
    for entry in fs::read_dir(&guide).map_err(|error| named(&guide, &error))? {
        let name = entry?.file_name();
        names.push(format!("{GUIDE}/{}", name.display()));
    }
    names.retain(|name| name.ends_with(".md"));
    names.sort();
    let read = |name: String| {
        let path = root.join(&name);
        let text = fs::read_to_string(&path).map_err(|error| named(&path, &error))?;
        Ok(Page { name, text })
    };
    PAGES.iter().map(|page| (*page).to_owned()).chain(names).map(read).collect()
}

/// Returns the names of the pages and files that show a figure.
pub fn showing<'n>(figure: &'n Figure, pages: &'n [Page]) -> Vec<&'n str> {
    let reference = format!("{REFERENCE}{}.", figure.id);
    let is_in_tables = |page: &Page| page.name == TABLES && figure.section.is_some();
    let shown = pages.iter().filter(|page| page.text.contains(&reference) || is_in_tables(page));
    let book = times::is_shown(figure).then_some("the book");
    shown
        .map(|page| &*page.name)
        .chain(figure.plots.iter().map(String::as_str))
        .chain(book)
        .collect()
}

/// Returns the text of a page with the values of today.
///
/// # Errors
/// Returns a message for an unknown figure, for an unclosed comment, and for a marked figure whose
/// mark the page does not show.
pub fn write(page: &str, figures: &Figures) -> Result<String, String> {
    let mut written = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(REFERENCE) {
        let parts = after.split_once(VALUE).and_then(|(reference, value)| {
            let (value, rest) = value.split_once(END)?;
            Some((reference, value, rest))
        });
        let Some((reference, value, then)) = parts else {
            let start: String = after.chars().take(40).collect();
            return Err(format!("`{REFERENCE}{start}` does not end with `{END}`"));
        };
        let value = shown(reference, value, figures)?;
        written += &format!("{before}{REFERENCE}{reference}{VALUE}{value}{END}");
        rest = then;
    }
    written += rest;
    check_marks(page, figures)?;
    let Some((before, after)) = written.split_once(TABLES_START) else { return Ok(written) };
    let Some((_, after)) = after.split_once(TABLES_END) else {
        return Err(format!("the tables do not end with `{TABLES_END}`"));
    };
    Ok(format!("{before}{TABLES_START}{}{TABLES_END}{after}", tables(figures)))
}

/// Returns a value that a page refers to: `ID.date`, `ID.SERIES` or `ID.SERIES.N`, N from 1 on.
fn shown(reference: &str, old: &str, figures: &Figures) -> Result<String, String> {
    let unknown = || format!("`{reference}` refers to no value of a figure");
    let mut parts = reference.split('.');
    let figure = parts.next().and_then(|id| figures.find(id)).ok_or_else(unknown)?;
    let name = parts.next().ok_or_else(unknown)?;
    if name == "date" {
        let date = &figure.taken.date;
        return Ok(figure.mark().map_or(date.clone(), |mark| format!("{date} ({mark})")));
    }
    let number = parts.next().map_or(Ok(1), str::parse).map_err(|_| unknown())?;
    let series = figure.series.iter().find(|series| series.name == name).ok_or_else(unknown)?;
    let index = usize::checked_sub(number, 1);
    let value = index.and_then(|at| series.values.get(at)).ok_or_else(unknown)?;
    let old = old.split(' ').next().unwrap_or_default();
    let decimals = old.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let as_recorded = old.is_empty() || old.contains('e');
    Ok(if as_recorded { number_text(*value) } else { format!("{value:.decimals$}") })
}

/// Checks that a page with a value of a marked figure also shows the mark, which only dates have.
/// The date may be that of another figure with the same date and mark.
fn check_marks(page: &str, figures: &Figures) -> Result<(), String> {
    let references = page.split(REFERENCE).skip(1).filter_map(|after| {
        let (reference, _) = after.split_once(VALUE)?;
        let (id, name) = reference.split_once('.')?;
        Some((figures.find(id)?, name))
    });
    let references: Vec<(&Figure, &str)> = references.collect();
    for (Figure { id, taken, .. }, _) in &references {
        let shows_mark = |(of, name): &(&Figure, &str)| {
            *name == "date" && (&of.taken.date, &of.taken.before) == (&taken.date, &taken.before)
        };
        if taken.before.is_some() && !references.iter().any(shows_mark) {
            let reference = format!("{REFERENCE}{id}.date{VALUE}{END}");
            return Err(format!("`{id}` is marked, so the page needs its date: `{reference}`"));
        }
    }
    Ok(())
}

fn number_text(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-3 { format!("{value:e}") } else { value.to_string() }
}

/// Lays out the tables: one for each section of the figures, with its measurements and notes.
fn tables(figures: &Figures) -> String {
    let mut text = String::new();
    let sections = figures.all.iter().filter_map(|figure| figure.section.as_deref());
    for section in in_order(sections) {
        let own = figures.all.iter().filter(|of| of.section.as_deref() == Some(section));
        let measurements = in_order(own.clone().map(measurement));
        let rows = own.clone().map(|figure| {
            let is_own = |known: &String| *known == measurement(figure);
            rows(figure, measurements.iter().position(is_own).map_or(0, |index| index + 1))
        });
        let rows: String = rows.collect();
        text += &format!("\n### {section}\n\n| id | figure | values | peer | taken |\n");
        text += &format!("| --- | --- | --- | --- | --- |\n{rows}\nTaken:\n\n");
        for (index, measurement) in measurements.iter().enumerate() {
            text += &format!("{}. {measurement}\n", index + 1);
        }
        let notes = own.filter_map(|figure| {
            let note = figure.note.as_ref()?;
            let what = figure.what.trim_end_matches(',');
            Some(filled(&format!("* {what}: {note}")) + "\n")
        });
        let notes: String = notes.collect();
        if !notes.is_empty() {
            text += &format!("\n{notes}");
        }
    }
    text + "\n"
}

fn in_order<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for item in items {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    all
}

/// Breaks an item of a list into lines.
fn filled(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            None => lines.push(word.to_owned()),
            Some(last) if last.chars().count() + word.chars().count() < WIDTH => {
                *last += " ";
                *last += word;
            }
            Some(_) => lines.push(format!("  {word}")),
        }
    }
    lines.join("\n")
}

/// Rows of a figure: one, or one for each series if a row is too wide. The id is that of the
/// command line: a figure without a command has none.
fn rows(figure: &Figure, taken: usize) -> String {
    let Figure { id, what, at, command, peer, series, .. } = figure;
    let id = command.as_ref().map_or(String::new(), |_| format!("`{id}`"));
    let at = match series.iter().any(|series| series.values.len() > 1) {
        true => format!(" at {}", at.join(", ")),
        false => String::new(),
    };
    let one = |Series { name, unit, values, .. }: &Series| {
        let values: Vec<String> = values.iter().map(|value| number_text(*value)).collect();
        let unit = unit.as_ref().map_or(String::new(), |unit| format!(" {unit}"));
        match &values[..] {
            [] => format!("{name}: not taken yet"),
            values => format!("{name}: {}{unit}", values.join(", ")),
        }
    };
    let values: Vec<String> = match &series[..] {
        [] => figure.plots.clone(),
        series => series.iter().map(one).collect(),
    };
    let peer = peer.as_deref().unwrap_or("none");
    let row = |values: &str| format!("| {id} | {what}{at} | {values} | {peer} | {taken} |\n");
    let whole = row(&values.join("; "));
    // The newline is not a column.
    if whole.chars().count() <= WIDTH + 1 {
        return whole;
    }
    let next = |values: &String| format!("|  |  | {values} |  |  |\n");
    let first = values.first().map_or(String::new(), |first| row(first));
    first + &values.iter().skip(1).map(next).collect::<String>()
}

/// Circumstances of a figure's measurement.
fn measurement(figure: &Figure) -> String {
    let Taken { device, date, commit, before, .. } = &figure.taken;
    let device = device.replace("NVIDIA ", "");
    let mark =
        before.as_ref().map_or(String::new(), |of| format!(", with kernels older than `{of}`"));
    format!("{device}, {date}, `{commit}`{mark}")
}

/// Returns the lines of a page that have a number with a unit of measured values, but not from a
/// figure.
pub fn unbound(page: &str) -> Vec<&str> {
    let is_unbound = |line: &&str| {
        let mut text = String::new();
        let mut rest: &str = line;
        while let Some((before, after)) = rest.split_once(REFERENCE) {
            text += before;
            rest = after.split_once(END).map_or("", |(_, rest)| rest);
        }
        text += rest;
        UNITS.iter().any(|unit| {
            text.match_indices(unit).any(|(at, _)| {
                let number = text[..at].trim_end_matches(' ');
                let is_word = text[at + unit.len()..].starts_with(char::is_alphanumeric);
                !is_word && number.ends_with(|c: char| c.is_ascii_digit())
            })
        })
    };
    page.lines().filter(is_unbound).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Figures {
        let series = |name: &str, unit: Option<&str>, values: &[f64]| Series {
            name: name.to_owned(),
            unit: unit.map(str::to_owned),
            values: values.to_vec(),
            select: None,
        };
        let random = Figure {
            id: "random".to_owned(),
            section: Some("Shapes".to_owned()),
            what: "60 random sizes".to_owned(),
            peer: Some("cuBLAS".to_owned()),
            command: Some("grid --random 60 --json FILE".to_owned()),
            taken: Taken {
                device: "NVIDIA H200".to_owned(),
                date: "2026-11-26".to_owned(),
                commit: "a0f23776".to_owned(),
                ..Taken::default()
            },
            series: vec![series("ratio", None, &[1.788]), series("least", None, &[0.828])],
            ..Figure::default()
        };
        let fastest = Figure {
            id: "fastest".to_owned(),
            what: "stage 22".to_owned(),
            at: vec!["2048".to_owned(), "4096".to_owned()],
            taken: Taken { before: Some("b11c428e".to_owned()), ..random.taken.clone() },
            note: Some("a note".to_owned()),
            series: vec![
                series("rate", Some("TFLOP/s"), &[51.3, 52.6]),
                series("error", None, &[]),
            ],
            command: None,
            ..random.clone()
        };
        Figures { all: vec![random, fastest] }
    }

    #[test]
    fn values_are_written_with_the_decimals_of_the_page() {
        let page = "a <!--=random.ratio-->9.99<!--/-->, <!--=fastest.rate.2-->7<!--/--> and \
                    <!--=random.least--><!--/--> of <!--=random.date-->?<!--/-->, \
                    <!--=fastest.date-->?<!--/-->";
        let written = write(page, &figures()).expect("sound");
        assert_eq!(
            written,
            "a <!--=random.ratio-->1.79<!--/-->, <!--=fastest.rate.2-->53<!--/--> and \
             <!--=random.least-->0.828<!--/--> of <!--=random.date-->2026-11-26<!--/-->, \
             <!--=fastest.date-->2026-11-26 (with kernels older than commit `b11c428e`)<!--/-->"
        );
        assert_eq!(write(&written, &figures()).as_ref(), Ok(&written));
        let unmarked = written.replace("fastest.date", "random.date");
        let error = write(&unmarked, &figures()).expect_err("no mark");
        assert!(error.ends_with("`<!--=fastest.date--><!--/-->`"), "{error}");
        for page in [
            "<!--=random-->1<!--/-->",
            "<!--=fastest.rate.3-->1<!--/-->",
            "<!--=fastest.rate.0-->1<!--/-->",
            "<!--=fastest.error-->1<!--/-->",
            "<!--=slowest.rate-->1<!--/-->",
            "<!--=random.ratio-->1",
        ] {
            write(page, &figures()).expect_err(page);
        }
    }

    #[test]
    fn tables_have_every_value_with_its_commit() {
        let page = "before\n<!-- figures -->\nold\n<!-- end of figures -->\nafter\n";
        let written = write(page, &figures()).expect("sound");
        let expected = "before\n<!-- figures -->\n\n### Shapes\n\n\
            | id | figure | values | peer | taken |\n| --- | --- | --- | --- | --- |\n\
            | `random` | 60 random sizes | ratio: 1.788; least: 0.828 | cuBLAS | 1 |\n\
            |  | stage 22 at 2048, 4096 | rate: 51.3, 52.6 TFLOP/s; error: not taken yet | \
            cuBLAS | 2 |\n\n\
            Taken:\n\n1. H200, 2026-11-26, `a0f23776`\n\
            2. H200, 2026-11-26, `a0f23776`, with kernels older than `b11c428e`\n\n\
            * stage 22: a note\n\n<!-- end of figures -->\nafter\n";
        assert_eq!(written, expected);
        assert_eq!(write(&written, &figures()).as_ref(), Ok(&written));
    }

    #[test]
    fn a_measured_number_outside_of_a_figure_is_found() {
        let page = "53 TFLOP/s\n<!--=random.ratio-->53<!--/--> TFLOP/s\n5.5 µs\nin 20 msec\n\
                    at <!--=a.b-->1<!--/--> of 4.5 TB/s\n1.18 times as fast\nin 6 ms.\n";
        let found = unbound(page);
        assert_eq!(found.len(), 5, "{found:?}");
        assert_eq!(found[2], "at <!--=a.b-->1<!--/--> of 4.5 TB/s");
    }

    #[test]
    fn a_wide_row_is_broken() {
        let mut figures = figures();
        for series in &mut figures.all[1].series {
            series.values = vec![1.25; 12];
        }
        let rows = rows(&figures.all[1], 2);
        let lines: Vec<&str> = rows.lines().collect();
        let values = ["1.25"; 12].join(", ");
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("|  | stage 22 at 2048, 4096 | rate: 1.25, "), "{rows}");
        assert_eq!(lines[1], format!("|  |  | error: {values} |  |  |"));
    }

    #[test]
    fn a_long_note_is_broken() {
        let note = format!("*{}", " a note".repeat(30));
        let lines = filled(&note);
        assert!(lines.lines().all(|line| line.len() <= WIDTH) && lines.lines().count() == 2);
        assert_eq!(lines.replace("\n ", ""), note);
    }

    #[test]
    fn pages_that_show_a_figure_are_found() {
        let page = |name: &str, text: &str| Page { name: name.to_owned(), text: text.to_owned() };
        let pages = [
            page("README.md", "<!--=random.ratio-->1<!--/-->"),
            page(TABLES, ""),
            page("guide.md", "<!--=randomly.ratio-->1<!--/-->"),
        ];
        let mut random = figures().all.remove(0);
        assert_eq!(showing(&random, &pages), ["README.md", TABLES]);
        random.section = None;
        random.id = "times/sgemm/02_naive".to_owned();
        random.plots = vec!["a.svg".to_owned()];
        assert_eq!(showing(&random, &pages), ["a.svg", "the book"]);
    }
}
