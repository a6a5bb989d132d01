//! Explains one spec: its geometry, what it occupies and how many blocks fit on each
//! architecture, what the simulator counts at a small shape, what limits it, and its source.
//!
//! ```text
//! cargo run --release --example explain -- "tile: 128x128x8, thread: 8x8, double_buffer"
//! cargo run --release --example explain -- "block: 128, items: 4, shuffle" --arch 90
//! ```
//!
//! A faulty spec gives the messages of the macro and the exit code 2.

mod counters;
mod geometry;
mod resources;

use clap::{Parser, ValueEnum};
use gemm_dsl::{cuda, spec::Spec};
use gemm_examples::cli::{Failure, Outcome, exit};
use gemm_runtime::{ReduceSpec, SgemmSpec, SpecErrors};
use std::io::Write;
use std::process::ExitCode;

/// Explain what a spec becomes.
#[derive(Debug, Parser)]
#[command(name = "explain")]
struct Options {
    /// The spec, as it stands in the macro: "tile: 128x128x8, thread: 8x8"
    spec: String,
    /// The macro; without it, the one whose keys these are
    #[arg(long)]
    family: Option<Family>,
    /// Architectures to compile for, as 80,90; without it all that are known
    #[arg(long, value_delimiter = ',')]
    arch: Vec<u32>,
    /// Leave the CUDA C out
    #[arg(long)]
    no_source: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Family {
    Reduce,
    Sgemm,
}

fn main() -> ExitCode {
    exit(run(&Options::parse()))
}

fn run(options: &Options) -> Result<Outcome, Failure> {
    match parse(&options.spec, options.family)? {
        Parsed::Reduce(spec) => {
            let plan = spec.plan()?;
            explain(&spec, &geometry::of_reduction(&plan), options, || counters::reduce(&plan))
        }
        Parsed::Sgemm(spec) => {
            let plan = spec.plan()?;
            explain(&spec, &geometry::of_product(&plan), options, || counters::product(&plan))
        }
    }
}

/// A spec of either family.
enum Parsed {
    Reduce(ReduceSpec),
    Sgemm(SgemmSpec),
}

/// Reads a spec. Where the family is not said and the spec is faulty in both, its faults are those
/// of the family that knows more of its keys; of a product if both know as many.
fn parse(text: &str, family: Option<Family>) -> Result<Parsed, SpecErrors> {
    let reduce = || text.parse().map(Parsed::Reduce);
    let sgemm = || text.parse().map(Parsed::Sgemm);
    match family {
        Some(Family::Reduce) => reduce(),
        Some(Family::Sgemm) => sgemm(),
        None => sgemm().or_else(|of_sgemm| {
            reduce().map_err(|of_reduce| {
                let (reduce, sgemm) = (ReduceSpec::keys(), SgemmSpec::keys());
                if known(text, &reduce) > known(text, &sgemm) { of_reduce } else { of_sgemm }
            })
        }),
    }
}

/// How many entries of a line have one of these keys.
fn known(line: &str, keys: &[&str]) -> usize {
    let entries = line.trim().trim_start_matches('<').trim_end_matches('>').split(',');
    let key = |entry: &str| entry.split(':').next().unwrap_or("").trim().to_owned();
    entries.filter(|entry| keys.contains(&key(entry).as_str())).count()
}

fn explain<S: Spec>(
    spec: &S,
    geometry: &[(&str, String)],
    options: &Options,
    count: impl FnOnce() -> Result<counters::Counted, Failure>,
) -> Result<Outcome, Failure> {
    let program = spec.program()?;
    let kernel = &program.kernel;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}!({spec})\n", S::MACRO)?;
    writeln!(out, "  {:22}{}", "kernel", kernel.name)?;
    for (name, value) in geometry {
        writeln!(out, "  {name:22}{value}")?;
    }
    let placed = if kernel.shared_is_dynamic() { " (dynamic)" } else { "" };
    writeln!(out, "  {:22}{} bytes{placed}", "shared memory", kernel.shared_bytes())?;
    if let Some(fallback) = &program.fallback {
        let variants =
            format!("{}, or {} where rows are not aligned", kernel.variant, fallback.variant);
        writeln!(out, "  {:22}{variants}", "accesses")?;
    }

    writeln!(out, "\nResources and occupancy\n")?;
    writeln!(out, "{}", resources::of(kernel, &options.arch)?)?;

    let counted = count()?;
    writeln!(out, "\nCounters at {}, on the simulator\n", counted.shape)?;
    for (name, value) in &counted.lines {
        writeln!(out, "  {name:22}{value}")?;
    }
    writeln!(out, "\nWhat limits it\n")?;
    for limit in &counted.limits {
        writeln!(out, "  {limit}")?;
    }
    if !options.no_source {
        writeln!(out, "\nSource\n\n{}", cuda::source(kernel))?;
    }
    Ok(Outcome::Right)
}
