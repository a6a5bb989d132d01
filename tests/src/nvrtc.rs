//! Compiler output for generated texts, kept under `target/nvrtc-logs` by a hash of all that decides it.

use crate::needs::nvrtc_release;
use gemm_runtime::Error;
use gemm_runtime::compile::{self, Arch, Compiled, Options};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// The module that decides the flags of a compilation.
const FLAGS: &str = include_str!("../../runtime/src/compile.rs");

/// Compiles a text unless its log is known. A known log comes without machine code.
///
/// # Errors
/// Those of [`compile::compile`], which are not kept.
pub fn log(name: &str, source: &str, arch: Arch) -> Result<Compiled, Error> {
    let Some(file) = file(&[name, source, &arch.to_string(), FLAGS]) else {
        return compile::compile(name, source, arch, &Options::default());
    };
    if let Ok(log) = fs::read_to_string(&file) {
        return Ok(Compiled { cubin: Vec::new(), log });
    }
    let compiled = compile::compile(name, source, arch, &Options::default())?;
    keep(&file, &compiled.log);
    Ok(compiled)
}

/// The file of a log; none where the compiler does not tell its release.
fn file(parts: &[&str]) -> Option<PathBuf> {
    let release = nvrtc_release().ok()?;
    let mut hash = Sha256::new();
    for part in parts.iter().chain(&[release]) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let name: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/nvrtc-logs");
    Some(folder.join(name))
}

/// Keeps a log. A reader sees all of it or none; a log that cannot be kept costs time, never a result.
fn keep(file: &Path, log: &str) {
    let (process, thread) = (std::process::id(), std::thread::current().id());
    let unfinished = file.with_extension(format!("{process}-{thread:?}"));
    let folder = file.parent().unwrap_or(file);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&unfinished, log));
    _ = written.and_then(|()| fs::rename(&unfinished, file));
}
