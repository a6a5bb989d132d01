//! Search for a library.
//!
//! If the library's own environment variable is set, only its path is searched ([`LibrarySpec`]).
//! Otherwise three kinds of places are searched, in the order of [`LibrarySpec::order`]: the
//! loader's path; the toolkits of `CUDA_PATH`, `CUDA_HOME` and `CONDA_PREFIX`, and the one in
//! `/usr/local/cuda`; the Python wheels of the active virtual environment and of the interpreter
//! `GEMM_PYTHON`.

use super::spec::{LibrarySpec, PYTHON, SearchPlace, TOOLKITS, VIRTUAL_ENV};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Places to search, taken from the environment.
#[derive(Clone, Debug)]
pub struct Places {
    wanted: &'static LibrarySpec,
    /// Path from the library's environment variable.
    explicit: Option<PathBuf>,
    /// Names for the loader to resolve.
    names: Vec<&'static str>,
    /// Roots of CUDA toolkits, each with the variable that names it, if any.
    toolkits: Vec<(Option<&'static str>, PathBuf)>,
    /// Root of the active virtual environment.
    virtual_env: Option<PathBuf>,
    /// Python interpreter to ask for its module path.
    python: Option<OsString>,
}

/// Directory in which the installers of CUDA for Linux put the toolkit.
const DEFAULT_TOOLKIT: &str = "/usr/local/cuda";

/// Library to try next, as a name or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// Name that the loader resolves.
    Name(&'static str),
    /// Path of a library file.
    File(PathBuf),
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Candidate::Name(name) => f.write_str(name),
            Candidate::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Places {
    /// Places of a library, from the environment of this process.
    pub fn from_env(wanted: &'static LibrarySpec) -> Self {
        let path = |name| {
            let value = env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        Self {
            wanted,
            explicit: path(wanted.variable),
            names: wanted.names.to_vec(),
            toolkits: TOOLKITS
                .into_iter()
                .filter_map(|variable| Some((Some(variable), path(variable)?)))
                .chain((!cfg!(windows)).then(|| (None, DEFAULT_TOOLKIT.into())))
                .collect(),
            virtual_env: path(VIRTUAL_ENV),
            python: match env::var_os(PYTHON) {
                Some(python) => Some(python).filter(|python| !python.is_empty()),
                None => Some(if cfg!(windows) { "python" } else { "python3" }.into()),
            },
        }
    }

    /// Loads the first candidate for which `load` succeeds.
    ///
    /// # Errors
    /// Returns the places that were tried, in order, each with the reason why it failed.
    pub fn find<T>(
        &self,
        load: impl FnMut(&Candidate) -> Result<T, String>,
    ) -> Result<T, Vec<String>> {
        first(self.candidates(), self.wanted, load)
    }

    /// Places with the libraries in them. The iterator is lazy: it starts a Python interpreter only
    /// if the earlier places have no library.
    fn candidates(&self) -> Box<dyn Iterator<Item = (String, Vec<Candidate>)> + '_> {
        let Some(path) = &self.explicit else {
            return Box::new(self.wanted.order.iter().flat_map(|place| self.candidates_at(*place)));
        };
        let place = format!("{}={}", self.wanted.variable, path.display());
        Box::new(std::iter::once((place, files_under(path, self.wanted))))
    }

    fn candidates_at(
        &self,
        place: SearchPlace,
    ) -> Box<dyn Iterator<Item = (String, Vec<Candidate>)> + '_> {
        match place {
            SearchPlace::Loader => Box::new(std::iter::once_with(|| {
                let names = self.names.iter().copied().map(Candidate::Name);
                ("the loader's path".to_owned(), names.collect())
            })),
            SearchPlace::Toolkits => Box::new(self.toolkits.iter().map(|(variable, root)| {
                let named = variable.map_or(String::new(), |variable| format!("{variable}="));
                (format!("{named}{}", root.display()), files_under(root, self.wanted))
            })),
            SearchPlace::Wheels => {
                let environment = self.virtual_env.iter().flat_map(|root| site_packages(root));
                let interpreter = self.python.iter().flat_map(|python| module_path(python));
                Box::new(environment.chain(interpreter).map(|site| {
                    let place = format!("Python packages in {}", site.display());
                    (place, files_under(&site, self.wanted))
                }))
            }
        }
    }
}

/// Loads a library from a file or a directory; no other place is searched.
///
/// # Errors
/// Returns the places that were tried, as [`Places::find`] does.
pub fn find_at<T>(
    path: &Path,
    wanted: &LibrarySpec,
    load: impl FnMut(&Candidate) -> Result<T, String>,
) -> Result<T, Vec<String>> {
    let place = (path.display().to_string(), files_under(path, wanted));
    first(std::iter::once(place), wanted, load)
}

/// Loads the first library that can be loaded, or returns the places that were tried.
fn first<T>(
    places: impl Iterator<Item = (String, Vec<Candidate>)>,
    wanted: &LibrarySpec,
    mut load: impl FnMut(&Candidate) -> Result<T, String>,
) -> Result<T, Vec<String>> {
    let mut tried = Vec::new();
    for (place, candidates) in places {
        if candidates.is_empty() {
            tried.push(format!("{place}: no {} library there", wanted.name));
        }
        for candidate in candidates {
            match load(&candidate) {
                Ok(found) => return Ok(found),
                Err(why) => tried.push(format!("{place}: {why}")),
            }
        }
    }
    Err(tried)
}

/// Libraries at a path: the file itself, or the libraries in a directory. The directory may be
/// flat, or have the layout of a toolkit or of Python's site-packages. The newest library of a
/// directory is first.
fn files_under(path: &Path, wanted: &LibrarySpec) -> Vec<Candidate> {
    if path.is_file() {
        return vec![Candidate::File(path.to_owned())];
    }
    let mut dirs = vec![path.to_owned(), path.join("lib64"), path.join("lib")];
    if cfg!(windows) {
        dirs.extend([path.join("bin"), path.join("bin/x64")]);
    }
    // Some toolkits have a directory for each target, as `targets/x86_64-linux/lib`.
    dirs.extend(entries(&path.join("targets")).iter().map(|target| target.join("lib")));
    // Paths in wheels: nvidia/cuda_nvrtc/lib, since CUDA 13 nvidia/cu13/lib; nvidia/nccl/lib.
    for package in entries(&path.join("nvidia")) {
        dirs.extend([package.join("lib"), package.join("bin")]);
    }
    let libraries = dirs.iter().flat_map(|dir| {
        let mut found = entries(dir);
        found.retain(|file| file_name(file).is_some_and(wanted.is_file));
        found.reverse();
        found
    });
    libraries.map(Candidate::File).collect()
}

/// Files in the directory of a library whose name satisfies `is_named`.
pub fn files_beside(library: &Path, is_named: fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = library.parent().map(entries).unwrap_or_default();
    found.retain(|file| file_name(file).is_some_and(is_named));
    found
}

/// Sorted paths in a directory; empty if it cannot be read.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let Ok(read) = dir.read_dir() else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = read.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// Package directories of a virtual environment.
fn site_packages(root: &Path) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> =
        entries(&root.join("lib")).into_iter().map(|python| python.join("site-packages")).collect();
    dirs.push(root.join("Lib").join("site-packages"));
    dirs.retain(|dir| dir.is_dir());
    dirs
}

/// Directories from which an interpreter imports modules. Empty if there is no such interpreter.
fn module_path(python: &OsStr) -> Vec<PathBuf> {
    let output = Command::new(python)
        .args(["-c", "import sys; print('\\n'.join(sys.path))"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let Ok(output) = output else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let dirs = text.lines().map(|line| PathBuf::from(line.trim_end()));
    dirs.filter(|dir| dir.join("nvidia").is_dir()).collect()
}

#[cfg(test)]
mod tests;
