//! What connects ranks, from its beginning to its end.

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

/// What is asked while NCCL is waited for: whether to go on waiting. An error ends the wait, as when a rank is known to be
/// lost.
pub type KeepGoing<'a> = &'a mut dyn FnMut() -> NcclResult<()>;

/// One rank's end of what connects all of them. Where it is dropped before it is finished, it is aborted.
///
/// It may go from thread to thread when it is settled, and is used by one at a time.
pub struct Communicator {
    library: Arc<Library>,
    /// NCCL's; null once it was given back.
    handle: Handle,
    ranks: usize,
    rank: usize,
    /// What was begun last.
    doing: Cell<Doing>,
    /// Whether that goes on. The thread that has begun it knows of it too, and begins nothing else meanwhile.
    in_flight: Arc<AtomicBool>,
    /// Whether NCCL has failed, so that nothing is left but to abort.
    is_broken: Cell<bool>,
}

#[allow(unsafe_code, reason = "a pointer to what NCCL lets any thread use")]
// SAFETY: NCCL binds a communicator to no thread, as long as one at a time uses it; it is no `Sync`. That a group which is
// in flight is settled while its thread lives is asked of callers.
unsafe impl Send for Communicator {}

#[allow(unsafe_code, reason = "calls of the C library")]
impl Communicator {
    /// Connects this rank with the others, on the device that is current on this thread; the caller has bound its context.
    /// It returns before that is done: [`Communicator::settle`] comes next. `max_ctas` bounds the blocks that NCCL moves data
    /// with, which take multiprocessors from kernels beside them.
    ///
    /// All ranks are given one `id`, of [`Library::unique_id`], and have to begin. Those of one process do so in threads of
    /// their own.
    ///
    /// # Errors
    /// [`WorldError::NcclRefused`] where there is no such rank, `max_ctas` is not positive, or this thread has something in
    /// flight; [`WorldError::Nccl`], also where two ranks have one device.
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
            _ => return Err(doing.refused(format!("rank {rank} is none of {ranks}"))),
        };
        if let Some(max) = max_ctas.filter(|max| *max < 1) {
            return Err(doing.refused(format!("max_ctas has to be positive, not {max}")));
        }
        doing.claim()?;
        let mut config = Config::non_blocking(max_ctas);
        let mut handle: Handle = ptr::null_mut();
        // SAFETY: both pointers are valid for the call, and the struct is what nccl.h calls a config.
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
        // Where there is a handle beside an error, it is given back as the communicator is dropped.
        let is_done = communicator.library.begun(doing.text(), code)?;
        if handle.is_null() {
            return Err(doing.odd("it has made no communicator".to_owned()));
        }
        if is_done {
            communicator.join()?;
        }
        Ok(communicator)
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Which one this is.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Whether what was begun is done; an exchange is when it is on its stream. Connections may fail
    /// later: see [`Communicator::holds`].
    ///
    /// # Errors
    /// [`WorldError::Nccl`], after which the communicator is good for nothing but to be aborted.
    pub fn progress(&self) -> NcclResult<bool> {
        let is_done = self.state()?;
        if is_done && self.in_flight.load(Ordering::Relaxed) {
            self.join()?;
        }
        Ok(is_done)
    }

    /// Whether NCCL has failed since, as where a connection is lost: to be asked while a stream is waited for. It leaves what is
    /// begun to the thread that has begun it.
    ///
    /// # Errors
    /// Those of [`Communicator::progress`].
    pub fn holds(&self) -> NcclResult<()> {
        self.state().map(drop)
    }

    /// What NCCL says of it: whether nothing goes on.
    fn state(&self) -> NcclResult<bool> {
        let text = self.doing.get().text();
        let mut state = SUCCESS;
        // SAFETY: the handle is live, and the pointer valid for the call.
        let code = unsafe { (self.library.functions.async_error)(self.handle, &mut state) };
        let asked = self.library.begun(text, code);
        self.noted(asked.and_then(|asked| Ok(asked && self.library.begun(text, state)?)))
    }

    /// Waits until what was begun is done, and asks `keep_going` again and again meanwhile.
    ///
    /// # Errors
    /// Those of [`Communicator::progress`]; what `keep_going` returns; [`WorldError::NcclLate`] when the deadline is past.
    /// Behind each of them what was begun goes on, until the communicator is aborted.
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
            // Most take some tens of microseconds, which no sleep is as short as.
            if now - begin < 10 * SHORTEST {
                thread::yield_now();
            } else {
                thread::sleep(pause.min(deadline - now));
                pause = (2 * pause).min(LONGEST);
            }
        }
        Ok(())
    }

    /// Ends it in agreement with all other ranks, when all that was put on streams is done. Graphs that were captured with it
    /// are destroyed before.
    ///
    /// # Errors
    /// Those of [`Communicator::settle`]; the communicator has then been aborted. Where giving it back fails at the very end,
    /// NCCL keeps it.
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
        // SAFETY: the handle was live, and is not used again.
        let code = unsafe { (self.library.functions.destroy)(handle) };
        self.library.begun(doing.text(), code).map(|_| ())
    }

    /// Ends it at once, whatever it is at; the other ranks have to do the same. See [`abort_all`](super::abort_all) for several.
    ///
    /// # Errors
    /// [`WorldError::Nccl`]; the communicator is gone all the same.
    pub fn abort(mut self) -> NcclResult<()> {
        let handle = self.take();
        abort_in_one_group(&self.library, &[handle])
    }

    /// Calls NCCL in one group, if there is anything to call.
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
        // SAFETY: there is no precondition.
        self.noted(library.done(doing.text(), unsafe { (functions.group_start)() }))?;
        let stream = stream as usize as *mut c_void;
        let called = calls.try_for_each(|call| {
            // What was called is enqueued with the group, so to be in progress is no other outcome here.
            library.begun(doing.text(), call(functions, self.handle, stream)).map(|_| ())
        });
        // Whatever has failed, the group has to end.
        // SAFETY: this thread has begun a group.
        let ended = library.begun(doing.text(), unsafe { (functions.group_end)() });
        self.begun(doing);
        if self.noted(called.and(ended))? { self.join() } else { Ok(()) }
    }

    /// Whether something can be begun.
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

    /// Something is in flight, of this communicator and of this thread.
    fn begun(&self, doing: Doing) {
        self.doing.set(doing);
        self.in_flight.store(true, Ordering::Relaxed);
        doing::note(&self.in_flight);
    }

    /// Has NCCL join the thread that it had for what is done now, and looks whether it knows the communicator as it was
    /// begun. To ask for the number of ranks is what makes NCCL do so before 2.26 (`ncclCommEnsureReady` in `src/init.cc`).
    fn join(&self) -> NcclResult<()> {
        let (doing, functions) = (self.doing.get(), &self.library.functions);
        let (mut ranks, mut rank): (c_int, c_int) = (0, 0);
        // SAFETY: the handle is live, and the pointer valid for the call.
        let code = unsafe { (functions.count)(self.handle, &mut ranks) };
        self.noted(self.library.done(doing.text(), code))?;
        // SAFETY: as above.
        let code = unsafe { (functions.user_rank)(self.handle, &mut rank) };
        self.noted(self.library.done(doing.text(), code))?;
        self.in_flight.store(false, Ordering::Relaxed);
        if (usize::try_from(ranks), usize::try_from(rank)) == (Ok(self.ranks), Ok(self.rank)) {
            return Ok(());
        }
        let (is, of) = (self.rank, self.ranks);
        let text = format!("it knows rank {is} of {of} as rank {rank} of {ranks}");
        self.noted(Err(doing.odd(text)))
    }

    /// Notes that NCCL has failed.
    fn noted<T>(&self, outcome: NcclResult<T>) -> NcclResult<T> {
        if outcome.is_err() {
            self.is_broken.set(true);
        }
        outcome
    }

    /// The library that it is of.
    pub(super) fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// The handle, which is no more this value's to give back.
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
            // Nobody is there to be told; NCCL keeps what it does not give back.
            let handle = self.take();
            _ = abort_in_one_group(&self.library, &[handle]);
        }
    }
}

/// Aborts the communicators of several ranks of this process at once; one after the other may wait for ever for those that
/// are still to come (NVIDIA/nccl#1013). The threads that have begun something with them must not have ended.
///
/// It waits for NCCL's own threads, which end soon after. Its kernels end at some time.
///
/// # Errors
/// The first [`WorldError::Nccl`](crate::WorldError::Nccl); all communicators are gone all the same.
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
