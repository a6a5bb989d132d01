//! Compilation of the kernels of `gemm-runtime` ahead of time, for programs that run without NVRTC.
//!
//! A build script lists the kernels and the architectures. [`embed`] compiles them with NVRTC into
//! one archive, which the crate includes:
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), gemm_build::Error> {
//!     let contents = gemm_build::Contents::new()
//!         .macros_in("src")? // all calls of the macros of kernels and tables
//!         .sgemm_kernel("tile: 64x64x8, thread: 8x8, scaled")? // a spec parsed at run time
//!         .sgemm(gemm_build::SgemmCalls::for_shapes(132, [(4096, 4096, 4096)]));
//!     gemm_build::embed("kernels", &["sm_80", "sm_90"], &contents)
//! }
//! ```
//!
//! ```ignore
//! // src/main.rs
//! use gemm_runtime::{Archive, Device, include_archive};
//!
//! const KERNELS: Archive = include_archive!("kernels");
//!
//! fn main() -> Result<(), gemm_runtime::Error> {
//!     let device = Device::cuda(0)?;
//!     device.add_archive(KERNELS)?;
//!     // Launches of these kernels on sm_80 and sm_90 load neither NVRTC nor the disk cache.
//!     Ok(())
//! }
//! ```
//!
//! The build machine needs NVRTC, which is found as at run time (`GEMM_NVRTC_PATH`), but neither a
//! GPU nor a driver. Compiled kernels are kept in the disk cache of `gemm-runtime`, so a repeated
//! build compiles only what has changed.
//!
//! A driver may reject the machine code of an NVRTC of a newer major release of CUDA than its own.
//! To support older drivers, build with the oldest NVRTC that knows the architectures.

#![deny(missing_docs)]

mod build;
mod contents;
mod error;
mod scan;

pub use build::{Built, build, embed};
pub use contents::{Contents, SgemmCalls};
pub use error::Error;

/// Entries of archives, for the command `gemm-archive`.
#[doc(hidden)]
pub use gemm_runtime::internal::{EntryInfo, entries};
