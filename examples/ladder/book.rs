//! The book, written into a folder.

use gemm_dsl::stages;
use gemm_examples::book::whole;
use gemm_examples::cli::{Failure, Outcome};
use gemm_examples::progress;
use std::fs;
use std::path::Path;

/// Makes all pages, and only then writes them.
///
/// # Errors
/// Those of the launches, and a folder that cannot be written.
pub fn write(folder: &Path) -> Result<Outcome, Failure> {
    let bar = progress::bar(stages::reduce().len() + stages::sgemm().len());
    let pages = whole::pages(&|title: &str| {
        bar.set_message(title.to_owned());
        bar.inc(1);
    });
    bar.finish_and_clear();
    let pages = pages?;
    fs::create_dir_all(folder)?;
    let mut bytes = 0;
    for (name, html) in &pages {
        fs::write(folder.join(name), html)?;
        bytes += html.len();
    }
    let kb = bytes.div_ceil(1000);
    println!("{} pages, {kb} KB, from {} on", pages.len(), folder.join("index.html").display());
    Ok(Outcome::Right)
}
