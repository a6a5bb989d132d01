//! Worlds: creation, and execution of a program on all ranks.

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

/// Remedy for devices of different kinds.
const KINDS: &str =
    "All devices must be of one kind and one architecture, as other devices may return other bits";

/// Name of the host's entry in a rank's hello message.
const HOST: &str = "host";

/// Returns this machine's host name, or an empty string.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok());
    name.or_else(|| std::env::var("COMPUTERNAME").ok()).unwrap_or_default().trim().to_owned()
}

/// Default of [`World::timeout`]: five minutes.
const PATIENCE: Duration = Duration::from_secs(300);

/// Set of devices that work together, or this process's part of the set.
pub struct World {
    ends: Vec<End>,
    timeout: Duration,
    machine: Option<ClusterModel>,
    memory: Option<u64>,
}

impl World {
    /// Creates a world of simulated devices, each with its own memory. The transport is always
    /// `host`, regardless of `GEMM_CARRY`, and messages arrive at once.
    ///
    /// # Errors
    /// [`WorldError::Impossible`] for 0 ranks.
    pub fn simulated(ranks: usize) -> Result<Self> {
        Self::simulated_with(ranks, Delivery::default())
    }

    /// Creates a world of simulated devices with a seeded message order and injected faults, to
    /// test how a program handles them.
    ///
    /// ```
    /// use gemm_world::{Delivery, Error, Fault, FaultKind, LossReason, World, WorldError};
    ///
    /// let dies = Fault { rank: 1, call: 0, kind: FaultKind::Die };
    /// let delivery = Delivery { seed: Some(1), faults: vec![dies] };
    /// let error = World::simulated_with(2, delivery)?.run(|rank| rank.barrier()).unwrap_err();
    /// let Error::World(WorldError::RankLost { rank, why, .. }) = error else { unreachable!() };
    /// assert_eq!((rank, why), (1, LossReason::Gone));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`World::simulated`], and [`WorldError::Impossible`] if a fault names
    /// a rank that does not exist.
    pub fn simulated_with(ranks: usize, delivery: Delivery) -> Result<Self> {
        Self::delivered((0..ranks).map(|_| Device::simulator()).collect(), None, delivery)
    }

    /// Creates the world that the environment describes:
    ///
    /// 1. One rank of a job, if a launcher has started this process. Its variables are `RANK` and
    ///    `WORLD_SIZE`, which `torchrun` sets, or the variables of Slurm, Open MPI or MPICH. The
    ///    rank uses the GPU whose ordinal is the rank's number on this host, or the only visible
    ///    GPU. If there is no GPU, it uses a simulated device.
    /// 2. Otherwise all GPUs of this machine, one rank each.
    /// 3. Without a GPU, one simulated device.
    ///
    /// The ranks of a job connect to rank 0, which listens at `GEMM_RENDEZVOUS=host:port`, or at
    /// `MASTER_ADDR`, one port above `MASTER_PORT`. All ranks must arrive within 60 seconds, or
    /// within `GEMM_MEETING` seconds. Connections are plain TCP, and anyone who can reach the port
    /// can take part.
    ///
    /// `GEMM_CARRY` sets the transport ([`TransportKind`]), inside or outside a job. By default,
    /// GPUs of one process copy from each other's memory. GPUs of several processes use NCCL if the
    /// feature `nccl` is enabled, otherwise the host.
    ///
    /// # Errors
    /// * [`WorldError::Environment`] if variables are invalid or contradict each other.
    /// * [`WorldError::Impossible`] if the devices cannot use the transport of `GEMM_CARRY`.
    ///   Simulated devices can use only `host`.
    /// * [`WorldError::Rendezvous`], [`WorldError::Mismatch`] and [`WorldError::RankLost`] if the
    ///   ranks cannot meet. All ranks return the same error.
    /// * The errors of [`Device::cuda`].
    pub fn from_env() -> Result<Self> {
        let own = |local: usize| match driver::gpus()? {
            0 => Ok(Device::simulator()),
            // A launcher may show each process only its own GPU.
            1 => Device::cuda(0),
            _ => Device::cuda(local),
        };
        if let Some(world) = Self::of_job(own)? {
            return Ok(world);
        }
        match driver::gpus()? {
            0 => Self::new(vec![Device::simulator()]),
            count => {
                Self::new((0..count).map(Device::cuda).collect::<gemm_runtime::error::Result<_>>()?)
            }
        }
    }

