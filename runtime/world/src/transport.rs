//! What brings blocks of matrices from one rank to another.
//!
//! Whatever it is, it is told the same: which exchanges begin, in one order on all ranks, and when something is needed of
//! them. Exchanges travel beside the work of the device where the carrier can do that.

mod links;
mod messages;
#[cfg(feature = "nccl")]
mod nccl;
mod peers;

pub use links::Carry;
pub(crate) use links::{Links, in_job};
use messages::ByWire;
#[cfg(feature = "nccl")]
pub(crate) use nccl::Communicators;
#[cfg(feature = "nccl")]
use nccl::Moved;
use peers::Fetching;

use super::error::panicked;
use super::rank::Talk;
use super::{Block, Side};
use crate::Result;
use gemm_runtime::Device;
use gemm_runtime::internal::Keeps;
use gemm_runtime::internal::{Area, Areas, Backend};
use gemm_runtime::internal::{Either, On};
use gemm_sim::Element;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What a rank does in an exchange.
pub(crate) enum Leg<B: Backend> {
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
pub(crate) struct Begun<B: Backend> {
    /// Its number.
    pub(crate) exchange: usize,
    /// Of which matrix.
    pub(crate) side: Side,
    /// What the rank does in it.
    pub(crate) legs: Vec<Leg<B>>,
    /// Whether it brings something to where products that have been launched may still read: it is not to begin before they
    /// are done.
    pub(crate) behind: bool,
}

/// A part of a matrix as a rank has it, from which others may be sent something.
pub(crate) struct Own<B: Backend> {
    /// Of which matrix.
    pub(crate) side: Side,
    /// Which part it is.
    pub(crate) block: Block,
    /// Where it lies.
    pub(crate) area: Area<B>,
}

/// Brings blocks from rank to rank, for one product or reduction.
pub(crate) trait Carrier<B: Backend> {
    /// Begins; all that has been launched on the device so far comes before.
    fn start(&mut self, backend: &B, own: &[Own<B>]) -> Result<()>;

    /// Begins an exchange, or puts that off until it is waited for: what is launched before is then launched sooner.
    fn begin(&mut self, backend: &B, begun: Begun<B>) -> Result<()>;

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

/// What is done with a carrier, whatever the back end is.
pub(crate) trait Work {
    fn run<B: Keeps + Areas>(self, on: On<'_, B>, carrier: &mut dyn Carrier<B>) -> Result<()>;
}

/// Does something with what carries elements of type `T` to and from a device. Where it fails all ranks are told, and nothing is
/// under way when this returns.
pub(crate) fn carry<T: Element>(
    device: &Device,
    links: &Links,
    talk: &Talk,
    work: impl Work,
) -> Result<()> {
    match (device.backend(), links) {
        (Either::Gpu(backend), Links::Peers(peers)) => {
            finished(On { device, backend }, Fetching::new(peers, talk), talk, work)
        }
        #[cfg(feature = "nccl")]
        (Either::Gpu(backend), Links::Nccl(nccl)) => {
            finished(On { device, backend }, Moved::new(nccl, talk), talk, work)
        }
        (Either::Gpu(backend), Links::Wire { .. }) => {
            finished(On { device, backend }, ByWire::<T, _>::new(talk), talk, work)
        }
        (Either::Simulator(backend), _) => {
            finished(On { device, backend }, ByWire::<T, _>::new(talk), talk, work)
        }
    }
}

fn finished<B: Keeps + Areas>(
    on: On<'_, B>,
    mut carrier: impl Carrier<B>,
    talk: &Talk,
    work: impl Work,
) -> Result<()> {
    // What panics here lets go of what is still read and written, unless that is over.
    let outcome = catch_unwind(AssertUnwindSafe(|| work.run(on, &mut carrier)));
    match &outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => talk.abort(error),
        Err(panic) => talk.abort(&panicked(talk.number(), &**panic)),
    }
    if !matches!(outcome, Ok(Ok(()))) {
        carrier.give_up(on.backend);
    }
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}
