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
//! | `FAKE_CUDA_WAIT` | status of `cuEventSynchronize`; default 0 |
//! | `FAKE_CUDA_EVENTS` | status of the function of the time between events; default 0 |
//!
//! With `--cfg without_elapsed`, the library has no function of the time between events. Otherwise
//! it has only the function of releases before CUDA 12.8.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::Cell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

type Status = c_int;
type Handle = *mut c_void;

const SUCCESS: Status = 0;
const INVALID_VALUE: Status = 1;
const NOT_READY: Status = 600;
/// Handle of the context of the first GPU.
const CONTEXT: usize = 0x1000;
/// Alignment of an allocation, as CUDA has it.
const ALIGNMENT: usize = 256;

static MODULES: AtomicI64 = AtomicI64::new(0);
static LAUNCHES: AtomicI64 = AtomicI64::new(0);
/// 1 while launches have not been waited for.
static RUNNING: AtomicI64 = AtomicI64::new(0);
static UNLOADED_EARLY: AtomicI64 = AtomicI64::new(0);
/// Waits of a stream for another one, before and after the first launch.
static BEFORE: AtomicI64 = AtomicI64::new(0);
static AFTER: AtomicI64 = AtomicI64::new(0);
/// Capture status of all streams.
static CAPTURING: AtomicI64 = AtomicI64::new(0);
/// Memory that was freed while work of a stream referred to it.
static FREED_EARLY: AtomicI64 = AtomicI64::new(0);
static WORK: Mutex<Option<Work>> = Mutex::new(None);

/// Work of all streams that has not been executed, and what it refers to.
#[derive(Default)]
struct Work {
    streams: HashMap<usize, VecDeque<Task>>,
    /// Last record of each event.
    events: HashMap<usize, Recorded>,
    /// Number of records so far, and those that were executed.
    records: u64,
    executed: HashSet<u64>,
    /// Sizes of the allocations of the GPU and of pinned memory, by address.
    memory: HashMap<u64, usize>,
    pinned: HashMap<u64, usize>,
}

/// Record of an event.
#[derive(Clone, Copy)]
struct Recorded {
    stream: usize,
    number: u64,
}

enum Task {
    Copy(Copy),
    Record(u64),
    Wait(Recorded),
    Free(u64),
}

/// Copy of rows. Addresses and strides are in bytes.
struct Copy {
    to: u64,
    to_pitch: usize,
    from: Source,
    from_pitch: usize,
    width: usize,
    height: usize,
}

enum Source {
    Address(u64),
    /// Elements of the host, read by the call.
    Bytes(Vec<u8>),
}

impl Copy {
    fn span(&self, pitch: usize) -> usize {
        if self.height == 0 { 0 } else { (self.height - 1) * pitch + self.width }
    }

    /// Returns true if the copy reads or writes an allocation.
    fn touches(&self, at: u64, bytes: usize) -> bool {
        let meets = |first: u64, span: usize| first < at + bytes as u64 && at < first + span as u64;
        let is_read = match self.from {
            Source::Address(from) => meets(from, self.span(self.from_pitch)),
            Source::Bytes(_) => false,
        };
        is_read || meets(self.to, self.span(self.to_pitch))
    }

    fn execute(&self) {
        let from = match &self.from {
            Source::Address(from) => *from as *const u8,
            Source::Bytes(bytes) => bytes.as_ptr(),
        };
        for row in 0..self.height {
            // SAFETY: the caller of the driver's function ensures that both sides have the rows.
            unsafe {
                let to = (self.to as *mut u8).add(row * self.to_pitch);
                to.copy_from(from.add(row * self.from_pitch), self.width);
            }
        }
    }
}

impl Work {
    fn push(&mut self, stream: Handle, task: Task) {
        self.streams.entry(stream as usize).or_default().push_back(task);
    }

    /// Executes the work of a stream until it is done, or until one of its records is.
    fn run(&mut self, stream: usize, until: Option<u64>) {
        while !until.is_some_and(|number| self.executed.contains(&number)) {
            let Some(task) = self.streams.entry(stream).or_default().pop_front() else { return };
            match task {
                Task::Copy(copy) => copy.execute(),
                Task::Record(number) => _ = self.executed.insert(number),
                Task::Wait(recorded) => self.run(recorded.stream, Some(recorded.number)),
                Task::Free(at) => self.free(at),
            }
        }
    }

    fn recorded(&self, event: Handle) -> Option<Recorded> {
        self.events.get(&(event as usize)).copied()
    }