    /// Creates one rank of a job if a launcher has started this process, otherwise returns `None`.
    /// `device` creates the rank's device. Its argument is the number of the rank on this host. If
    /// the launcher does not set this number, the argument is the number of the rank in the job.
    ///
    /// # Errors
    /// Returns the errors of [`World::from_env`]. If `device` fails, all ranks are notified.
    pub fn of_job(
        device: impl FnOnce(usize) -> gemm_runtime::error::Result<Device>,
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
        // The error of this rank's device explains more than the error of the rendezvous.
        let (device, connected) = made?;
        let (channel, met) = met?;
        let links = connected.links(&device, &met.payload)?;
        let hosts: Vec<_> = (0..job.ranks).map(|rank| met.value(rank, HOST)).collect();
        let of_host = hosts.iter().filter(|host| **host == hosts[0]).count();
        // Exchanges are point-to-point transfers, so each rank of another host receives its own
        // copy.
        let network = || Hosts { once: false, ..Hosts::infiniband(of_host) };
        let machine = (of_host < job.ranks)
            .then(|| ClusterModel { hosts: Some(network()), ..links.machine() });
        let end = End { device, channel: Arc::new(channel), links };
        Ok(Some(Self { ends: vec![end], timeout: PATIENCE, machine, memory: None }))
    }

    /// Creates a world of this process's GPUs with these ordinals, one rank each. If an ordinal is
    /// listed twice, its ranks share the time and the memory of the GPU.
    ///
    /// # Errors
    /// [`WorldError::Impossible`] for an empty list, and the errors of [`Device::cuda`] and
    /// [`World::new`].
    pub fn gpus(ordinals: &[usize]) -> Result<Self> {
        Self::new(
            ordinals
                .iter()
                .map(|ordinal| Device::cuda(*ordinal))
                .collect::<gemm_runtime::error::Result<_>>()?,
        )
    }

    /// Creates a world of devices of this process, one rank each: all GPUs, or all simulated.
    /// `GEMM_CARRY` sets the transport ([`TransportKind`]). The default for GPUs is the first of
    /// these that applies:
    ///
    /// 1. Copy engines, if the driver lets the GPUs access each other's memory.
    /// 2. NCCL, with the feature `nccl`, if no GPU is used by two ranks.
    /// 3. The host.
    ///
    /// # Errors
    /// * [`WorldError::Environment`] if `GEMM_CARRY` names no transport.
    /// * [`WorldError::Impossible`] for an empty list, for the same device twice, for GPUs mixed
    ///   with simulated devices, and for GPUs of two architectures, whose bits may differ.
    /// * The errors of [`World::with_transport`] for the transport of `GEMM_CARRY`, or for NCCL if
    ///   it is the default.
    pub fn new(devices: Vec<Device>) -> Result<Self> {
        Self::delivered(devices, TransportKind::from_env()?, Delivery::default())
    }

    /// Creates a world as [`World::new`] does, but with the given transport, regardless of
    /// `GEMM_CARRY`.
    ///
    /// # Errors
    /// * The errors of [`World::new`].
    /// * [`WorldError::Impossible`] if the transport cannot connect these devices.
    /// * For NCCL: [`WorldError::NcclMissing`], [`WorldError::NcclOld`], [`WorldError::Nccl`], and
    ///   [`WorldError::Shared`] if two ranks use the same GPU.
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
                    "each rank needs its own device. Create one for each rank",
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

    /// Creates a world of one rank with this endpoint, as in a process of a job.
    #[cfg(test)]
    pub(crate) fn of_end(device: Device, channel: Arc<dyn Channel>) -> Self {
        let links = Links::Channel { simulated: device.is_simulator() };
        let end = End { device, channel, links };
        Self { ends: vec![end], timeout: PATIENCE, machine: None, memory: None }
    }

    /// Number of ranks, in all processes.
    pub fn ranks(&self) -> usize {
        self.ends.first().map_or(0, |end| end.channel.ranks())
    }

    /// Numbers of this process's ranks.
    pub fn own(&self) -> impl Iterator<Item = usize> {
        self.ends.iter().map(|end| end.channel.rank())
    }

