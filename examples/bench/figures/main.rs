//! Figures of the pages: lists the stale ones, measures them again, and writes the pages from their
//! data.
//!
//! ```text
//! cargo run --example figures -- stale              lists figures whose texts have changed
//! cargo build --release --examples
//! target/release/examples/figures measure taken     measures them on a GPU, into `taken`
//! cargo run --example figures -- write taken        writes the data and all pages
//! cargo run --example figures -- mark               marks the figures that were not measured again
//! ```
//!
//! Run the commands from the root of the repository. The exit code is 1 if a figure is stale and
//! not marked, or if a program computed a wrong result. It is 2 if the work failed.

mod measure;

use clap::{Parser, Subcommand};
use gemm_bench::cli::{Failure, Outcome, exit, named};
use gemm_bench::figures::runs::Measured;
use gemm_bench::figures::{Figures, PATH, State, pages, times};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Take the figures of the pages again, and write them
#[derive(Debug, Parser)]
#[command(name = "figures")]
struct FiguresOptions {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List the figures whose texts have changed
    Stale,
    /// Measure the figures whose texts have changed or that were never taken, on a GPU
    Measure(measure::MeasureOptions),
    /// Write the data and all pages, with measured figures if there are any
    Write {
        /// Folder of `figures measure`
        folder: Option<PathBuf>,
    },
    /// Mark the figures whose texts have changed as older than the current commit
    Mark,
}

fn main() -> ExitCode {
    exit(run(FiguresOptions::parse().task))
}

fn run(task: Task) -> Result<Outcome, Failure> {
    let mut figures = Figures::parse(&read(Path::new(PATH))?)?;
    let today = figures.hashes()?;
    match task {
        Task::Stale => {
            let pages = pages::all(Path::new("."))?;
            let mut outcome = Outcome::Right;
            for figure in &figures.all {
                let id = &figure.id;
                if let Some(fault) = figure.fault(&today, &pages) {
                    outcome = Outcome::Wrong;
                    say(&fault)?;
                } else if let Some(mark) = figure.mark() {
                    say(&format!("`{id}` is marked: {mark}"))?;
                } else if figure.is_outdated(&today) {
                    say(&format!("`{id}` was not taken yet"))?;
                }
            }
            Ok(outcome)
        }
        Task::Measure(options) => measure::measure(&figures, &today, &options),
        Task::Write { folder } => {
            if let Some(folder) = folder {
                let path = folder.join(measure::MEASURED);
                let measured: Result<Measured, _> = serde_json::from_str(&read(&path)?);
                let measured = measured.map_err(|error| faulty(&path, &error))?;
                let updated = figures.update(&measured, &today, &head()?);
                updated.map_err(Failure::Usage)?;
                measure::copy_plots(&figures, &measured, &folder)?;
            }
            for figure in &mut figures.all {
                if figure.state(&today) == State::WronglyMarked {
                    figure.taken.before = None;
                }
            }
            write(&figures)
        }
        Task::Mark => {
            if !unchanged("gemm-dsl/src runtime/src")? {
                return Err(Failure::Usage(
                    "the sources of the texts differ from the current commit, which a mark names. \
                     Commit them first"
                        .to_owned(),
                ));
            }
            let head = head()?;
            for figure in &mut figures.all {
                if figure.state(&today) == State::Stale {
                    figure.taken.before = Some(head.clone());
                }
            }
            write(&figures)
        }
    }
}

/// Writes the data, the times of the book and all pages.
fn write(figures: &Figures) -> Result<Outcome, Failure> {
    replace(Path::new(PATH), &figures.print()?)?;
    let path = Path::new(times::PATH);
    replace(path, &times::write(&read(path)?, figures))?;
    for page in pages::all(Path::new("."))? {
        let path = Path::new(&page.name);
        let text = pages::write(&page.text, figures);
        replace(path, &text.map_err(|reason| faulty(path, &reason))?)?;
    }
    Ok(Outcome::Right)
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| {
        Failure::Usage(format!("{}: {error}. Run from the root of the repository", path.display()))
    })
}

/// Writes a file if its text differs, and prints its name.
fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    if read(path)? == text {
        return Ok(());
    }
    fs::write(path, text).map_err(|error| named(path, &error))?;
    say(&format!("written: {}", path.display()))
}

fn faulty(path: &Path, reason: &dyn std::fmt::Display) -> Failure {
    Failure::Usage(format!("{}: {reason}", path.display()))
}

/// Abbreviated hash of the current commit.
fn head() -> Result<String, Failure> {
    let output = git("rev-parse --short=8 HEAD")?;
    Ok(String::from_utf8_lossy(&output).trim().to_owned())
}

/// True if these paths are as in the current commit.
fn unchanged(paths: &str) -> Result<bool, Failure> {
    Ok(git(&format!("status --porcelain -- {paths}"))?.is_empty())
}

fn git(arguments: &str) -> Result<Vec<u8>, Failure> {
    let output = Command::new("git").args(arguments.split(' ')).output();
    let output = output.map_err(|error| Failure::Missing(format!("git: {error}")))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(Failure::Missing(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

fn say(text: &str) -> Result<(), Failure> {
    Ok(writeln!(io::stdout(), "{text}")?)
}
