//! Who there is, and what all of them do.

use super::error::{impossible, numbered, panicked};
use super::mailbox::{Delivery, Fault, mailboxes};
use super::rank::{End, Rank};
use super::tcp::{Fact, Hello, Job, Limits, meet};
use super::{ClusterModel, Hosts, LossReason, WorldError};
use crate::channel::{Channel, RankLoss};
use crate::failure_watch::FailureWatch;
use crate::recent::RecentCalls;
use crate::staging::StagingBuffers;
use crate::transport::{Links, TransportKind, in_job};
use crate::{Error, Result};
use gemm_runtime::Device;
use gemm_runtime::internal as driver;
use std::io;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

/// What devices of a world are.
const KINDS: &str =
    "All devices are of one kind and one architecture, as the bits of others may differ";

/// What ranks tell one another of where they are.
const HOST: &str = "host";

/// The name of this machine, as far as the system has one.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok());
    name.or_else(|| std::env::var("COMPUTERNAME").ok()).unwrap_or_default().trim().to_owned()
}

/// How long a rank waits for another one where nobody says otherwise.
const PATIENCE: Duration = Duration::from_secs(300);

/// The devices that work together, or those of them that this process has.
pub struct World {
    ends: Vec<End>,
    timeout: Duration,
    machine: Option<ClusterModel>,
    memory: Option<u64>,
}

impl World {
    /// So many simulated devices, each with memory of its own. What one sends another arrives at once, through the host, whatever
    /// `GEMM_CARRY` says.
    ///
    /// # Errors
    /// [`WorldError::Impossible`] for 0.
    pub fn simulated(ranks: usize) -> Result<Self> {
        Self::simulated_with(ranks, Delivery::default())
    }

    /// The same, where messages become visible in an order drawn from a seed, and things go wrong as planned: to try what a
    /// program does then.
    ///
    /// ```
    /// use gemm_world::{Delivery, Error, Fault, FaultKind, LossReason, World, WorldError};
    ///
    /// let dies = Fault { rank: 1, call: 0, kind: FaultKind::Die };
    /// let delivery = Delivery { seed: Some(1), faults: vec![dies] };
    /// let error = World::simulated_with(2, delivery)?.run(|rank| rank.barrier()).unwrap_err();
    /// assert!(matches!(error, Error::World(WorldError::RankLost { rank: 1, why: LossReason::Gone, .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`World::simulated`]; and [`WorldError::Impossible`] for a fault of a rank that is not there.
    pub fn simulated_with(ranks: usize, delivery: Delivery) -> Result<Self> {
        Self::delivered((0..ranks).map(|_| Device::simulator()).collect(), None, delivery)
    }

    /// What the environment says: one rank of a job, if a launcher has started this process as such (`RANK` and `WORLD_SIZE`
    /// as `torchrun` sets them, or the variables of Slurm, Open MPI, MPICH), with the GPU of its number on this host, or the only
    /// one that it is shown; else all GPUs of this machine; else one simulated device. A rank of a job without a GPU is simulated too.
    ///
    /// The ranks of a job meet at rank 0: at `GEMM_RENDEZVOUS=host:port`, or one port above `MASTER_PORT` of `MASTER_ADDR`. All have
    /// to have come within 60 seconds, or as many as `GEMM_MEETING` says.
    /// Connections are plain TCP, and whoever reaches the port can take part. `GEMM_CARRY` says what carries data
    /// ([`TransportKind`]), in a job or outside of one; without it GPUs of one process fetch it from one another, and those of several have
    /// NCCL, with the feature of that name, else the host.
    ///
    /// # Errors
    /// [`WorldError::Environment`] for variables that contradict one another; [`WorldError::Impossible`] where `GEMM_CARRY` says
    /// what cannot be, as of simulated devices all but `host` is; those of the meeting, which are the same on all
    /// ranks: [`WorldError::Rendezvous`], [`WorldError::Mismatch`], [`WorldError::RankLost`]; and those of [`Device::cuda`].
    pub fn from_env() -> Result<Self> {
        let own = |local: usize| match driver::gpus()? {
            0 => Ok(Device::simulator()),
            // As where a launcher shows each process its own alone.
            1 => Device::cuda(0),
            _ => Device::cuda(local),
        };
        if let Some(world) = Self::of_job(own)? {
            return Ok(world);
        }
        match driver::gpus()? {
            0 => Self::new(vec![Device::simulator()]),
            count => Self::new((0..count).map(Device::cuda).collect::<gemm_runtime::Result<_>>()?),
        }
    }

