//! How a kernel is run.

use crate::tensor_core::AccumulationRules;

/// How a kernel is run.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Options<'a> {
    /// The most instructions that the warps of a launch may execute together: instructions of the
    /// simulator, of which one stands for a statement, a test or a branch. A kernel that never ends
    /// becomes an error. Where blocks synchronise each order of the blocks counts, and
    /// where only threads of a block do, each of its turns.
    pub instructions: u64,
    /// Called when a block is done, with the number of blocks that are and that of all, from
    /// whichever thread has run it. Where blocks synchronise each order counts. What it launches
    /// itself must not share buffers with the launch that it watches.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// How matrix instructions sum, which no other statement depends on: the rules of an architecture.
    pub tensor_cores: AccumulationRules,
    /// Whether it is only counted what the kernel does: nobody looks for races of what threads access, and blocks that synchronise run in one order alone, threads that do in one turn.
    pub unchecked: bool,
    /// Whether it is also counted what the machine code does ([`Profile::compiled`](crate::Profile::compiled)).
    pub compiled: bool,
}

/// 2^36 instructions, some hours of one core, nobody is told, tensor cores are those of `sm_90`, and only the text is counted.
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
