//! Pages that show figures. A page refers to a value by comments around it, for example
//! `<!--=random.ratio-->1.79<!--/-->`; the number of decimals is the page's. The tables of
//! [`TABLES`] are written as a whole.

use super::{Figure, Figures, Series};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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
const WIDTH: usize = 140;

/// Returns the paths of all pages.
///
/// # Errors
/// Returns the error of reading the folder of the guide.
pub fn paths(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut guide = Vec::new();
    for entry in fs::read_dir(root.join(GUIDE))? {
        guide.push(entry?.path());
    }
    guide.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    guide.sort();
    Ok(PAGES.iter().map(|page| root.join(page)).chain(guide).collect())
}

/// Returns the text of a page with the values of today.
///
/// # Errors
/// Returns a message for an unknown figure, and for an unclosed comment.
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
    let marked = |text: String| match figure.mark() {
        Some(mark) => format!("{text} ({mark})"),
        None => text,
    };
    if name == "date" {
        return Ok(marked(figure.date.clone()));
    }
    let number = parts.next().map_or(Ok(1), str::parse).map_err(|_| unknown())?;
    let series = figure.series.iter().find(|series| series.name == name).ok_or_else(unknown)?;
    let index = usize::checked_sub(number, 1);
    let value = index.and_then(|at| series.values.get(at)).ok_or_else(unknown)?;
    let old = old.split(' ').next().unwrap_or_default();
    let decimals = old.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let as_recorded = old.is_empty() || old.contains('e');
    let text = if as_recorded { number_text(*value) } else { format!("{value:.decimals$}") };
    Ok(marked(text))
}

fn number_text(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-3 { format!("{value:e}") } else { value.to_string() }
}

/// Lays out the tables: a section for each of the figures', a table for each command.
fn tables(figures: &Figures) -> String {
    let mut text = String::new();
    let shown: Vec<(&str, &Figure)> = figures
        .all
        .iter()
        .filter_map(|figure| Some((figure.section.as_deref()?, figure)))
        .collect();
    for section in in_order(shown.iter().map(|(section, _)| *section)) {
        text += &format!("\n### {section}\n");
        let of_section = shown.iter().filter(|(of, _)| *of == section).map(|(_, figure)| *figure);
        let of_section: Vec<&Figure> = of_section.collect();
        for command in in_order(of_section.iter().map(|figure| figure.command.as_deref())) {
            text += &match command {
                Some(command) => {
                    let calls = command.split("; ").map(|call| filled(call, " \\", "    "));
                    let calls: Vec<String> = calls.collect();
                    format!("\n```text\n{}\n```\n", calls.join("\n"))
                }
                None => "\nWithout a command that takes them again:\n".to_owned(),
            };
            text += "\n| figure | value | peer | taken |\n| --- | --- | --- | --- |\n";
            let own = of_section.iter().filter(|figure| figure.command.as_deref() == command);
            for figure in own.clone() {
                text += &rows(figure);
            }
            let notes = own.filter_map(|figure| {
                let (what, note) = (figure.what.trim_end_matches(','), figure.note.as_ref()?);
                Some(filled(&format!("* {what}: {note}"), "", "  ") + "\n")
            });
            let notes: String = notes.collect();
            if !notes.is_empty() {
                text += &format!("\n{notes}");
            }
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

/// Breaks a text into lines of the page's width, with an end and the start of the next line at each
/// break.
fn filled(text: &str, end: &str, start: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            None => lines.push(word.to_owned()),
            Some(last) if last.chars().count() + word.chars().count() + end.len() < WIDTH => {
                *last += " ";
                *last += word;
            }
            Some(last) => {
                *last += end;
                lines.push(format!("{start}{word}"));
            }
        }
    }
    lines.join("\n")
}

/// Rows of a figure, one for each series.
fn rows(figure: &Figure) -> String {
    let device = figure.device.replace("NVIDIA ", "");
    let mark = figure.before.as_ref().map_or(String::new(), |of| format!(", before `{of}`"));
    let taken = format!("{device}, {}, `{}`{mark}", figure.date, figure.commit);
    let peer = figure.peer.as_deref().unwrap_or("none");
    let row = |Series { name, unit, values, .. }: &Series| {
        let at = match values.len() {
            2.. if !figure.at.is_empty() => format!(" at {}", figure.at.join(", ")),
            _ => String::new(),
        };
        let values: Vec<String> = values.iter().map(|value| number_text(*value)).collect();
        let unit = unit.as_ref().map_or(String::new(), |unit| format!(" {unit}"));
        let values = match &values[..] {
            [] => "not taken yet".to_owned(),
            values => format!("{}{unit}", values.join(", ")),
        };
        format!("| {}{at}: {name} | {values} | {peer} | {taken} |\n", figure.what)
    };
    match &figure.series[..] {
        [] => format!("| {} | {} | {peer} | {taken} |\n", figure.what, figure.plots.join(", ")),
        series => series.iter().map(row).collect(),
    }
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
            device: "NVIDIA H200".to_owned(),
            driver: Some("580".to_owned()),
            date: "2026-11-26".to_owned(),
            commit: "a0f23776".to_owned(),
            series: vec![series("ratio", None, &[1.788]), series("least", None, &[0.828])],
            ..Figure::default()
        };
        let fastest = Figure {
            id: "fastest".to_owned(),
            what: "stage 22".to_owned(),
            at: vec!["2048".to_owned(), "4096".to_owned()],
            before: Some("b11c428e".to_owned()),
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
            "a <!--=random.ratio-->1.79<!--/-->, <!--=fastest.rate.2-->53 (before commit \
             `b11c428e`)<!--/--> and <!--=random.least-->0.828<!--/--> of \
             <!--=random.date-->2026-11-26<!--/-->, <!--=fastest.date-->2026-11-26 (before commit \
             `b11c428e`)<!--/-->"
        );
        assert_eq!(write(&written, &figures()).as_ref(), Ok(&written));
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
        let expected = "before\n<!-- figures -->\n\n### Shapes\n\n```text\n\
            grid --random 60 --json FILE\n```\n\n\
            | figure | value | peer | taken |\n| --- | --- | --- | --- |\n\
            | 60 random sizes: ratio | 1.788 | cuBLAS | H200, 2026-11-26, `a0f23776` |\n\
            | 60 random sizes: least | 0.828 | cuBLAS | H200, 2026-11-26, `a0f23776` |\n\n\
            Without a command that takes them again:\n\n\
            | figure | value | peer | taken |\n| --- | --- | --- | --- |\n\
            | stage 22 at 2048, 4096: rate | 51.3, 52.6 TFLOP/s | cuBLAS | H200, 2026-11-26, \
            `a0f23776`, before `b11c428e` |\n\
            | stage 22: error | not taken yet | cuBLAS | H200, 2026-11-26, `a0f23776`, before \
            `b11c428e` |\n\n* stage 22: a note\n\n<!-- end of figures -->\nafter\n";
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
    fn a_long_command_is_broken() {
        let command = format!("ladder{}", " --an-option 512,1024".repeat(12));
        let lines = filled(&command, " \\", "    ");
        assert!(lines.lines().all(|line| line.len() <= WIDTH) && lines.lines().count() == 2);
        assert_eq!(lines.replace(" \\\n   ", ""), command);
    }
}
