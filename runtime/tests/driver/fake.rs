//! Fake of the driver's library, compiled by `rustc` to a shared object. It has the functions that
//! the runtime calls. Memory is the host's, launches do nothing, and each GPU has one context.
//!
//! | environment variable | effect |
//! | --- | --- |
//! | `FAKE_CUDA_INIT` | status of `cuInit`; default 0 |
//! | `FAKE_CUDA_GPUS` | number of GPUs; default 1 |
//! | `FAKE_CUDA_EVENTS` | status of the function of the time between events; default 0 |
//!
//! With `--cfg without_elapsed`, the library has no function of the time between events. Otherwise
//! it has only the function of releases before CUDA 12.8.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

type Status = c_int;
type Handle = *mut c_void;

const SUCCESS: Status = 0;
const INVALID_VALUE: Status = 1;
/// Handle of the context of the first GPU.
const CONTEXT: usize = 0x1000;
/// Alignment of an allocation, as CUDA has it.
const ALIGNMENT: usize = 256;

static MODULES: AtomicI64 = AtomicI64::new(0);
static LAUNCHES: AtomicI64 = AtomicI64::new(0);
/// 1 while launches have not been waited for.
static RUNNING: AtomicI64 = AtomicI64::new(0);
static UNLOADED_EARLY: AtomicI64 = AtomicI64::new(0);
/// Streams on which events were recorded.
static RECORDED: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);
/// Waits of a stream for another one, before and after the first launch.
static BEFORE: AtomicI64 = AtomicI64::new(0);
static AFTER: AtomicI64 = AtomicI64::new(0);
/// Capture status of all streams.
static CAPTURING: AtomicI64 = AtomicI64::new(0);
/// Sizes of the allocations, by address.
static MEMORY: Mutex<Option<HashMap<u64, usize>>> = Mutex::new(None);

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

fn setting(name: &str, default: Status) -> Status {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// New handle that is not null.
fn handle() -> Handle {
    static NEXT: AtomicUsize = AtomicUsize::new(0x10_0000);
    NEXT.fetch_add(16, Ordering::Relaxed) as Handle
}

/// Sets whether streams are captured (`capturing`).
///
/// # Safety
/// The name ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_set(name: *const c_char, value: i64) {
    // SAFETY: the caller ensures it.
    if unsafe { CStr::from_ptr(name) } == c"capturing" {
        CAPTURING.store(value, Ordering::Relaxed);
    }
}

/// Number of loaded modules, of launches so far, of waits, or of modules that were unloaded while a launch had
/// not been waited for.
///
/// # Safety
/// The name ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_get(name: *const c_char) -> i64 {
    // SAFETY: the caller ensures it.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"modules" => MODULES.load(Ordering::Relaxed),
        b"launches" => LAUNCHES.load(Ordering::Relaxed),
        b"running" => RUNNING.load(Ordering::Relaxed),
        b"waits before" => BEFORE.load(Ordering::Relaxed),
        b"waits after" => AFTER.load(Ordering::Relaxed),
        b"unloaded early" => UNLOADED_EARLY.load(Ordering::Relaxed),
        _ => -1,
    }
}

/// Functions that succeed without an effect, with their parameters.
macro_rules! succeeds {
    ($($name:ident($($parameter:ty),*);)*) => {
        $(
            /// # Safety
            /// None is needed.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($(_: $parameter),*) -> Status {
                SUCCESS
            }
        )*
    };
}

succeeds! {
    cuDevicePrimaryCtxRelease_v2(c_int);
    cuCtxSynchronize();
    cuStreamDestroy_v2(Handle);
    cuEventSynchronize(Handle);
    cuEventDestroy_v2(Handle);
    cuFuncSetAttribute(Handle, c_int, c_int);
    cuFuncGetAttribute(Handle, c_int, Handle);
}

/// Functions that store a value at their first parameter.
macro_rules! stores {
    ($($name:ident($ty:ty $(, $parameter:ty)*) = $value:expr;)*) => {
        $(
            /// # Safety
            /// The first pointer is valid for a write.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(to: *mut $ty $(, _: $parameter)*) -> Status {
                // SAFETY: the caller ensures it.
                unsafe { to.write($value) };
                SUCCESS
            }
        )*
    };
}

stores! {
    cuDriverGetVersion(c_int) = 12_000;
    cuDeviceGetCount(c_int) = setting("FAKE_CUDA_GPUS", 1);
    cuCtxGetCurrent(usize) = CURRENT.get();
    cuStreamCreate(Handle, c_uint) = handle();
    cuEventCreate(Handle, c_uint) = handle();
    cuModuleGetFunction(Handle, Handle, *const c_char) = handle();
}

