//! Scheduling of blocks and of their warps, and the interleavings in which they run.

pub(crate) mod block;
pub(crate) mod block_order;
pub(crate) mod grid;
pub(crate) mod isolated;
pub(crate) mod launch_lock;
pub(crate) mod snapshot;
