//! Occupancy: the number of blocks of a kernel that are resident on an SM, and the resources that
//! limit it.
//!
//! The limits are those of the generator's table of architectures. Registers are allocated to warps
//! in units of [`WARP_REGISTER_UNIT`].

use gemm_dsl::target::arch::{Multiprocessor, WARP, WARP_REGISTER_UNIT};
use std::fmt;

/// Resources that a block needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Number of threads, at least 1.
    pub threads: u32,
    pub registers: u32,
    pub shared_bytes: u64,
}

/// Resource that limits the number of resident blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    Registers,
    Shared,
    Threads,
    /// Maximum number of blocks on an SM.
    Blocks,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Registers => "registers",
            Self::Shared => "shared memory",
            Self::Threads => "threads",
            Self::Blocks => "blocks",
        })
    }
}

/// Occupancy of an SM by blocks of one kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occupancy {
    /// Number of resident blocks; 0 if not even one fits.
    pub blocks: u32,
    /// Number of resident warps, divided by the maximum number of an SM.
    pub share: f64,
    /// Resource because of which no further block fits.
    pub limit: Limit,
}

/// Returns all resources because of which no further block fits, in the order of [`Limit`].
pub fn limits(sm: &Multiprocessor, block: Block) -> Vec<Limit> {
    let all = blocks_by(sm, block);
    let fewest = all.iter().map(|(blocks, _)| *blocks).min();
    all.into_iter().filter(|(blocks, _)| Some(*blocks) == fewest).map(|(_, limit)| limit).collect()
}

/// Returns the occupancy of a kernel. If several limits are equal, it names the first in the order
/// of [`Limit`].
pub fn occupancy(sm: &Multiprocessor, block: Block) -> Occupancy {
    let warps = block.threads.div_ceil(WARP).max(1);
    let (blocks, limit) = blocks_by(sm, block).into_iter().min().unwrap_or((0, Limit::Blocks));
    let share = f64::from(blocks * warps) / f64::from(sm.threads / WARP);
    Occupancy { blocks, share, limit }
}

/// Returns the number of blocks that each limit allows.
fn blocks_by(sm: &Multiprocessor, block: Block) -> [(u32, Limit); 4] {
    let warps = block.threads.div_ceil(WARP).max(1);
    // More registers than an SM has are counted as one more than it has, which avoids an overflow.
    let registers = block.registers.clamp(1, sm.registers + 1);
    let warp_registers = (registers * WARP).next_multiple_of(WARP_REGISTER_UNIT);
    // Each of the four schedulers has a quarter of the registers for its warps.
    let warps_by_registers = 4 * (sm.registers / 4 / warp_registers);
    let by_shared = if block.shared_bytes > sm.shared_per_block {
        0
    } else {
        let needed = (block.shared_bytes + sm.shared_reserved).max(1);
        u32::try_from(sm.shared_bytes / needed).unwrap_or(u32::MAX)
    };
    [
        (warps_by_registers / warps, Limit::Registers),
        (by_shared, Limit::Shared),
        (sm.threads / WARP / warps, Limit::Threads),
        (sm.blocks, Limit::Blocks),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_dsl::target::arch::ALL;

    const KB: u64 = 1024;

    fn on(arch: u32, threads: u32, registers: u32, shared_bytes: u64) -> Occupancy {
        let all = ALL.iter().find(|sm| sm.arch == arch);
        let sm = all.expect("a known architecture");
        occupancy(sm, Block { threads, registers, shared_bytes })
    }

    #[test]
    fn registers_limit_a_large_thread_tile() {
        let occupancy = on(90, 256, 255, 32 * KB);
        assert_eq!((occupancy.blocks, occupancy.limit), (1, Limit::Registers));
        assert_eq!(occupancy.share, 0.125);
        assert_eq!(on(90, 256, 128, 16 * KB).blocks, 2);
    }

    #[test]
    fn shared_memory_counts_what_the_system_reserves() {
        assert_eq!(on(90, 128, 32, 113 * KB).blocks, 2);
        assert_eq!(on(90, 128, 32, 114 * KB).blocks, 1);
        let occupancy = on(86, 128, 32, 100 * KB);
        assert_eq!((occupancy.blocks, occupancy.limit), (0, Limit::Shared));
    }

    #[test]
    fn equal_limits_are_all_named() {
        let sm = ALL.iter().find(|sm| sm.arch == 90).expect("it is known");
        let block = |registers| Block { threads: 256, registers, shared_bytes: 0 };
        assert_eq!(limits(sm, block(32)), [Limit::Registers, Limit::Threads]);
        assert_eq!(limits(sm, block(16)), [Limit::Threads]);
        assert_eq!(limits(sm, block(128)), [Limit::Registers]);
    }

    #[test]
    fn small_blocks_run_into_the_number_of_blocks_or_threads() {
        assert_eq!(on(90, 32, 16, 0).limit, Limit::Blocks);
        let occupancy = on(86, 1024, 32, 0);
        assert_eq!((occupancy.blocks, occupancy.limit), (1, Limit::Threads));
    }
}
