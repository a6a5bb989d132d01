//! Fake of NVRTC, compiled by `rustc` to a shared object. It compiles every source to the same
//! bytes. It is NVRTC 13.0.48, which knows sm_90 only, or with `--cfg old` NVRTC 11.0.

use std::ffi::{CStr, c_char, c_int, c_void};

type Handle = *mut c_void;
type Status = c_int;

const SUCCESS: Status = 0;
const PTX: &CStr = c"// Cuda compilation tools, release 13.0, V13.0.48\n";
const LOG: &CStr = c"";
#[cfg(not(old))]
const CUBIN: &CStr = c"\x7fELF";

/// # Safety
/// The pointer is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCreateProgram(
    to: *mut Handle,
    _: *const c_char,
    _: *const c_char,
    _: c_int,
    _: *const *const c_char,
    _: *const *const c_char,
) -> Status {
    // SAFETY: the caller ensures it.
    unsafe { to.write(std::ptr::dangling_mut()) };
    SUCCESS
}

/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCompileProgram(
    _: Handle,
    _: c_int,
    _: *const *const c_char,
) -> Status {
    SUCCESS
}

/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcDestroyProgram(_: *mut Handle) -> Status {
    SUCCESS
}

/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetErrorString(_: Status) -> *const c_char {
    c"a fake failure".as_ptr()
}

/// # Safety
/// Both pointers are valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> Status {
    // SAFETY: the caller ensures it.
    unsafe {
        major.write(if cfg!(old) { 11 } else { 13 });
        minor.write(0);
    }
    SUCCESS
}

/// Functions that return the size and the content of an output.
macro_rules! output {
    ($size:ident, $content:ident, $bytes:expr) => {
        /// # Safety
        /// The pointer is valid for a write.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $size(_: Handle, to: *mut usize) -> Status {
            // SAFETY: the caller ensures it.
            unsafe { to.write($bytes.to_bytes_with_nul().len()) };
            SUCCESS
        }

        /// # Safety
        /// The buffer has the size that the other function returns.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $content(_: Handle, to: *mut c_char) -> Status {
            let bytes = $bytes.to_bytes_with_nul();
            // SAFETY: the caller ensures it.
            unsafe { to.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            SUCCESS
        }
    };
}

output!(nvrtcGetPTXSize, nvrtcGetPTX, PTX);
output!(nvrtcGetProgramLogSize, nvrtcGetProgramLog, LOG);
#[cfg(not(old))]
output!(nvrtcGetCUBINSize, nvrtcGetCUBIN, CUBIN);

/// # Safety
/// The pointer is valid for a write.
#[cfg(not(old))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetNumSupportedArchs(to: *mut c_int) -> Status {
    // SAFETY: the caller ensures it.
    unsafe { to.write(1) };
    SUCCESS
}

/// # Safety
/// The pointer is valid for a write.
#[cfg(not(old))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetSupportedArchs(to: *mut c_int) -> Status {
    // SAFETY: the caller ensures it.
    unsafe { to.write(90) };
    SUCCESS
}
