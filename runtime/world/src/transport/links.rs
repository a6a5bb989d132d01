//! Links between the devices of a world.

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

/// Transport of data between ranks. The choice of transport does not affect results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransportKind {
    /// GPU copy engines: each GPU copies blocks from other GPUs' memory. It requires one process
    /// whose GPUs can access each other.
    Peers,
    /// NCCL 2.22 or later, between any processes and hosts. It requires the feature `nccl` and one
    /// GPU per rank.
    Nccl,
    /// Host memory within a process, and the ranks' TCP connections between processes. Slow, but
    /// always available. Simulated devices use only this transport.
    Host,
}

impl TransportKind {
    /// Names in `GEMM_CARRY` and in messages.
    const NAMES: [(Self, &'static str); 3] =
        [(Self::Peers, "peers"), (Self::Nccl, "nccl"), (Self::Host, "host")];

    /// Reads the variable `GEMM_CARRY`, if it is set.
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

/// Link from a rank's device to the devices of other ranks.
pub(crate) enum Links {
    /// Messages, between GPUs or simulators.
    Channel {
        /// True for simulators. Their default machine model has a faster link than this one.
        simulated: bool,
    },
    /// Copies from the memory of other GPUs.
    Peers(Peers),
    #[cfg(feature = "nccl")]
    Nccl(super::nccl::Nccl),
}

impl Links {
    /// Links devices of one process: by the requested transport, or by the fastest available one.
    pub(crate) fn between(devices: &[Device], kind: Option<TransportKind>) -> Result<Vec<Self>> {
        let by_wire =
            || devices.iter().map(|of| Self::Channel { simulated: of.is_simulator() }).collect();
        let are_gpus = devices.iter().all(|device| !device.is_simulator());
        if !are_gpus {
            return match kind {
                None | Some(TransportKind::Host) => Ok(by_wire()),
                Some(other) => Err(impossible(
                    format!("`{other}` for simulated devices"),
                    "their data goes through the host",
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
                    "each GPU has to reach the memory of all others, but the driver reports that \
                     some do not",
                )),
                None if cfg!(feature = "nccl") && twice(devices).is_none() => nccl_between(devices),
                None => Ok(by_wire()),
            },
        }
    }

    /// Returns the default machine model for this link.
    pub(crate) fn machine(&self) -> ClusterModel {
        match self {
            Self::Peers(_) => ClusterModel::h200_copy_engines(),
            Self::Channel { simulated: false } => ClusterModel::h200_host(),
            _ => ClusterModel::h200_nccl(),
        }
    }

    /// Returns true if a rank may allocate memory and load kernels during exchanges, because no
    /// exchange occupies its device while it waits for another rank.
    pub(crate) fn loads_beside(&self) -> bool {
        match self {
            Self::Channel { .. } | Self::Peers(_) => true,
            #[cfg(feature = "nccl")]
            Self::Nccl(_) => false,
        }
    }

    /// Waits until all ranks have loaded their kernels, if loading might block on an exchange of
    /// another rank.
    pub(crate) fn all_ready(&self, _talk: &CollectiveContext) -> Result<()> {
        match self {
            Self::Channel { .. } | Self::Peers(_) => Ok(()),
            #[cfg(feature = "nccl")]
            Self::Nccl(_) => _talk.gather_all(Vec::new()).map(|_| ()),
        }
    }

    /// Connects this rank's device with the others, as a collective call.
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

    /// Aborts the links of all ranks of this process. After the call, no transfer is under way.
    pub(crate) fn give_up(&self) {
        match self {
            Self::Channel { .. } | Self::Peers(_) => {}
            #[cfg(feature = "nccl")]
            Self::Nccl(nccl) => nccl.all().abort(),
        }
    }

    /// Closes the link, as a collective call, once the device's work is complete.
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

/// Returns the first rank whose GPU a lower rank also uses, and this lower rank.
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
    impossible("NCCL".to_owned(), "gemm-world was built without its feature `nccl`")
}

/// Rejects blocking communicators: their waits ignore deadlines.
#[cfg(feature = "nccl")]
fn check_waits() -> Result<()> {
    const VARIABLE: &str = "NCCL_COMM_BLOCKING";
    match std::env::var(VARIABLE) {
        Ok(value) if value.trim() == "1" => Err(Error::World(WorldError::Environment {
            variable: VARIABLE,
            value,
            need: "NCCL would wait for lost ranks for ever; unset the variable, or set it to 0"
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
            format!("several ranks of one process with NCCL {version}"),
            "NCCL before 2.24 accesses memory that other GPUs cannot reach: use a later version, \
             set NCCL_P2P_DIRECT_DISABLE=1, or start a process for each GPU",
        ));
    }
    let ends = super::nccl::Nccl::between(devices, &library, library.unique_id()?)?;
    Ok(ends.into_iter().map(Links::Nccl).collect())
}

/// Remedy for a GPU shared by ranks.
#[cfg(feature = "nccl")]
const GPUS: &str =
    "NCCL takes each GPU as one rank: start as many ranks as there are GPUs, each with its own";

/// Returns true if NCCL may use one GPU for two ranks, an option since 2.30.
#[cfg(feature = "nccl")]
fn shares_gpus() -> bool {
    std::env::var("NCCL_MULTI_RANK_GPU_ENABLE").is_ok_and(|value| value.trim() == "1")
}

/// Link of a rank of a job, before the ranks have met.
pub(crate) enum InJob {
    Channel,
    /// NCCL, with the communicator id created by rank 0.
    #[cfg(feature = "nccl")]
    Nccl(std::sync::Arc<crate::nccl::Library>),
}

/// Adds the link of this rank's device to its hello message.
///
/// # Errors
/// Returns an error if the device cannot use the requested transport. The caller must report this
/// error to the other ranks.
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
                "the memory of a GPU can be reached only within one process: set GEMM_CARRY=nccl \
                 or host, or leave it out",
            ));
        }
        Some(TransportKind::Host) => false,
        Some(TransportKind::Nccl) if device.is_simulator() => {
            return Err(impossible(
                "NCCL for a simulated device".to_owned(),
                "NCCL connects only GPUs",
            ));
        }
        Some(TransportKind::Nccl) => true,
        None => !device.is_simulator() && cfg!(feature = "nccl"),
    };
    let name = if takes_nccl { TransportKind::Nccl } else { TransportKind::Host };
    hello.facts.push(Fact::same("the transport of data", name.to_string(), SAME));
    if !takes_nccl {
        return Ok(InJob::Channel);
    }
    #[cfg(not(feature = "nccl"))]
    return Err(no_feature());
    #[cfg(feature = "nccl")]
    {
        const VERSIONS: &str = "All ranks must load the same NCCL: set GEMM_NCCL_PATH to it";
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
    /// Creates the rank's link, given the payload that rank 0 has sent to all.
    pub(crate) fn links(self, device: &Device, _payload: &[u8]) -> Result<Links> {
        match self {
            Self::Channel => Ok(Links::Channel { simulated: device.is_simulator() }),
            #[cfg(feature = "nccl")]
            Self::Nccl(library) => {
                let id = _payload.try_into();
                let id = id.map_err(|_| {
                    Error::internal("rank 0 has sent no communicator id".to_owned())
                })?;
                let ends = super::nccl::Nccl::between(std::slice::from_ref(device), &library, id)?;
                let end = ends.into_iter().next();
                end.map(Links::Nccl)
                    .ok_or_else(|| Error::internal("a rank has no NCCL link".to_owned()))
            }
        }
    }
}
