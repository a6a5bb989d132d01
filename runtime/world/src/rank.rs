//! One of those that work together.

use super::ClusterModel;
use super::partials::PartialBuffers;
use crate::channel::{Channel, held};
use crate::collective::CollectiveContext;
use crate::recent::RecentCalls;
use crate::reduction_plan::CachedReduction;
use crate::selection::CachedProduct;
use crate::staging::StagingBuffers;
use crate::transport::Links;
use crate::{Error, Result};
use gemm_runtime::Device;
use gemm_runtime::Owner;
use gemm_runtime::internal::SplitBuffers;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// One of the ranks of a [`World`](super::World): a device, and its place among the others.
///
/// What several ranks do together they all have to call, in the same order; a call compares what it was given before it
/// moves anything, and is an error on every rank where they are at odds. It takes the rank exclusively, so that no two of
/// them are under way at once.
pub struct Rank {
    pub(crate) device: Device,
    pub(crate) channel: Arc<dyn Channel>,
    pub(crate) links: Links,
    pub(crate) timeout: Duration,
    pub(crate) machine: ClusterModel,
    pub(crate) memory: Option<u64>,
    pub(crate) staging: StagingBuffers,
    pub(crate) products: RecentCalls<CachedProduct>,
    pub(crate) folds: RecentCalls<CachedReduction>,
    /// Partials of the reduction before, for the memory that they take.
    pub(crate) partials: Option<PartialBuffers>,
    /// Of the product before, for the memory that they take: those of A and of B.
    pub(crate) splits: [Option<Arc<SplitBuffers>>; 2],
    /// How many calls of all ranks there have been.
    pub(crate) calls: u64,
    /// NCCL lets no two threads speak for one rank.
    pub(crate) not_sync: PhantomData<Cell<()>>,
}

/// A rank of this process.
pub(crate) struct End {
    pub(crate) device: Device,
    pub(crate) channel: Arc<dyn Channel>,
    pub(crate) links: Links,
}

/// Calls on all ranks: a kernel, a table of kernels or a reduction runs on a [`World`](crate::World).
pub trait OnRank {
    /// The call, which has not been given operands yet.
    type Call<'a>
    where
        Self: 'a;

    /// A call on all ranks. All ranks make it.
    fn on<'a>(&'a self, rank: &'a mut Rank) -> Self::Call<'a>;
}

impl Rank {
    /// Its number, from 0.
    pub fn number(&self) -> usize {
        self.channel.rank()
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.channel.ranks()
    }

    /// The device that its work runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What schedules are chosen by.
    pub fn machine(&self) -> &ClusterModel {
        &self.machine
    }

    /// Waits until all ranks have come to the same call, and for the work of this rank's device.
    ///
    /// # Errors
    /// [`WorldError::RankLost`](super::WorldError::RankLost); what the work of the device failed with.
    pub fn barrier(&mut self) -> Result<()> {
        self.device.synchronize()?;
        let collective = self.collective("waiting for all ranks");
        collective.agree("which call comes next", "barrier")
    }

    /// Waits for all work of the device, and says whether the world has held until then.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.device.synchronize()?;
        Ok(held(&*self.channel, "waiting for its device")?)
    }

    /// What the next call of all ranks says to the others, which each rank is `doing`.
    pub(crate) fn collective(&mut self, doing: impl Into<String>) -> CollectiveContext {
        self.calls += 1;
        let (channel, timeout) = (Arc::clone(&self.channel), self.timeout);
        CollectiveContext { channel, timeout, call: self.calls, doing: doing.into() }
    }

    /// Checks that an operand lies on this rank's device.
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
