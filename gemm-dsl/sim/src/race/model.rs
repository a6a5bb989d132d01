//! Timelines and their order: the model of the race detector, as data.
//!
//! A thread acts on several timelines at once: one for its own statements, another for the
//! asynchronous copies it has issued. A thread's timeline is an *agent*. Accesses of one agent are
//! in order; accesses of two agents are unordered without synchronisation. The [`Model`] holds the
//! rules of synchronisation, one for each kind of statement. The detector applies the rules and
//! knows no instructions.
//!
//! A timeline accesses memory through a *proxy*. A thread's knowledge of complete accesses is kept
//! per proxy view. An ordinary store that happens before a thread may be invisible to another proxy
//! until a fence merges the two views.

use crate::observe::AccessKind;
use gemm_dsl::ir::{Kernel, Scope};

/// Timeline of a thread: an index into [`Model::timelines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeline(pub(crate) usize);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Track {
    /// Prefix for reports that names the unit making the accesses; empty for the thread's own
    /// statements.
    pub(crate) by: &'static str,
    pub(crate) proxy: usize,
    /// True if an access belongs to a group, which is complete when the thread has waited for it.
    /// Otherwise an access is complete when the thread's next one begins.
    pub(crate) grouped: bool,
    /// True if a relaxed arrival releases knowledge of this timeline. That holds for asynchronous
    /// units, which are not subject to the order of statements. The completion of a TMA copy is
    /// released too, so that phases of other mbarriers are known; a reader of the copied data must
    /// still wait for it itself.
    pub(crate) relaxed: bool,
}

/// Rule for threads that meet, or one that meets itself. The knowledge of each, and its accesses on
/// ungrouped timelines, happen before the next accesses of the waiting threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeetRule {
    /// Proxies of these next accesses.
    pub(crate) views: &'static [usize],
    /// True if the rule merges the knowledge of all these views.
    pub(crate) across: bool,
}

/// Rule for a thread that waits for its own groups. They happen before its next accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AwaitRule {
    /// Timelines whose groups are complete then.
    pub(crate) over: &'static [Timeline],
    /// Proxies of these next accesses.
    pub(crate) views: &'static [usize],
}

/// Rule for a thread that acquires a released clock. The clock holds the releasing threads'
/// knowledge and their accesses on ungrouped timelines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcquireRule {
    /// Proxies of the next accesses, which happen after.
    pub(crate) views: &'static [usize],
}

/// Timelines and the rules of synchronising statements.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) timelines: &'static [Track],
    pub(crate) proxies: usize,
    /// Barriers of a warp, of the block, and named barriers.
    pub(crate) barrier: MeetRule,
    /// Timelines on which a commit closes the thread's group.
    pub(crate) commit: &'static [Timeline],
    /// Wait for all groups but the newest.
    pub(crate) wait: AwaitRule,
    /// Atomic with acquire order, or a fence after atomics. A release needs no parameters.
    pub(crate) acquire: AcquireRule,
    /// Proxy fence of a thread.
    pub(crate) fence: MeetRule,
    /// Wait for a phase of an mbarrier. It acquires the clocks of the arrived threads and the
    /// completion of copies.
    pub(crate) phase: AcquireRule,
    /// Wait of a warp for all matrix-instruction groups but the newest.
    pub(crate) wgmma: AwaitRule,
    /// Record of a thread's wait at an mbarrier, for other threads.
    pub(crate) waits: AwaitRule,
}

/// Ordinary statements of a thread.
pub(crate) const ORDINARY: Timeline = Timeline(0);
/// Asynchronous copies (`cp.async`) issued by a thread.
pub(crate) const COPIES: Timeline = Timeline(1);

/// TMA copies counted by an mbarrier. They belong to the mbarrier rather than to a thread: the
/// agent number is the mbarrier's, and the group is its phase.
pub(crate) const TMA: Timeline = Timeline(2);
/// Shared-memory reads of a warp's matrix instructions, attributed to the first lane.
pub(crate) const WGMMA: Timeline = Timeline(3);

/// Waits of a thread at an mbarrier. They are no accesses, but other threads must know of them.
pub(crate) const WAITS: Timeline = Timeline(4);

const GENERIC: usize = 0;
const ASYNC: usize = 1;
const BOTH: &[usize] = &[GENERIC, ASYNC];

pub(crate) fn model_of(kernel: &Kernel) -> &'static Model {
    if kernel.copies_boxes() || kernel.has_warpgroups() { &ASYNCHRONOUS } else { &MODEL }
}

/// Model of kernels without asynchronous units. Both timelines use the generic proxy.
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

/// Model of kernels with asynchronous units.
pub(crate) static ASYNCHRONOUS: Model = Model {
    timelines: &[
        Track { by: "", proxy: GENERIC, grouped: false, relaxed: false },
        Track { by: "an asynchronous copy of ", proxy: GENERIC, grouped: true, relaxed: false },
        Track { by: "a bulk copy of ", proxy: ASYNC, grouped: true, relaxed: true },
        Track { by: "a matrix instruction of ", proxy: ASYNC, grouped: true, relaxed: true },
        Track { by: "a wait of ", proxy: GENERIC, grouped: true, relaxed: true },
    ],
    proxies: 2,
    // Synchronisation passes on both views, each separately.
    barrier: MeetRule { views: BOTH, across: false },
    commit: &[COPIES],
    wait: AwaitRule { over: &[COPIES], views: &[GENERIC] },
    acquire: AcquireRule { views: BOTH },
    fence: MeetRule { views: BOTH, across: true },
    // The completion of an asynchronous operation is known in both views.
    phase: AcquireRule { views: BOTH },
    wgmma: AwaitRule { over: &[WGMMA], views: BOTH },
    waits: AwaitRule { over: &[WAITS], views: BOTH },
};

/// Effect of an access on a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordEffect {
    Read,
    Write,
    Atomic(Scope),
}

impl AccessKind {
    /// Timeline and effect of this kind of access.
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
