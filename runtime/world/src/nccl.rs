//! Transfers of bytes between GPUs by NCCL. The library is loaded at run time, so no build needs
//! it.
//!
//! ```text
//! Library::load ─ unique_id on one rank, to all by other means
//!      └─ Communicator::begin on every rank ─ settle ─┬─ exchange ─ settle ─ … ─ finish
//!                                                     └─ abort, abort_all, or dropped
//! ```
//!
//! NCCL only moves bytes here. This module does not declare NCCL's reductions, because their order
//! of summation, and so their bits, depend on the number of ranks and on the topology.
//!
//! NCCL has the following requirements on its caller. They are from its documentation and, where a
//! version is given, from its source (`src/init.cc`, `src/group.cc`, `src/transport/p2p.cc`):
//!
//! * **Contexts.** [`Communicator::begin`] and [`Library::allocate`] use the device that is current
//!   on the thread, with its primary context. Streams and addresses must belong to that device.
//! * **Streams.** The work of an exchange is on its stream once [`Communicator::settle`] returns,
//!   not when [`Communicator::exchange`] returns. Until [`Communicator::settle`] returns, no work
//!   may be enqueued and no event recorded on this stream. Later work of the stream waits for the
//!   exchange as for a kernel.
//! * **Threads.** One thread at a time uses a communicator. Before 2.27 the state of a group
//!   belongs to the thread that began it. This thread must not end, nor begin another activity,
//!   before the group is settled or aborted. This module rejects another activity.
//! * **Order.** All ranks issue the same exchanges in the same order, and every part has a
//!   counterpart. Two communicators of one device are used in the same order on all ranks, on one
//!   stream or with events between their streams.
//! * **Memory.** Within one process, NCCL 2.22 and 2.23 access the buffers of other ranks'
//!   exchanges directly ([`Library::reaches_into_buffers`]). Such buffers must be accessible to all
//!   devices. Buffers of [`Library::allocate`] are accessible to all devices, but buffers of memory
//!   pools are not. Since 2.24 NCCL accesses only registered buffers directly, and this module
//!   registers none.
//! * **After an abort** NCCL's kernels end by themselves, some time later. Before memory of the
//!   exchange is freed or read, the streams of all ranks of the process must be synchronised.

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

/// Result of this module's functions.
pub type NcclResult<T, E = WorldError> = Result<T, E>;

/// Returns true if the environment disables NVLink multicast (`NCCL_NVLS_ENABLE=0`). GPU tests
/// start only then, because multicast must be off on shared machines. Child processes must inherit
/// the variable.
pub fn multicast_is_off() -> bool {
    std::env::var("NCCL_NVLS_ENABLE").is_ok_and(|value| value.trim() == "0")
}
