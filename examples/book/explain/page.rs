//! HTML page of a spec.

use crate::{ExplainOptions, family, resources};
use gemm_bench::cli::{Failure, Outcome, named};
use gemm_bench::family::Family;
use gemm_bench::report::write_line;
use gemm_book::analysis;
use gemm_book::analysis::Subject;
use gemm_book::launch;
use gemm_book::launch::PageContent;
use gemm_book::page;
use serde::Serialize;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Writes the page of a spec to its file, or its contents to the standard output.
///
/// # Errors
/// Returns an error if a spec is faulty, the simulator finds a fault, or the file cannot be
/// written.
pub fn write(family: Family, line: &str, options: &ExplainOptions) -> Result<Outcome, Failure> {
    let program = analysis::program(family, line)?;
    if let Some(path) = file(options) {
        check(path)?;
    }
    let base = match &options.against {
        None => None,
        Some(spec) => {
            Some(("the other spec".to_owned(), family::against(spec, family)?.to_owned()))
        }
    };
    let subject = Subject {
        line: line.to_owned(),
        base,
        // Only stages have measured times.
        ..Subject::new(family)
    };
    match options.without {
        Some(without) => {
            let broken = analysis::without(&subject, without)?;
            let command = command(&[("--without", Some(without.to_string()))], options)?;
            put(options, &broken, |broken| page::broken(broken, &command))
        }
        None => {
            analysis::check(&subject)?;
            let (registers, refused) = resources::registers(program.preferred(), &options.arch);
            let registers_of = |kernel| resources::registers(kernel, &options.arch).0;
            let of_fallback = program.variants().nth(1).map_or(Vec::new(), registers_of);
            let of_base = match &subject.base {
                None => Vec::new(),
                Some((_, base)) => registers_of(analysis::program(family, base)?.preferred()),
            };
            let subject = Subject { registers, refused, of_fallback, of_base, ..subject };
            let archs: Vec<String> = options.arch.iter().map(u32::to_string).collect();
            let archs = Some(archs.join(",")).filter(|archs| !archs.is_empty());
            let against = options.against.clone();
            let command = command(&[("--arch", archs), ("--against", against)], options)?;
            let of_fault = self::command(&[], options)?;
            launch::draw(
                analysis::report(&subject),
                || analysis::fault(&subject),
                |drawn| match drawn {
                    PageContent::Kernel(report) => {
                        put(options, report, |report| page::kernel(report, None, &[], &command))
                    }
                    PageContent::Fault(broken) => {
                        put(options, broken, |broken| page::broken(broken, &of_fault))
                    }
                },
            )
        }
    }
}

/// Fails if the file cannot be written. The file system is left unchanged.
fn check(path: &Path) -> Result<(), Failure> {
    let is_new = !path.exists();
    let opened = fs::OpenOptions::new().append(true).create(true).open(path).map(drop);
    opened
        .and_then(|()| if is_new { fs::remove_file(path) } else { Ok(()) })
        .map_err(|error| named(path, &error))
}

/// Path of the page, or `None` for the standard output.
fn file(options: &ExplainOptions) -> Option<&Path> {
    options.html.as_deref().filter(|path| path.as_os_str() != "-")
}

/// Returns the shell command that creates the page, with the given options and `--family`.
///
/// # Errors
/// Returns an error for a spec that cannot be quoted, such as one with a zero byte.
fn command(given: &[(&str, Option<String>)], options: &ExplainOptions) -> Result<String, Failure> {
    let family = options.family.map(|family| family.word().to_owned());
    let mut words = vec!["explain", "--html", "FILE"];
    for (name, value) in
        [("--family", &family)].into_iter().chain(given.iter().map(|(n, v)| (*n, v)))
    {
        words.extend(value.iter().flat_map(|value| [name, value]));
    }
    words.push(&options.spec);
    shlex::try_join(words).map_err(|error| Failure::Usage(format!("the spec: {error}")))
}

/// Writes JSON or the page, to the file or to the standard output.
fn put<T: Serialize>(
    options: &ExplainOptions,
    found: &T,
    page: impl FnOnce(&T) -> Result<String, Failure>,
) -> Result<Outcome, Failure> {
    let mut out = std::io::stdout().lock();
    match (&options.html, file(options)) {
        (None, _) => write_line(&mut out, found)?,
        (_, None) => {
            out.write_all(page(found)?.as_bytes())?;
            out.flush()?;
        }
        (_, Some(path)) => {
            fs::write(path, page(found)?).map_err(|error| named(path, &error))?;
            writeln!(out, "written to {}", path.display())?;
        }
    }
    Ok(Outcome::Right)
}
