//! Execution state of warps: registers, the memory of the block, and observers.

use super::frames::Frames;
use super::lanes::{Lanes, WideLanes};
use crate::counters::traffic::Traffic;
use crate::counters::{Executions, Profile};
use crate::exec::budget::Budget;
use crate::exec::interleaving::{Interleaving, Random};
use crate::exec::undo_log::UndoLog;
use crate::exec::warpgroup::{Flight, RegisterLimits, Warpgroups};
use crate::launch::Launch;
use crate::lower::code::{Code, Instr, LoopIndex, Slots};
use crate::mask::{ALL, WARP};
use crate::observe::groups::GroupCache;
use crate::observe::{BoxedTrap, Observer, Request, Sync};
use crate::race::detector::{InterBlock, Race};
use crate::race::init::Init;
use crate::race::mbarrier::Mbarriers;
use crate::race::remote_stores::RemoteStores;
use crate::race::shadow::Shadow;
use crate::region::{THREAD_X, THREAD_Y};
use crate::trace::recorder::Recorder;
use pulp::Arch;

/// Number of atomics of a block after which a warp always yields, in interleaved order. After later
/// atomics, it yields at random.
const IN_STEP: u32 = 1 << 10;

/// Variables and register arrays of a warp.
pub(crate) struct Registers {
    pub(crate) lanes: Vec<Lanes>,
    /// Mask of the lanes that have a value, for each lane slot.
    pub(crate) ready: Vec<u32>,
    pub(crate) wides: Vec<WideLanes>,
    pub(crate) preds: Vec<u32>,
    pub(crate) uniforms: Vec<i64>,
    /// Matrix instructions of the warp that are in flight.
    pub(crate) flight: Flight,
}

impl Registers {
    pub(crate) fn new(slots: Slots) -> Self {
        Self {
            lanes: vec![Lanes::ZERO; slots.lanes as usize],
            ready: vec![0; slots.lanes as usize],
            wides: vec![[0; WARP]; slots.wides as usize],
            preds: vec![0; slots.preds as usize],
            uniforms: vec![0; slots.uniforms as usize],
            flight: Flight::default(),
        }
    }

    /// Resets to the start of a warp whose first thread has this index. Variables always have a
    /// value where they are visible, so their slots count as initialised. Register arrays occupy
    /// the slots from 2 to `first_variable` and are uninitialised.
    pub(crate) fn reset(&mut self, launch: &Launch<'_>, first_thread: u32) {
        self.ready.fill(ALL);
        self.flight = Flight::default();
        let arrays = THREAD_Y as usize + 1..launch.first_variable as usize;
        if let Some(arrays) = self.ready.get_mut(arrays) {
            arrays.fill(0);
        }
        for lane in 0..WARP {
            let (x, y) = launch.thread(first_thread + lane as u32);
            self.lanes[THREAD_X as usize].0[lane] = x;
            self.lanes[THREAD_Y as usize].0[lane] = y;
        }
    }
}

/// Observers of an execution, called in this order.
pub(crate) struct Observers<'l> {
    /// True if the race detector observes accesses.
    looks_for_races: bool,
    pub(crate) init: Init,
    pub(crate) race: Race<'l>,
    pub(crate) traffic: Traffic<'l>,
}

impl Observer for Observers<'_> {
    fn begin(&mut self, cluster: u32) {
        self.init.begin(cluster);
        self.race.begin(cluster);
        self.traffic.begin(cluster);
    }

    #[inline]
    fn access(&mut self, request: &Request<'_>) -> Result<(), BoxedTrap> {
        self.init.access(request)?;
        if self.looks_for_races {
            self.race.access(request)?;
        }
        self.traffic.access(request)
    }

    fn sync(&mut self, sync: Sync<'_>) {
        self.init.sync(sync);
        self.race.sync(sync);
        self.traffic.sync(sync);
    }
}

/// Shared memory of a block of a cluster, with its detectors, while warps of another block run.
struct ParkedBlock {
    shared: Vec<u32>,
    init: Init,
    shadow: Shadow,
}

