//! The CUDA driver's library: whether it is there, whether it suffices, and its errors.
//!
//! `cudarc` panics where the library or one of its functions is missing, so both are looked for
//! before `cudarc` is asked for anything.

use crate::error::{Error, Result};
use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaContext, DriverError};
use libloading::Library;
use std::sync::OnceLock;

/// The newest driver functions that the runtime rests on, through `cudarc`.
const NEWEST_FUNCTIONS: &[&str] = &[
    "cuMemAllocAsync",
    "cuMemFreeAsync",
    "cuStreamIsCapturing",
    "cuModuleLoadData",
    "cuLaunchKernel",
    "cuDevicePrimaryCtxRelease_v2",
];

/// Whether the driver's library can be loaded.
pub(crate) fn is_installed() -> bool {
    library().is_some()
}

/// The driver's library. Not through `cudarc`, which has no such function where it is linked to it.
#[allow(unsafe_code, reason = "the driver is loaded at run time")]
pub(crate) fn library() -> Option<Library> {
    // All of them are among the names that `cudarc` tries.
    let names: &[&str] =
        if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so", "libcuda.so.1"] };
    // SAFETY: loads the NVIDIA driver's library, whose initialisers demand nothing.
    names.iter().find_map(|name| unsafe { Library::new(*name) }.ok())
}

/// How many GPUs there are; none where there is no driver.
pub fn gpus() -> Result<usize> {
    if is_installed() { count() } else { Ok(0) }
}

/// How many GPUs a usable driver has.
fn count() -> Result<usize> {
    check_library()?;
    match CudaContext::device_count() {
        Ok(count) => Ok(usize::try_from(count).unwrap_or(0)),
        Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE | CUresult::CUDA_ERROR_STUB_LIBRARY)) => {
            Ok(0)
        }
        Err(error) => Err(failed("initialising")(error)),
    }
}

/// Checks that there is a usable driver and that it has a GPU of that number.
pub(crate) fn check_ordinal(ordinal: usize) -> Result<()> {
    let count = count()?;
    if count == 0 {
        return Err(Error::NoGpu);
    }
    if ordinal >= count {
        return Err(Error::BadOrdinal { ordinal, count });
    }
    Ok(())
}

/// Checks that the library is there and has the functions that will be called.
fn check_library() -> Result<()> {
    static CHECK: OnceLock<Result<(), String>> = OnceLock::new();
    let outcome = CHECK.get_or_init(|| {
        if !is_installed() {
            return Err("its library (libcuda.so.1 or nvcuda.dll) cannot be loaded".to_owned());
        }
        first_missing_function()
            .map_or(Ok(()), |name| Err(format!("the installed one is too old: it has no {name}")))
    });
    outcome.clone().map_err(|reason| Error::DriverMissing { reason })
}

#[allow(unsafe_code, reason = "the driver is loaded at run time")]
fn first_missing_function() -> Option<&'static str> {
    let library = library()?;
    NEWEST_FUNCTIONS.iter().copied().find(|name| {
        // SAFETY: the symbol is looked up and not called.
        unsafe { library.get::<unsafe extern "C" fn()>(*name) }.is_err()
    })
}

/// Turns a driver's error into ours: `doing` says what failed, as in "loading a kernel".
pub fn failed(doing: impl Into<String>) -> impl FnOnce(DriverError) -> Error {
    move |error| {
        let text = match error.error_string() {
            Ok(text) => text.to_string_lossy().into_owned(),
            Err(_) => "the driver has no explanation".to_owned(),
        };
        Error::Driver { doing: doing.into(), code: format!("{:?}", error.0), text }
    }
}
