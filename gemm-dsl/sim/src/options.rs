//! Settings of a simulated launch.

use crate::tensor_core::AccumulationRules;

#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Options<'a> {
    /// Limit of simulator instructions for all warps of the launch together; a statement, a test or
    /// a branch is one instruction. A kernel that never ends becomes an error. Each block order
    /// counts if blocks synchronise, and each interleaving if only threads of a block do.
    pub instructions: u64,
    /// Callback after each block, with the numbers of finished blocks and of all blocks, called on
    /// the thread that ran the block. Each block order counts if blocks synchronise. A launch made
    /// in the callback must not share buffers with the observed launch.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// Accumulation rules of an architecture's tensor cores; only matrix instructions depend on
    /// them.
    pub tensor_cores: AccumulationRules,
    /// Skips race detection, and runs only one block order and one thread interleaving. For
    /// launches that only need counters.
    pub unchecked: bool,
    /// Also counts predicted machine instructions
    /// ([`Profile::compiled`](crate::Profile::compiled)).
    pub compiled: bool,
}

/// 2^36 instructions (hours on one core), no callback, `sm_90` tensor cores, all checks, and no
/// machine-code counters.
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
