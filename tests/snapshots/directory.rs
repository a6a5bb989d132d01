//! The snapshot folder contains the snapshots of all pinned specs and no others.

use crate::folder;
use crate::text::is_pinned;
use gemm_dsl::stages::pinned::PinnedSpec;
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeSet;
use std::fs;
use std::io;

/// Snapshots of `tests/book`.
const BOOK: [&str; 6] = [
    "index.snap",
    "page.snap",
    "registers.csv",
    "report.snap",
    "sgemm_22_fastest.snap",
    "sgemm_39_warp_specialised.snap",
];

pub fn trial(stages: &[PinnedSpec]) -> Trial {
    let pages = BOOK.map(|name| format!("book/{name}"));
    let expected: BTreeSet<String> = stages.iter().flat_map(files).chain(pages).collect();
    Trial::test("directory", move || compare(&expected))
}

/// Files of a stage, relative to the folder.
fn files(stage: &PinnedSpec) -> Vec<String> {
    let texts =
        stage.kernels.iter().map(PinnedSpec::suffix).filter(|suffix| is_pinned(stage, suffix));
    let suffixes = texts.chain([".counters", ".resources"]);
    suffixes.map(|suffix| format!("{}/{}{suffix}.snap", stage.folder, stage.stem)).collect()
}

/// Contents of the folder, without the results of failed comparisons.
fn present() -> io::Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(folder())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !entry.file_type()?.is_dir() {
            files.insert(name);
            continue;
        }
        for file in fs::read_dir(entry.path())? {
            files.insert(format!("{name}/{}", file?.file_name().to_string_lossy()));
        }
    }
    files.retain(|file| !file.ends_with(".snap.new") && !file.ends_with(".pending-snap"));
    Ok(files)
}

fn compare(expected: &BTreeSet<String>) -> Result<(), Failed> {
    let present = present()?;
    // If snapshots are being updated, other tests may not have written theirs yet.
    let written = std::env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always");
    let missing: Vec<_> = expected.difference(&present).filter(|_| !written).collect();
    let unreferenced: Vec<_> = present.difference(expected).collect();
    if missing.is_empty() && unreferenced.is_empty() {
        return Ok(());
    }
    Err(format!("missing: {missing:?}, unreferenced: {unreferenced:?}; see `cargo bless`").into())
}
