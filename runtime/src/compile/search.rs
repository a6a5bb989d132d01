//! Where NVRTC is looked for.
//!
//! In this order: `GEMM_NVRTC_PATH` (a library or a directory; where it is set, nothing else is
//! tried, so that a wrong path does not go unnoticed), the loader's own path, the toolkit that
//! `CUDA_PATH` or `CUDA_HOME` names, the Python wheels `nvidia-cuda-nvrtc*` of the active virtual
//! environment and of `python3`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The places to look in, taken from the environment.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// The user's explicit choice.
    explicit: Option<PathBuf>,
    /// Names for the loader to resolve.
    names: Vec<&'static str>,
    /// Roots of CUDA toolkits, each with the variable that names it.
    toolkits: Vec<(&'static str, PathBuf)>,
    /// The root of the active virtual environment.
    virtual_env: Option<PathBuf>,
    /// The interpreter to ask for its module path.
    python: Option<&'static str>,
}

/// One library to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// A name that the loader resolves.
    Name(&'static str),
    /// A file.
    File(PathBuf),
}

impl Places {
    pub(super) fn from_env() -> Self {
        let path = |name| {
            let value = env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        Self {
            explicit: path("GEMM_NVRTC_PATH"),
            names: if cfg!(windows) {
                vec!["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"]
            } else {
                vec!["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"]
            },
            toolkits: ["CUDA_PATH", "CUDA_HOME"]
                .into_iter()
                .filter_map(|variable| Some((variable, path(variable)?)))
                .collect(),
            virtual_env: path("VIRTUAL_ENV"),
            python: Some(if cfg!(windows) { "python" } else { "python3" }),
        }
    }

    /// Loads the first library that can be loaded.
    ///
    /// # Errors
    /// What was tried, in order, each with its outcome.
    pub(super) fn find<T>(
        &self,
        mut load: impl FnMut(&Candidate) -> Result<T, String>,
    ) -> Result<T, Vec<String>> {
        let mut tried = Vec::new();
        for (place, candidates) in self.candidates() {
            if candidates.is_empty() {
                tried.push(format!("{place}: no NVRTC library there"));
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

    /// Each place with the libraries in it. Lazy: an interpreter is started only as a last resort.
    fn candidates(&self) -> Box<dyn Iterator<Item = (String, Vec<Candidate>)> + '_> {
        if let Some(path) = &self.explicit {
            let place = format!("GEMM_NVRTC_PATH={}", path.display());
            return Box::new(std::iter::once((place, files_under(path))));
        }
        let loader = std::iter::once_with(|| {
            let names = self.names.iter().copied().map(Candidate::Name);
            ("the loader's path".to_owned(), names.collect())
        });
        let toolkits = self.toolkits.iter().map(|(variable, root)| {
            let place = format!("{variable}={}", root.display());
            (place, files_under(root))
        });
        let environment = self.virtual_env.iter().flat_map(|root| site_packages(root));
        let interpreter = self.python.iter().flat_map(|python| module_path(python));
        let wheels = environment.chain(interpreter).map(|site| {
            let place = format!("Python packages in {}", site.display());
            (place, files_under(&site))
        });
        Box::new(loader.chain(toolkits).chain(wheels))
    }
}

/// The NVRTC libraries at a path that is one, or in a directory laid out as a toolkit, as Python's
/// site-packages, or flat; newest first within a directory.
fn files_under(path: &Path) -> Vec<Candidate> {
    if path.is_file() {
        return vec![Candidate::File(path.to_owned())];
    }
    let mut dirs = vec![path.to_owned(), path.join("lib64"), path.join("lib")];
    if cfg!(windows) {
        dirs.extend([path.join("bin"), path.join("bin/x64")]);
    }
    // A wheel: nvidia/cuda_nvrtc/lib, from CUDA 13 on nvidia/cu13/lib.
    for package in entries(&path.join("nvidia")) {
        dirs.extend([package.join("lib"), package.join("bin")]);
    }
    let libraries = dirs.iter().flat_map(|dir| {
        let mut found = entries(dir);
        found.retain(|file| file_name(file).is_some_and(is_nvrtc));
        found.reverse();
        found
    });
    libraries.map(Candidate::File).collect()
}

/// Whether a file is named as NVRTC is: not its builtins, not the `alt` build beside it.
fn is_nvrtc(name: &str) -> bool {
    let windows = name.starts_with("nvrtc64_") && name.ends_with(".dll");
    name.starts_with("libnvrtc.so") || (windows && !name.contains(".alt."))
}

/// The builtins that lie beside a library and that it will ask the loader for by name.
pub(super) fn builtins_beside(library: &Path) -> Vec<PathBuf> {
    let mut found = library.parent().map(entries).unwrap_or_default();
    found.retain(|file| {
        file_name(file).is_some_and(|name| {
            name.starts_with("libnvrtc-builtins.so") || name.starts_with("nvrtc-builtins64_")
        })
    });
    found
}

/// The sorted paths in a directory; none where it cannot be read.
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

/// The package directories of a virtual environment.
fn site_packages(root: &Path) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> =
        entries(&root.join("lib")).into_iter().map(|python| python.join("site-packages")).collect();
    dirs.push(root.join("Lib").join("site-packages"));
    dirs.retain(|dir| dir.is_dir());
    dirs
}

/// The directories that an interpreter imports from; none where there is no such interpreter.
fn module_path(python: &str) -> Vec<PathBuf> {
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
mod tests {
    use super::{Candidate, Places, builtins_beside};
    use std::fs;
    use std::path::{Path, PathBuf};

    fn touch(path: &Path) {
        fs::create_dir_all(path.parent().expect("a parent")).expect("writable");
        fs::write(path, b"").expect("writable");
    }

    /// Everything that would be tried, where nothing can be loaded.
    fn all(places: &Places) -> (Vec<Candidate>, Vec<String>) {
        let mut seen = Vec::new();
        let tried = places.find(|candidate| {
            seen.push(candidate.clone());
            Err::<(), _>("cannot be loaded".to_owned())
        });
        (seen, tried.expect_err("nothing can be loaded"))
    }

    fn file(path: PathBuf) -> Candidate {
        Candidate::File(path)
    }

    #[test]
    fn keeps_the_documented_order() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let root = dir.path();
        let toolkit = root.join("cuda/lib64/libnvrtc.so.12");
        let old = root.join("venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib");
        let new = root.join("venv/lib/python3.13/site-packages/nvidia/cu13/lib");
        for file in [
            &toolkit,
            &old.join("libnvrtc.so.12"),
            &new.join("libnvrtc.so.13"),
            &new.join("libnvrtc.alt.so.13"),
            &new.join("libnvrtc-builtins.so.13.0"),
        ] {
            touch(file);
        }
        let places = Places {
            names: vec!["libnvrtc.so"],
            toolkits: vec![("CUDA_HOME", root.join("cuda"))],
            virtual_env: Some(root.join("venv")),
            ..Places::default()
        };
        let expected = [
            Candidate::Name("libnvrtc.so"),
            file(toolkit),
            file(old.join("libnvrtc.so.12")),
            file(new.join("libnvrtc.so.13")),
        ];
        assert_eq!(all(&places).0, expected);
        let first = places.find(|c| match c {
            Candidate::File(path) => Ok(path.clone()),
            Candidate::Name(_) => Err(String::new()),
        });
        assert_eq!(first, Ok(root.join("cuda/lib64/libnvrtc.so.12")));
        let builtins = builtins_beside(&new.join("libnvrtc.so.13"));
        assert_eq!(builtins, [new.join("libnvrtc-builtins.so.13.0")]);
    }

    #[test]
    fn an_explicit_path_excludes_all_others() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let library = dir.path().join("lib/libnvrtc.so.13");
        touch(&library);
        let mut places = Places {
            explicit: Some(dir.path().to_owned()),
            names: vec!["libnvrtc.so"],
            ..Places::default()
        };
        assert_eq!(all(&places).0, [file(library.clone())]);
        places.explicit = Some(library.clone());
        assert_eq!(all(&places).0, [file(library)]);
        places.explicit = Some(dir.path().join("nowhere"));
        let (seen, tried) = all(&places);
        assert!(seen.is_empty());
        assert_eq!(tried.len(), 1);
        assert!(tried[0].starts_with("GEMM_NVRTC_PATH="), "{tried:?}");
    }

    #[test]
    fn every_place_is_reported() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let places = Places {
            names: vec!["libnvrtc.so"],
            toolkits: vec![("CUDA_PATH", dir.path().to_owned())],
            ..Places::default()
        };
        let (_, tried) = all(&places);
        assert_eq!(tried.len(), 2);
        assert_eq!(tried[0], "the loader's path: cannot be loaded");
        assert!(tried[1].contains("CUDA_PATH") && tried[1].contains("no NVRTC library"));
    }

    #[test]
    fn a_missing_interpreter_is_no_error() {
        let places = Places { python: Some("gemm-no-such-interpreter"), ..Places::default() };
        assert!(all(&places).0.is_empty());
    }
}