/// Executes one block after another, or all blocks of a cluster together.
pub(crate) struct Machine<'l> {
    pub(crate) launch: &'l Launch<'l>,
    pub(crate) code: &'l Code<'l>,
    pub(crate) arch: Arch,
    pub(crate) shared: Vec<u32>,
    /// State of each block of the cluster, except that of the running warp.
    parked: Vec<ParkedBlock>,
    /// Mbarriers of all blocks of the cluster.
    pub(crate) mbarriers: Mbarriers,
    /// Stores to shared memory of other blocks of the cluster.
    pub(crate) remote_stores: RemoteStores,
    /// Steps that all warps of a warpgroup execute.
    pub(crate) warpgroups: Warpgroups,
    pub(crate) limits: RegisterLimits,
    pub(crate) observers: Observers<'l>,
    pub(crate) group_cache: GroupCache,
    executions: Executions,
    /// Recorder of events, if some block is recorded.
    pub(crate) recorder: Option<Box<Recorder<'l>>>,
    pub(crate) frames: Frames,
    /// Number of the cluster. `rank` is the rank of the running warp's block in the cluster.
    pub(crate) cluster: u32,
    pub(crate) rank: u32,
    pub(crate) block: (u32, u32, u32),
    /// Number of the running warp across all blocks of the cluster. `existing` is the mask of its
    /// lanes that exist.
    pub(crate) warp: u32,
    pub(crate) existing: u32,
    pub(crate) stmt: u32,
    /// Number of memory changes by this machine; `elsewhere` counts changes by other blocks. A warp
    /// that polls waits for such a change.
    pub(crate) happened: u64,
    pub(crate) elsewhere: u64,
    /// True if each write is compared with the old content. Otherwise every write counts as a
    /// change.
    pub(crate) compares_writes: bool,
    /// Number of times that warps of the block have met.
    pub(crate) meetings: u64,
    /// True if lanes execute atomics in descending order, and lanes of an `else` run before the
    /// lanes of its `if`.
    pub(crate) reversed: bool,
    /// Thread interleaving of the block; `random` supplies its random numbers.
    pub(crate) turns: Interleaving,
    pub(crate) random: Random,
    /// Number of yields after atomics.
    handed: u32,
    /// Last statement of the running warp that read memory, for livelock detection.
    pub(crate) asked: Option<u32>,
    /// Old content of the global memory that the block has written, if the block is to run again.
    pub(crate) undo_log: Option<UndoLog>,
    pub(crate) budget: &'l Budget,
}

impl<'l> Machine<'l> {
    pub(crate) fn new(
        launch: &'l Launch<'l>,
        code: &'l Code<'l>,
        between: InterBlock<'l>,
        budget: &'l Budget,
    ) -> Self {
        let race = Race::new(launch, code, between);
        let parked = |rank: u32| ParkedBlock {
            shared: if rank == 0 { Vec::new() } else { vec![0; launch.shared.words as usize] },
            init: Init::new(if rank == 0 { 0 } else { launch.shared.elements }),
            shadow: race.shadow(),
        };
        Self {
            parked: (0..launch.cluster()).map(parked).collect(),
            launch,
            code,
            arch: Arch::new(),
            shared: vec![0; launch.shared.words as usize],
            mbarriers: Mbarriers::default(),
            remote_stores: RemoteStores::default(),
            warpgroups: Warpgroups::default(),
            limits: RegisterLimits::default(),
            observers: Observers {
                looks_for_races: !launch.unchecked,
                init: Init::new(launch.shared.elements),
                race,
                traffic: Traffic::new(
                    launch.warps(),
                    launch.cluster(),
                    code.stmts.len(),
                    code.fates.as_deref(),
                ),
            },
            group_cache: GroupCache::new(code.accesses),
            executions: Executions::new(&code.sites, code.stmts.len()),
            recorder: launch.watched.any().then(|| {
                let (warps, blocks) = (launch.warps(), launch.cluster());
                Box::new(Recorder::new(&launch.watched, &code.sites, warps, blocks))
            }),
            frames: Frames::default(),
            cluster: 0,
            rank: 0,
            block: (0, 0, 0),
            warp: 0,
            existing: ALL,
            stmt: 0,
            happened: 0,
            elsewhere: 0,
            compares_writes: false,
            meetings: 0,
            reversed: false,
            turns: Interleaving::Forward,
            random: Random::new(0),
            handed: 0,
            asked: None,
            undo_log: None,
            budget,
        }
    }

    pub(crate) fn begin(&mut self, cluster: u32) {
        let (launch, blocks) = (self.launch, self.launch.cluster());
        self.cluster = cluster;
        self.enter(0);
        self.block = launch.block(launch.of_cluster(cluster, 0));
        self.observers.begin(cluster);
        for parked in self.parked.iter_mut().skip(1) {
            parked.init.begin(cluster);
            parked.shadow.reset(self.observers.race.pages());
        }
        self.mbarriers.begin(blocks * launch.mbarriers());
        self.remote_stores.begin();
        let warps = (blocks * launch.warps()) as usize;
        self.warpgroups.begin(warps);
        self.limits.begin(warps, launch.warps(), launch.kernel.geometry.blocks_per_sm.unwrap_or(1));
        (self.compares_writes, self.meetings, self.handed) = (self.undo_log.is_some(), 0, 0);
        if let Some(recorder) = &mut self.recorder {
            let numbers = (0..blocks).map(|rank| launch.of_cluster(cluster, rank));
            let numbered = numbers.map(|number| (number, launch.block(number)));
            recorder.begin(numbered, self.turns == Interleaving::Forward);
        }
    }

