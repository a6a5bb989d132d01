//! Plans of kernels whose threads stage tiles in shared memory.

pub(crate) mod tiled;
