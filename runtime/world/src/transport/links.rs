//! What connects the devices of a world.

use super::peers::Peers;
use crate::channel::Channel;
use crate::collective::CollectiveContext;
use crate::error::impossible;
use crate::tcp::{Fact, Hello};
use crate::{ClusterModel, WorldError};
use crate::{Error, Result};
use gemm_runtime::Device;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What carries data from one rank to another. Whatever it is, results are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransportKind {
    /// Each GPU fetches what it needs from where another one has it, by its copy engines: within one process, where GPUs reach
    /// one another.
    Peers,
    /// NCCL, within one process or between many, on one host or many. It takes the feature `nccl`, and a GPU is one rank.
    Nccl,
    /// The host, from memory to memory, or over the connections by which ranks speak to one another: slow, but always there.
    /// Simulated devices have nothing else.
    Host,
}

impl TransportKind {
    /// What it is called, as in `GEMM_CARRY=host`.
    const NAMES: [(Self, &'static str); 3] =
        [(Self::Peers, "peers"), (Self::Nccl, "nccl"), (Self::Host, "host")];

    /// What the variable `GEMM_CARRY` says, if it is set.
    pub(crate) fn from_env() -> Result<Option<Self>> {
        let Some(value) = std::env::var_os("GEMM_CARRY").filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        let value = value.to_string_lossy().into_owned();
        match value.parse() {
            Ok(kind) => Ok(Some(kind)),
            Err(need) => {
                Err(Error::World(WorldError::Environment { variable: "GEMM_CARRY", value, need }))
            }
        }
    }
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(kind, _)| kind == self);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

impl FromStr for TransportKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(_, name)| *name == text);
        let need = || "it has to be `peers`, `nccl` or `host`".to_owned();
        found.map(|(kind, _)| *kind).ok_or_else(need)
    }
}

/// How a rank's device reaches those of others.
pub(crate) enum Links {
    /// By messages, between GPUs or simulators.
    Channel {
        /// Whether they are simulators, which stand for GPUs that something faster connects.
        simulated: bool,
    },
    /// It reads their memory.
    Peers(Peers),
    /// By NCCL.
    #[cfg(feature = "nccl")]
    Nccl(super::nccl::Nccl),
}

impl Links {
    /// Those between devices of one process: as the caller says, or the fastest there are.
    pub(crate) fn between(devices: &[Device], kind: Option<TransportKind>) -> Result<Vec<Self>> {
        let by_wire =
            || devices.iter().map(|of| Self::Channel { simulated: of.is_simulator() }).collect();
        let are_gpus = devices.iter().all(|device| !device.is_simulator());
        if !are_gpus {
            return match kind {
                None | Some(TransportKind::Host) => Ok(by_wire()),
                Some(other) => Err(impossible(
                    format!("simulated devices that `{other}` connects"),
                    "what they send goes through the host",
                )),
            };
        }
        match kind {
            Some(TransportKind::Host) => Ok(by_wire()),
            Some(TransportKind::Nccl) => nccl_between(devices),
            Some(TransportKind::Peers) | None => match Peers::between(devices)? {
                Some(peers) => Ok(peers.into_iter().map(Self::Peers).collect()),
                None if kind.is_some() => Err(impossible(
                    "peers among these GPUs".to_owned(),
                    "each has to reach the memory of all others, and the driver says that some do not",
                )),
                None if cfg!(feature = "nccl") && twice(devices).is_none() => nccl_between(devices),
                None => Ok(by_wire()),
            },
        }
    }

    /// What is known of devices that are connected like this.
    pub(crate) fn machine(&self) -> ClusterModel {
        match self {
            Self::Peers(_) => ClusterModel::h200_copy_engines(),
            Self::Channel { simulated: false } => ClusterModel::h200_host(),
            _ => ClusterModel::h200_nccl(),
        }
    }