    /// One rank of a job, if a launcher has started this process as such, with a device that is made for its number on this
    /// host; none where it is no such process.
    ///
    /// # Errors
    /// As [`World::from_env`]. What making the device fails with all ranks are told.
    pub fn of_job(
        device: impl FnOnce(usize) -> gemm_runtime::Result<Device>,
    ) -> Result<Option<Self>> {
        let Some(job) = Job::from_env()? else { return Ok(None) };
        let mut hello = Hello::default();
        let made =
            device(job.local_rank.unwrap_or(job.rank)).map_err(Error::from).and_then(|device| {
                let kind =
                    device.arch().map_or("the simulator".to_owned(), |arch| arch.to_string());
                hello.facts.push(Fact::same("the kind of device", kind, KINDS));
                hello.facts.push(Fact::noted(HOST, host()));
                let connected = in_job(&device, job.rank, TransportKind::from_env()?, &mut hello)?;
                Ok((device, connected))
            });
        hello.failure = made.as_ref().err().map(ToString::to_string);
        let met = meet(&job, &hello, &Limits::from_env()?);
        // What has kept this rank from taking part says more than that it did not.
        let (device, connected) = made?;
        let (channel, met) = met?;
        let links = connected.links(&device, &met.payload)?;
        let hosts: Vec<_> = (0..job.ranks).map(|rank| met.value(rank, HOST)).collect();
        let of_host = hosts.iter().filter(|host| **host == hosts[0]).count();
        // What goes from one host to another is no collective, so each rank there is sent its own.
        let network = || Hosts { once: false, ..Hosts::infiniband(of_host) };
        let machine = (of_host < job.ranks)
            .then(|| ClusterModel { hosts: Some(network()), ..links.machine() });
        let end = End { device, channel: Arc::new(channel), links };
        Ok(Some(Self { ends: vec![end], timeout: PATIENCE, machine, memory: None }))
    }

    /// The GPUs of this process with these ordinals, each of them a rank. One GPU may be several ranks, which then share its
    /// time and its memory.
    ///
    /// # Errors
    /// [`WorldError::Impossible`] for none; those of [`Device::cuda`].
    pub fn gpus(ordinals: &[usize]) -> Result<Self> {
        Self::new(
            ordinals
                .iter()
                .map(|ordinal| Device::cuda(*ordinal))
                .collect::<gemm_runtime::Result<_>>()?,
        )
    }

    /// Devices of this process, each of them a rank: all of them GPUs, or all simulated. `GEMM_CARRY` says what carries data
    /// ([`TransportKind`]); without it GPUs reach one another's memory where the driver lets them, by their copy engines; else, with the
    /// feature `nccl`, NCCL connects them, where no GPU is two ranks; else data goes through the host.
    ///
    /// # Errors
    /// [`WorldError::Environment`] where `GEMM_CARRY` says nothing that carries; those of [`World::with_transport`] for what it says, or for
    /// NCCL where that is needed;
    /// [`WorldError::Impossible`] for no device, for devices of both kinds, for GPUs of two architectures, whose bits may
    /// differ, and for one device twice.
    pub fn new(devices: Vec<Device>) -> Result<Self> {
        Self::delivered(devices, TransportKind::from_env()?, Delivery::default())
    }

    /// As [`World::new`], with what carries data between them, whatever `GEMM_CARRY` says.
    ///
    /// # Errors
    /// As [`World::new`]; [`WorldError::Impossible`] where these devices cannot be connected like that; of NCCL
    /// [`WorldError::NcclMissing`], [`WorldError::NcclOld`], [`WorldError::Nccl`], and [`WorldError::Shared`] for a GPU that is
    /// two ranks.
    pub fn with_transport(devices: Vec<Device>, kind: TransportKind) -> Result<Self> {
        Self::delivered(devices, Some(kind), Delivery::default())
    }

