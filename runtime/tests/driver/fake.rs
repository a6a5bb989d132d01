//! Fake of the driver's library, compiled by `rustc` to a shared object. It has the functions that
//! the runtime calls. Memory is the host's, launches do nothing, and each GPU has one context.
//!
//! A stream executes its work as late as the driver's rules allow: when the host, or another stream
//! that the host waits for, waits for it. So a missing wait leaves old elements in a result.
//!
//! | environment variable | effect |
//! | --- | --- |
//! | `FAKE_CUDA_INIT` | status of `cuInit`; default 0 |
//! | `FAKE_CUDA_GPUS` | number of GPUs; default 1 |
//! | `FAKE_CUDA_MODULE` | status of `cuModuleLoadData`; default 0 |
//! | `FAKE_CUDA_MODULES` | number of calls of `cuModuleLoadData` with this status; default all |
//! | `FAKE_CUDA_WAIT` | status of `cuEventSynchronize`; default 0 |
//! | `FAKE_CUDA_EVENTS` | status of the function of the time between events; default 0 |
//! | `FAKE_CUDA_FAST` | part of the names of fast kernels: see `LAUNCH` |
//!
//! With `--cfg without_elapsed`, the library has no function of the time between events. Otherwise
//! it has only the function of releases before CUDA 12.8.

#[path = "fake/copies.rs"]
mod copies;
#[path = "fake/work.rs"]
mod work;

use std::alloc::{alloc_zeroed, dealloc};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use work::{FREED_EARLY, Recorded, Task, layout, with_work};

type Status = c_int;
type Handle = *mut c_void;

const SUCCESS: Status = 0;
const INVALID_VALUE: Status = 1;
const OUT_OF_MEMORY: Status = 2;
const NOT_READY: Status = 600;
/// Handle of the context of the first GPU.
const CONTEXT: usize = 0x1000;

static MODULES: AtomicI64 = AtomicI64::new(0);
static LAUNCHES: AtomicI64 = AtomicI64::new(0);
/// 1 while launches have not been waited for.
static RUNNING: AtomicI64 = AtomicI64::new(0);
static UNLOADED_EARLY: AtomicI64 = AtomicI64::new(0);
/// Waits of a stream for another one, before and after the first launch.
static BEFORE: AtomicI64 = AtomicI64::new(0);
static AFTER: AtomicI64 = AtomicI64::new(0);
/// Sum of the times of all launches so far, in microseconds.
static CLOCK: AtomicI64 = AtomicI64::new(0);
/// Times of a launch of a fast kernel, and of another one, in microseconds. The time between two
/// events is the time of the launches between them. Without `FAKE_CUDA_FAST` it is always 1.5 ms.
const LAUNCH: [i64; 2] = [1000, 4000];
/// Capture status of all streams.
static CAPTURING: AtomicI64 = AtomicI64::new(0);

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

/// Number of loaded modules, of launches so far, of waits, or of modules that were unloaded while a
/// launch had not been waited for.
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
        b"freed early" => FREED_EARLY.load(Ordering::Relaxed),
        b"allocations" => with_work(|work| work.memory.len() + work.pinned.len()) as i64,
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
    with_work(|work| {
        work.records += 1;
        let clock = CLOCK.load(Ordering::Relaxed);
        let recorded = Recorded { stream: stream as usize, number: work.records, clock };
        work.events.insert(event as usize, recorded);
        work.push(stream, Task::Record(recorded.number));
    });
    SUCCESS
}

/// Counts waits for events of other streams.
///
/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamWaitEvent(stream: Handle, event: Handle, _: c_uint) -> Status {
    with_work(|work| {
        let Some(recorded) = work.recorded(event) else { return };
        if recorded.stream != stream as usize {
            let waits = if LAUNCHES.load(Ordering::Relaxed) == 0 { &BEFORE } else { &AFTER };
            waits.fetch_add(1, Ordering::Relaxed);
        }
        work.push(stream, Task::Wait(recorded));
    });
    SUCCESS
}

/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventSynchronize(event: Handle) -> Status {
    with_work(|work| {
        if let Some(Recorded { stream, number, .. }) = work.recorded(event) {
            work.run(stream, Some(number));
        }
    });
    setting("FAKE_CUDA_WAIT", SUCCESS)
}

/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventQuery(event: Handle) -> Status {
    let is_done = with_work(|work| {
        work.recorded(event).is_none_or(|recorded| work.executed.contains(&recorded.number))
    });
    if is_done { SUCCESS } else { NOT_READY }
}

/// An event whose work is not done is destroyed later.
///
/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventDestroy_v2(_: Handle) -> Status {
    SUCCESS
}

