//! Register limits of the warps of a block. Registers that `setmaxnreg` releases become available
//! to other warps.

use crate::mask::WARP;
use gemm_dsl::ir::RegisterLimit;
use gemm_dsl::target::arch::LARGEST;

/// Granularity of register limits, in registers per thread.
const UNIT: u32 = 8;

/// Registers per thread of each warp, for all blocks of a cluster.
#[derive(Debug, Default)]
pub(crate) struct RegisterLimits {
    /// Initial number of registers per thread: an even share of the register file.
    even: u32,
    /// Current number of registers per thread of each warp, and the last statement that requested
    /// more.
    of_warps: Vec<(u32, Option<u32>)>,
}

impl RegisterLimits {
    /// Starts blocks of `of_block` warps each, if `blocks_per_sm` blocks are resident per SM.
    pub(crate) fn begin(&mut self, warps: usize, of_block: u32, blocks_per_sm: u32) {
        let resident = u64::from(of_block) * u64::from(blocks_per_sm);
        self.even = LARGEST.registers_per_thread(resident) / UNIT * UNIT;
        self.of_warps.clear();
        self.of_warps.resize(warps, (self.even, None));
    }

    /// Sets the registers per thread of a warp.
    ///
    /// # Errors
    /// Returns the current number if an increase requests fewer registers, or a decrease more.
    pub(crate) fn set(&mut self, warp: u32, stmt: u32, limit: RegisterLimit) -> Result<(), u32> {
        let RegisterLimit { registers, more } = limit;
        let (now, asked) = &mut self.of_warps[warp as usize];
        if (more && registers < *now) || (!more && registers > *now) {
            return Err(*now);
        }
        *now = registers;
        *asked = more.then_some(stmt).or(*asked);
        Ok(())
    }

    /// Checks if the warps would in the end have more registers than their block. If so, returns a
    /// warp that has requested more registers, and its statement. The pair is the number of
    /// registers of all warps, and the number that was allocated to the block.
    pub(crate) fn register_deadlock(
        &self,
        warps: std::ops::Range<usize>,
    ) -> Option<(usize, u32, [u32; 2])> {
        let of_warps = || warps.clone().map(|warp| (warp, self.of_warps[warp]));
        let all: u32 = of_warps().map(|(_, (registers, _))| registers).sum();
        let given = self.even * warps.len() as u32;
        let (warp, stmt) = of_warps().find_map(|(warp, (_, asked))| Some((warp, asked?)))?;
        (all > given).then_some((warp, stmt, [all, given].map(|of_warps| of_warps * WARP as u32)))
    }
}
