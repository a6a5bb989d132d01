//! CUDA C to machine code, through NVRTC. Needs neither a GPU nor a driver.
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
//! The result is a cubin for one architecture, not PTX: a driver refuses PTX from a compiler newer
//! than itself, and only the step to machine code reports registers, spills and shared memory.

mod listing;
mod nvrtc;
mod resources;

pub use resources::Resources;

use crate::cache::{Cache, Key};
use crate::error::{Error, Result};
use std::fmt;

/// A GPU architecture, written `sm_90` or `sm_90a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arch {
    number: u32,
    specific: bool,
}

impl Arch {
    /// The architecture of compute capability `number / 10`.`number % 10`: 90 is `sm_90`.
    pub const fn sm(number: u32) -> Self {
        Self { number, specific: false }
    }

    /// The same architecture with the instructions that no later one has: `sm_90a`.
    pub const fn specific(self) -> Self {
        Self { specific: true, ..self }
    }

    /// 90 for `sm_90` and `sm_90a`.
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

/// What the user of the compiler may choose. What the semantics of the generated text rest on, such
/// as compilation without contraction, is no choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Keep the line numbers of the source, for profilers; the machine code stays the same.
    pub line_info: bool,
}

impl Options {
    fn flags(&self, arch: Arch) -> Vec<String> {
        let mut flags = vec![
            format!("--gpu-architecture={arch}"),
            // A multiply-add is fused where the text says so and nowhere else.
            "--fmad=false".to_owned(),
            "--std=c++17".to_owned(),
            // Writes the resource report into the log.
            "--ptxas-options=-v".to_owned(),
        ];
        if self.line_info {
            flags.push("--generate-line-info".to_owned());
        }
        flags
    }
}

/// Machine code and what the compiler said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The cubin: an ELF image for one architecture.
    pub cubin: Vec<u8>,
    /// The compiler's log, with the resource report of `ptxas`.
    pub log: String,
}

impl Compiled {
    /// The resources of the first kernel in the source.
    ///
    /// # Errors
    /// [`Error::Internal`] where the log holds no report, as from an unknown compiler.
    pub fn resources(&self) -> Result<Resources> {
        Resources::parse(&self.log).ok_or_else(|| {
            Error::Internal(format!("the compiler's log has no resource report:\n{}", self.log))
        })
    }
}

/// Compiles a translation unit; `name` is what the log calls it. Nothing is cached.
///
/// # Errors
/// [`Error::NvrtcMissing`], and [`Error::Compile`] with the log and the lines it names.
pub fn compile(name: &str, source: &str, arch: Arch, options: &Options) -> Result<Compiled> {
    nvrtc::get()?.compile(name, source, arch, &options.flags(arch))
}

/// The version of the NVRTC that [`compile`] uses, `(major, minor)`.
///
/// # Errors
/// [`Error::NvrtcMissing`].
pub fn nvrtc_version() -> Result<(u32, u32)> {
    Ok(nvrtc::get()?.version())
}

/// The machine code from the disk cache, or else from the compiler; whether it was compiled.
pub(crate) fn cubin(
    cache: &Cache,
    name: &str,
    source: &str,
    arch: Arch,
) -> Result<(Vec<u8>, bool)> {
    let nvrtc = nvrtc::get()?;
    let flags = Options::default().flags(arch);
    let (major, minor) = nvrtc.version();
    let compiler = format!("NVRTC {major}.{minor}");
    let key = Key::new(&[source, &flags.join(" "), &arch.to_string(), &compiler]);
    let mut is_compiled = false;
    let cubin = cache.get_or_build(key, || {
        is_compiled = true;
        nvrtc.compile(name, source, arch, &flags).map(|compiled| compiled.cubin)
    });
    Ok((cubin?, is_compiled))
}
