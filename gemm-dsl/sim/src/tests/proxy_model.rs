//! The table of a machine with more ways to memory than today's: its rows, at the level of clocks and
//! shadows.
//!
//! Beside a thread's own statements and copies there are those of the asynchronous proxy: bulk copies, and
//! matrix instructions that read shared memory. What goes the generic way is known there only behind a
//! fence of proxies.

use crate::race::check::Check;
use crate::race::clock::Clocks;
use crate::race::model::{
    AcquireRule, AwaitRule, COPIES, MeetRule, Model, ORDINARY, Timeline, Track,
};
use crate::race::shadow::{PAGE, Shadow};
use crate::race::vector_clock::BarrierClock;

pub(super) const TIMELINES: [Timeline; 5] = [ORDINARY, COPIES, SOURCES, TARGETS, WGMMA];
pub(super) const WAITS: [AwaitRule; 4] = [WAIT, WAIT_SOURCES, WAIT_TARGETS, WAIT_WGMMA];

/// Bulk copies: what they read, and what they write.
const SOURCES: Timeline = Timeline(2);
const TARGETS: Timeline = Timeline(3);
/// What matrix instructions read.
const WGMMA: Timeline = Timeline(4);

const GENERIC: usize = 0;
const ASYNC: usize = 1;
const BOTH: &[usize] = &[GENERIC, ASYNC];

/// A thread's fence of proxies.
const FENCE: MeetRule = MeetRule { views: BOTH, across: true };
/// A thread waits for its copies, for what its bulk copies read, for all that they do, for its matrix
/// instructions. That an asynchronous operation is over is known in both views.
const WAIT: AwaitRule = AwaitRule { over: &[COPIES], views: &[GENERIC] };
const WAIT_SOURCES: AwaitRule = AwaitRule { over: &[SOURCES], views: BOTH };
const WAIT_TARGETS: AwaitRule = AwaitRule { over: &[SOURCES, TARGETS], views: BOTH };
const WAIT_WGMMA: AwaitRule = AwaitRule { over: &[WGMMA], views: BOTH };

static TENSOR: Model = Model {
    timelines: &[
        Track { by: "", proxy: GENERIC, grouped: false, relaxed: false },
        Track { by: "an asynchronous copy of ", proxy: GENERIC, grouped: true, relaxed: false },
        Track { by: "a bulk copy of ", proxy: ASYNC, grouped: true, relaxed: true },
        Track { by: "a bulk copy of ", proxy: ASYNC, grouped: true, relaxed: true },
        Track { by: "a matrix instruction of ", proxy: ASYNC, grouped: true, relaxed: true },
    ],
    proxies: 2,
    // What synchronises hands on both views, each as it is.
    barrier: MeetRule { views: BOTH, across: false },
    commit: &[COPIES],
    wait: WAIT,
    acquire: AcquireRule { views: BOTH },
    fence: FENCE,
    phase: AcquireRule { views: BOTH },
    wgmma: WAIT_WGMMA,
    waits: AwaitRule { over: &[], views: &[0] },
};

/// A block of threads and a page of words.
pub(super) struct Rig {
    pub(super) clocks: Clocks,
    shadow: Shadow,
}

impl Rig {
    pub(super) fn new(threads: u32) -> Self {
        let clocks = Clocks::new(&TENSOR, threads);
        let mut shadow = Shadow::new(clocks.rows());
        shadow.reset(1);
        Self { clocks, shadow }
    }

    /// Whether a thread may access a word.
    pub(super) fn access(
        &mut self,
        thread: usize,
        on: Timeline,
        word: usize,
        writes: bool,
    ) -> bool {
        assert!(word < PAGE);
        let (warp, lanes) = ((thread / 32) as u32, 1 << (thread % 32));
        let check = Check::new(&self.clocks, 0, warp, on, writes);
        check.access(&mut self.shadow, word, 1, lanes).is_ok()
    }

    /// Forgets all accesses.
    pub(super) fn forget(&mut self) {
        self.shadow.reset(1);
    }

    pub(super) fn fence(&mut self, thread: usize) {
        let (mut gathered, threads) = (BarrierClock::default(), thread..thread + 1);
        self.clocks.give(threads.clone(), &mut gathered);
        self.clocks.take(&FENCE, &[threads], gathered);
    }

    fn barrier(&mut self) {
        self.clocks.meet(self.clocks.all());
    }

    /// Closes what a thread has issued on timelines, and waits for it.
    pub(super) fn finish(&mut self, thread: usize, rule: AwaitRule) {
        rule.over.iter().for_each(|&of| self.clocks.close(thread, of));
        self.clocks.wait(&rule, thread, 0);
    }

