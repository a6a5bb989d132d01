//! CUDA driver library: presence, required functions, and errors.
//!
//! `cudarc` panics if the library or one of its functions is missing, so both are looked up before
//! the first call through `cudarc`.

use crate::error::{Error, Result};
use cudarc::driver::sys::{self, CUresult};
use cudarc::driver::{CudaContext, DriverError};
use libloading::Library;
use std::sync::OnceLock;

/// Newest driver functions that the runtime calls through `cudarc`.
const NEWEST_FUNCTIONS: &[&str] = &[
    "cuMemAllocAsync",
    "cuMemFreeAsync",
    "cuStreamIsCapturing",
    "cuModuleLoadData",
    "cuLaunchKernel",
    "cuDevicePrimaryCtxRelease_v2",
];

/// Returns true if the driver's library can be loaded.
pub(crate) fn is_installed() -> bool {
    library().is_some()
}

/// Loads the driver's library without `cudarc`. If `cudarc` is linked to the driver, it has no
/// function that loads the driver.
#[allow(unsafe_code, reason = "the driver is loaded at run time")]
pub(crate) fn library() -> Option<Library> {
    // All of these names are among those that `cudarc` tries.
    let names: &[&str] =
        if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so", "libcuda.so.1"] };
    // SAFETY: the initialisers of the NVIDIA driver's library have no preconditions.
    names.iter().find_map(|name| unsafe { Library::new(*name) }.ok())
}

/// Number of GPUs; 0 if there is no driver.
pub fn gpus() -> Result<usize> {
    if is_installed() { count() } else { Ok(0) }
}

/// Number of GPUs of a usable driver.
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

/// CUDA version of the driver, such as 13000.
#[allow(unsafe_code, reason = "cudarc has no safe function")]
pub(crate) fn version() -> Result<i32> {
    let mut version = 0;
    // SAFETY: the pointer is valid for the call.
    let status = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    status.result().map_err(failed("reading the driver's version"))?;
    Ok(version)
}

/// Checks that there is a usable driver with a GPU of this ordinal.
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

/// Checks that the library is present and has all functions that the runtime calls.
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

/// Converts an error of the driver. `doing` names the failed action, such as "loading a kernel".
pub fn failed(doing: impl Into<String>) -> impl FnOnce(DriverError) -> Error {
    move |error| {
        let text = match error.error_string() {
            Ok(text) => text.to_string_lossy().into_owned(),
            Err(_) => "the driver has no explanation".to_owned(),
        };
        Error::Driver { doing: doing.into(), code: format!("{:?}", error.0), text }
    }
}
