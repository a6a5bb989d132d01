//! Communicators of NCCL: connection, state and end.

use super::abort::abort_in_one_group;
use super::config::Config;
use super::doing::{self, Doing};
use super::functions::{Code, Functions, Handle, SUCCESS, Stream, UniqueId};
use super::{Library, NcclResult};
use crate::WorldError;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fmt, ptr, thread};

/// Callback that is polled during a wait for NCCL. If it returns an error, for example because a
/// rank is lost, the wait ends.
pub type KeepGoing<'a> = &'a mut dyn FnMut() -> NcclResult<()>;

/// One rank's handle of an NCCL communicator. Dropping it before [`finish`](Self::finish) aborts
/// the communicator.
///
/// It may move between threads while no activity is in flight. Only one thread at a time may use
/// it.
pub struct Communicator {
    library: Arc<Library>,
    /// NCCL's handle, or null after the handle was released.
    handle: Handle,
    ranks: usize,
    rank: usize,
    /// Last activity that was begun.
    doing: Cell<Doing>,
    /// True while the last activity is in flight. The thread that began it shares this flag, and
    /// begins nothing else until the flag is false.
    in_flight: Arc<AtomicBool>,
    /// True after a failure of NCCL: the communicator can only be aborted.
    is_broken: Cell<bool>,
}

#[allow(unsafe_code, reason = "a pointer to what NCCL lets any thread use")]
// SAFETY: different threads may use a communicator, one at a time; the type is not `Sync`. Callers
// must settle a group in flight before its thread ends.
unsafe impl Send for Communicator {}

#[allow(unsafe_code, reason = "calls of the C library")]
impl Communicator {
    /// Connects this rank with the others, on the device whose context the caller has bound to this
    /// thread. The function returns before the ranks are connected; call [`Communicator::settle`]
    /// next. `max_ctas` limits the number of blocks with which NCCL moves data. These blocks occupy
    /// SMs beside other kernels.
    ///
    /// All ranks must call this function, with the same `id` from [`Library::unique_id`]. Ranks of
    /// one process call it in separate threads.
    ///
    /// # Errors
    /// * [`WorldError::NcclRefused`] if `rank` is not below `ranks`, `max_ctas` is not positive, or
    ///   this thread has an activity in flight.
    /// * [`WorldError::Nccl`] if NCCL fails, for example because two ranks use the same device.
    pub fn begin(
        library: Arc<Library>,
        id: [u8; 128],
        ranks: usize,
        rank: usize,
        max_ctas: Option<i32>,
    ) -> NcclResult<Self> {
        let doing = Doing::Connect;
        let (count, place) = match (c_int::try_from(ranks), c_int::try_from(rank)) {
            (Ok(count), Ok(place)) if place < count => (count, place),
            _ => return Err(doing.refused(format!("rank {rank} is not one of {ranks}"))),
        };
        if let Some(max) = max_ctas.filter(|max| *max < 1) {
            return Err(doing.refused(format!("max_ctas has to be positive, not {max}")));
        }
        doing.claim()?;
        let mut config = Config::non_blocking(max_ctas);
        let mut handle: Handle = ptr::null_mut();
        // SAFETY: both pointers are valid for the call, and the struct has the layout of
        // `ncclConfig_t` in nccl.h.
        let code = unsafe {
            (library.functions.init)(&mut handle, count, UniqueId(id), place, &mut config)
        };
        let communicator = Self {
            library,
            handle,
            ranks,
            rank,
            doing: Cell::new(doing),
            in_flight: Arc::default(),
            is_broken: Cell::new(false),
        };
        communicator.begun(doing);
        // If NCCL returned a handle with an error, dropping the communicator releases the handle.
        let is_done = communicator.library.begun(doing.text(), code)?;
        if handle.is_null() {
            return Err(doing.odd("it returned no communicator".to_owned()));
        }
        if is_done {
            communicator.join()?;
        }
        Ok(communicator)
    }

    /// Number of ranks that the communicator connects.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns true if the last activity is complete. An exchange is complete once it is enqueued
    /// on its stream. Connections may fail later: see [`Communicator::holds`].
    ///
    /// # Errors
    /// [`WorldError::Nccl`] if NCCL has failed. The communicator can then only be aborted.
    pub fn progress(&self) -> NcclResult<bool> {
        let is_done = self.state()?;
        if is_done && self.in_flight.load(Ordering::Relaxed) {
            self.join()?;
        }
        Ok(is_done)
    }