/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuInit(_: c_uint) -> Status {
    setting("FAKE_CUDA_INIT", SUCCESS)
}

/// # Safety
/// The pointer is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(to: *mut c_int, ordinal: c_int) -> Status {
    // SAFETY: the caller ensures it.
    unsafe { to.write(ordinal) };
    SUCCESS
}

/// # Safety
/// The pointer is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(to: *mut usize, device: c_int) -> Status {
    // SAFETY: the caller ensures it.
    unsafe { to.write(CONTEXT + device as usize) };
    SUCCESS
}

/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventRecord(event: Handle, stream: Handle) -> Status {
    let mut recorded = RECORDED.lock().unwrap_or_else(PoisonError::into_inner);
    recorded.get_or_insert_default().insert(event as usize, stream as usize);
    SUCCESS
}

/// Counts waits for events of other streams.
///
/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamWaitEvent(stream: Handle, event: Handle, _: c_uint) -> Status {
    let mut recorded = RECORDED.lock().unwrap_or_else(PoisonError::into_inner);
    let of = recorded.get_or_insert_default().get(&(event as usize)).copied();
    if of.is_some_and(|of| of != stream as usize) {
        let waits = if LAUNCHES.load(Ordering::Relaxed) == 0 { &BEFORE } else { &AFTER };
        waits.fetch_add(1, Ordering::Relaxed);
    }
    SUCCESS
}

/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxSetCurrent(context: usize) -> Status {
    CURRENT.set(context);
    SUCCESS
}

/// # Safety
/// The pointer is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(
    to: *mut c_int,
    attribute: c_int,
    _: c_int,
) -> Status {
    let value = match attribute {
        16 => 132,        // multiprocessors
        75 => 9,          // major compute capability
        76 => 0,          // minor compute capability
        97 => 227 * 1024, // shared memory of a block
        115 => 1,         // memory pools
        _ => 0,
    };
    // SAFETY: the caller ensures it.
    unsafe { to.write(value) };
    SUCCESS
}

/// # Safety
/// The buffer has as many bytes as `len` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(to: *mut c_char, len: c_int, _: c_int) -> Status {
    let name = c"a fake";
    if (len as usize) < name.to_bytes_with_nul().len() {
        return INVALID_VALUE;
    }
    // SAFETY: the name fits, and the caller ensures the rest.
    unsafe { to.copy_from_nonoverlapping(name.as_ptr(), name.to_bytes_with_nul().len()) };
    SUCCESS
}

/// # Safety
/// The pointer is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamIsCapturing(_: Handle, to: *mut c_int) -> Status {
    // SAFETY: the caller ensures it.
    unsafe { to.write(CAPTURING.load(Ordering::Relaxed) as c_int) };
    SUCCESS
}

/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamSynchronize(_: Handle) -> Status {
    RUNNING.store(0, Ordering::Relaxed);
    SUCCESS
}

/// # Safety
/// The pointer is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(_: Status, to: *mut *const c_char) -> Status {
    // SAFETY: the caller ensures it.
    unsafe { to.write(c"a fake failure".as_ptr()) };
    SUCCESS
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()
}

/// # Safety
/// The pointer is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocAsync(to: *mut u64, bytes: usize, _: Handle) -> Status {
    let Some(layout) = layout(bytes) else { return INVALID_VALUE };
    // SAFETY: the layout is not empty.
    let address = unsafe { alloc_zeroed(layout) } as u64;
    let mut memory = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    memory.get_or_insert_default().insert(address, bytes);
    // SAFETY: the caller ensures it.
    unsafe { to.write(address) };
    SUCCESS
}

/// # Safety
/// Nothing uses the memory afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemFreeAsync(address: u64, _: Handle) -> Status {
    let mut memory = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes = memory.get_or_insert_default().remove(&address);
    let Some(layout) = bytes.and_then(layout) else { return INVALID_VALUE };
    // SAFETY: the address was allocated with this layout.
    unsafe { dealloc(address as *mut u8, layout) };
    SUCCESS
}

/// # Safety
/// Both ranges are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoDAsync_v2(
    to: u64,
    from: *const u8,
    bytes: usize,
    _: Handle,
) -> Status {
    // SAFETY: the caller ensures it.
    unsafe { (to as *mut u8).copy_from(from, bytes) };
    SUCCESS
}

/// # Safety
/// Both ranges are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut u8,
    from: u64,
    bytes: usize,
    _: Handle,
) -> Status {
    // SAFETY: the caller ensures it.
    unsafe { to.copy_from(from as *const u8, bytes) };
    SUCCESS
}