    /// Whether a rank may take memory and load kernels while exchanges are under way: what is under way waits for no other rank.
    pub(crate) fn loads_beside(&self) -> bool {
        match self {
            Self::Channel { .. } | Self::Peers(_) => true,
            #[cfg(feature = "nccl")]
            Self::Nccl(_) => false,
        }
    }

    /// Waits until all ranks have loaded what they launch, where a rank that loads may wait for what another one has begun.
    pub(crate) fn all_ready(&self, _talk: &CollectiveContext) -> Result<()> {
        match self {
            Self::Channel { .. } | Self::Peers(_) => Ok(()),
            #[cfg(feature = "nccl")]
            Self::Nccl(_) => _talk.gather_all(Vec::new()).map(|_| ()),
        }
    }

    /// Connects this rank's device with the others, all of which do so now.
    pub(crate) fn connect(
        &self,
        _device: &Device,
        _wire: &dyn Channel,
        _patience: Duration,
    ) -> Result<()> {
        match self {
            Self::Channel { .. } | Self::Peers(_) => Ok(()),
            #[cfg(feature = "nccl")]
            Self::Nccl(nccl) => nccl.connect(_device, _wire, _patience),
        }
    }

    /// Gives up what connects this rank, and those of this process, with others: nothing of it is under way any more.
    pub(crate) fn give_up(&self) {
        match self {
            Self::Channel { .. } | Self::Peers(_) => {}
            #[cfg(feature = "nccl")]
            Self::Nccl(nccl) => nccl.all().abort(),
        }
    }

    /// Parts from the others in agreement, when all work of the device is done.
    pub(crate) fn finish(
        &self,
        _device: &Device,
        _wire: &dyn Channel,
        _patience: Duration,
    ) -> Result<()> {
        match self {
            Self::Channel { .. } | Self::Peers(_) => Ok(()),
            #[cfg(feature = "nccl")]
            Self::Nccl(nccl) => nccl.finish(_device, _wire, _patience),
        }
    }
}

/// The first of these GPUs that is one before it too, and which one.
fn twice(devices: &[Device]) -> Option<(usize, usize)> {
    let gpu = |rank: usize| Some(devices[rank].cudarc()?.0.ordinal());
    let same = |rank: usize| (0..rank).find(|other| gpu(*other) == gpu(rank));
    (0..devices.len()).find_map(|rank| Some((rank, same(rank)?)))
}

#[cfg(not(feature = "nccl"))]
fn nccl_between(_: &[Device]) -> Result<Vec<Links>> {
    Err(no_feature())
}

#[cfg(not(feature = "nccl"))]
fn no_feature() -> Error {
    impossible(
        "ranks that NCCL connects".to_owned(),
        "gemm-world was built without its feature `nccl`",
    )
}

/// No deadline holds where NCCL waits by itself.
#[cfg(feature = "nccl")]
fn check_waits() -> Result<()> {
    const VARIABLE: &str = "NCCL_COMM_BLOCKING";
    match std::env::var(VARIABLE) {
        Ok(value) if value.trim() == "1" => Err(Error::World(WorldError::Environment {
            variable: VARIABLE,
            value,
            need: "NCCL would wait for lost ranks for ever: leave it out, or set it to 0"
                .to_owned(),
        })),
        _ => Ok(()),
    }
}

#[cfg(feature = "nccl")]
fn nccl_between(devices: &[Device]) -> Result<Vec<Links>> {
    check_waits()?;
    let library = crate::nccl::Library::load()?;
    if let (Some((rank, other)), false) = (twice(devices), shares_gpus()) {
        return Err(Error::World(WorldError::Shared {
            what: "GPU".to_owned(),
            value: devices[rank].name().to_owned(),
            rank,
            other,
            remedy: GPUS,
        }));
    }
    if devices.len() > 1 && library.reaches_into_buffers() {
        let version = library.version();
        return Err(impossible(
            format!("several ranks of one process that this NCCL connects ({version})"),
            "before 2.24 it reaches into memory that other GPUs do not have: take a later one, set \
             NCCL_P2P_DIRECT_DISABLE=1, or start a process for each GPU",
        ));
    }
    let ends = super::nccl::Nccl::between(devices, &library, library.unique_id()?)?;
    Ok(ends.into_iter().map(Links::Nccl).collect())
}