    fn delivered(
        devices: Vec<Device>,
        kind: Option<TransportKind>,
        delivery: Delivery,
    ) -> Result<Self> {
        let Some(first) = devices.first() else {
            return Err(impossible(
                "a world of 0 ranks".to_owned(),
                "at least one device is needed",
            ));
        };
        for (n, device) in devices.iter().enumerate() {
            if device.arch() != first.arch() {
                let what = format!("a world of {} and {}", first.name(), device.name());
                return Err(impossible(what, KINDS));
            }
            if devices[..n].iter().any(|other| other.is_same(device)) {
                let what = format!("a world that has {} twice", device.name());
                return Err(impossible(
                    what,
                    "each rank needs a device of its own: make one for each",
                ));
            }
        }
        let ranks = devices.len();
        if let Some(Fault { rank, .. }) = delivery.faults.iter().find(|fault| fault.rank >= ranks) {
            return Err(impossible(format!("a fault of rank {rank}"), &numbered(ranks)));
        }
        let links = Links::between(&devices, kind)?;
        let channels = mailboxes(devices.len(), delivery);
        let ends = devices.into_iter().zip(channels).zip(links);
        let ends = ends.map(|((device, channel), links)| End { device, channel, links }).collect();
        Ok(Self { ends, timeout: PATIENCE, machine: None, memory: None })
    }

    /// The rank that has this end, as a process of a job has one.
    #[cfg(test)]
    pub(crate) fn of_end(device: Device, channel: Arc<dyn Channel>) -> Self {
        let links = Links::Channel { simulated: device.is_simulator() };
        let end = End { device, channel, links };
        Self { ends: vec![end], timeout: PATIENCE, machine: None, memory: None }
    }

    /// How many ranks there are, in all processes.
    pub fn ranks(&self) -> usize {
        self.ends.first().map_or(0, |end| end.channel.ranks())
    }

    /// The numbers of the ranks of this process.
    pub fn own(&self) -> impl Iterator<Item = usize> {
        self.ends.iter().map(|end| end.channel.rank())
    }

    /// How long a rank waits for another one before it takes that for lost; 5 minutes where nobody says otherwise. Whoever
    /// loads longer than that between two calls is late. Rank 0 hears first who is late: where it is late itself the others wait
    /// for twice that. Of another process nothing is heard for 10 seconds, whatever the patience, when it has died or stopped: then
    /// its rank is lost.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        // More than a century is for ever, and can be added to a time.
        self.timeout = timeout.min(Duration::from_secs(u32::MAX.into()));
        self
    }

    /// What schedules are chosen by; where nobody says otherwise H200 of one host, and what connects the devices.
    #[must_use]
    pub fn machine(mut self, machine: ClusterModel) -> Self {
        self.machine = Some(machine);
        self
    }

    /// How many bytes of each device what comes of other ranks for a product may take; where nobody says otherwise as many as there
    /// are. Partials of reductions, and sums where terms are dealt out, are not counted.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Does something on every rank of this process, each in a thread of its own, and waits for all. What they return is in
    /// the order of the ranks.
    ///
    /// Where a rank fails, all that wait for it are told, and so is every later call of theirs: the error that is returned is
    /// of the rank that was lost first, not what others made of that. A rank that is busy with something else than the world is waited
    /// for, whatever its patience: no thread can be ended from without.
    ///
    /// # Errors
    /// [`WorldError::Thread`]; what the first rank that is lost fails with, where it is one of this process; [`WorldError::Panicked`] where it panics;
    /// [`WorldError::RankLost`] where it is one of another process, is late or has finished, whatever else others then fail
    /// with.
    pub fn run<T: Send>(self, work: impl Fn(&mut Rank) -> Result<T> + Sync) -> Result<Vec<T>> {
        let Self { ends, timeout, machine, memory } = self;
        let work = &work;
        let watched = FailureWatch::new(&ends);
        let no_thread = |what: String, error: &io::Error| WorldError::Thread {
            what,
            reason: error.to_string(),
        };
        let ended: Vec<RankOutcome<T>> = thread::scope(|scope| {
            let watches = watched.watch(scope);
            watches.map_err(|error| no_thread("what looks on".to_owned(), &error))?;
            let threads = ends.into_iter().map(|End { device, channel, links }| {
                let machine = machine.unwrap_or_else(|| links.machine());
                let rank = Rank {
                    device,
                    channel,
                    links,
                    timeout,
                    machine,
                    memory,
                    staging: StagingBuffers::default(),
                    products: RecentCalls::default(),
                    folds: RecentCalls::default(),
                    partials: None,
                    splits: [None, None],
                    calls: 0,
                    not_sync: PhantomData,
                };
                let (number, channel) = (rank.number(), Arc::clone(&rank.channel));
                let thread = Builder::new().spawn_scoped(scope, move || on_rank(rank, work));
                // The others are told at once.
                let thread = thread.map_err(|error| {
                    let error = Error::World(no_thread(format!("rank {number}"), &error));
                    let why = LossReason::Failed(error.to_string());
                    channel.abort(RankLoss { rank: number, why });
                    RankOutcome { rank: number, outcome: Err(error), broken: channel.broken() }
                });
                (number, thread)
            });
            let threads: Vec<_> = threads.collect();
            let ended = threads.into_iter().map(|(number, thread)| {
                thread.map_or_else(
                    |ended| ended,
                    |thread| {
                        thread.join().unwrap_or_else(|panic| RankOutcome {
                            rank: number,
                            outcome: Err(panicked(number, &*panic)),
                            broken: None,
                        })
                    },
                )
            });
            let ended = ended.collect();
            watched.end();
            Ok::<_, WorldError>(ended)
        })?;
        first_fault(ended)
    }
}

