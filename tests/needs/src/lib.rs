//! Prerequisites of tests that not every machine has.
//!
//! [`Need::trial`] creates a test. If the prerequisite is missing, the test is reported as ignored
//! with the reason, not as passed.

use gemm_runtime::Device;
use gemm_runtime::compile;
use libtest_mimic::{Completion, Failed, Trial};
use std::env;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Release of NVRTC for which the resource reports are pinned.
pub const PINNED_NVRTC: &str = "13.0.88";

/// Release of Rust whose diagnostics are expected.
pub const PINNED_RUST: &str = "1.95.0";

/// Headless browser, by its Debian name.
pub const BROWSER: &str = "chromium-headless-shell";

/// Target of the book's live page.
pub const WASM: &str = "wasm32-unknown-unknown";

/// Prerequisite that not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// NVRTC of any release. With `GEMM_REQUIRE_NVRTC=1` its absence is a failure.
    Nvrtc,
    /// NVRTC of the release [`PINNED_NVRTC`]. With `GEMM_REQUIRE_NVRTC=1` its absence is a failure.
    PinnedNvrtc,
    /// A CUDA GPU, and NVRTC. With `GEMM_REQUIRE_GPU=1` its absence is a failure.
    Gpu,
    /// Rust of the release [`PINNED_RUST`].
    PinnedRust,
    /// The browser [`BROWSER`]. With `GEMM_REQUIRE_BROWSER=1` its absence is a failure.
    Browser,
    /// Rust's target [`WASM`]. With `GEMM_REQUIRE_WASM=1` its absence is a failure.
    Wasm,
    /// The browser, and axe-core in the file that `GEMM_AXE` names. With `GEMM_REQUIRE_BROWSER=1`
    /// its absence is a failure.
    Axe,
}

impl Need {
    /// Reason why the prerequisite is missing, or `None` if it is present.
    pub fn missing(self) -> Option<&'static str> {
        static NVRTC: OnceLock<Option<String>> = OnceLock::new();
        static PINNED: OnceLock<Option<String>> = OnceLock::new();
        static GPU: OnceLock<Option<String>> = OnceLock::new();
        static RUST: OnceLock<Option<String>> = OnceLock::new();
        static SHELL: OnceLock<Option<String>> = OnceLock::new();
        static TARGET: OnceLock<Option<String>> = OnceLock::new();
        static AXE: OnceLock<Option<String>> = OnceLock::new();
        let found = match self {
            Need::Nvrtc => NVRTC.get_or_init(|| nvrtc_release().err().map(str::to_owned)),
            Need::PinnedNvrtc => PINNED.get_or_init(|| match nvrtc_release() {
                Ok(release) if release == PINNED_NVRTC => None,
                Ok(release) => Some(format!("needs NVRTC {PINNED_NVRTC}, and this is {release}")),
                Err(reason) => Some(reason.to_owned()),
            }),
            Need::Gpu => GPU.get_or_init(|| match Device::cuda(0) {
                Ok(_) => Need::Nvrtc.missing().map(str::to_owned),
                Err(error) => Some(first_sentence(&error)),
            }),
            Need::PinnedRust => RUST.get_or_init(wrong_rust),
            Need::Browser => SHELL.get_or_init(no_browser),
            Need::Wasm => TARGET.get_or_init(no_wasm),
            Need::Axe => AXE.get_or_init(|| match axe() {
                Some(_) => Need::Browser.missing().map(str::to_owned),
                None => Some("needs axe-core, and GEMM_AXE names no file".to_owned()),
            }),
        };
        found.as_deref()
    }

    /// True if the environment requires the prerequisite, so that its absence is a failure.
    fn is_required(self) -> bool {
        let variable = match self {
            Need::Nvrtc | Need::PinnedNvrtc => "GEMM_REQUIRE_NVRTC",
            Need::Gpu => "GEMM_REQUIRE_GPU",
            Need::Wasm => "GEMM_REQUIRE_WASM",
            Need::Browser | Need::Axe => "GEMM_REQUIRE_BROWSER",
            Need::PinnedRust => return false,
        };
        env::var_os(variable).is_some_and(|value| value == "1")
    }

    /// Creates a test. If the prerequisite is missing, the test is ignored with the reason.
    pub fn trial(
        self,
        name: impl Into<String>,
        test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
    ) -> Trial {
        Self::trial_of([self], name, test)
    }

    pub fn trial_of(
        needs: impl IntoIterator<Item = Self> + Send + 'static,
        name: impl Into<String>,
        test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
    ) -> Trial {
        Trial::ignorable_test(name, move || {
            let unmet = needs.into_iter().filter_map(|need| Some((need, need.missing()?)));
            let unmet: Vec<(Self, &str)> = unmet.collect();
            match (unmet.iter().find(|(need, _)| need.is_required()), unmet.first()) {
                (Some((_, reason)), _) => Err((*reason).into()),
                (None, Some((_, reason))) => Ok(Completion::ignored_with(*reason)),
                (None, None) => test().map(|()| Completion::Completed),
            }
        })
    }
}

/// Full release of NVRTC, or the reason why it is unknown.
pub fn nvrtc_release() -> Result<&'static str, &'static str> {
    static RELEASE: OnceLock<Result<String, String>> = OnceLock::new();
    RELEASE.get_or_init(find_release).as_deref().map_err(String::as_str)
}

fn find_release() -> Result<String, String> {
    let version = compile::nvrtc_version().map_err(|error| first_sentence(&error))?;
    let (major, minor, build) = version;
    Ok(format!("{major}.{minor}.{build}"))
}

/// Path of axe-core.
pub fn axe() -> Option<PathBuf> {
    env::var_os("GEMM_AXE").map(PathBuf::from).filter(|path| path.is_file())
}

fn no_browser() -> Option<String> {
    let found = std::process::Command::new(BROWSER).arg("--version").output();
    found.err().map(|error| format!("needs {BROWSER}, which does not run: {error}"))
}

fn no_wasm() -> Option<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let arguments = ["--print", "target-libdir", "--target", WASM];
    let folder = std::process::Command::new(rustc).args(arguments).output();
    match folder {
        Err(error) => Some(format!("needs Rust's target {WASM}, and rustc does not run: {error}")),
        Ok(folder) => {
            let folder = String::from_utf8_lossy(&folder.stdout);
            let is_there = std::path::Path::new(folder.trim()).is_dir();
            (!is_there).then(|| format!("needs Rust's target {WASM}, which is not installed"))
        }
    }
}

fn wrong_rust() -> Option<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let needed = format!("needs Rust {PINNED_RUST}");
    match std::process::Command::new(rustc).arg("--version").output() {
        Ok(output) => {
            let version = String::from_utf8_lossy(&output.stdout);
            let release = version.split_whitespace().nth(1).unwrap_or("unknown");
            (release != PINNED_RUST).then(|| format!("{needed}, and this is {release}"))
        }
        Err(error) => Some(format!("{needed}, and rustc does not run: {error}")),
    }
}

/// Returns the first sentence of an error, which is the fault without the remedies.
fn first_sentence(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.split(". ").next().unwrap_or_default().to_owned()
}
