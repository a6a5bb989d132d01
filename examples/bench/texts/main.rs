//! Writes the texts (generated CUDA sources) of the pinned kernels into a folder, or compares them
//! with the texts of another build.
//!
//! ```text
//! cargo run --release --example texts -- dump old                    the texts of this build
//! cargo run --release --example texts -- compare old                 this build against `old`
//! cargo run --release --example texts -- compare old/snapshots new/snapshots --list
//! ```
//!
//! `compare` times every spec whose texts differ. Both texts are launched in turns, in one process,
//! on the same operands. The exit code is 1 if a new text is slower, computes different bits or
//! cannot be launched, and 2 if the work failed.

mod compare;
mod options;
mod table;

use clap::Parser;
use gemm_bench::cli::{Failure, Outcome, exit};
use gemm_bench::texts::changes::Changes;
use gemm_bench::texts::folder;
use gemm_dsl::stages::pinned;
use options::{CompareOptions, TextsOptions};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    exit(run(&TextsOptions::parse()))
}

fn run(options: &TextsOptions) -> Result<Outcome, Failure> {
    let specs = pinned::all()?;
    let generated = folder::generated(&specs);
    let options = match options {
        TextsOptions::Dump { folder } => {
            folder::write(folder, &generated)?;
            say(&format!("{} texts in {}", generated.len(), folder.display()))?;
            return Ok(Outcome::Right);
        }
        TextsOptions::Compare(options) => options,
    };
    let old = folder::read(&options.old)?;
    let new = options.new.as_ref().map(|folder| folder::read(folder)).transpose()?;
    let texts = [&old, new.as_ref().unwrap_or(&generated)];
    let mut changes = Changes::new(&specs, &generated, texts);
    changes.specs.retain(|changed| options.includes(changed));
    list(&changes, options)?;
    let is_refused = changes.specs.iter().any(|changed| !changed.refused.is_empty());
    if options.list || changes.specs.is_empty() {
        return Ok(if is_refused { Outcome::Wrong } else { Outcome::Right });
    }
    match compare::compare(changes.specs, texts, options)? {
        Outcome::Right if !is_refused => Ok(Outcome::Right),
        _ => Ok(Outcome::Wrong),
    }
}

/// Prints the specs whose texts differ, and the texts that cannot be compared.
fn list(changes: &Changes<'_>, options: &CompareOptions) -> Result<(), Failure> {
    let kernels: usize = changes.specs.iter().map(|changed| changed.kernels.len()).sum();
    note(options, &format!("{kernels} texts of {} specs differ", changes.specs.len()))?;
    for changed in changes.specs.iter().filter(|_| options.list) {
        note(options, &format!("  {}", compare::names(changed).join(", ")))?;
    }
    for reason in changes.specs.iter().flat_map(|changed| &changed.refused) {
        note(options, &format!("cannot be launched: {reason}"))?;
    }
    for (side, keys) in ["old", "new"].into_iter().zip(&changes.missing) {
        // Snapshots contain only a few of the scalar variants.
        let keys: Vec<&str> =
            keys.iter().map(String::as_str).filter(|key| !key.ends_with(".scalar")).collect();
        if !keys.is_empty() {
            note(options, &format!("only in the {side} build: {}", keys.join(", ")))?;
        }
    }
    Ok(())
}

/// Prints a message. It goes to the standard error if the results are JSON.
fn note(options: &CompareOptions, text: &str) -> Result<(), Failure> {
    if options.json {
        writeln!(io::stderr(), "{text}")?;
        return Ok(());
    }
    say(text)
}

fn say(text: &str) -> Result<(), Failure> {
    Ok(writeln!(io::stdout(), "{text}")?)
}
