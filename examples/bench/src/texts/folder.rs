//! Folders of texts, which are generated CUDA sources: output of `texts dump`, or `snapshots/` of
//! any commit.

use crate::cli::{Failure, named};
use gemm_dsl::cuda;
use gemm_dsl::stages::pinned::PinnedSpec;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Start of the first line of a text that `texts dump` wrote.
const DYNAMIC: &str = "// Bytes of dynamic shared memory: ";

/// Source of a kernel in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelText {
    pub source: String,
    /// Bytes of dynamic shared memory that the kernel needs, if they are recorded.
    pub dynamic_shared: Option<u64>,
}

/// Texts by folder, stem and suffix, for example `sgemm/22_fastest.scalar`.
pub type Texts = BTreeMap<String, KernelText>;

/// Returns the texts of this build.
pub fn generated(specs: &[PinnedSpec]) -> Texts {
    let texts = specs.iter().flat_map(|spec| {
        spec.kernels.iter().map(|kernel| {
            let dynamic_shared = Some(kernel.contract().dynamic_shared_bytes());
            let text = KernelText { source: cuda::source(kernel), dynamic_shared };
            (key(spec, PinnedSpec::suffix(kernel)), text)
        })
    });
    texts.collect()
}

/// Returns the key of a kernel.
pub fn key(spec: &PinnedSpec, suffix: &str) -> String {
    format!("{}/{}{suffix}", spec.folder, spec.stem)
}

/// Writes texts, each into a file of its key with the extension `cu`.
///
/// # Errors
/// Returns [`Failure::Output`] with the name of a file that cannot be written.
pub fn write(folder: &Path, texts: &Texts) -> Result<(), Failure> {
    for (key, KernelText { source, dynamic_shared }) in texts {
        let path = folder.join(format!("{key}.cu"));
        let bytes = dynamic_shared.unwrap_or_default();
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = made.and_then(|()| fs::write(&path, format!("{DYNAMIC}{bytes}\n{source}")));
        written.map_err(|error| named(&path, &error))?;
    }
    Ok(())
}

/// Reads the texts of a folder: files of [`write()`], or snapshots with their resource reports.
///
/// # Errors
/// Returns [`Failure::Usage`] if the folder cannot be read or contains no texts.
pub fn read(folder: &Path) -> Result<Texts, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::Usage(format!("{}: {error}. Give a folder of texts", folder.display()))
    };
    let mut texts = Texts::new();
    for entry in fs::read_dir(folder).map_err(|error| failed(&error))? {
        let path = entry.map_err(|error| failed(&error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The folder `book` contains snapshots of pages, not of kernels.
        if !path.is_dir() || name == "book" {
            continue;
        }
        for file in fs::read_dir(&path).map_err(|error| failed(&error))? {
            let file = file.map_err(|error| failed(&error))?.path();
            if let Some((stem, text)) = text(&file).map_err(|error| failed(&error))? {
                texts.insert(format!("{name}/{stem}"), text);
            }
        }
    }
    if texts.is_empty() { Err(failed(&"no texts")) } else { Ok(texts) }
}

/// Reads the text of a file, with the part of its key that follows the folder. Returns `None` for
/// other files.
fn text(path: &Path) -> std::io::Result<Option<(String, KernelText)>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(stem) = name.strip_suffix(".cu") {
        let text = fs::read_to_string(path)?;
        let recorded = text.split_once('\n').and_then(|(first, source)| {
            Some((first.strip_prefix(DYNAMIC)?.parse().ok()?, source.to_owned()))
        });
        let (dynamic_shared, source) = recorded.map_or((None, text), |(n, text)| (Some(n), text));
        return Ok(Some((stem.to_owned(), KernelText { source, dynamic_shared })));
    }
    let Some(key) = name.strip_suffix(".snap") else { return Ok(None) };
    let (stem, suffix) = key.split_once('.').unwrap_or((key, ""));
    if ["counters", "resources"].contains(&suffix) {
        return Ok(None);
    }
    let snapshot = fs::read_to_string(path)?;
    let Some((_, source)) = snapshot.split_once("\n---\n") else { return Ok(None) };
    let resources = fs::read_to_string(path.with_file_name(format!("{stem}.resources.snap")));
    let dynamic_shared = dynamic_shared(&resources.unwrap_or_default(), suffix);
    Ok(Some((key.to_owned(), KernelText { source: source.to_owned(), dynamic_shared })))
}

/// Returns the bytes of dynamic shared memory in a resource report, by the suffix of the kernel.
fn dynamic_shared(report: &str, suffix: &str) -> Option<u64> {
    let variants: &[&str] = if suffix.is_empty() { &["vector", "-"] } else { &[suffix] };
    let rows = report.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut rows = rows.filter(|row| row.first().is_some_and(|first| variants.contains(first)));
    // The last column is the number of barriers, the one before it the dynamic shared memory.
    rows.next()?.iter().rev().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts::code;
    use gemm_dsl::stages::pinned;

    /// Both kinds of folders contain the texts and the bytes of shared memory of this build.
    #[test]
    fn folders_have_what_is_generated() {
        let mut specs = pinned::all().expect("sound");
        specs.extend(pinned::untimed().expect("sound"));
        let texts = generated(&specs);
        let dumped = tempfile::tempdir().expect("a folder");
        write(dumped.path(), &texts).expect("written");
        assert_eq!(read(dumped.path()).expect("texts"), texts);

        let snapshots = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../snapshots");
        let snapshots = read(&snapshots).expect("texts");
        for (key, text) in &snapshots {
            let KernelText { source, dynamic_shared } = &texts[key];
            assert_eq!(code(&text.source), code(source), "{key}");
            assert_eq!(text.dynamic_shared, *dynamic_shared, "{key}");
        }
        let main = texts.keys().filter(|key| !key.ends_with(".scalar"));
        assert!(main.clone().count() > 60 && main.clone().all(|key| snapshots.contains_key(key)));
    }

    #[test]
    fn a_folder_without_texts_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in [folder.path(), &folder.path().join("none")] {
            let error = read(path).expect_err("no texts").to_string();
            assert!(error.contains("Give a folder of texts"), "{error}");
        }
    }
}