    /// Checks for a later failure of NCCL, such as a lost connection. Call this method while
    /// waiting for a stream. It does not complete activities that another thread began.
    ///
    /// # Errors
    /// Same as [`Communicator::progress`].
    pub fn holds(&self) -> NcclResult<()> {
        self.state().map(drop)
    }

    /// Queries NCCL's state. Returns true if nothing is in progress.
    fn state(&self) -> NcclResult<bool> {
        let text = self.doing.get().text();
        let mut state = SUCCESS;
        // SAFETY: the handle is live, and the pointer is valid for the call.
        let code = unsafe { (self.library.functions.async_error)(self.handle, &mut state) };
        let asked = self.library.begun(text, code);
        self.noted(asked.and_then(|asked| Ok(asked && self.library.begun(text, state)?)))
    }

    /// Waits for the last activity to complete, and polls `keep_going` meanwhile.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::progress`] and of `keep_going`, and
    /// [`WorldError::NcclLate`] after the deadline. After an error the activity continues until the
    /// communicator is aborted.
    pub fn settle(&self, deadline: Instant, keep_going: KeepGoing<'_>) -> NcclResult<()> {
        const SHORTEST: Duration = Duration::from_micros(20);
        const LONGEST: Duration = Duration::from_millis(1);
        let begin = Instant::now();
        let mut pause = SHORTEST;
        while !self.progress()? {
            keep_going()?;
            let now = Instant::now();
            if now >= deadline {
                let doing = self.doing.get().text().to_owned();
                return Err(WorldError::NcclLate { doing, waited: now - begin });
            }
            // Most activities take tens of microseconds, less than the shortest sleep.
            if now - begin < 10 * SHORTEST {
                thread::yield_now();
            } else {
                thread::sleep(pause.min(deadline - now));
                pause = (2 * pause).min(LONGEST);
            }
        }
        Ok(())
    }

    /// Closes the communicator. All ranks must call this method, after all work on streams is
    /// complete. First destroy all graphs that were captured with the communicator.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::settle`], after which the communicator is aborted. If
    /// the final release fails, NCCL keeps the communicator.
    pub fn finish(mut self, deadline: Instant, keep_going: KeepGoing<'_>) -> NcclResult<()> {
        let doing = Doing::Finish;
        self.settle(deadline, keep_going)?;
        self.ready(doing)?;
        // SAFETY: the handle is live.
        let code = unsafe { (self.library.functions.finalize)(self.handle) };
        self.begun(doing);
        self.noted(self.library.begun(doing.text(), code))?;
        self.settle(deadline, keep_going)?;
        let handle = self.take();
        // SAFETY: the handle was live and is not used again.
        let code = unsafe { (self.library.functions.destroy)(handle) };
        self.library.begun(doing.text(), code).map(|_| ())
    }

    /// Aborts the communicator at once, even during an activity. The other ranks must also abort.
    /// For several communicators of one process, use [`abort_all`](super::abort_all).
    ///
    /// # Errors
    /// [`WorldError::Nccl`] if NCCL fails. Even then, the communicator no longer exists for this
    /// process.
    pub fn abort(mut self) -> NcclResult<()> {
        let handle = self.take();
        abort_in_one_group(&self.library, &[handle])
    }

    /// Issues calls of NCCL in one group. Without calls there is no group.
    pub(super) fn enqueue<C>(
        &self,
        doing: Doing,
        stream: u64,
        calls: impl Iterator<Item = C>,
    ) -> NcclResult<()>
    where
        C: FnOnce(&Functions, Handle, Stream) -> Code,
    {
        self.ready(doing)?;
        let mut calls = calls.peekable();
        if calls.peek().is_none() {
            return Ok(());
        }
        let (library, functions) = (&self.library, &self.library.functions);
        // SAFETY: the function has no precondition.
        self.noted(library.done(doing.text(), unsafe { (functions.group_start)() }))?;
        let stream = stream as usize as *mut c_void;
        let called = calls.try_for_each(|call| {
            // NCCL enqueues the calls of a group when the group ends, so the code "in progress" is
            // a success here.
            library.begun(doing.text(), call(functions, self.handle, stream)).map(|_| ())
        });
        // The group must end even after a failure.
        // SAFETY: this thread has begun a group.
        let ended = library.begun(doing.text(), unsafe { (functions.group_end)() });
        self.begun(doing);
        if self.noted(called.and(ended))? { self.join() } else { Ok(()) }
    }

