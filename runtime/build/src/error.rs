//! Errors.

use gemm_dsl::SpecErrors;
use std::io;
use std::path::PathBuf;

/// Error of building an archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text does not name an architecture.
    #[error(
        "`{text}` is not an architecture. Write `sm_` and the compute capability without its \
         point, such as `sm_80`, or `sm_90a`, which means the same GPUs as `sm_90`"
    )]
    Arch {
        /// Text that was passed.
        text: String,
    },
    /// No architecture was passed.
    #[error("the archive is for no architecture: name at least one, such as `sm_90`")]
    NoArch,
    /// The name of an archive is not a file name.
    #[error("`{name}` cannot name an archive: use letters, digits, `_` and `-`")]
    Name {
        /// Name that was passed.
        name: String,
    },
    /// A spec or a table is faulty.
    #[error("{call}: {faults}")]
    Spec {
        /// Macro call with the spec or table.
        call: String,
        /// All faults.
        #[source]
        faults: SpecErrors,
    },
    /// A macro call in a file is faulty.
    #[error("{}: {call}: {faults}", path.display())]
    Macro {
        /// File with the call.
        path: PathBuf,
        /// Macro call.
        call: String,
        /// Messages of all faults.
        faults: String,
    },
    /// A file cannot be split into the tokens of Rust.
    #[error("{}: {reason}. The file must consist of Rust tokens", path.display())]
    Tokens {
        /// File that was read.
        path: PathBuf,
        /// Reason of the lexer.
        reason: String,
    },
    /// A file or folder has no calls of kernel macros.
    #[error(
        "{} has no calls of `sgemm_kernel!`, `gemm_kernel!`, `reduce_kernel!`, `map_kernel!`, \
         `row_kernel!`, `scan_kernel!`, `sgemm_table!`, `gemm_table!` or `reduce_table!`. Write a \
         spec as such a call, for example `reduce_kernel!(op: max)`",
        path.display()
    )]
    NoCalls {
        /// File or folder.
        path: PathBuf,
    },
    /// A file or folder cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// File or folder.
        path: PathBuf,
        /// Error of the system.
        #[source]
        error: io::Error,
    },
    /// A kernel runs on none of the architectures.
    #[error(
        "{call} runs on none of the architectures of the archive, because it needs {needed}: add \
         {needed}, or leave the kernel out"
    )]
    OtherArch {
        /// Macro call of the kernel.
        call: String,
        /// Architecture that it needs.
        needed: String,
    },
    /// The kernels for calls of `sgemm` cannot be determined.
    #[error("the calls of `sgemm` for {arch} have no kernels: {error}")]
    Calls {
        /// Architecture of the GPUs.
        arch: String,
        /// Error of the choice of a rule.
        #[source]
        error: Box<gemm_runtime::Error>,
    },
    /// A kernel could not be compiled.
    #[error("{call} for {arch}: {error}")]
    Compile {
        /// Macro call of the kernel.
        call: String,
        /// Architecture.
        arch: String,
        /// Error of NVRTC, or of the search for it.
        #[source]
        error: Box<gemm_runtime::Error>,
    },
    /// [`embed`](crate::embed) was called outside of a build script.
    #[error(
        "OUT_DIR is not set: call `gemm_build::embed` from a build script, or write the archive of \
         `gemm_build::build` to a file"
    )]
    NoOutDir,
}

impl Error {
    /// Returns true if the kernels could not be compiled because no NVRTC was found. A build script
    /// may then embed an archive without contents, whose program compiles its kernels at run time.
    pub fn is_missing_nvrtc(&self) -> bool {
        let Self::Compile { error, .. } = self else { return false };
        matches!(**error, gemm_runtime::Error::NvrtcMissing { .. })
    }
}