    /// One thread tells another by a word.
    pub(super) fn tell(&mut self, from: usize, to: usize) {
        let left = self.clocks.release(0, from);
        self.clocks.acquire(0, to, &left);
    }
}

/// A thread of one warp, and one of another.
const WRITER: usize = 3;
const ISSUER: usize = 40;

/// What happens between a first access and a second one, and whether the second is then ordered.
fn after(
    first: (usize, Timeline, bool),
    then: &[fn(&mut Rig)],
    second: (usize, Timeline, bool),
) -> bool {
    let mut rig = Rig::new(64);
    let (thread, on, writes) = first;
    assert!(rig.access(thread, on, 0, writes));
    then.iter().for_each(|step| step(&mut rig));
    let (thread, on, writes) = second;
    rig.access(thread, on, 0, writes)
}

/// The second access is ordered behind all of the steps, and not if any one of them is missing.
fn needs_all(
    first: (usize, Timeline, bool),
    steps: &[fn(&mut Rig)],
    second: (usize, Timeline, bool),
) {
    assert!(after(first, steps, second), "{first:?}, {second:?}");
    for missing in 0..steps.len() {
        let mut fewer = steps.to_vec();
        fewer.remove(missing);
        assert!(!after(first, &fewer, second), "{first:?}, {second:?} without step {missing}");
    }
}

fn barrier(rig: &mut Rig) {
    rig.barrier();
}

fn fence_of_writer(rig: &mut Rig) {
    rig.fence(WRITER);
}

fn fence_of_issuer(rig: &mut Rig) {
    rig.fence(ISSUER);
}

/// The writer tells the issuer by a word, as it does by the arrivals of an mbarrier.
fn tell(rig: &mut Rig) {
    rig.tell(WRITER, ISSUER);
}

/// R1, R4, R5: what goes the generic way, before what is asynchronous.
#[test]
fn generic_before_asynchronous() {
    let rows = [
        (true, WGMMA, false),
        (true, SOURCES, false),
        (false, TARGETS, true),
        (true, TARGETS, true),
    ];
    for (wrote, on, writes) in rows {
        let (first, second) = ((WRITER, ORDINARY, wrote), (ISSUER, on, writes));
        for meet in [barrier as fn(&mut Rig), tell] {
            needs_all(first, &[fence_of_writer, meet], second);
            // Wherever on the way from one to the other the fence is.
            needs_all(first, &[meet, fence_of_issuer], second);
            // But not anywhere else.
            assert!(!after(first, &[fence_of_issuer, meet], second));
            assert!(!after(first, &[meet, fence_of_writer], second));
        }
        // A third thread's, which has met both.
        let third: fn(&mut Rig) = |rig| rig.fence(9);
        needs_all(first, &[barrier, third, barrier], second);
        // The thread's own operations too.
        needs_all(first, &[fence_of_writer], (WRITER, on, writes));
        assert!(after(first, &[barrier, third, barrier], (WRITER, on, writes)));
        // A fence is for what comes before it.
        let mut rig = Rig::new(64);
        rig.fence(WRITER);
        assert!(rig.access(WRITER, ORDINARY, 0, wrote));
        rig.barrier();
        assert!(!rig.access(ISSUER, on, 0, writes));
    }
    // Two accesses that go the generic way need none.
    needs_all((WRITER, ORDINARY, true), &[barrier], (ISSUER, ORDINARY, false));
}

/// R3: what matrix instructions read, before a bulk copy overwrites it. No fence is needed.
#[test]
fn matrix_instructions_before_a_bulk_copy() {
    let wait: fn(&mut Rig) = |rig| rig.finish(WRITER, WAIT_WGMMA);
    for meet in [barrier as fn(&mut Rig), tell] {
        needs_all((WRITER, WGMMA, false), &[wait, meet], (ISSUER, TARGETS, true));
        // Nor by an ordinary write: that the instruction is over is known either way.
        needs_all((WRITER, WGMMA, false), &[wait, meet], (ISSUER, ORDINARY, true));
    }
    // The issuer of both waits too.
    needs_all((WRITER, WGMMA, false), &[wait], (WRITER, TARGETS, true));
    // A group that is not closed is not waited for.
    let late: fn(&mut Rig) = |rig| rig.clocks.wait(&WAIT_WGMMA, WRITER, 0);
    assert!(!after((WRITER, WGMMA, false), &[late, barrier], (ISSUER, TARGETS, true)));
}