    /// Frees an allocation. An allocation that work refers to is leaked and counted.
    fn free(&mut self, at: u64) {
        let Some(bytes) = self.memory.remove(&at) else { return };
        if self.is_used(at, bytes) {
            FREED_EARLY.fetch_add(1, Ordering::Relaxed);
        } else if let Some(layout) = layout(bytes) {
            // SAFETY: the address was allocated with this layout.
            unsafe { dealloc(at as *mut u8, layout) };
        }
    }

    fn is_used(&self, at: u64, bytes: usize) -> bool {
        let mut tasks = self.streams.values().flatten();
        tasks.any(|task| matches!(task, Task::Copy(copy) if copy.touches(at, bytes)))
    }

    fn is_pinned(&self, address: u64) -> bool {
        self.pinned.iter().any(|(&at, &bytes)| (at..at + bytes as u64).contains(&address))
    }

    /// Puts a copy on a stream. Memory of the host that is not pinned is accessed by the call.
    fn copy(&mut self, stream: Handle, mut copy: Copy, host: Option<Host>) {
        match (host, &copy.from) {
            (Some(Host::Source), Source::Address(from)) if !self.is_pinned(*from) => {
                let span = copy.span(copy.from_pitch);
                // SAFETY: the caller of the driver's function ensures that the host has the rows.
                let bytes = unsafe { std::slice::from_raw_parts(*from as *const u8, span) };
                copy.from = Source::Bytes(bytes.to_vec());
            }
            (Some(Host::Target), _) if !self.is_pinned(copy.to) => {
                self.run(stream as usize, None);
                return copy.execute();
            }
            _ => {}
        }
        self.push(stream, Task::Copy(copy));
    }
}

/// Side of a copy that is memory of the host.
enum Host {
    Source,
    Target,
}

/// Calls a function with the work of all streams.
fn with_work<R>(call: impl FnOnce(&mut Work) -> R) -> R {
    call(WORK.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

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
    with_work(|work| {
        work.records += 1;
        let recorded = Recorded { stream: stream as usize, number: work.records };
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
        if let Some(Recorded { stream, number }) = work.recorded(event) {
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

/// Functions that copy consecutive bytes.
macro_rules! copies {
    ($($name:ident($to:ty, $from:ty), $host:expr;)*) => {
        $(
            /// # Safety
            /// Both ranges are valid.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                to: $to,
                from: $from,
                width: usize,
                stream: Handle,
            ) -> Status {
                let (to, from) = (to as u64, Source::Address(from as u64));
                let copy = Copy { to, to_pitch: width, from, from_pitch: width, width, height: 1 };
                with_work(|work| work.copy(stream, copy, $host));
                SUCCESS
            }
        )*
    };
}

copies! {
    cuMemcpyHtoDAsync_v2(u64, *const u8), Some(Host::Source);
    cuMemcpyDtoHAsync_v2(*mut u8, u64), Some(Host::Target);
    cuMemcpyDtoDAsync_v2(u64, u64), None;
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
pub unsafe extern "C" fn cuMemcpy2DAsync_v2(rows: *const Rows, stream: Handle) -> Status {
    // SAFETY: the caller ensures it.
    let Rows { from, to, width, height } = unsafe { &*rows };
    let (Some(first), Some(target)) = (from.first(*width), to.first(*width)) else {
        return INVALID_VALUE;
    };
    let host = match (from.memory_type, to.memory_type) {
        (1, _) => Some(Host::Source),
        (_, 1) => Some(Host::Target),
        _ => None,
    };
    let copy = Copy {
        to: target as u64,
        to_pitch: to.pitch,
        from: Source::Address(first as u64),
        from_pitch: from.pitch,
        width: *width,
        height: *height,
    };
    with_work(|work| work.copy(stream, copy, host));
    SUCCESS
}

/// Functions that set elements, in a row and in rows.
macro_rules! sets {
    ($($row:ident, $rows:ident: $ty:ty;)*) => {
        $(
            /// # Safety
            /// The elements exist.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $row(at: u64, value: $ty, len: usize, stream: Handle)
            -> Status {
                set(stream, at, len * size_of::<$ty>(), &value.to_ne_bytes(), (len, 1))
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
                set(stream, at, pitch, &value.to_ne_bytes(), (width, height))
            }
        )*
    };
}

/// Puts a copy of one value to rows on a stream.
fn set(stream: Handle, to: u64, to_pitch: usize, value: &[u8], extents: (usize, usize)) -> Status {
    let (from, width) = (Source::Bytes(value.repeat(extents.0)), value.len() * extents.0);
    let copy = Copy { to, to_pitch, from, from_pitch: 0, width, height: extents.1 };
    with_work(|work| work.push(stream, Task::Copy(copy)));
    SUCCESS
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
