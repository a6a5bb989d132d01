//! Fake of NCCL, compiled by `rustc` to a shared object. It has the functions that the runtime
//! calls, and moves bytes between pointers of one process. It has neither devices nor streams.
//!
//! Its communicators are non-blocking, as in NCCL. An activity progresses only while it is polled,
//! and a settled exchange has moved all its bytes. A rank does not notice that another rank has
//! aborted. The library records the first call that NCCL forbids (`fake_misuse`). With `fake_set`,
//! a test makes it fail:
//!
//! | setting | effect |
//! | --- | --- |
//! | `version` | reported version; default `FAKE_NCCL_VERSION` in the environment, or 22809 |
//! | `polls` | number of polls until a completed activity is reported as complete |
//! | `async` | code of every communicator's state |
//! | `texts` | 1: no last error. 2: neither a last error nor texts for codes. 3: both are empty |
//! | the name of a function | code that it returns without any effect |
//! | `half` | code that `ncclCommInitRankConfig` returns with a communicator |
//! | `none` | `ncclCommInitRankConfig` succeeds without a communicator |
//! | `strange` | a communicator reports another rank |

mod state;

use state::{
    Comm, GROUP, Half, IN_PROGRESS, INVALID_ARGUMENT, INVALID_USAGE, Op, Phase, SUCCESS, State,
    enter, state,
};
use std::alloc::Layout;
use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::MutexGuard;

#[repr(C)]
pub struct UniqueId([u8; 128]);

/// `ncclConfig_t` of 2.22.
#[repr(C)]
pub struct Config {
    size: usize,
    magic: u32,
    version: u32,
    blocking: c_int,
    cga_cluster_size: c_int,
    min_ctas: c_int,
    max_ctas: c_int,
    net_name: *const c_char,
    split_share: c_int,
}

macro_rules! enter {
    ($name:literal) => {
        match enter($name) {
            Ok(state) => state,
            Err(code) => return code,
        }
    };
}

/// Copies the name of a setting.
///
/// # Safety
/// The name ends with a zero.
unsafe fn name(pointer: *const c_char) -> String {
    // SAFETY: the caller vouches for it.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// # Safety
/// The name ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_set(setting: *const c_char, value: i64) {
    // SAFETY: the caller vouches for the pointer.
    let setting = unsafe { name(setting) };
    state().settings.insert(setting, value);
}

/// Returns the number of calls of a function. `live` counts communicators and allocations;
/// `max_ctas` is the last requested value.
///
/// # Safety
/// The name ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_get(what: *const c_char) -> i64 {
    // SAFETY: the caller vouches for the pointer.
    let what = unsafe { name(what) };
    let state = state();
    match what.as_str() {
        "live" => (state.comms.len() + state.memory.len()) as i64,
        "max_ctas" => state.setting("max_ctas"),
        name => state.calls.get(name).copied().unwrap_or(0),
    }
}

