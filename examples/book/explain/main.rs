//! Explains one spec: decisions of the plan, resources and occupancy on each architecture, counters
//! at a small shape, load of an SM, and source.
//!
//! ```text
//! cargo run --release --example explain -- "tile: 128x128x8, thread: 8x8, double_buffer"
//! cargo run --release --example explain -- "block: 128, items: 4, shuffle" --arch 90
//! ```
//!
//! A faulty spec prints the messages of the macro and exits with code 2.

mod counters;
mod family;
mod page;
mod resources;

use clap::Parser;
use counters::Sample;
use gemm_bench::cli::{Failure, Outcome, exit};
use gemm_bench::family::Family;
use gemm_dsl::plan::{Decision, ReducePlan, SgemmPlan};
use gemm_dsl::spec::Spec;
use gemm_dsl::{Plan, cuda};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Explain the kernel of a spec.
#[derive(Debug, Parser)]
#[command(name = "explain")]
struct ExplainOptions {
    /// Spec as in the macro, "tile: 128x128x8, thread: 8x8", or a call of the macro
    spec: String,
    /// Macro of the spec; by default the macro around the spec, or the macro that knows its keys
    #[arg(long)]
    family: Option<Family>,
    /// Architectures to compile for, such as 80,90 or sm_80,sm_90; by default all known
    /// architectures
    #[arg(long, value_delimiter = ',', value_parser = resources::architecture)]
    arch: Vec<u32>,
    /// Omit the CUDA C source
    #[arg(long)]
    no_source: bool,
    /// Write an HTML page to this file, with the cost of each line and the memory accesses; `-` is
    /// the standard output
    #[arg(long, value_name = "FILE", conflicts_with = "no_source")]
    html: Option<PathBuf>,
    /// Print the contents of the page as one JSON object
    #[arg(long, conflicts_with_all = ["html", "no_source"])]
    json: bool,
    /// Remove the barrier, wait or fence at this line of the kernel's source, and show the
    /// resulting fault
    #[arg(long, value_name = "LINE", conflicts_with = "against")]
    without: Option<usize>,
    /// Spec to compare with, in the page or the JSON object
    #[arg(long, value_name = "SPEC")]
    against: Option<String>,
}

fn main() -> ExitCode {
    exit(run(&ExplainOptions::parse()))
}

fn run(options: &ExplainOptions) -> Result<Outcome, Failure> {
    let asks = [("--against", options.against.is_some()), ("--without", options.without.is_some())];
    if let Some((asks, _)) = asks.iter().find(|(_, is_given)| *is_given)
        && options.html.is_none()
        && !options.json
    {
        let lacks = format!("{asks}: only pages have this option. Give --html FILE, or --json");
        return Err(Failure::Usage(lacks));
    }
    let line = family::line(&options.spec, options.family)?;
    if let Some(note) = &line.note {
        eprintln!("note: {note}");
    }
    if options.html.is_some() || options.json {
        return page::write(line.family, line.text, options);
    }
    match line.family {
        Family::Reduce => {
            let plan: ReducePlan = line.text.parse()?;
            explain(&plan, &plan.decisions(), options, || counters::reduce(&plan))
        }
        Family::Sgemm => {
            let plan: SgemmPlan = line.text.parse()?;
            explain(&plan, &plan.decisions(), options, || counters::product(&plan))
        }
    }
}

fn explain<P: Plan>(
    plan: &P,
    decisions: &[Decision],
    options: &ExplainOptions,
    sample: impl FnOnce() -> Result<Sample, Failure>,
) -> Result<Outcome, Failure> {
    let (spec, program) = (plan.spec(), plan.program()?);
    let kernel = program.preferred();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}!({spec})\n", <P::Spec as Spec>::MACRO)?;
    writeln!(out, "  {:22}{}", "kernel", kernel.name)?;
    for Decision { name, value, reason } in decisions {
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        writeln!(out, "  {name:22}{value}{reason}")?;
    }
    let placed = if kernel.shared_is_dynamic() { " (dynamic)" } else { "" };
    writeln!(out, "  {:22}{} bytes{placed}", "shared memory", kernel.shared_bytes())?;
    if let Some(fallback) = program.variants().nth(1) {
        let (first, second) = (&kernel.variant, &fallback.variant);
        let variants = format!("{first} if the operands allow it, else {second}");
        writeln!(out, "  {:22}{variants}", "accesses")?;
    }

    writeln!(out, "\nResources and occupancy\n")?;
    writeln!(out, "{}", resources::occupancy_table(kernel, &options.arch))?;

    match sample()? {
        Sample::TooLarge(why) => writeln!(out, "\nCounters\n\n  {why}")?,
        Sample::Counted(counted) => {
            writeln!(out, "\nCounters at {}, on the simulator\n", counted.shape)?;
            for (name, value) in &counted.lines {
                writeln!(out, "  {name:34}{value}")?;
            }
            writeln!(out, "\nLoad of an SM, predicted for the compiled kernel\n")?;
            for line in &counted.load {
                writeln!(out, "  {line}")?;
            }
        }
    }
    if !options.no_source {
        writeln!(out, "\nSource")?;
        for kernel in program.launched() {
            writeln!(out, "\n{}", cuda::source(kernel))?;
        }
    }
    Ok(Outcome::Right)
}
