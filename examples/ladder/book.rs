//! The book, written into a folder.

use gemm_dsl::stages;
use gemm_examples::book::{live, whole};
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
    let told = |title: &str| {
        bar.set_message(title.to_owned());
        bar.inc(1);
    };
    let module = live::module();
    let pages = whole::pages(&told, module.is_ok().then_some(live::FILE));
    bar.finish_and_clear();
    let mut pages = pages?;
    match module {
        Ok(module) => {
            pages.insert(live::FILE.to_owned(), live::page(&module, whole::COMMAND)?);
        }
        Err(missing) => eprintln!("without the live page: {missing}"),
    }
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