/// Writes a description of the first call that NCCL forbids. Returns its number of bytes.
///
/// # Safety
/// `buffer` has the capacity for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_misuse(buffer: *mut u8, room: usize) -> usize {
    let state = state();
    let text = state.misuse.as_deref().unwrap_or_default();
    let len = text.len().min(room);
    // SAFETY: the text has as many bytes, and the caller vouches for the buffer.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), buffer, len) };
    len
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> c_int {
    let state = enter!("ncclGetVersion");
    let variable = || std::env::var("FAKE_NCCL_VERSION").ok()?.parse().ok();
    let number = state.settings.get("version").copied().or_else(variable).unwrap_or(22809);
    // SAFETY: the caller vouches for the pointer.
    unsafe { version.write(number as c_int) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetUniqueId(id: *mut UniqueId) -> c_int {
    let mut state = enter!("ncclGetUniqueId");
    state.ids += 1;
    let mut bytes = [0xab; 128];
    bytes[..8].copy_from_slice(&state.ids.to_le_bytes());
    // SAFETY: the caller vouches for the pointer.
    unsafe { id.write(UniqueId(bytes)) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetErrorString(code: c_int) -> *const c_char {
    let text = match (state().setting("texts"), code) {
        (2, _) => return std::ptr::null(),
        (3, _) => c"",
        (_, SUCCESS) => c"no error",
        (_, INVALID_ARGUMENT) => c"invalid argument",
        (_, INVALID_USAGE) => c"invalid usage",
        (_, IN_PROGRESS) => c"in progress",
        _ => c"unknown result code",
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetLastError(_: usize) -> *const c_char {
    match state().setting("texts") {
        1 | 2 => std::ptr::null(),
        3 => c" \n".as_ptr(),
        _ => c"fake: what was wrong last\n".as_ptr(),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommInitRankConfig(
    out: *mut usize,
    ranks: c_int,
    id: UniqueId,
    rank: c_int,
    config: *mut Config,
) -> c_int {
    let mut state = enter!("ncclCommInitRankConfig");
    // SAFETY: the caller vouches for the pointer.
    let config = unsafe { config.read() };
    let undefined = [config.cga_cluster_size, config.min_ctas, config.split_share];
    let is_known = config.size == size_of::<Config>()
        && config.magic == 0xcafe_beef
        && config.version == 22200
        && config.blocking == 0
        && config.net_name.is_null()
        && undefined == [c_int::MIN; 3];
    if !is_known {
        return state.misused("the config of a communicator");
    }
    if ranks < 1 || rank < 0 || rank >= ranks {
        return state.misused(format!("rank {rank} of {ranks}"));
    }
    if state.setting("none") != 0 {
        return SUCCESS;
    }
    state.settings.insert("max_ctas".to_owned(), config.max_ctas.into());
    let mut number = [0; 8];
    number.copy_from_slice(&id.0[..8]);
    let number = u64::from_le_bytes(number);
    let world = state.worlds.entry(number).or_default();
    let agrees = (world.ranks == 0 || world.ranks == ranks) && world.begun.insert(rank);
    world.ranks = ranks;
    state.handles += 0x100;
    let handle = state.handles;
    let comm = Comm {
        world: number,
        rank,
        phase: Phase::Connecting,
        polls: 0,
        open: 0,
        error: if agrees { SUCCESS } else { INVALID_USAGE },
        has_job: false,
    };
    state.comms.insert(handle, comm);
    // SAFETY: the caller vouches for the pointer.
    unsafe { out.write(handle) };
    if !state.begin_job(handle) {
        return INVALID_USAGE;
    }
    match state.setting("half") {
        0 => state.ask(handle),
        code => code as c_int,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommGetAsyncError(comm: usize, code: *mut c_int) -> c_int {
    let mut state = enter!("ncclCommGetAsyncError");
    let found = state.ask(comm);
    // SAFETY: the caller vouches for the pointer.
    unsafe { code.write(found) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommFinalize(handle: usize) -> c_int {
    let mut state = enter!("ncclCommFinalize");
    if state.phase(handle, "ncclCommFinalize") != Some(Phase::Ready) {
        return state.misused("a communicator was finalized that is not ready");
    }
    if !state.begin_job(handle) {
        return INVALID_USAGE;
    }
    if let Some(comm) = state.comms.get_mut(&handle) {
        comm.phase = Phase::Finalizing;
        let (world, rank) = (comm.world, comm.rank);
        state.worlds.entry(world).or_default().finalized.insert(rank);
    }
    state.ask(handle)
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommDestroy(handle: usize) -> c_int {
    let mut state = enter!("ncclCommDestroy");
    if state.phase(handle, "ncclCommDestroy") != Some(Phase::Finalized) {
        return state.misused("a communicator was destroyed that is not finalized");
    }
    state.remove(handle);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommAbort(handle: usize) -> c_int {
    let mut state = enter!("ncclCommAbort");
    let in_group = GROUP.with_borrow_mut(|(depth, ops)| {
        ops.push(Op::Abort(handle));
        *depth > 0
    });
    if !in_group {
        state.misused("a communicator was aborted outside of a group");
        GROUP.with_borrow_mut(|(_, ops)| ops.clear());
        state.remove(handle);
    }
    SUCCESS
}

/// Performs `ncclCommEnsureReady`, then writes a property of the communicator.
unsafe fn fact(
    state: &mut State,
    handle: usize,
    out: *mut c_int,
    fact: impl FnOnce(&State, &Comm) -> c_int,
) -> c_int {
    if state.ask(handle) != SUCCESS {
        return state.misused("a communicator was used that is not ready");
    }
    if let Some(comm) = state.comms.get_mut(&handle) {
        comm.has_job = false;
    }
    if let Some(comm) = state.comms.get(&handle) {
        // SAFETY: the caller vouches for the pointer.
        unsafe { out.write(fact(state, comm)) };
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommCount(handle: usize, count: *mut c_int) -> c_int {
    let mut state = enter!("ncclCommCount");
    let ranks =
        |state: &State, comm: &Comm| state.worlds.get(&comm.world).map_or(0, |world| world.ranks);
    // SAFETY: the caller vouches for the pointer.
    unsafe { fact(&mut state, handle, count, ranks) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommUserRank(handle: usize, rank: *mut c_int) -> c_int {
    let mut state = enter!("ncclCommUserRank");
    let place = |state: &State, comm: &Comm| comm.rank + state.setting("strange") as c_int;
    // SAFETY: the caller vouches for the pointer.
    unsafe { fact(&mut state, handle, rank, place) }
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupStart() -> c_int {
    let _state = enter!("ncclGroupStart");
    GROUP.with_borrow_mut(|(depth, _)| *depth += 1);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupEnd() -> c_int {
    let (is_last, ops) = GROUP.with_borrow_mut(|(depth, ops)| {
        *depth = depth.saturating_sub(1);
        (*depth == 0, if *depth == 0 { std::mem::take(ops) } else { Vec::new() })
    });
    let mut state = enter!("ncclGroupEnd");
    let mut moving = BTreeSet::new();
    for op in ops {
        let (is_send, (handle, peer, half)) = match op {
            Op::Send(handle, peer, half) => (true, (handle, peer, half)),
            Op::Receive(handle, peer, half) => (false, (handle, peer, half)),
            Op::Abort(handle) => {
                state.remove(handle);
                continue;
            }
        };
        let Some(comm) = state.comms.get_mut(&handle) else { continue };
        comm.open += 1;
        comm.phase = Phase::Moving;
        let (world, rank) = (comm.world, comm.rank);
        let world = state.worlds.entry(world).or_default();
        let halves = if is_send {
            world.sends.entry((rank, peer)).or_default()
        } else {
            world.receives.entry((peer, rank)).or_default()
        };
        halves.push_back(half);
        moving.insert(handle);
    }
    if moving.len() > 1 || !is_last {
        return state.misused("a group of several communicators, or within another one");
    }
    let Some(handle) = moving.first().copied() else { return SUCCESS };
    if state.begin_job(handle) { state.ask(handle) } else { INVALID_USAGE }
}

/// Records one half of a transfer, in the group of this thread.
fn half(
    mut state: MutexGuard<'static, State>,
    op: fn(usize, c_int, Half) -> Op,
    half: Half,
    kind: c_int,
    peer: c_int,
) -> c_int {
    let handle = half.comm;
    if state.phase(handle, "a movement") != Some(Phase::Ready) {
        return state.misused("bytes were to be moved by a communicator that is not ready");
    }
    let comm = state.comms.get(&handle);
    let ranks = comm.and_then(|comm| state.worlds.get(&comm.world)).map_or(0, |world| world.ranks);
    if kind != 1 || half.bytes == 0 || half.at == 0 || !(0..ranks).contains(&peer) {
        let Half { at, bytes, .. } = half;
        return state.misused(format!("{bytes} of type {kind} at {at:#x}, with rank {peer}"));
    }
    GROUP.with_borrow_mut(|(depth, ops)| {
        if *depth == 0 {
            return state.misused("a movement outside of a group");
        }
        ops.push(op(handle, peer, half));
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclSend(
    at: usize,
    bytes: usize,
    kind: c_int,
    peer: c_int,
    comm: usize,
    _stream: usize,
) -> c_int {
    half(enter!("ncclSend"), Op::Send, Half { comm, at, bytes }, kind, peer)
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclRecv(
    at: usize,
    bytes: usize,
    kind: c_int,
    peer: c_int,
    comm: usize,
    _stream: usize,
) -> c_int {
    half(enter!("ncclRecv"), Op::Receive, Half { comm, at, bytes }, kind, peer)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclMemAlloc(out: *mut *mut c_void, bytes: usize) -> c_int {
    let mut state = enter!("ncclMemAlloc");
    let Ok(layout) = Layout::from_size_align(bytes, 256) else { return 1 };
    if bytes == 0 {
        return state.misused("an allocation of nothing");
    }
    // SAFETY: the size is not 0.
    let pointer = unsafe { std::alloc::alloc(layout) };
    if pointer.is_null() {
        return 1;
    }
    state.memory.insert(pointer as usize, layout);
    // SAFETY: the caller vouches for the pointer.
    unsafe { out.write(pointer.cast()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclMemFree(pointer: *mut c_void) -> c_int {
    let mut state = enter!("ncclMemFree");
    let Some(layout) = state.memory.remove(&(pointer as usize)) else {
        return state.misused("memory was freed that is none");
    };
    // SAFETY: it was allocated with this layout.
    unsafe { std::alloc::dealloc(pointer.cast(), layout) };
    SUCCESS
}
