//! The page of a spec.

use crate::{Options, family, resources};
use gemm_dsl::Family as _;
use gemm_examples::book::gather::{Subject, report};
use gemm_examples::book::page;
use gemm_examples::cli::{Failure, Outcome};
use gemm_examples::family::Family;
use gemm_examples::report::write_line;
use gemm_runtime::{ReduceSpec, SgemmSpec};
use std::fs;

/// Writes the page of a spec into its file, or what it says to the standard output.
///
/// # Errors
/// Faults of the specs, what the simulator finds, and a file that cannot be written.
pub fn write(family: Family, line: &str, options: &Options) -> Result<Outcome, Failure> {
    let program = match family {
        Family::Reduce => line.parse::<ReduceSpec>()?.program()?,
        Family::Sgemm => line.parse::<SgemmSpec>()?.program()?,
    };
    let base = match &options.against {
        None => None,
        Some(spec) => {
            let base = family::line(spec, Some(family))?;
            Some(("the other spec".to_owned(), base.text.to_owned()))
        }
    };
    let subject = Subject {
        family,
        title: None,
        line: line.to_owned(),
        base,
        registers: resources::registers(program.preferred(), &options.arch),
        // Those of the stages are of these alone.
        times: Vec::new(),
    };
    let report = report(&subject)?;
    match &options.html {
        None => write_line(&mut std::io::stdout().lock(), &report)?,
        Some(path) => {
            let command = format!("explain --html FILE {line:?}");
            fs::write(path, page::kernel(&report, None, &[], &command)?)?;
            println!("written to {}", path.display());
        }
    }
    Ok(Outcome::Right)
}