    /// Counts the execution of a site by the running warp.
    #[inline(always)]
    pub(crate) fn executes(&mut self, site: u32, mask: u32) {
        self.executions.hit(site, mask, self.stmt);
        if let Some(recorder) = self.recorder() {
            recorder.executed(site);
        }
    }

    /// Recorder, if a block of this cluster is recorded.
    #[inline(always)]
    pub(crate) fn recorder(&mut self) -> Option<&mut Recorder<'l>> {
        self.recorder.as_deref_mut().filter(|recorder| recorder.is_on())
    }

    /// Records that the warp reaches an instruction. `again` is true if the warp has been waiting
    /// at it.
    #[cold]
    #[inline(never)]
    pub(crate) fn reach(&mut self, instr: &Instr, regs: &Registers, mask: u32, again: bool) {
        let (code, warp) = (self.code, self.warp);
        let lane = mask.trailing_zeros() as usize % WARP;
        let rounds = code.rounds[instr.rounds as usize].iter().map(|(var, at)| {
            let value = match *at {
                LoopIndex::Static(value) => value,
                LoopIndex::Uniform(slot) => regs.uniforms[slot as usize],
                LoopIndex::Lane(slot) => (regs.lanes[slot as usize].0[lane] as i32).into(),
                LoopIndex::Wide(slot) => regs.wides[slot as usize][lane] as i64,
            };
            (*var, value)
        });
        if let Some(recorder) = self.recorder() {
            recorder.reach(warp, instr.stmt, rounds);
            if instr.op.is_traced() && !again {
                recorder.statement();
            }
        }
    }

    /// Returns the counters of all blocks that ran on this machine.
    pub(crate) fn finish(self) -> Profile {
        let (total, statements, compiled_statements) = self.observers.traffic.finish();
        let mut profile = Profile { total, statements, compiled_statements, ..Profile::default() };
        self.executions.charge(&self.code.sites, &mut profile.statements);
        profile.statements.iter().for_each(|of| profile.total += *of);
        profile.executions = self.code.fates.is_some().then_some(self.executions);
        profile
    }

    /// Number of memory changes by this machine and by other blocks.
    pub(crate) fn changes(&self) -> u64 {
        self.happened + self.elsewhere
    }

    /// Number of events to which a polling warp may react: memory changes and meetings.
    pub(crate) fn events(&self) -> u64 {
        self.changes() + self.meetings
    }

    /// Returns true if the warp yields after an atomic.
    pub(crate) fn hands_over(&mut self) -> bool {
        match self.turns {
            Interleaving::Forward | Interleaving::Reversed => false,
            Interleaving::Interleaved { .. } => {
                self.handed = self.handed.saturating_add(1);
                self.handed <= IN_STEP || self.random.below(2) == 0
            }
            Interleaving::Shuffled(_) => self.random.below(2) == 0,
        }
    }

    /// Makes a warp the running one.
    pub(crate) fn turn_to(&mut self, warp: u32) {
        let (rank, number) = (warp / self.launch.warps(), warp % self.launch.warps());
        self.enter(rank);
        let rest = self.launch.kernel.geometry.threads() - number * WARP as u32;
        self.warp = warp;
        self.existing = if rest < 32 { (1 << rest) - 1 } else { ALL };
    }

    /// Switches to the memory of a block of the cluster.
    pub(crate) fn enter(&mut self, rank: u32) {
        if rank == self.rank {
            return;
        }
        // The parked entry of the current block is empty, so two swaps exchange the two blocks.
        self.exchange(self.rank);
        self.exchange(rank);
        self.rank = rank;
        self.block = self.launch.block(self.launch.of_cluster(self.cluster, rank));
    }

    fn exchange(&mut self, rank: u32) {
        let ParkedBlock { shared, init, shadow } = &mut self.parked[rank as usize];
        std::mem::swap(shared, &mut self.shared);
        std::mem::swap(init, &mut self.observers.init);
        std::mem::swap(shadow, &mut self.observers.race.shared);
    }
}
