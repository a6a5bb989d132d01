//! Synchronisation rules for a machine with separate timelines for reads and writes of bulk copies,
//! tested on clocks and shadow memory.
//!
//! In addition to a thread's own statements and copies, there is the asynchronous proxy. Bulk
//! copies use it, and so do matrix instructions that read shared memory. Accesses through the
//! generic proxy are visible to it only after a proxy fence.

use crate::race::check::Check;
use crate::race::clock::Clocks;
use crate::race::model::{
    AcquireRule, AwaitRule, COPIES, MeetRule, Model, ORDINARY, Timeline, Track,
};
use crate::race::shadow::{PAGE, Shadow};
use crate::race::vector_clock::BarrierClock;

pub(super) const TIMELINES: [Timeline; 5] = [ORDINARY, COPIES, SOURCES, TARGETS, WGMMA];
pub(super) const WAITS: [AwaitRule; 4] = [WAIT, WAIT_SOURCES, WAIT_TARGETS, WAIT_WGMMA];

/// Reads and writes of bulk copies.
const SOURCES: Timeline = Timeline(2);
const TARGETS: Timeline = Timeline(3);
/// Reads of matrix instructions.
const WGMMA: Timeline = Timeline(4);

const GENERIC: usize = 0;
const ASYNC: usize = 1;
const BOTH: &[usize] = &[GENERIC, ASYNC];

/// Proxy fence of a thread.
const FENCE: MeetRule = MeetRule { views: BOTH, across: true };
/// Waits of a thread: for its copies, for the reads of its bulk copies, for all their accesses, and
/// for its matrix instructions. Completion of an asynchronous operation is known in both views.
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
    // Synchronisation passes on both views separately.
    barrier: MeetRule { views: BOTH, across: false },
    commit: &[COPIES],
    wait: WAIT,
    acquire: AcquireRule { views: BOTH },
    fence: FENCE,
    phase: AcquireRule { views: BOTH },
    wgmma: WAIT_WGMMA,
    waits: AwaitRule { over: &[], views: &[0] },
};

/// Block of threads with a page of words.
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

    /// True if an access is ordered after all conflicting ones. Records it.
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

    /// Commits a thread's operations on the timelines of a rule and waits for them.
    pub(super) fn finish(&mut self, thread: usize, rule: AwaitRule) {
        rule.over.iter().for_each(|&of| self.clocks.close(thread, of));
        self.clocks.wait(&rule, thread, 0);
    }

    /// One thread releases through a word and another one acquires.
    pub(super) fn tell(&mut self, from: usize, to: usize) {
        let left = self.clocks.release(0, from);
        self.clocks.acquire(0, to, &left);
    }
}

/// One thread in each of two warps.
const WRITER: usize = 3;
const ISSUER: usize = 40;

/// Executes steps between two accesses. Returns true if the second access is ordered after the
/// first.
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

/// Asserts that all steps together order the second access, and that each single step is necessary.
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

/// The writer signals the issuer through a word, as with mbarrier arrivals.
fn tell(rig: &mut Rig) {
    rig.tell(WRITER, ISSUER);
}

/// R1, R4, R5: a generic access before an asynchronous one.
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
            // The fence may be on either side of the synchronisation.
            needs_all(first, &[meet, fence_of_issuer], second);
            // Outside of the path between the two accesses it has no effect.
            assert!(!after(first, &[fence_of_issuer, meet], second));
            assert!(!after(first, &[meet, fence_of_writer], second));
        }
        // The fence may belong to a third thread that synchronises with both.
        let third: fn(&mut Rig) = |rig| rig.fence(9);
        needs_all(first, &[barrier, third, barrier], second);
        // The thread's own asynchronous operations need a fence too.
        needs_all(first, &[fence_of_writer], (WRITER, on, writes));
        assert!(after(first, &[barrier, third, barrier], (WRITER, on, writes)));
        // A fence covers only earlier accesses.
        let mut rig = Rig::new(64);
        rig.fence(WRITER);
        assert!(rig.access(WRITER, ORDINARY, 0, wrote));
        rig.barrier();
        assert!(!rig.access(ISSUER, on, 0, writes));
    }
    // Two generic accesses need no fence.
    needs_all((WRITER, ORDINARY, true), &[barrier], (ISSUER, ORDINARY, false));
}

/// R3: a matrix instruction reads words before a bulk copy overwrites them. No fence is needed.
#[test]
fn matrix_instructions_before_a_bulk_copy() {
    let wait: fn(&mut Rig) = |rig| rig.finish(WRITER, WAIT_WGMMA);
    for meet in [barrier as fn(&mut Rig), tell] {
        needs_all((WRITER, WGMMA, false), &[wait, meet], (ISSUER, TARGETS, true));
        // An ordinary write needs none either: completion of the instruction is known in both
        // views.
        needs_all((WRITER, WGMMA, false), &[wait, meet], (ISSUER, ORDINARY, true));
    }
    // The issuer of both must wait too.
    needs_all((WRITER, WGMMA, false), &[wait], (WRITER, TARGETS, true));
    // A wait does not cover a group that is not committed.
    let late: fn(&mut Rig) = |rig| rig.clocks.wait(&WAIT_WGMMA, WRITER, 0);
    assert!(!after((WRITER, WGMMA, false), &[late, barrier], (ISSUER, TARGETS, true)));
}

/// R6, R7: the reads of a bulk copy complete before its writes.
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

/// R9: `cp.async` writes through the generic proxy.
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

/// R2: writes of a bulk copy are ordered before threads that waited for its phase. This model has
/// only threads as agents, so an idle thread represents the copy. It acquires the issuer's
/// knowledge, waits for itself, and releases the completion through a word. Several waiters of one
/// phase, and arrival counts, are not tested here.
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
        // Other threads are ordered by a barrier with a thread that waited.
        needs_all(first, &[complete, barrier], (ISSUER, on, writes));
    }
    // Two copies of one phase write one word.
    assert!(!after((COPY, TARGETS, true), &[issue], (COPY, TARGETS, true)));
    // The issuer's earlier accesses are ordered before the copy, and before threads that wait for
    // it.
    let fenced: &[fn(&mut Rig)] = &[fence_of_writer, tell, issue];
    needs_all((WRITER, ORDINARY, false), fenced, (COPY, TARGETS, true));
    let through: &[fn(&mut Rig)] =
        &[issue, |rig| rig.finish(COPY, WAIT_TARGETS), |rig| rig.tell(COPY, 5)];
    assert!(after((ISSUER, ORDINARY, true), through, (5, ORDINARY, false)));
    // The copy's completion is not a fence: generic accesses remain unknown in the asynchronous
    // view.
    assert!(!after((ISSUER, ORDINARY, true), through, (5, WGMMA, false)));
}

/// R14: a word passes on both views from block to block.
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
