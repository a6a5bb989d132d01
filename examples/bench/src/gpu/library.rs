//! Search for cuBLAS: the loader's path, then the toolkit at `CUDA_PATH` or `CUDA_HOME`, then the
//! Python wheels `nvidia-cublas*` of `python3`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Libraries, in the order in which they must be loaded by path.
const LIBRARIES: [&str; 2] = ["libcublasLt.so.", "libcublas.so."];

/// Returns true if cuBLAS can be used. Loads it from directories outside the loader's path if
/// necessary.
#[allow(unsafe_code, reason = "the library is loaded at run time")]
pub(super) fn is_usable() -> bool {
    // SAFETY: loads NVIDIA's library, whose initialisers have no preconditions.
    let present = || unsafe { cudarc::cublas::sys::is_culib_present() };
    present() || (directories().iter().any(|dir| load_from(dir)) && present())
}

/// Loads the libraries of a directory and never unloads them; the loader then finds them by name.
#[allow(unsafe_code, reason = "the library is loaded at run time")]
fn load_from(dir: &Path) -> bool {
    LIBRARIES.iter().all(|prefix| {
        let mut files = entries(dir);
        files.retain(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
        });
        files.sort();
        files.first().is_some_and(|file| {
            // SAFETY: as in `is_usable`.
            let library = unsafe { libloading::Library::new(file) };
            library.map(std::mem::forget).is_ok()
        })
    })
}

fn directories() -> Vec<PathBuf> {
    let toolkits = ["CUDA_PATH", "CUDA_HOME"].into_iter().filter_map(std::env::var_os);
    let mut found: Vec<PathBuf> = toolkits.map(|root| PathBuf::from(root).join("lib64")).collect();
    let script = "import sys; print('\\n'.join(sys.path))";
    if let Ok(output) = Command::new("python3").args(["-c", script]).output() {
        for line in String::from_utf8_lossy(&output.stdout).lines().filter(|l| !l.is_empty()) {
            let packages = entries(&Path::new(line).join("nvidia"));
            found.extend(packages.into_iter().map(|package| package.join("lib")));
        }
    }
    found
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
