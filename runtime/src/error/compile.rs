//! Messages on NVRTC and on archives.

use super::Error;
use super::text::{indented, spec};
use std::fmt;

pub(super) fn nvrtc_missing(searched: &[String], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "NVRTC, the CUDA compiler library, was not found. Install it with `pip install \
         nvidia-cuda-nvrtc` or with the CUDA toolkit, or set GEMM_NVRTC_PATH to the library or \
         its directory. Looked in:\n{}",
        indented(searched)
    )
}

pub(super) fn nvrtc_unsuitable(
    need: &str,
    searched: &[String],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(
        f,
        "no NVRTC library found here compiles for {need}. Run `pip install nvidia-cuda-nvrtc`, or \
         set `GEMM_NVRTC_PATH` to another NVRTC library or its directory. Looked in:\n{}",
        indented(searched)
    )
}

pub(super) fn not_archived(
    kernel: &str,
    line: &str,
    arch: &str,
    archives: &[String],
    error: &Error,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(
        f,
        "kernel `{kernel}` of {} has no machine code for {arch}. It is not in the archives of the \
         device: {}. Add the spec and {arch} to the `gemm_build::embed` call of an archive. The \
         disk cache does not have the kernel, and it cannot be compiled here: {error}",
        spec(line),
        archives.join(", ")
    )
}
