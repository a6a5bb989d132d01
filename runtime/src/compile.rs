//! Compilation of CUDA C to machine code by NVRTC. Needs neither a GPU nor a driver.
//!
//! ```no_run
//! use gemm_runtime::compile::{self, Arch, Options};
//!
//! let source = "extern \"C\" __global__ void nothing() {}";
//! let compiled = compile::compile("nothing", source, Arch::sm(90), &Options::default())?;
//! println!("{} registers", compiled.resources()?.registers);
//! # Ok::<(), gemm_runtime::Error>(())
//! ```
//!
//! The result is a cubin for one architecture, not PTX. A driver rejects PTX from a compiler newer
//! than the driver, and only the compilation to machine code reports registers, spills and shared
//! memory.

mod listing;
mod nvrtc;
mod resources;
pub(crate) mod unit;

pub use resources::Resources;

use crate::error::{Error, Result};
use nvrtc::Need;
use std::fmt;

/// GPU architecture, written `sm_90` or `sm_90a`.
///
/// ```
/// use gemm_runtime::compile::Arch;
///
/// let arch = Arch::sm(90);
/// assert_eq!((arch.number(), arch.to_string().as_str()), (90, "sm_90"));
/// assert_eq!(arch.specific().to_string(), "sm_90a");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arch {
    number: u32,
    specific: bool,
}

impl Arch {
    /// Architecture of compute capability `number / 10`.`number % 10`: 90 is `sm_90`.
    pub const fn sm(number: u32) -> Self {
        Self { number, specific: false }
    }

    /// Same architecture with its specific instructions, which no later architecture has: `sm_90a`.
    pub const fn specific(self) -> Self {
        Self { specific: true, ..self }
    }

    /// Returns the number: 90 for `sm_90` and `sm_90a`.
    pub const fn number(self) -> u32 {
        self.number
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = if self.specific { "a" } else { "" };
        write!(f, "sm_{}{suffix}", self.number)
    }
}

/// Options of the compiler. Options that affect the results of a kernel are not included: they are
/// fixed. For example, `a * b + c` is never contracted to a fused multiply-add.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Keeps the line numbers of the source, for profilers. The machine code stays the same.
    pub line_info: bool,
}

impl Options {
    fn flags(&self, arch: Arch) -> Vec<String> {
        let mut flags = vec![
            format!("--gpu-architecture={arch}"),
            // The generated CUDA C writes each fused multiply-add explicitly. The compiler must not
            // add others.
            "--fmad=false".to_owned(),
            "--std=c++17".to_owned(),
            // Adds the resource report to the log.
            "--ptxas-options=-v".to_owned(),
        ];
        if self.line_info {
            flags.push("--generate-line-info".to_owned());
        }
        flags
    }
}

/// Machine code with the compiler's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compilation {
    /// ELF image for one architecture.
    pub cubin: Vec<u8>,
    /// Log of the compiler, with the resource report of `ptxas`.
    pub log: String,
}

impl Compilation {
    /// Returns the resources of the first kernel in the source.
    ///
    /// # Errors
    /// [`Error::Internal`] if the log has no resource report, as from an unknown compiler.
    pub fn resources(&self) -> Result<Resources> {
        Resources::parse(&self.log).ok_or_else(|| {
            Error::Internal(format!("the compiler's log has no resource report:\n{}", self.log))
        })
    }
}

/// Compiles a translation unit, called `name` in the log. Nothing is cached.
///
/// # Errors
/// * [`Error::NvrtcMissing`] if NVRTC is not found.
/// * [`Error::NvrtcUnsuitable`] if no NVRTC that is found knows the architecture.
/// * [`Error::Compile`] with the log and the lines that it names if NVRTC rejects the source.
pub fn compile(name: &str, source: &str, arch: Arch, options: &Options) -> Result<Compilation> {
    let need = Need { arch: Some(arch), ..Need::default() };
    nvrtc::get(need)?.compile(name, source, arch, &options.flags(arch))
}

/// Returns the version `(major, minor, build)` of the first NVRTC that is found. [`compile`] uses
/// another one if the first does not know the architecture. The build is 0 if it is unknown.
///
/// # Errors
/// [`Error::NvrtcMissing`] if NVRTC is not found.
pub fn nvrtc_version() -> Result<(u32, u32, u32)> {
    Ok(nvrtc::get(Need::default())?.build())
}

/// Version of the newest NVRTC that this process has used: major, minor, build. Zeros if it has
/// used none.
pub(crate) fn newest_used() -> (u32, u32, u32) {
    nvrtc::newest_loaded()
}
