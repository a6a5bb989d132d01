//! Releases of CUDA whose compiler knows an instruction, next to the architectures of
//! [`arch`](super::arch).
//!
//! NVRTC and nvcc of a release have the same version of ptxas, which rejects unknown instructions.

/// Release of CUDA as (major, minor): (12, 8) is CUDA 12.8.
pub type Release = (u32, u32);

/// Oldest release with which kernels without the instructions below are compiled in tests.
pub const OLDEST: Release = (11, 7);

/// First release with TMA copies, mbarriers that count bytes, and warpgroup instructions.
pub const TENSOR_COPIES: Release = (12, 0);

/// First release that compiles for architectures with clusters of blocks.
pub const CLUSTERS: Release = (11, 8);

/// First release with asynchronous stores to shared memory of another block.
pub const ASYNCHRONOUS_STORES: Release = (12, 1);

/// First release with a relaxed arrival at the mbarrier of another block of the cluster.
pub const RELAXED_ARRIVALS: Release = (12, 8);