/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxSynchronize() -> Status {
    with_work(|work| {
        let streams: Vec<usize> = work.streams.keys().copied().collect();
        streams.into_iter().for_each(|stream| work.run(stream, None));
    });
    SUCCESS
}

/// The work of a destroyed stream is executed.
///
/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamDestroy_v2(stream: Handle) -> Status {
    with_work(|work| work.run(stream as usize, None));
    SUCCESS
}

/// # Safety
/// The pointer is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostAlloc(to: *mut u64, bytes: usize, _: c_uint) -> Status {
    let Some(layout) = layout(bytes) else { return INVALID_VALUE };
    // SAFETY: the layout is not empty.
    let address = unsafe { alloc_zeroed(layout) };
    // SAFETY: the allocation has so many bytes. Pinned memory is not zeroed.
    unsafe { address.write_bytes(0xab, bytes) };
    with_work(|work| work.pinned.insert(address as u64, bytes));
    // SAFETY: the caller ensures it.
    unsafe { to.write(address as u64) };
    SUCCESS
}

/// # Safety
/// Nothing uses the memory afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemFreeHost(address: u64) -> Status {
    with_work(|work| {
        let Some(bytes) = work.pinned.remove(&address) else { return INVALID_VALUE };
        if work.is_used(address, bytes) {
            FREED_EARLY.fetch_add(1, Ordering::Relaxed);
        } else if let Some(layout) = layout(bytes) {
            // SAFETY: the address was allocated with this layout.
            unsafe { dealloc(address as *mut u8, layout) };
        }
        SUCCESS
    })
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
pub unsafe extern "C" fn cuStreamSynchronize(stream: Handle) -> Status {
    with_work(|work| work.run(stream as usize, None));
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

/// # Safety
/// The pointer is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocAsync(to: *mut u64, bytes: usize, _: Handle) -> Status {
    let Some(layout) = layout(bytes) else { return OUT_OF_MEMORY };
    // SAFETY: the layout is not empty.
    let address = unsafe { alloc_zeroed(layout) } as u64;
    with_work(|work| work.memory.insert(address, bytes));
    // SAFETY: the caller ensures it.
    unsafe { to.write(address) };
    SUCCESS
}

/// # Safety
/// Nothing uses the memory afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemFreeAsync(address: u64, stream: Handle) -> Status {
    with_work(|work| {
        if !work.memory.contains_key(&address) {
            return INVALID_VALUE;
        }
        work.push(stream, Task::Free(address));
        SUCCESS
    })
}

/// # Safety
/// The pointer is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadData(to: *mut Handle, _: *const c_void) -> Status {
    static CALLS: AtomicI64 = AtomicI64::new(0);
    let all = setting("FAKE_CUDA_MODULES", Status::MAX);
    let status = match CALLS.fetch_add(1, Ordering::Relaxed) < i64::from(all) {
        true => setting("FAKE_CUDA_MODULE", SUCCESS),
        false => SUCCESS,
    };
    if status == SUCCESS {
        MODULES.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller ensures it.
        unsafe { to.write(handle()) };
    }
    status
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
/// The pointer is valid for a write, and the name ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(
    to: *mut Handle,
    _: Handle,
    name: *const c_char,
) -> Status {
    // SAFETY: the caller ensures it.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let function = handle();
    if std::env::var("FAKE_CUDA_FAST").is_ok_and(|fast| name.contains(&fast)) {
        with_work(|work| work.fast.insert(function as usize));
    }
    // SAFETY: the caller ensures it.
    unsafe { to.write(function) };
    SUCCESS
}

/// # Safety
/// None is needed: nothing is launched.
#[unsafe(no_mangle)]
#[expect(clippy::too_many_arguments, reason = "the driver's function has them")]
pub unsafe extern "C" fn cuLaunchKernel(
    function: Handle,
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
    let is_fast = with_work(|work| work.fast.contains(&(function as usize)));
    CLOCK.fetch_add(LAUNCH[usize::from(!is_fast)], Ordering::Relaxed);
    SUCCESS
}

/// Function of drivers before CUDA 12.8, in milliseconds.
///
/// # Safety
/// The pointer is valid for a write.
#[cfg(not(without_elapsed))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(to: *mut f32, start: Handle, end: Handle) -> Status {
    let clock = |event| with_work(|work| work.recorded(event).map_or(0, |recorded| recorded.clock));
    let time = match std::env::var_os("FAKE_CUDA_FAST") {
        Some(_) => (clock(end) - clock(start)) as f32 / 1e3,
        None => 1.5,
    };
    // SAFETY: the caller ensures it.
    unsafe { to.write(time) };
    setting("FAKE_CUDA_EVENTS", SUCCESS)
}
