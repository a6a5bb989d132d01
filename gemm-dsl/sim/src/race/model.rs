//! Timelines and what orders them: the model of the race detector, as data.
//!
//! A thread acts on several timelines at once: its own statements are one, the asynchronous copies
//! that it has issued another. A thread's timeline is an *agent*: the accesses of one agent come in
//! order, those of two do not, unless synchronisation says so. What synchronisation says is the
//! [`Model`], a row for each kind of statement; the detector reads the rows and knows no instruction.
//!
//! A timeline goes through a *proxy*, its way to memory. What a thread knows to be over, it knows in
//! the view of a proxy: an ordinary store that a thread is ordered after may still be on its way to
//! where another proxy looks, until a fence has brought the two views together.

use crate::observe::AccessKind;
use gemm_dsl::ir::{Kernel, Scope};

/// One of a thread's timelines: an index into [`Model::timelines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeline(pub(crate) usize);

/// A row of the table of timelines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Track {
    /// What of a thread makes its accesses, for a report: nothing for its own statements.
    pub(crate) by: &'static str,
    /// Its way to memory, counted from 0.
    pub(crate) proxy: usize,
    /// Whether an access belongs to a group, which is over when the thread has waited for it; else an
    /// access is over when the next one of the thread begins.
    pub(crate) grouped: bool,
    /// Whether a relaxed arrival hands on what is known of it: what asynchronous units do, which goes past the order of
    /// statements. That a copy of a box has come it hands on as well, so that the phases of other barriers are known; who reads
    /// what that copy brought has to have waited for it himself.
    pub(crate) relaxed: bool,
}

/// Threads meet, or one meets itself: what each knows, and has done on the timelines that have no
/// groups, comes before what those who wait do next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeetRule {
    /// The proxies through which it comes after.
    pub(crate) views: &'static [usize],
    /// Whether what is known in the view of one of them becomes known in that of all.
    pub(crate) across: bool,
}

/// A thread waits for its own groups: they come before what it does next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AwaitRule {
    /// The timelines whose groups are over then.
    pub(crate) over: &'static [Timeline],
    /// The proxies through which it comes after them.
    pub(crate) views: &'static [usize],
}

/// A thread takes over what others have left in a word. They leave what they know, and have done on the
/// timelines that have no groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcquireRule {
    /// The proxies through which it comes after that.
    pub(crate) views: &'static [usize],
}

/// Timelines, and what the statements that synchronise do.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) timelines: &'static [Track],
    /// How many proxies there are.
    pub(crate) proxies: usize,
    /// The barriers of a warp, of the block, and those with a name.
    pub(crate) barrier: MeetRule,
    /// The timelines on which a commit closes the group of a thread.
    pub(crate) commit: &'static [Timeline],
    /// A wait, for all groups but the newest.
    pub(crate) wait: AwaitRule,
    /// An atomic that acquires, and a fence behind atomics. What releases has nothing to choose.
    pub(crate) acquire: AcquireRule,
    /// A thread's fence of proxies.
    pub(crate) fence: MeetRule,
    /// A wait for a phase of a barrier in shared memory, at which those that arrived have left what they know and have
    /// done, and copies that they are over.
    pub(crate) phase: AcquireRule,
    /// A wait of a warp for its matrix instructions, for all groups but the newest.
    pub(crate) wgmma: AwaitRule,
    /// A thread's wait at a barrier in shared memory, as others know of it.
    pub(crate) waits: AwaitRule,
}

/// What a thread does by its own statements.
pub(crate) const ORDINARY: Timeline = Timeline(0);
/// The asynchronous copies (`cp.async`) that it has issued.
pub(crate) const COPIES: Timeline = Timeline(1);

/// The copies of boxes whose bytes count at a barrier in shared memory. They are the barrier's and not a thread's: their
/// number is the barrier's, and their group its phase.
pub(crate) const TMA: Timeline = Timeline(2);
/// What matrix instructions of a warp read in shared memory: the first lane's.
pub(crate) const WGMMA: Timeline = Timeline(3);

/// That a thread has waited at a barrier in shared memory: no access, but others must know of it.
pub(crate) const WAITS: Timeline = Timeline(4);

/// The proxies.
const GENERIC: usize = 0;
const ASYNC: usize = 1;
const BOTH: &[usize] = &[GENERIC, ASYNC];

/// The model of a kernel.
pub(crate) fn model_of(kernel: &Kernel) -> &'static Model {
    if kernel.copies_boxes() || kernel.has_warpgroups() { &ASYNCHRONOUS } else { &MODEL }
}

/// The model of kernels whose threads alone access memory. Both timelines go the generic way.
pub(crate) static MODEL: Model = Model {
    timelines: &[
        Track { by: "", proxy: 0, grouped: false, relaxed: false },
        Track { by: "an asynchronous copy of ", proxy: 0, grouped: true, relaxed: false },
    ],
    proxies: 1,
    barrier: MeetRule { views: &[0], across: false },
    commit: &[COPIES],
    wait: AwaitRule { over: &[COPIES], views: &[0] },
    acquire: AcquireRule { views: &[0] },
    fence: MeetRule { views: &[0], across: true },
    phase: AcquireRule { views: &[0] },
    wgmma: AwaitRule { over: &[], views: &[0] },
    waits: AwaitRule { over: &[], views: &[0] },
};

/// The model of kernels with asynchronous units.
pub(crate) static ASYNCHRONOUS: Model = Model {
    timelines: &[
        Track { by: "", proxy: GENERIC, grouped: false, relaxed: false },
        Track { by: "an asynchronous copy of ", proxy: GENERIC, grouped: true, relaxed: false },
        Track { by: "a bulk copy of ", proxy: ASYNC, grouped: true, relaxed: true },
        Track { by: "a matrix instruction of ", proxy: ASYNC, grouped: true, relaxed: true },
        Track { by: "a wait of ", proxy: GENERIC, grouped: true, relaxed: true },
    ],
    proxies: 2,
    // What synchronises hands on both views, each as it is.
    barrier: MeetRule { views: BOTH, across: false },
    commit: &[COPIES],
    wait: AwaitRule { over: &[COPIES], views: &[GENERIC] },
    acquire: AcquireRule { views: BOTH },
    fence: MeetRule { views: BOTH, across: true },
    // That an asynchronous operation is over is known in both views.
    phase: AcquireRule { views: BOTH },
    wgmma: AwaitRule { over: &[WGMMA], views: BOTH },
    waits: AwaitRule { over: &[WAITS], views: BOTH },
};

/// What an access does to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordEffect {
    Read,
    Write,
    /// An atomic of this scope.
    Atomic(Scope),
}

impl AccessKind {
    /// The timeline of a thread that does it, and what that does to a word.
    #[inline]
    fn row(self) -> (Timeline, WordEffect) {
        match self {
            AccessKind::Read => (ORDINARY, WordEffect::Read),
            AccessKind::Write => (ORDINARY, WordEffect::Write),
            AccessKind::Atomic(scope) => (ORDINARY, WordEffect::Atomic(scope)),
            AccessKind::CopyRead => (COPIES, WordEffect::Read),
            AccessKind::CopyWrite => (COPIES, WordEffect::Write),
        }
    }

    #[inline]
    pub(crate) fn timeline(self) -> Timeline {
        self.row().0
    }

    #[inline]
    pub(crate) fn touch(self) -> WordEffect {
        self.row().1
    }
}