/// How a rank of this process has ended.
struct RankOutcome<T> {
    rank: usize,
    outcome: Result<T>,
    /// Which rank was lost first, as it was told.
    broken: Option<RankLoss>,
}

/// The work of one rank, and what the others are told of its end.
fn on_rank<T>(mut rank: Rank, work: &(impl Fn(&mut Rank) -> Result<T> + Sync)) -> RankOutcome<T> {
    let done = catch_unwind(AssertUnwindSafe(|| {
        rank.links.connect(&rank.device, &*rank.channel, rank.timeout)?;
        let value = work(&mut rank)?;
        // What has been launched is part of it, and nothing that a lost rank has left half done is.
        rank.finish()?;
        rank.links.finish(&rank.device, &*rank.channel, rank.timeout)?;
        Ok(value)
    }));
    let number = rank.number();
    let outcome = done.unwrap_or_else(|panic| Err(panicked(number, &*panic)));
    match &outcome {
        Ok(_) => rank.channel.leave(),
        Err(error) => {
            if may_follow(error) {
                wait_for_cause(&*rank.channel);
            }
            rank.channel
                .abort(RankLoss { rank: number, why: LossReason::Failed(error.to_string()) });
            // This thread does not end before what it has begun has.
            rank.links.give_up();
        }
    }
    let broken = outcome.as_ref().err().and_then(|_| rank.channel.broken());
    RankOutcome { rank: number, outcome, broken }
}

/// Whether an error may follow from the loss of another rank, of which NCCL can know before the wire does.
fn may_follow(error: &Error) -> bool {
    matches!(error, Error::World(WorldError::Nccl { .. } | WorldError::NcclLate { .. }))
}

/// Waits, for a moment, for the loss of a rank.
fn wait_for_cause(channel: &dyn Channel) {
    const MOMENT: Duration = Duration::from_secs(2);
    let end = Instant::now() + MOMENT;
    while channel.broken().is_none() && Instant::now() < end {
        thread::sleep(Duration::from_millis(10));
    }
}

/// All values, or the error of the rank that was lost first, which all others have been told.
fn first_fault<T>(ended: Vec<RankOutcome<T>>) -> Result<Vec<T>> {
    let broken = ended.iter().find_map(|ended| ended.broken.clone());
    let (mut values, mut faults) = (Vec::with_capacity(ended.len()), Vec::new());
    for RankOutcome { rank, outcome, .. } in ended {
        match outcome {
            Ok(value) => values.push(value),
            Err(error) => faults.push((rank, error)),
        }
    }
    let Some(broken) = broken else {
        return faults.into_iter().next().map_or(Ok(values), |(_, error)| Err(error));
    };
    let names = |error: &Error| matches!(error, Error::World(WorldError::RankLost { rank, .. }) if *rank == broken.rank);
    // It knows itself what it has failed with; what one that was late comes to afterwards is no longer asked.
    let has_failed = matches!(broken.why, LossReason::Failed(_));
    let own = faults
        .iter()
        .position(|(rank, error)| *rank == broken.rank && (has_failed || names(error)));
    match own.or_else(|| faults.iter().position(|(_, error)| names(error))) {
        Some(place) => Err(faults.swap_remove(place).1),
        None => Err(Error::World(broken.at("at work"))),
    }
}
