//! Barriers and fences. CUDA C++ has functions for the common ones. For the others, the source
//! defines device functions with one PTX instruction each.

use super::cluster;
use crate::ir::{MemoryOrder, Scope};

/// Statement for a barrier of all threads of a scope.
pub(in crate::cuda) fn barrier(scope: Scope) -> &'static str {
    match scope {
        Scope::Warp => "__syncwarp();",
        Scope::Block => "__syncthreads();",
        Scope::Cluster => cluster::BARRIER,
        Scope::Device => unreachable!("verified: no barrier of all blocks"),
    }
}

/// Name of the function for a named barrier.
pub(in crate::cuda) fn named_barrier(wait: bool) -> &'static str {
    if wait { "named_barrier" } else { "named_arrive" }
}

pub(in crate::cuda) fn named_barrier_definition(wait: bool) -> &'static str {
    if wait { NAMED_BARRIER } else { NAMED_ARRIVE }
}

const NAMED_BARRIER: &str = "\
// Waits at a named barrier until `threads` threads of the block, in whole warps, have arrived.
__device__ __forceinline__ void named_barrier(int id, int threads)
{
    asm volatile(\"bar.sync %0, %1;\" :: \"r\"(id), \"r\"(threads) : \"memory\");
}
";

const NAMED_ARRIVE: &str = "\
// Arrives at a named barrier of the block, in whole warps, without waiting.
__device__ __forceinline__ void named_arrive(int id, int threads)
{
    asm volatile(\"bar.arrive %0, %1;\" :: \"r\"(id), \"r\"(threads) : \"memory\");
}
";

pub(in crate::cuda) fn fence(order: MemoryOrder, scope: Scope) -> &'static str {
    match (order == MemoryOrder::SeqCst, scope == Scope::Block) {
        (true, true) => "__threadfence_block",
        (true, false) => "__threadfence",
        (false, true) => "fence_acq_rel_block",
        (false, false) => "fence_acq_rel",
    }
}

/// Definition of the function for a fence; empty if it is built into CUDA C++.
pub(in crate::cuda) fn fence_definition(order: MemoryOrder, scope: Scope) -> &'static str {
    match (order == MemoryOrder::SeqCst, scope == Scope::Block) {
        (true, _) => "",
        (false, true) => FENCE_BLOCK,
        (false, false) => FENCE_DEVICE,
    }
}

const FENCE_DEVICE: &str = "\
// Acquire-release fence at device scope: orders this thread's accesses around it.
__device__ __forceinline__ void fence_acq_rel()
{
    asm volatile(\"fence.acq_rel.gpu;\" ::: \"memory\");
}
";

const FENCE_BLOCK: &str = "\
// Acquire-release fence at block scope: orders this thread's accesses around it.
__device__ __forceinline__ void fence_acq_rel_block()
{
    asm volatile(\"fence.acq_rel.cta;\" ::: \"memory\");
}
";
