//! The memory of a buffer, and where the arrays of a list lie.

use crate::backend::gpu::Gpu;
use crate::backend::simulator::Simulator;
use crate::backend::{ArrayList, Backend};

/// An allocation of either back end.
pub enum Memory {
    Gpu(<Gpu as Backend>::Allocation),
    Simulated(<Simulator as Backend>::Allocation),
}

/// The arrays of a list on either back end.
pub enum Lists {
    Gpu(ArrayList<Gpu>),
    Simulated(ArrayList<Simulator>),
}

/// A back end whose allocations buffers keep, and whose lists those of matrices.
pub trait Keeps: Backend {
    /// The allocation as the memory of a buffer.
    fn keep(allocation: Self::Allocation) -> Memory;

    /// The allocation, if it is one of this kind of back end.
    fn kept(memory: &Memory) -> Option<&Self::Allocation>;

    /// The list as a list of either back end.
    fn keep_list(list: ArrayList<Self>) -> Lists;

    /// The list, if it is one of this kind of back end.
    fn kept_list(lists: &Lists) -> Option<&ArrayList<Self>>;
}

impl Keeps for Gpu {
    /// The allocation as the memory of a buffer.
    fn keep(allocation: Self::Allocation) -> Memory {
        Memory::Gpu(allocation)
    }

    fn kept(memory: &Memory) -> Option<&Self::Allocation> {
        match memory {
            Memory::Gpu(allocation) => Some(allocation),
            Memory::Simulated(_) => None,
        }
    }

    fn keep_list(list: ArrayList<Self>) -> Lists {
        Lists::Gpu(list)
    }

    fn kept_list(lists: &Lists) -> Option<&ArrayList<Self>> {
        match lists {
            Lists::Gpu(list) => Some(list),
            Lists::Simulated(_) => None,
        }
    }
}

impl Keeps for Simulator {
    /// The allocation as the memory of a buffer.
    fn keep(allocation: Self::Allocation) -> Memory {
        Memory::Simulated(allocation)
    }

    fn kept(memory: &Memory) -> Option<&Self::Allocation> {
        match memory {
            Memory::Simulated(allocation) => Some(allocation),
            Memory::Gpu(_) => None,
        }
    }

    fn keep_list(list: ArrayList<Self>) -> Lists {
        Lists::Simulated(list)
    }

    fn kept_list(lists: &Lists) -> Option<&ArrayList<Self>> {
        match lists {
            Lists::Simulated(list) => Some(list),
            Lists::Gpu(_) => None,
        }
    }
}
