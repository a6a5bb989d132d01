//! Figures of the pages: bound to their texts, and written from their data.

use gemm_bench::figures::pages::{self, Page};
use gemm_bench::figures::select::select;
use gemm_bench::figures::{Figures, PATH, times};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn figures() -> Figures {
    Figures::parse(&read(&root().join(PATH))).unwrap_or_else(|fault| panic!("{fault}"))
}

fn pages() -> Vec<Page> {
    pages::all(&root()).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Figures of texts that have changed since the measurement say so.
#[test]
fn a_figure_is_of_the_text_of_today_or_marked() {
    let figures = figures();
    let today = figures.hashes().unwrap_or_else(|fault| panic!("{fault}"));
    let pages = pages();
    let faults = figures.all.iter().filter_map(|figure| figure.fault(&today, &pages));
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{} figures:\n{}", faults.len(), faults.join("\n"));
    assert!(today.len() > 100, "{}", today.len());
}

#[test]
fn the_data_is_complete() {
    let figures = figures();
    let printed = figures.print().unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(printed, read(&root().join(PATH)), "run `cargo bless-figures`");
    let ids: BTreeSet<&str> = figures.all.iter().map(|figure| &*figure.id).collect();
    assert_eq!(ids.len(), figures.all.len(), "two figures have one id");
    for figure in &figures.all {
        let id = &figure.id;
        let taken = &figure.taken;
        let is_date = taken.date.split('-').map(str::len).eq([4, 2, 2]);
        assert!(is_date && taken.commit.len() == 8, "{id}: date or commit");
        // A figure without texts has no hash, and one with texts has a hash or a mark.
        assert!(taken.hash.is_none() || !figure.texts.is_empty(), "{id}: hash");
        for series in &figure.series {
            let points = [0, 1, figure.at.len()];
            assert!(points.contains(&series.values.len()), "{id}: {}", series.name);
            assert_eq!(figure.command.is_some(), series.select.is_some(), "{id}: {}", series.name);
            let Some(selector) = &series.select else { continue };
            // Nothing matches in no output; a faulty selector has another message.
            let error = select(selector, &[]).expect_err("no output");
            assert!(error.contains("match"), "{id}: {error}");
        }
    }
}

/// Numbers on the pages equal the data, and every measured number refers to the data.
#[test]
fn pages_are_written_from_the_data() {
    let figures = figures();
    let mut values = 0;
    for Page { name, text: page } in pages() {
        let written =
            pages::write(&page, &figures).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let differ = page.lines().zip(written.lines()).find(|(page, written)| page != written);
        assert!(written == page, "{name}: run `cargo bless-figures`; a line differs: {differ:?}");
        values += page.matches("<!--/-->").count();
        // Markdown treats a line that begins with a comment as HTML, up to the end of the line.
        assert!(
            !page.lines().any(|line| line.starts_with("<!--=")),
            "{name}: a line begins with a reference"
        );
        let is_wide = |line: &&str| line.chars().count() > pages::WIDTH;
        assert_eq!(page.lines().find(is_wide), None, "{name}: a line is too wide");
        if name != pages::TABLES {
            assert_eq!(pages::unbound(&page), [""; 0], "{name}: a number is not of a figure");
        }
    }
    assert!(values > 20, "{values}");
}

/// The times of the book are those of the figures, for every stage that has times.
#[test]
fn times_of_the_book_are_figures() {
    let figures = figures();
    let file = read(&root().join(times::PATH));
    let mut compared = 0;
    for figure in &figures.all {
        let Some(times) = times::of_values(figure) else { continue };
        let in_file = times::of_file(&file, figure).expect("it has rows");
        assert_eq!(times, in_file, "{}", figure.id);
        compared += times.len();
    }
    let rows = file.lines().filter(|row| row.starts_with("sgemm,") || row.starts_with("reduce,"));
    let key = |row: &str| row.split(',').take(3).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(compared, rows.map(key).collect::<BTreeSet<_>>().len());
    for set in ["large", "small", "large_sample", "small_sample"] {
        assert!(figures.find(&format!("times/{set}")).is_some(), "{set}");
    }
}