    /// Checks that an activity may begin.
    fn ready(&self, doing: Doing) -> NcclResult<()> {
        if self.is_broken.get() {
            let need = "the communicator has failed before, and has to be aborted";
            return Err(doing.refused(need.to_owned()));
        }
        if self.in_flight.load(Ordering::Relaxed) {
            let before = self.doing.get().text();
            return Err(doing.refused(format!("{before} has to be settled before")));
        }
        doing.claim()
    }

    /// Marks an activity as in flight, for this communicator and this thread.
    fn begun(&self, doing: Doing) {
        self.doing.set(doing);
        self.in_flight.store(true, Ordering::Relaxed);
        doing::note(&self.in_flight);
    }

    /// Makes NCCL join its helper thread of the completed activity, and checks that NCCL reports
    /// the expected rank and number of ranks. Before 2.26, the query for the number of ranks joins
    /// the thread (`ncclCommEnsureReady` in `src/init.cc`).
    fn join(&self) -> NcclResult<()> {
        let (doing, functions) = (self.doing.get(), &self.library.functions);
        let (mut ranks, mut rank): (c_int, c_int) = (0, 0);
        // SAFETY: the handle is live, and the pointer is valid for the call.
        let code = unsafe { (functions.count)(self.handle, &mut ranks) };
        self.noted(self.library.done(doing.text(), code))?;
        // SAFETY: the handle is live, and the pointer is valid for the call.
        let code = unsafe { (functions.user_rank)(self.handle, &mut rank) };
        self.noted(self.library.done(doing.text(), code))?;
        self.in_flight.store(false, Ordering::Relaxed);
        if (usize::try_from(ranks), usize::try_from(rank)) == (Ok(self.ranks), Ok(self.rank)) {
            return Ok(());
        }
        let (is, of) = (self.rank, self.ranks);
        let text = format!("it reports rank {is} of {of} as rank {rank} of {ranks}");
        self.noted(Err(doing.odd(text)))
    }

    /// Marks the communicator as broken if the outcome is an error.
    fn noted<T>(&self, outcome: NcclResult<T>) -> NcclResult<T> {
        if outcome.is_err() {
            self.is_broken.set(true);
        }
        outcome
    }

    pub(super) fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// Takes the handle out, so that dropping this value does not release it.
    pub(super) fn take(&mut self) -> Handle {
        std::mem::replace(&mut self.handle, ptr::null_mut())
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ranks, rank, doing, in_flight, is_broken, .. } = self;
        f.debug_struct("Communicator")
            .field("ranks", ranks)
            .field("rank", rank)
            .field("doing", &doing.get())
            .field("in_flight", in_flight)
            .field("is_broken", &is_broken.get())
            .finish_non_exhaustive()
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // `drop` cannot report an error. If NCCL fails to release a communicator, it keeps the
            // communicator.
            let handle = self.take();
            _ = abort_in_one_group(&self.library, &[handle]);
        }
    }
}

/// Aborts the communicators of several ranks of this process at once. If they are aborted one by
/// one, an abort may wait for ever for the others (NVIDIA/nccl#1013). The threads that began
/// activities with them must still exist.
///
/// The function waits for NCCL's own threads, which end soon. NCCL's kernels end some time later.
///
/// # Errors
/// The first [`WorldError::Nccl`](crate::WorldError::Nccl). Even then, the communicators no longer
/// exist for this process.
pub fn abort_all(mut communicators: Vec<Communicator>) -> NcclResult<()> {
    let mut outcome = Ok(());
    while let Some(first) = communicators.first() {
        let library = Arc::clone(first.library());
        let of_it = |communicator: &mut Communicator| Arc::ptr_eq(communicator.library(), &library);
        let mut group: Vec<_> = communicators.extract_if(.., of_it).collect();
        let handles: Vec<_> = group.iter_mut().map(Communicator::take).collect();
        outcome = outcome.and(abort_in_one_group(&library, &handles));
    }
    outcome
}