/// # Safety
/// Both ranges are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoDAsync_v2(
    to: u64,
    from: u64,
    bytes: usize,
    _: Handle,
) -> Status {
    // SAFETY: the caller ensures it.
    unsafe { (to as *mut u8).copy_from(from as *const u8, bytes) };
    SUCCESS
}

/// One side of a copy of rows, as `cuda.h` declares it.
#[repr(C)]
pub struct Side {
    x_in_bytes: usize,
    y: usize,
    /// 1 for host memory, 4 for unified addresses.
    memory_type: c_uint,
    host: *mut u8,
    device: u64,
    array: Handle,
    pitch: usize,
}

impl Side {
    /// Address of the first row, if the driver accepts this side of rows of `width` bytes.
    fn first(&self, width: usize) -> Option<*mut u8> {
        let is_valid = (self.x_in_bytes, self.y) == (0, 0) && is_pitch(self.pitch, width);
        match self.memory_type {
            1 if is_valid => Some(self.host),
            4 if is_valid => Some(self.device as *mut u8),
            _ => None,
        }
    }
}

/// Returns true if the driver accepts a row stride, in bytes.
fn is_pitch(pitch: usize, width: usize) -> bool {
    (width..=i32::MAX as usize).contains(&pitch)
}

/// Copy of rows, as `cuda.h` declares it.
#[repr(C)]
pub struct Rows {
    from: Side,
    to: Side,
    width: usize,
    height: usize,
}

/// # Safety
/// Both sides have the rows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpy2DAsync_v2(rows: *const Rows, _: Handle) -> Status {
    // SAFETY: the caller ensures it.
    let Rows { from, to, width, height } = unsafe { &*rows };
    let (Some(first), Some(target)) = (from.first(*width), to.first(*width)) else {
        return INVALID_VALUE;
    };
    for row in 0..*height {
        // SAFETY: the caller ensures it.
        unsafe { target.add(row * to.pitch).copy_from(first.add(row * from.pitch), *width) };
    }
    SUCCESS
}

/// Functions that set elements, in a row and in rows.
macro_rules! sets {
    ($($row:ident, $rows:ident: $ty:ty;)*) => {
        $(
            /// # Safety
            /// The elements exist.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $row(at: u64, value: $ty, len: usize, _: Handle) -> Status {
                // SAFETY: the caller ensures it.
                (0..len).for_each(|i| unsafe { (at as *mut $ty).add(i).write(value) });
                SUCCESS
            }

            /// # Safety
            /// The elements exist.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $rows(
                at: u64,
                pitch: usize,
                value: $ty,
                width: usize,
                height: usize,
                stream: Handle,
            ) -> Status {
                if !is_pitch(pitch, width * size_of::<$ty>()) {
                    return INVALID_VALUE;
                }
                for row in 0..height {
                    // SAFETY: the caller ensures it.
                    unsafe { $row(at + (row * pitch) as u64, value, width, stream) };
                }
                SUCCESS
            }
        )*
    };
}

sets! {
    cuMemsetD8Async, cuMemsetD2D8Async: u8;
    cuMemsetD16Async, cuMemsetD2D16Async: u16;
    cuMemsetD32Async, cuMemsetD2D32Async: u32;
}

/// # Safety
/// The pointer is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadData(to: *mut Handle, _: *const c_void) -> Status {
    MODULES.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller ensures it.
    unsafe { to.write(handle()) };
    SUCCESS
}

/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleUnload(_: Handle) -> Status {
    MODULES.fetch_sub(1, Ordering::Relaxed);
    UNLOADED_EARLY.fetch_add(RUNNING.load(Ordering::Relaxed), Ordering::Relaxed);
    SUCCESS
}

/// # Safety
/// None is needed: nothing is launched.
#[unsafe(no_mangle)]
#[expect(clippy::too_many_arguments, reason = "the driver's function has them")]
pub unsafe extern "C" fn cuLaunchKernel(
    _: Handle,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: Handle,
    _: Handle,
    _: Handle,
) -> Status {
    LAUNCHES.fetch_add(1, Ordering::Relaxed);
    RUNNING.store(1, Ordering::Relaxed);
    SUCCESS
}

/// Function of drivers before CUDA 12.8, in milliseconds.
///
/// # Safety
/// The pointer is valid for a write.
#[cfg(not(without_elapsed))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(to: *mut f32, _: Handle, _: Handle) -> Status {
    // SAFETY: the caller ensures it.
    unsafe { to.write(1.5) };
    setting("FAKE_CUDA_EVENTS", SUCCESS)
}
