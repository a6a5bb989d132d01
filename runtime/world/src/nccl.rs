//! NCCL, which carries bytes between GPUs. It is looked for at run time, and no build needs it.
//!
//! ```text
//! Library::load ─ unique_id on one rank, to all by other strategies
//!      └─ Communicator::begin on every rank ─ settle ─┬─ exchange ─ settle ─ … ─ finish
//!                                                     └─ abort, abort_all, or dropped
//! ```
//!
//! Only bytes are moved: no sum of NCCL's is bound, since its order, and so its bits, depend on how many ranks there are
//! and on how they are connected.
//!
//! What NCCL asks of who calls it, by its own documentation and, where a version is given, by its source
//! (`src/init.cc`, `src/group.cc`, `src/transport/p2p.cc`):
//!
//! * **Contexts.** [`Communicator::begin`] and [`Library::allocate`] take the device that is current on the thread, and NCCL
//!   uses its primary context. Streams and addresses have to be of that device.
//! * **Streams.** What an exchange puts on a stream is there when [`Communicator::settle`] says so, not when
//!   [`Communicator::exchange`] returns: until then nothing may be put on that stream, and no event recorded on it. What is
//!   put there after that waits for the exchange as for a kernel.
//! * **Threads.** One thread at a time uses a communicator. Before 2.27 what a group is at lies with the thread that has begun
//!   it, so that thread must neither end nor begin anything else before it is settled or aborted. The second is refused here.
//! * **Order.** All ranks issue the same exchanges in the same order, and every part has its other half. Two communicators
//!   of one device are used in one order on all ranks, on one stream or with events between their streams.
//! * **Memory.** In one process NCCL of 2.22 and 2.23 reads and writes the buffers of other ranks' exchanges directly
//!   ([`Library::reaches_into_buffers`]), so these must be accessible to all devices, as those of [`Library::allocate`] are
//!   and those of memory pools are not. From 2.24 on it does so with buffers alone that are registered, and none is here.
//! * **After an abort** NCCL's kernels end by themselves, at some time: streams are to be synchronised, those of the other
//!   ranks of the process too, before memory of the exchange is freed or read.

mod abort;
mod communicator;
mod config;
mod doing;
mod exchange;
mod functions;
mod library;
mod memory;

pub use communicator::{Communicator, KeepGoing, abort_all};
pub use config::OLDEST;
pub use exchange::NcclTransfer;
pub use library::Library;
pub use memory::Memory;

use crate::WorldError;

/// What calls here return.
pub type NcclResult<T, E = WorldError> = Result<T, E>;

/// Whether the environment switches NVLink multicast off (`NCCL_NVLS_ENABLE=0`). Machines that are shared need that, so
/// tests on GPUs do not start where this is false. Processes that are started have to inherit the variable.
pub fn multicast_is_off() -> bool {
    std::env::var("NCCL_NVLS_ENABLE").is_ok_and(|value| value.trim() == "0")
}