/// What NCCL asks of the GPUs of a world.
#[cfg(feature = "nccl")]
const GPUS: &str =
    "NCCL takes each GPU as one rank: start as many ranks as there are GPUs, each with its own";

/// Whether NCCL was told to take a GPU as two ranks, as it can from 2.30 on.
#[cfg(feature = "nccl")]
fn shares_gpus() -> bool {
    std::env::var("NCCL_MULTI_RANK_GPU_ENABLE").is_ok_and(|value| value.trim() == "1")
}

/// How the device of a rank of a job is connected, once the ranks have met.
pub(crate) enum InJob {
    /// By messages.
    Channel,
    /// By NCCL, whose communicators rank 0 has named.
    #[cfg(feature = "nccl")]
    Nccl(std::sync::Arc<crate::nccl::Library>),
}

/// What a rank of a job says of how its device is to be connected.
///
/// # Errors
/// What cannot be, which the other ranks are to be told.
pub(crate) fn in_job(
    device: &Device,
    _rank: usize,
    kind: Option<TransportKind>,
    hello: &mut Hello,
) -> Result<InJob> {
    const SAME: &str =
        "Set GEMM_CARRY alike for all ranks, or for none, and start the same build of the program";
    let takes_nccl = match kind {
        Some(TransportKind::Peers) => {
            return Err(impossible(
                "peers among processes".to_owned(),
                "the memory of a GPU is reached within one process: set GEMM_CARRY=nccl or host, or leave it out",
            ));
        }
        Some(TransportKind::Host) => false,
        Some(TransportKind::Nccl) if device.is_simulator() => {
            return Err(impossible(
                "a simulated device that NCCL connects".to_owned(),
                "it takes GPUs",
            ));
        }
        Some(TransportKind::Nccl) => true,
        None => !device.is_simulator() && cfg!(feature = "nccl"),
    };
    let name = if takes_nccl { TransportKind::Nccl } else { TransportKind::Host };
    hello.facts.push(Fact::same("what carries data", name.to_string(), SAME));
    if !takes_nccl {
        return Ok(InJob::Channel);
    }
    #[cfg(not(feature = "nccl"))]
    return Err(no_feature());
    #[cfg(feature = "nccl")]
    {
        const VERSIONS: &str = "All ranks load the same NCCL: set GEMM_NCCL_PATH to it";
        check_waits()?;
        let library = crate::nccl::Library::load()?;
        let version = library.version().to_string();
        hello.facts.push(Fact::same("the version of NCCL", version, VERSIONS));
        if let (Some((context, _)), false) = (device.cudarc(), shares_gpus()) {
            let uuid = context.uuid();
            let uuid = uuid.map_err(crate::error::failed("reading the GPU's identity"))?;
            let uuid: String =
                uuid.bytes.iter().map(|byte| format!("{:02x}", *byte as u8)).collect();
            hello.facts.push(Fact::distinct("GPU", uuid, GPUS));
        }
        if _rank == 0 {
            hello.payload = library.unique_id()?.to_vec();
        }
        Ok(InJob::Nccl(library))
    }
}

impl InJob {
    /// The end of a rank, with what rank 0 has given all.
    pub(crate) fn links(self, device: &Device, _payload: &[u8]) -> Result<Links> {
        match self {
            Self::Channel => Ok(Links::Channel { simulated: device.is_simulator() }),
            #[cfg(feature = "nccl")]
            Self::Nccl(library) => {
                let id = _payload.try_into();
                let id =
                    id.map_err(|_| Error::internal("rank 0 has named no communicator".to_owned()))?;
                let ends = super::nccl::Nccl::between(std::slice::from_ref(device), &library, id)?;
                let end = ends.into_iter().next();
                end.map(Links::Nccl).ok_or_else(|| Error::internal("a rank has no end".to_owned()))
            }
        }
    }
}
