//! State of the fake library for one process: communicators, and transfers with only one half.

use std::alloc::Layout;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::c_int;
use std::sync::{LazyLock, Mutex, MutexGuard};

pub const SUCCESS: c_int = 0;
pub const INVALID_ARGUMENT: c_int = 4;
pub const INVALID_USAGE: c_int = 5;
pub const IN_PROGRESS: c_int = 7;

#[derive(Default)]
pub struct State {
    pub settings: BTreeMap<String, i64>,
    pub calls: BTreeMap<&'static str, i64>,
    pub misuse: Option<String>,
    pub ids: u64,
    pub handles: usize,
    pub worlds: BTreeMap<u64, World>,
    pub comms: BTreeMap<usize, Comm>,
    pub memory: BTreeMap<usize, Layout>,
}

/// Communicators with the same id.
#[derive(Default)]
pub struct World {
    pub ranks: c_int,
    pub begun: BTreeSet<c_int>,
    pub finalized: BTreeSet<c_int>,
    /// Halves by sender and receiver.
    pub sends: BTreeMap<(c_int, c_int), VecDeque<Half>>,
    pub receives: BTreeMap<(c_int, c_int), VecDeque<Half>>,
}

pub struct Comm {
    pub world: u64,
    pub rank: c_int,
    pub phase: Phase,
    /// Number of polls until completion.
    pub polls: i64,
    /// Halves without a counterpart.
    pub open: usize,
    pub error: c_int,
    /// True while the helper thread of a group is not joined. Until 2.26 its state belongs to the
    /// calling thread.
    pub has_job: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Connecting,
    Ready,
    Moving,
    Finalizing,
    Finalized,
}

#[derive(Clone, Copy)]
pub struct Half {
    pub comm: usize,
    pub at: usize,
    pub bytes: usize,
}

pub enum Op {
    Send(usize, c_int, Half),
    Receive(usize, c_int, Half),
    Abort(usize),
}

pub static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);

thread_local! {
    pub static GROUP: RefCell<(usize, Vec<Op>)> = const { RefCell::new((0, Vec::new())) };
    /// Communicator of the last group begun by this thread.
    static JOB: RefCell<usize> = const { RefCell::new(0) };
}

pub fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Returns the state at the start of a call, or the code that the call must return.
pub fn enter(name: &'static str) -> Result<MutexGuard<'static, State>, c_int> {
    let mut state = state();
    *state.calls.entry(name).or_default() += 1;
    match state.setting(name) {
        0 => Ok(state),
        code => Err(code as c_int),
    }
}

impl State {
    pub fn setting(&self, name: &str) -> i64 {
        self.settings.get(name).copied().unwrap_or(0)
    }

    pub fn polls(&self) -> i64 {
        self.settings.get("polls").copied().unwrap_or(2)
    }

    pub fn misused(&mut self, why: impl Into<String>) -> c_int {
        self.misuse.get_or_insert(why.into());
        INVALID_ARGUMENT
    }

    /// Returns the phase of a communicator, if it exists.
    pub fn phase(&mut self, comm: usize, doing: &str) -> Option<Phase> {
        let phase = self.comms.get(&comm).map(|comm| comm.phase);
        if phase.is_none() {
            self.misused(format!("{doing}: there is no communicator {comm:#x}"));
        }
        phase
    }

    /// Begins a group for a communicator. Returns false if this thread must not begin one.
    pub fn begin_job(&mut self, comm: usize) -> bool {
        let before = JOB.with(|job| job.replace(comm));
        if self.comms.get(&before).is_some_and(|comm| comm.has_job) {
            self.misused("a group was begun before that of the same thread was joined");
            return false;
        }
        let polls = self.polls();
        if let Some(comm) = self.comms.get_mut(&comm) {
            (comm.has_job, comm.polls) = (true, polls);
        }
        true
    }

    /// Performs transfers whose halves both exist.
    pub fn advance(&mut self, world: u64) {
        let Some(world) = self.worlds.get_mut(&world) else { return };
        for (pair, sends) in &mut world.sends {
            let Some(receives) = world.receives.get_mut(pair) else { continue };
            while let (Some(from), Some(to)) = (sends.front().copied(), receives.front().copied()) {
                sends.pop_front();
                receives.pop_front();
                let fits = from.bytes == to.bytes;
                if fits {
                    // SAFETY: callers of `ncclSend` and `ncclRecv` keep both buffers valid until
                    // completion is reported.
                    unsafe {
                        std::ptr::copy(from.at as *const u8, to.at as *mut u8, from.bytes);
                    }
                }
                for half in [from, to] {
                    if let Some(comm) = self.comms.get_mut(&half.comm) {
                        comm.open -= 1;
                        comm.error = if fits { comm.error } else { INVALID_USAGE };
                    }
                }
            }
        }
    }

    /// Returns the code of a communicator's state, for `ncclCommGetAsyncError`.
    pub fn ask(&mut self, handle: usize) -> c_int {
        let Some(world) = self.comms.get(&handle).map(|comm| comm.world) else {
            return self.misused("a communicator that is gone was asked after");
        };
        self.advance(world);
        let code = self.setting("async") as c_int;
        let (Some(comm), Some(world)) = (self.comms.get_mut(&handle), self.worlds.get(&world))
        else {
            return INVALID_ARGUMENT;
        };
        if code != SUCCESS || comm.error != SUCCESS {
            return if code != SUCCESS { code } else { comm.error };
        }
        let (is_done, next) = match comm.phase {
            Phase::Connecting => (world.begun.len() == world.ranks as usize, Phase::Ready),
            Phase::Moving => (comm.open == 0, Phase::Ready),
            Phase::Finalizing => (world.finalized.len() == world.ranks as usize, Phase::Finalized),
            Phase::Ready | Phase::Finalized => return SUCCESS,
        };
        if !is_done {
            return IN_PROGRESS;
        }
        if comm.polls > 0 {
            comm.polls -= 1;
            return IN_PROGRESS;
        }
        comm.phase = next;
        SUCCESS
    }

    /// Removes a communicator and its unfinished transfers.
    pub fn remove(&mut self, handle: usize) {
        let Some(comm) = self.comms.remove(&handle) else {
            self.misused("a communicator was given back twice");
            return;
        };
        if let Some(world) = self.worlds.get_mut(&comm.world) {
            for halves in world.sends.values_mut().chain(world.receives.values_mut()) {
                halves.retain(|half| half.comm != handle);
            }
        }
    }
}
