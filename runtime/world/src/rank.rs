//! Ranks: devices that work together.

use super::ClusterModel;
use super::partials::PartialBuffers;
use crate::channel::{Channel, held};
use crate::collective::CollectiveContext;
use crate::recent::RecentCalls;
use crate::reduction_plan::CachedReduction;
use crate::selection::CachedGemm;
use crate::staging::StagingBuffers;
use crate::transport::Links;
use crate::{Error, Result};
use gemm_runtime::Device;
use gemm_runtime::error::Owner;
use gemm_runtime::internal::SplitBuffers;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// Rank of a [`World`](super::World): a device, with its number among all ranks.
///
/// All ranks must make the same collective calls in the same order. A call first compares its
/// arguments between ranks, and returns an error on every rank if they disagree. It borrows the
/// rank mutably, so no two calls overlap.
pub struct Rank {
    pub(crate) device: Device,
    pub(crate) channel: Arc<dyn Channel>,
    pub(crate) links: Links,
    pub(crate) timeout: Duration,
    pub(crate) machine: ClusterModel,
    pub(crate) memory: Option<u64>,
    pub(crate) staging: StagingBuffers,
    pub(crate) products: RecentCalls<CachedGemm>,
    pub(crate) folds: RecentCalls<CachedReduction>,
    /// Partials of an earlier reduction, for reuse.
    pub(crate) partials: Option<PartialBuffers>,
    /// Splits of A and B of an earlier GEMM, for reuse.
    pub(crate) splits: [Option<Arc<SplitBuffers>>; 2],
    /// Number of collective calls so far.
    pub(crate) calls: u64,
    /// Makes the rank `!Sync`: NCCL forbids two threads for one rank.
    pub(crate) not_sync: PhantomData<Cell<()>>,
}

/// Rank of this process before its program starts.
pub(crate) struct End {
    pub(crate) device: Device,
    pub(crate) channel: Arc<dyn Channel>,
    pub(crate) links: Links,
}

/// Collective calls: a kernel, a table of kernels or a reduction runs on all ranks of a
/// [`World`](crate::World).
pub trait OnRank {
    /// Call whose operands are not set yet.
    type Call<'a>
    where
        Self: 'a;

    /// Prepares a collective call. All ranks must make this call.
    fn on<'a>(&'a self, rank: &'a mut Rank) -> Self::Call<'a>;
}

impl Rank {
    /// Number of this rank, from 0.
    pub fn number(&self) -> usize {
        self.channel.rank()
    }

    /// Number of ranks in the world.
    pub fn ranks(&self) -> usize {
        self.channel.ranks()
    }

    /// Device that runs this rank's work.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Machine model for the choice of schedules.
    pub fn machine(&self) -> &ClusterModel {
        &self.machine
    }

    /// Waits until all ranks have called this method and the work of this rank's device is
    /// complete.
    ///
    /// # Errors
    /// [`WorldError::RankLost`](super::WorldError::RankLost) if another rank fails,
    /// [`WorldError::Mismatch`](super::WorldError::Mismatch) if another rank makes a different
    /// call, or the error of the device's work.
    pub fn barrier(&mut self) -> Result<()> {
        self.device.synchronize()?;
        let collective = self.collective("waiting for all ranks");
        collective.agree("which call comes next", "barrier")
    }

    /// Waits for all work of the device, then checks that no rank is lost.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.device.synchronize()?;
        Ok(held(&*self.channel, "waiting for its device")?)
    }

    /// Begins the next collective call. `doing` names it in errors.
    pub(crate) fn collective(&mut self, doing: impl Into<String>) -> CollectiveContext {
        self.calls += 1;
        let (channel, timeout) = (Arc::clone(&self.channel), self.timeout);
        CollectiveContext { channel, timeout, call: self.calls, doing: doing.into() }
    }

    /// Checks that an operand is on this rank's device.
    pub(crate) fn check_device(&self, argument: &str, has: &Device) -> Result<()> {
        if has.is_same(&self.device) {
            return Ok(());
        }
        let belongs =
            Owner::Device { name: has.name().to_owned(), is_simulator: has.is_simulator() };
        let (argument, device) = (argument.to_owned(), self.device.name().to_owned());
        Err(Error::Device(gemm_runtime::Error::WrongDevice { argument, device, belongs }))
    }
}

impl std::fmt::Debug for Rank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rank")
            .field("number", &self.number())
            .field("ranks", &self.ranks())
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}