    /// Sets the timeout, 5 minutes by default. A rank that keeps another rank waiting for longer is
    /// lost. A rank is therefore late, too, if it loads data for longer than the timeout between
    /// two calls.
    ///
    /// Rank 0 detects late ranks. If rank 0 itself is late, the others wait twice as long. A dead
    /// or stopped process is detected after 10 seconds without a message, regardless of this
    /// timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        // Caps the timeout at a century, so that adding it to an `Instant` cannot overflow.
        self.timeout = timeout.min(Duration::from_secs(u32::MAX.into()));
        self
    }

    /// Sets the machine model for the choice of schedules. The default model has H200 GPUs, the
    /// links of this world and the hosts of its job.
    #[must_use]
    pub fn machine(mut self, machine: ClusterModel) -> Self {
        self.machine = Some(machine);
        self
    }

    /// Sets a limit in bytes on each device's memory for data received from other ranks during a
    /// GEMM. There is no limit by default. Partials of reductions, and partial sums of split-K, do
    /// not count.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Runs `work` on every rank of this process, each in its own thread, and waits for all ranks.
    /// Returns the values of `work` in the order of the ranks.
    ///
    /// If a rank fails, all ranks that wait for it are notified, and their later calls fail too.
    /// The returned error is the error of the first lost rank, not a consequence of that error.
    /// `run` waits without limit for a rank that is busy outside collective calls, because it
    /// cannot end the rank's thread.
    ///
    /// # Errors
    /// * [`WorldError::Thread`] if the system cannot start a thread.
    /// * The error of the first lost rank, if this rank belongs to this process. If it panicked,
    ///   the error is [`WorldError::Panicked`].
    /// * [`WorldError::RankLost`] if the first lost rank belongs to another process, is late or has
    ///   finished, regardless of later errors.
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
            watches.map_err(|error| no_thread("the failure watch".to_owned(), &error))?;
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
                // Tells the other ranks at once.
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

/// Outcome of a rank of this process.
struct RankOutcome<T> {
    rank: usize,
    outcome: Result<T>,
    /// First lost rank, as reported to this rank.
    broken: Option<RankLoss>,
}

/// Runs the program of one rank, then tells the other ranks how it ended.
fn on_rank<T>(mut rank: Rank, work: &(impl Fn(&mut Rank) -> Result<T> + Sync)) -> RankOutcome<T> {
    let done = catch_unwind(AssertUnwindSafe(|| {
        rank.links.connect(&rank.device, &*rank.channel, rank.timeout)?;
        let value = work(&mut rank)?;
        // The program of a rank includes the work that it launched. If a rank was lost, this work
        // may be incomplete, which is an error.
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
            // The thread must not end before the activities that it began.
            rank.links.give_up();
        }
    }
    let broken = outcome.as_ref().err().and_then(|_| rank.channel.broken());
    RankOutcome { rank: number, outcome, broken }
}

/// Returns true for an error that may be a consequence of another rank's failure. NCCL may notice
/// the failure before the channel does.
fn may_follow(error: &Error) -> bool {
    matches!(error, Error::World(WorldError::Nccl { .. } | WorldError::NcclLate { .. }))
}

/// Waits up to two seconds for the report of a lost rank.
fn wait_for_cause(channel: &dyn Channel) {
    const MOMENT: Duration = Duration::from_secs(2);
    let end = Instant::now() + MOMENT;
    while channel.broken().is_none() && Instant::now() < end {
        thread::sleep(Duration::from_millis(10));
    }
}

/// Returns all values, or the error of the first lost rank, as reported to all ranks.
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
    let names = |error: &Error| match error {
        Error::World(WorldError::RankLost { rank, .. }) => *rank == broken.rank,
        _ => false,
    };
    // The own error of a failed rank explains most. Errors that a late rank returns afterwards do
    // not count.
    let has_failed = matches!(broken.why, LossReason::Failed(_));
    let own = faults
        .iter()
        .position(|(rank, error)| *rank == broken.rank && (has_failed || names(error)));
    match own.or_else(|| faults.iter().position(|(_, error)| names(error))) {
        Some(place) => Err(faults.swap_remove(place).1),
        None => Err(Error::World(broken.at("at work"))),
    }
}
