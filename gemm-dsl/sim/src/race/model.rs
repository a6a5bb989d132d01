//! Timelines and the order of their accesses: the race detector's model, as data.
//!
//! A thread acts on several timelines at once: one for its own statements, and others for the
//! asynchronous work that it has issued. A timeline of a thread is an *agent*. Accesses of one
//! agent are ordered. Accesses of two agents are not ordered without synchronisation. The [`Model`]
//! contains the rules of synchronisation, one for each kind of statement. The detector only applies
//! these rules, and has no code for particular instructions.
//!
//! A timeline accesses memory through a *proxy*. A thread's knowledge of complete accesses is
//! stored separately for each proxy, as a proxy view. If an ordinary store happens before a
//! thread's access, it may nevertheless be invisible to another proxy until a fence merges the two
//! views.

use crate::observe::AccessKind;
use gemm_dsl::ir::{Kernel, Scope};

/// Timeline of a thread: an index into [`Model::timelines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeline(pub(crate) usize);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Track {
    /// Prefix for reports that names the unit that makes the accesses. Empty for the thread's own
    /// statements.
    pub(crate) by: &'static str,
    pub(crate) proxy: usize,
    /// True if an access belongs to a group, which is complete when the thread has waited for it.
    /// Otherwise an access is complete when the next access of the thread begins.
    pub(crate) grouped: bool,
    /// True if a relaxed arrival releases what the thread knows of this timeline. This applies to
    /// asynchronous units, whose work is not ordered with the thread's statements. The completion
    /// of TMA copies is released as well, so that phases of other mbarriers are known. A thread
    /// that reads the copied data must nevertheless wait for the copy itself.
    pub(crate) relaxed: bool,
}

/// Rule for threads that meet, or for one that meets itself. The accesses that each thread knows,
/// and its own accesses on timelines without groups, happen before the next accesses of the threads
/// that wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeetRule {
    /// Proxies of the accesses that are ordered afterwards.
    pub(crate) views: &'static [usize],
    /// True if the rule merges what is known in all these views.
    pub(crate) across: bool,
}

/// Rule for a thread that waits for its own groups. The groups happen before the thread's next
/// accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AwaitRule {
    /// Timelines whose groups the wait completes.
    pub(crate) over: &'static [Timeline],
    /// Proxies of the accesses that are ordered afterwards.
    pub(crate) views: &'static [usize],
}

/// Rule for a thread that acquires a released clock. The clock contains what the releasing threads
/// know, and their accesses on timelines without groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcquireRule {
    /// Proxies of the accesses that are ordered afterwards.
    pub(crate) views: &'static [usize],
}

/// Timelines and the rules of synchronising statements.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) timelines: &'static [Track],
    pub(crate) proxies: usize,
    /// Barriers of a warp, a block and a cluster, and named barriers.
    pub(crate) barrier: MeetRule,
    /// Timelines on which a commit closes the thread's group.
    pub(crate) commit: &'static [Timeline],
    /// Wait for all but the newest N groups.
    pub(crate) wait: AwaitRule,
    /// Atomic with acquire order, or a fence after atomics. A release needs no parameters.
    pub(crate) acquire: AcquireRule,
    /// Proxy fence of a thread.
    pub(crate) fence: MeetRule,
    /// Wait for a phase of an mbarrier. It acquires the clocks of the threads that have arrived,
    /// and the completion of copies.
    pub(crate) phase: AcquireRule,
    /// Wait of a warp for all but its newest N groups of matrix instructions.
    pub(crate) wgmma: AwaitRule,
    /// Record of a wait of a thread at an mbarrier, so that other threads can know of the wait.
    pub(crate) waits: AwaitRule,
}

/// Ordinary statements of a thread.
pub(crate) const ORDINARY: Timeline = Timeline(0);
/// Asynchronous copies (`cp.async`) issued by a thread.
pub(crate) const COPIES: Timeline = Timeline(1);

/// TMA copies that an mbarrier counts. They belong to the mbarrier, not to a thread: the agent has
/// the number of the mbarrier, and the group is the phase.
pub(crate) const TMA: Timeline = Timeline(2);
/// Reads of shared memory by a warp's matrix instructions, attributed to the warp's first lane.
pub(crate) const WGMMA: Timeline = Timeline(3);

/// Waits of a thread at an mbarrier. They are not accesses, but other threads must know of them.
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
    // Synchronisation passes on what is known in each of the two views, separately.
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
    /// Timeline of this kind of access, and its effect on a word.
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
