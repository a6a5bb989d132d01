//! Settings of a simulated launch.

use crate::tensor_core::AccumulationRules;

#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Options<'a> {
    /// Maximum number of simulator instructions of all warps of the launch together. A statement, a
    /// test and a branch each count as one instruction. A kernel that exceeds the limit returns an
    /// error. If blocks synchronise, the instructions of all block orders count. If only threads of
    /// a block synchronise, the instructions of all interleavings count.
    pub instructions: u64,
    /// Callback after each block, on the thread that ran it. Its arguments are the number of
    /// finished blocks and the number of all blocks. If blocks synchronise, the blocks of every
    /// block order count. A launch in the callback must not share buffers with the observed launch.
    /// It does not wait for launches of other threads, but returns [`crate::SimError::InUse`].
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// Accumulation rules of an architecture's tensor cores. Only matrix instructions depend on
    /// them.
    pub tensor_cores: AccumulationRules,
    /// Skips race detection, and runs only one block order and one thread interleaving. Use it for
    /// launches that need only counters.
    pub unchecked: bool,
    /// Also counts predicted machine instructions
    /// ([`Profile::compiled`](crate::Profile::compiled)).
    pub compiled: bool,
}

/// The default is 2^36 instructions (hours on one core), no callback, tensor cores of `sm_90`, all
/// checks, and no machine-code counters.
impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            instructions: 1 << 36,
            progress: None,
            tensor_cores: AccumulationRules::SM_90,
            unchecked: false,
            compiled: false,
        }
    }
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("instructions", &self.instructions).finish_non_exhaustive()
    }
}
