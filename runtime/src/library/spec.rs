//! Which libraries are looked for, and where.

/// A library that is looked for.
#[derive(Debug)]
pub struct LibrarySpec {
    /// What messages call it.
    pub name: &'static str,
    /// The variable of the environment that says where it is: a file or a directory. Where it is set, nothing else is
    /// tried, so that a wrong path does not go unnoticed.
    pub variable: &'static str,
    /// The names that the loader is asked for.
    pub names: &'static [&'static str],
    /// Whether a file is named as the library is.
    pub is_file: fn(&str) -> bool,
    /// Where else to look, in this order.
    pub order: [SearchPlace; 3],
}

/// Where a library may be.
#[derive(Clone, Copy, Debug)]
pub enum SearchPlace {
    /// On the loader's own path.
    Loader,
    /// In the toolkit that `CUDA_PATH` or `CUDA_HOME` names.
    Toolkits,
    /// In a Python wheel of the active virtual environment or of `python3`.
    Wheels,
}

/// NVIDIA's compiler of CUDA C, in toolkits and in the wheels `nvidia-cuda-nvrtc*`.
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

/// Whether a file is named as NVRTC is: not its builtins, not the `alt` build beside it.
fn is_nvrtc(name: &str) -> bool {
    let windows = name.starts_with("nvrtc64_") && name.ends_with(".dll");
    name.starts_with("libnvrtc.so") || (windows && !name.contains(".alt."))
}
