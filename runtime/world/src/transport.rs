//! What brings blocks of matrices from one rank to another.
//!
//! Whatever it is, it is told the same: which exchanges begin, in one order on all ranks, and when something is needed of
//! them. Exchanges travel beside the work of the device where the transport can do that.

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

/// What a rank does in an exchange.
pub(crate) enum Transfer<B: Backend> {
    /// It sends a block of its own.
    Send {
        /// To whom.
        to: usize,
        /// Where the block is.
        from: Area<B>,
    },
    /// It gets a block.
    Receive {
        /// From whom.
        from: usize,
        /// Which part of the matrix it is.
        block: Block,
        /// Where it goes.
        to: Area<B>,
    },
    /// It copies a block of its own to another place.
    Copy {
        /// Where the block is.
        from: Area<B>,
        /// Where it goes.
        to: Area<B>,
    },
}

/// An exchange that begins.
pub(crate) struct ExchangeStart<B: Backend> {
    /// Its number.
    pub(crate) exchange: usize,
    /// Of which matrix.
    pub(crate) factor: Factor,
    /// What the rank does in it.
    pub(crate) transfers: Vec<Transfer<B>>,
    /// Whether it brings something to where products that have been launched may still read: it is not to begin before they
    /// are done.
    pub(crate) behind: bool,
}

/// A part of a matrix as a rank has it, from which others may be sent something.
pub(crate) struct OwnBlock<B: Backend> {
    /// Of which matrix.
    pub(crate) factor: Factor,
    /// Which part it is.
    pub(crate) block: Block,
    /// Where it lies.
    pub(crate) area: Area<B>,
}

/// Brings blocks from rank to rank, for one product or reduction.
pub(crate) trait Transport<B: Backend> {
    /// Begins; all that has been launched on the device so far comes before.
    fn start(&mut self, backend: &B, own: &[OwnBlock<B>]) -> Result<()>;

    /// Begins an exchange, or puts that off until it is waited for: what is launched before is then launched sooner.
    fn begin(&mut self, backend: &B, begun: ExchangeStart<B>) -> Result<()>;

    /// Begins what was put off.
    fn send_off(&mut self, _: &B) -> Result<()> {
        Ok(())
    }

    /// What is launched from now on finds what the exchange brings.
    fn wait(&mut self, backend: &B, exchange: usize) -> Result<()>;

    /// What is launched from now on may write what was sent, and what was brought here.
    fn end(&mut self, backend: &B) -> Result<()>;

    /// In place of [`end`](Self::end) where something has failed, and all ranks have been told: waits until nothing of this rank's
    /// memory is read or written any more by what was begun, as whoever has it may now give it back.
    fn give_up(&mut self, backend: &B);
}

/// What is done with a transport, whatever the back end is.
pub(crate) trait TransportWork {
    fn run<B: Areas>(self, on: On<'_, B>, transport: &mut dyn Transport<B>) -> Result<()>;
}

/// Does something with what carries elements of type `T` to and from a device. Where it fails all ranks are told, and nothing is
/// under way when this returns.
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
    // What panics here lets go of what is still read and written, unless that is over.
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
