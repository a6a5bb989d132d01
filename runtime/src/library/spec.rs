//! Libraries to search for, with their places.

/// Names and places of a library.
#[derive(Debug)]
pub struct LibrarySpec {
    /// Name that messages give the library.
    pub name: &'static str,
    /// Environment variable with the path of the library or its directory. If it is set, no other
    /// place is searched, so that a wrong path is an error.
    pub variable: &'static str,
    /// Names for the loader to resolve.
    pub names: &'static [&'static str],
    /// Returns true for the file name of the library.
    pub is_file: fn(&str) -> bool,
    /// Order of the places to search.
    pub order: [SearchPlace; 3],
}

/// Variables with the root of a CUDA toolkit.
pub(super) const TOOLKITS: [&str; 3] = ["CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX"];

/// Variable with the root of the active virtual environment.
pub(super) const VIRTUAL_ENV: &str = "VIRTUAL_ENV";

/// Variable with the Python interpreter that names its module path.
pub(super) const PYTHON: &str = "GEMM_PYTHON";

impl LibrarySpec {
    /// Environment variables that determine which library is found. The loader of the system may
    /// read others.
    pub fn variables(&self) -> impl Iterator<Item = &'static str> + use<> {
        [self.variable].into_iter().chain(TOOLKITS).chain([VIRTUAL_ENV, PYTHON])
    }
}

/// Kind of place where a library may be.
#[derive(Clone, Copy, Debug)]
pub enum SearchPlace {
    /// Path of the system's loader.
    Loader,
    /// Toolkit of `CUDA_PATH`, `CUDA_HOME` or `CONDA_PREFIX`, or in `/usr/local/cuda`.
    Toolkits,
    /// Python wheel of the active virtual environment or of the interpreter `GEMM_PYTHON`.
    Wheels,
}

/// NVRTC, in toolkits and in the wheels `nvidia-cuda-nvrtc*`.
pub static NVRTC: LibrarySpec = LibrarySpec {
    name: "NVRTC",
    variable: "GEMM_NVRTC_PATH",
    names: if cfg!(windows) {
        &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"]
    } else {
        &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"]
    },
    is_file: is_nvrtc,
    order: [SearchPlace::Loader, SearchPlace::Toolkits, SearchPlace::Wheels],
};

/// Returns true for the file name of NVRTC. The builtins library and the `alt` build in the same
/// directory have other names.
fn is_nvrtc(name: &str) -> bool {
    let windows = name.starts_with("nvrtc64_") && name.ends_with(".dll");
    name.starts_with("libnvrtc.so") || (windows && !name.contains(".alt."))
}
