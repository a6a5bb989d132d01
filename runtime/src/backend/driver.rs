//! CUDA driver library: presence, required functions, and errors.
//!
//! `cudarc` panics if the library or one of its functions is missing, so both are looked up before
//! the first call through `cudarc`.

use crate::error::{Error, Result};
use cudarc::driver::sys::{self, CUevent, CUresult};
use cudarc::driver::{CudaContext, CudaEvent, DriverError};
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

/// Returns true if the driver's library can be loaded, and is not the stub of a CUDA toolkit.
pub(crate) fn is_installed() -> bool {
    library().is_some_and(|library| !is_stub(&library))
}

/// Returns true for the stub library of a CUDA toolkit. Programs link to it on machines without a
/// driver; all of its functions fail.
#[allow(unsafe_code, reason = "the driver is loaded at run time")]
fn is_stub(library: &Library) -> bool {
    type Init = unsafe extern "C" fn(u32) -> i32;
    // SAFETY: cuda.h declares this type, and the driver allows any number of calls.
    let status = unsafe { library.get::<Init>("cuInit").map(|init| init(0)) };
    status.is_ok_and(|status| status == CUresult::CUDA_ERROR_STUB_LIBRARY as i32)
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
        Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => Ok(0),
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
        let Some(library) = library() else {
            return Err("its library (libcuda.so.1 or nvcuda.dll) cannot be loaded".to_owned());
        };
        if is_stub(&library) {
            return Err("the library found is the stub of a CUDA toolkit. Remove the toolkit's \
                        directory `stubs` from the loader's path (LD_LIBRARY_PATH)"
                .to_owned());
        }
        first_missing_function(&library)
            .map_or(Ok(()), |name| Err(format!("the installed one is too old: it has no {name}")))
    });
    outcome.clone().map_err(|reason| Error::DriverMissing { reason })
}

#[allow(unsafe_code, reason = "the driver is loaded at run time")]
fn first_missing_function(library: &Library) -> Option<&'static str> {
    NEWEST_FUNCTIONS.iter().copied().find(|name| {
        // SAFETY: the symbol is looked up and not called.
        unsafe { library.get::<unsafe extern "C" fn()>(*name) }.is_err()
    })
}

/// Time in milliseconds between two recorded events. Waits for both.
///
/// `CudaEvent::elapsed_ms` panics on drivers before CUDA 12.8 if `cudarc` is built for CUDA 13: it
/// asks for `cuEventElapsedTime_v2`. All drivers have the older function.
///
/// # Errors
/// * [`Error::DriverMissing`] if the driver has neither function.
/// * [`Error::Driver`] if the events cannot be compared.
#[allow(unsafe_code, reason = "the driver is loaded at run time")]
pub fn elapsed_ms(start: &CudaEvent, end: &CudaEvent) -> Result<f32> {
    type Elapsed = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;
    static FOUND: OnceLock<Option<(Library, Elapsed)>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let library = library()?;
        // SAFETY: cuda.h declares this type.
        let elapsed = unsafe { library.get::<Elapsed>("cuEventElapsedTime").map(|found| *found) };
        Some((library, elapsed.ok()?))
    });
    let Some((_, elapsed)) = found else {
        let reason = "the installed one is too old: it has no cuEventElapsedTime".to_owned();
        return Err(Error::DriverMissing { reason });
    };
    for event in [start, end] {
        event.synchronize().map_err(failed("waiting for an event"))?;
    }
    let mut time = 0.0;
    // SAFETY: the pointer is valid for the call, and both events exist.
    let status = unsafe { elapsed(&raw mut time, start.cu_event(), end.cu_event()) };
    status.result().map_err(failed("reading the time between two events"))?;
    Ok(time)
}

/// Converts an error of the driver. `doing` names the failed action, such as "loading a kernel".
pub fn failed(doing: impl Into<String>) -> impl FnOnce(DriverError) -> Error {
    move |error| {
        let text = match error.error_string() {
            Ok(text) => text.to_string_lossy().into_owned(),
            Err(_) => "the driver has no explanation".to_owned(),
        };
        let code = format!("{:?}", error.0);
        Error::Driver { doing: doing.into(), code, status: error.0 as i32, text }
    }
}
