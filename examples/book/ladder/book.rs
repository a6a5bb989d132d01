//! Output of the book to a folder.

use gemm_bench::cli::{Failure, Outcome, named};
use gemm_bench::progress;
use gemm_book::{live, site};
use gemm_dsl::stages;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Writes the book to a folder. Checks write access to the folder first, then renders all pages,
/// then writes them.
///
/// # Errors
/// Returns the error of a launch, or of a folder that cannot be written.
pub fn write(folder: &Path) -> Result<Outcome, Failure> {
    let made = fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder));
    made.map_err(|error| named(folder, &error))?;
    let bar = progress::bar(stages::reduce().len() + stages::sgemm().len());
    let told = |title: &str| {
        bar.set_message(title.to_owned());
        bar.inc(1);
    };
    let module = live::module();
    let pages = site::pages(&told, module.is_ok().then_some(live::FILE));
    bar.finish_and_clear();
    let mut pages = pages?;
    match module {
        Ok(module) => {
            pages.insert(live::FILE.to_owned(), live::page(&module, site::COMMAND)?);
        }
        Err(missing) => eprintln!("the live page is left out: {missing}"),
    }
    let mut bytes = 0;
    for (name, html) in &pages {
        let path = folder.join(name);
        fs::write(&path, html).map_err(|error| named(&path, &error))?;
        bytes += html.len();
    }
    let kb = bytes.div_ceil(1000);
    let first = folder.join("index.html");
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} pages, {kb} KB; the first is {}", pages.len(), first.display())?;
    Ok(Outcome::Right)
}