/// R6, R7: what a bulk copy reads is over before what it writes is.
#[test]
fn bulk_copies_before_others() {
    let sources: fn(&mut Rig) = |rig| rig.finish(ISSUER, WAIT_SOURCES);
    let targets: fn(&mut Rig) = |rig| rig.finish(ISSUER, WAIT_TARGETS);
    let (read, overwrite) = ((ISSUER, SOURCES, false), (WRITER, ORDINARY, true));
    needs_all(read, &[sources, barrier], overwrite);
    needs_all(read, &[targets, barrier], overwrite);
    let (write, use_) = ((ISSUER, TARGETS, true), (WRITER, ORDINARY, false));
    needs_all(write, &[targets, barrier], use_);
    assert!(!after(write, &[sources, barrier], use_));
    assert!(after(write, &[targets, barrier], (WRITER, SOURCES, false)));
}

/// R9: what `cp.async` writes goes the generic way.
#[test]
fn copies_before_others() {
    let wait: fn(&mut Rig) = |rig| rig.finish(WRITER, WAIT);
    let first = (WRITER, COPIES, true);
    needs_all(first, &[wait], (WRITER, ORDINARY, false));
    needs_all(first, &[wait, barrier], (ISSUER, ORDINARY, false));
    needs_all(first, &[wait, fence_of_writer], (WRITER, WGMMA, false));
    needs_all(first, &[wait, fence_of_writer, barrier], (ISSUER, WGMMA, false));
    needs_all(first, &[wait, barrier, fence_of_issuer], (ISSUER, WGMMA, false));
    assert!(!after(first, &[fence_of_writer, wait, barrier], (ISSUER, WGMMA, false)));
}

/// R2: what a bulk copy writes, before those that have waited for its phase: as far as today's table goes.
/// It has no phases, and no agent that is not a thread's. So a thread that does nothing else is borrowed
/// as the copy: it is made to know what its issuer knew, waits for itself, and leaves that it is over in
/// a word, for who waits. That many wait for one phase, and what a phase counts, is not said by that.
#[test]
fn a_bulk_copy_that_a_barrier_tracks() {
    const COPY: usize = 63;
    fn issue(rig: &mut Rig) {
        rig.tell(ISSUER, COPY);
    }
    fn complete(rig: &mut Rig) {
        rig.finish(COPY, WAIT_TARGETS);
        rig.tell(COPY, WRITER);
    }
    for (on, writes) in [(ORDINARY, false), (WGMMA, false), (ORDINARY, true), (TARGETS, true)] {
        let first = (COPY, TARGETS, true);
        needs_all(first, &[complete], (WRITER, on, writes));
        // Others by a barrier with one who has waited.
        needs_all(first, &[complete, barrier], (ISSUER, on, writes));
    }
    // Two copies of one phase that write one word.
    assert!(!after((COPY, TARGETS, true), &[issue], (COPY, TARGETS, true)));
    // What the issuer knew comes before the copy, and before those that wait for it.
    let fenced: &[fn(&mut Rig)] = &[fence_of_writer, tell, issue];
    needs_all((WRITER, ORDINARY, false), fenced, (COPY, TARGETS, true));
    let through: &[fn(&mut Rig)] =
        &[issue, |rig| rig.finish(COPY, WAIT_TARGETS), |rig| rig.tell(COPY, 5)];
    assert!(after((ISSUER, ORDINARY, true), through, (5, ORDINARY, false)));
    // It is no fence: what went the generic way is still unknown in the other.
    assert!(!after((ISSUER, ORDINARY, true), through, (5, WGMMA, false)));
}

/// R14: between blocks, what is left in a word holds both views.
#[test]
fn views_of_other_blocks() {
    for (fences, asynchronous) in [(0, false), (1, true), (2, true)] {
        let (mut a, mut b) = (Rig::new(32), Rig::new(32));
        let (agent, epoch) = (a.clocks.agent(WRITER, ORDINARY), a.clocks.epoch(WRITER, ORDINARY));
        let knows = |b: &Rig, on| b.clocks.knows(7, on, 0, agent, epoch);
        if fences == 1 {
            a.fence(WRITER);
        }
        let left = a.clocks.release(0, WRITER);
        assert!(!knows(&b, ORDINARY) && !knows(&b, SOURCES));
        b.clocks.acquire(1, 7, &left);
        if fences == 2 {
            assert!(!knows(&b, SOURCES));
            b.fence(7);
        }
        assert!(knows(&b, ORDINARY));
        assert_eq!(knows(&b, SOURCES), asynchronous);
        assert!(!b.clocks.knows(8, ORDINARY, 0, agent, epoch));
    }
}
