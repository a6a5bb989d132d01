//! The memory of a buffer.

use crate::backend::Backend;
use crate::backend::gpu::Gpu;
use crate::backend::simulator::Simulator;

/// An allocation of either back end.
pub(crate) enum Memory {
    Gpu(<Gpu as Backend>::Allocation),
    Simulated(<Simulator as Backend>::Allocation),
}

/// A back end whose allocations buffers keep.
pub(crate) trait Keeps: Backend {
    fn keep(allocation: Self::Allocation) -> Memory;

    /// The allocation, if it is one of this kind of back end.
    fn kept(memory: &Memory) -> Option<&Self::Allocation>;
}

impl Keeps for Gpu {
    fn keep(allocation: Self::Allocation) -> Memory {
        Memory::Gpu(allocation)
    }

    fn kept(memory: &Memory) -> Option<&Self::Allocation> {
        match memory {
            Memory::Gpu(allocation) => Some(allocation),
            Memory::Simulated(_) => None,
        }
    }
}

impl Keeps for Simulator {
    fn keep(allocation: Self::Allocation) -> Memory {
        Memory::Simulated(allocation)
    }

    fn kept(memory: &Memory) -> Option<&Self::Allocation> {
        match memory {
            Memory::Simulated(allocation) => Some(allocation),
            Memory::Gpu(_) => None,
        }
    }
}
