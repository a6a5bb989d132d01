//! How many registers the warps of a block have: what `setmaxnreg` gives back, others may take.

use crate::mask::WARP;
use gemm_dsl::ir::RegisterLimit;
use gemm_dsl::target::arch::LARGEST;

/// Registers are given back and taken in such numbers.
const UNIT: u32 = 8;

/// The registers of each warp's threads, of all blocks of a cluster.
#[derive(Debug, Default)]
pub(crate) struct RegisterLimits {
    /// What each has when the block starts: an even share of what there is.
    even: u32,
    /// What each has now, and the statement by which it has asked for more than before.
    of_warps: Vec<(u32, Option<u32>)>,
}

impl RegisterLimits {
    /// Begins blocks of so many warps each, of which so many shall be on a multiprocessor.
    pub(crate) fn begin(&mut self, warps: usize, of_block: u32, blocks_per_sm: u32) {
        let resident = u64::from(of_block) * u64::from(blocks_per_sm);
        self.even = LARGEST.registers_per_thread(resident) / UNIT * UNIT;
        self.of_warps.clear();
        self.of_warps.resize(warps, (self.even, None));
    }

    /// A warp's threads have so many from now on.
    ///
    /// # Errors
    /// Those that they have, where these are more and more are asked for, or fewer and some are given back.
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

    /// A warp of these that has asked for more although all together have more in the end than their block was given, and
    /// the statement; what they have in all, and what there was.
    pub(crate) fn never_there(
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
