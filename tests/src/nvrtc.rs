//! Compiler output for generated sources, cached in `target/nvrtc-logs`. The key is a hash of all
//! inputs.

use gemm_needs::nvrtc_release;
use gemm_runtime::Error;
use gemm_runtime::compile::{self, Arch, Compilation, Options};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// Source of the module that determines the compiler flags.
const FLAGS: &str = include_str!("../../runtime/src/compile.rs");

/// Compiles a source, unless its log is cached. A cached result has no machine code.
///
/// # Errors
/// Returns the errors of [`compile::compile`], which are not cached.
pub fn log(name: &str, source: &str, arch: Arch) -> Result<Compilation, Error> {
    let Some(file) = file(&[name, source, &arch.to_string()]) else {
        return compile::compile(name, source, arch, &Options::default());
    };
    if let Ok(log) = fs::read_to_string(&file) {
        return Ok(Compilation { cubin: Vec::new(), log });
    }
    let compiled = compile::compile(name, source, arch, &Options::default())?;
    keep(&file, &compiled.log);
    Ok(compiled)
}

/// Returns the SHA-256 of parts of the compiler's input, in hexadecimal.
pub fn hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Cache file of a log, or None if the compiler's release is unknown.
fn file(parts: &[&str]) -> Option<PathBuf> {
    let parts = [parts, &[FLAGS, nvrtc_release().ok()?]].concat();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/nvrtc-logs");
    Some(folder.join(hash(&parts)))
}

/// Caches a log. The file is written atomically. Errors are ignored, because a log that is not
/// cached only costs time.
fn keep(file: &Path, log: &str) {
    let (process, thread) = (std::process::id(), std::thread::current().id());
    let unfinished = file.with_extension(format!("{process}-{thread:?}"));
    let folder = file.parent().unwrap_or(file);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&unfinished, log));
    _ = written.and_then(|()| fs::rename(&unfinished, file));
}
