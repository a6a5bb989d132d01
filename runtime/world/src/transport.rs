//! Transports, which move blocks of matrices between ranks.
//!
//! All transports have the same interface. Exchanges begin in the same order on all ranks, and a
//! rank waits for an exchange before it uses the data. If possible, a transport overlaps exchanges
//! with the device's work.

mod links;
mod messages;
#[cfg(feature = "nccl")]
mod nccl;
mod peers;

pub use links::TransportKind;
pub(crate) use links::{Links, in_job};
use messages::MessageTransport;
#[cfg(feature = "nccl")]
pub(crate) use nccl::Communicators;
#[cfg(feature = "nccl")]
use nccl::NcclTransport;
use peers::PeerTransport;

use super::collective::CollectiveContext;
use super::error::panicked;
use super::{Block, Factor};
use crate::Result;
use gemm_dsl::target::element::Element;
use gemm_runtime::Device;
use gemm_runtime::internal::{Area, Areas, Backend};
use gemm_runtime::internal::{DeviceBackend, On};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// One rank's role in an exchange.
pub(crate) enum Transfer<B: Backend> {
    /// Sends a block of this rank.
    Send {
        to: usize,
        from: Area<B>,
    },
    Receive {
        from: usize,
        block: Block,
        to: Area<B>,
    },
    /// Copies a block within this rank.
    Copy {
        from: Area<B>,
        to: Area<B>,
    },
}

pub(crate) struct ExchangeStart<B: Backend> {
    /// Index of the exchange in the schedule.
    pub(crate) exchange: usize,
    pub(crate) factor: Factor,
    pub(crate) transfers: Vec<Transfer<B>>,
    /// True if the exchange overwrites memory that launched kernels may still read, so that it must
    /// wait for these kernels.
    pub(crate) behind: bool,
}

/// Shard of a matrix, as a source of transfers.
pub(crate) struct OwnBlock<B: Backend> {
    pub(crate) factor: Factor,
    pub(crate) block: Block,
    pub(crate) area: Area<B>,
}

/// Transport of one GEMM or reduction.
pub(crate) trait Transport<B: Backend> {
    /// Starts the transport. Exchanges are ordered after all earlier work of the device.
    fn start(&mut self, backend: &B, own: &[OwnBlock<B>]) -> Result<()>;

    /// Begins an exchange, or defers it until [`wait`](Self::wait). A deferral lets kernels that
    /// are launched before the wait start sooner.
    fn begin(&mut self, backend: &B, begun: ExchangeStart<B>) -> Result<()>;

    fn send_off(&mut self, _: &B) -> Result<()> {
        Ok(())
    }

    /// Orders all later launches after the arrival of an exchange's data.
    fn wait(&mut self, backend: &B, exchange: usize) -> Result<()>;

    /// Orders all later launches after the last access of any rank to this rank's sent and received
    /// memory.
    fn end(&mut self, backend: &B) -> Result<()>;

    /// Replaces [`end`](Self::end) after a failure that was reported to all ranks. Waits until no
    /// rank accesses this rank's memory any more, so that the owner of the memory may free it.
    fn give_up(&mut self, backend: &B);
}

/// Work that uses a transport, on any back end.
pub(crate) trait TransportWork {
    fn run<B: Areas>(self, on: On<'_, B>, transport: &mut dyn Transport<B>) -> Result<()>;
}

/// Runs work with the transport for elements of type `T` on a device. If the work fails, all ranks
/// are notified. When this function returns, no transfer is under way.
pub(crate) fn with_transport<T: Element>(
    device: &Device,
    links: &Links,
    collective: &CollectiveContext,
    work: impl TransportWork,
) -> Result<()> {
    match (device.backend(), links) {
        (DeviceBackend::Gpu(backend), Links::Peers(peers)) => finished(
            On { device, backend },
            PeerTransport::new(peers, collective),
            collective,
            work,
        ),
        #[cfg(feature = "nccl")]
        (DeviceBackend::Gpu(backend), Links::Nccl(nccl)) => {
            finished(On { device, backend }, NcclTransport::new(nccl, collective), collective, work)
        }
        (DeviceBackend::Gpu(backend), Links::Channel { .. }) => finished(
            On { device, backend },
            MessageTransport::<T, _>::new(collective),
            collective,
            work,
        ),
        (DeviceBackend::Simulator(backend), _) => finished(
            On { device, backend },
            MessageTransport::<T, _>::new(collective),
            collective,
            work,
        ),
    }
}

fn finished<B: Areas>(
    on: On<'_, B>,
    mut transport: impl Transport<B>,
    collective: &CollectiveContext,
    work: impl TransportWork,
) -> Result<()> {
    // Catches a panic, since memory must not be freed while transfers still access it.
    let outcome = catch_unwind(AssertUnwindSafe(|| work.run(on, &mut transport)));
    match &outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => collective.abort(error),
        Err(panic) => collective.abort(&panicked(collective.number(), &**panic)),
    }
    if !matches!(outcome, Ok(Ok(()))) {
        transport.give_up(on.backend);
    }
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}
