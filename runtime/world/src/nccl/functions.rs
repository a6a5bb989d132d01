//! Functions of NCCL that this crate calls, with their types from `nccl.h`.

use super::config::Config;
use gemm_runtime::internal::symbol;
use std::ffi::{c_char, c_int, c_void};

/// `ncclResult_t` as an integer, because a newer library may return unknown values, such as 8 since
/// 2.30.
pub(super) type Code = c_int;

pub(super) const SUCCESS: Code = 0;

/// `ncclInProgress`: the operation has begun and must be polled.
pub(super) const IN_PROGRESS: Code = 7;

pub(super) const BYTES: c_int = 1;

pub(super) type Handle = *mut c_void;

#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct UniqueId(pub(super) [u8; 128]);

/// `cudaStream_t`, which is the driver's `CUstream`.
pub(super) type Stream = *mut c_void;

macro_rules! functions {
    ($($field:ident: $name:literal, fn($($argument:ty),*) -> $result:ty;)*) => {
        /// Table of the required functions.
        pub(super) struct Functions {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        #[allow(unsafe_code, reason = "NCCL is a C library, loaded at run time")]
        impl Functions {
            /// Loads all functions, or names the first one that the library lacks.
            pub(super) fn load(library: &libloading::Library) -> Result<Self, String> {
                // SAFETY: nccl.h declares these types, unchanged from 2.22 to 2.30.
                Ok(unsafe {
                    Self { $($field: symbol(library, $name, "NCCL of 2.22 or later")?,)* }
                })
            }
        }
    };
}

functions! {
    unique_id: "ncclGetUniqueId", fn(*mut UniqueId) -> Code;
    error_string: "ncclGetErrorString", fn(Code) -> *const c_char;
    last_error: "ncclGetLastError", fn(Handle) -> *const c_char;
    init: "ncclCommInitRankConfig", fn(*mut Handle, c_int, UniqueId, c_int, *mut Config) -> Code;
    async_error: "ncclCommGetAsyncError", fn(Handle, *mut Code) -> Code;
    finalize: "ncclCommFinalize", fn(Handle) -> Code;
    destroy: "ncclCommDestroy", fn(Handle) -> Code;
    abort: "ncclCommAbort", fn(Handle) -> Code;
    count: "ncclCommCount", fn(Handle, *mut c_int) -> Code;
    user_rank: "ncclCommUserRank", fn(Handle, *mut c_int) -> Code;
    group_start: "ncclGroupStart", fn() -> Code;
    group_end: "ncclGroupEnd", fn() -> Code;
    send: "ncclSend", fn(*const c_void, usize, c_int, c_int, Handle, Stream) -> Code;
    receive: "ncclRecv", fn(*mut c_void, usize, c_int, c_int, Handle, Stream) -> Code;
    allocate: "ncclMemAlloc", fn(*mut *mut c_void, usize) -> Code;
    free: "ncclMemFree", fn(*mut c_void) -> Code;
}
