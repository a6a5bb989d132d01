//! Limits of the architectures, in the only table that checks, messages and occupancy use.
//!
//! The figures are from the table "Technical Specifications per Compute Capability" in NVIDIA's
//! CUDA C++ Programming Guide.

pub const WARP: u32 = 32;

/// Number of schedulers of an SM. Each issues at most one instruction per cycle, from its own
/// warps.
pub const SCHEDULERS: u32 = 4;

/// Number of banks of shared memory, each 4 bytes wide.
pub const BANKS: u32 = 32;

/// Size of a sector, the unit of global-memory transfers, in bytes.
pub const SECTOR_BYTES: u32 = 32;

/// Number of sectors per line of the L1 cache.
pub const LINE_SECTORS: u32 = 4;

/// Maximum number of threads of a block.
pub const BLOCK_THREADS: u32 = 1024;

/// Maximum number of blocks of a grid along x, y and z.
pub const GRID_BLOCKS: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];

/// Maximum number of registers that the instruction set can address per thread.
pub const THREAD_REGISTERS: u32 = 255;

/// Unit in which a warp's registers are allocated, in registers.
pub const WARP_REGISTER_UNIT: u32 = 256;

/// Oldest architecture for which NVRTC 13 compiles, for example 75 for `sm_75`.
pub const OLDEST: u32 = ALL[0].arch;

/// Oldest architecture with atomics and fences that have a memory order.
pub const MEMORY_ORDERS: u32 = 70;

/// Oldest architecture with asynchronous copies from global to shared memory.
pub const ASYNCHRONOUS_COPIES: u32 = 80;

/// Oldest architecture whose tensor cores support bf16, tf32 and a K of 16.
pub const TENSOR_CORES: u32 = 80;

/// Oldest architecture with a warp-wide reduction instruction.
pub const REDUCTIONS: u32 = 80;

/// Oldest architecture with an instruction that rounds two numbers and packs them into one word.
pub const PACKS: u32 = 80;

/// Oldest architecture with TMA copies, and with mbarriers that count bytes.
pub const TENSOR_COPIES: u32 = 90;

/// Oldest architecture with clusters of blocks.
pub const CLUSTERS: u32 = 90;

/// Maximum number of blocks of a cluster that all architectures with clusters support.
pub const CLUSTER_BLOCKS: u32 = 8;

/// Limit of static shared memory of a block, in bytes. Larger amounts must be dynamic.
pub const STATIC_SHARED_BYTES: u64 = 48 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiprocessor {
    /// Compute capability: 90 for `sm_90`.
    pub arch: u32,
    /// Maximum number of resident threads.
    pub threads: u32,
    /// Maximum number of resident blocks.
    pub blocks: u32,
    /// Number of 4-byte registers.
    pub registers: u32,
    /// Shared memory for all resident blocks, in bytes.
    pub shared_bytes: u64,
    /// Additional shared memory that the system reserves for each block, in bytes.
    pub shared_reserved: u64,
    /// Maximum shared memory of one block, in bytes.
    pub shared_per_block: u64,
}

/// SMs of the architectures for which kernels are compiled.
pub const ALL: [Multiprocessor; 7] = [
    multiprocessor(75, 1024, 16, 64, 0, 64),
    multiprocessor(80, 2048, 32, 164, 1, 163),
    multiprocessor(86, 1536, 16, 100, 1, 99),
    multiprocessor(89, 1536, 24, 100, 1, 99),
    LARGEST,
    multiprocessor(100, 2048, 32, 228, 1, 227),
    multiprocessor(120, 1536, 24, 100, 1, 99),
];

/// SM with at least as much of every resource as any other. A kernel that exceeds it fits on no SM.
pub const LARGEST: Multiprocessor = multiprocessor(90, 2048, 32, 228, 1, 227);

const fn multiprocessor(
    arch: u32,
    threads: u32,
    blocks: u32,
    shared_kib: u64,
    reserved_kib: u64,
    per_block_kib: u64,
) -> Multiprocessor {
    Multiprocessor {
        arch,
        threads,
        blocks,
        registers: 65_536,
        shared_bytes: shared_kib * 1024,
        shared_reserved: reserved_kib * 1024,
        shared_per_block: per_block_kib * 1024,
    }
}

impl Multiprocessor {
    /// Number of registers of each thread if `warps` warps are resident; 0 if they cannot be.
    pub fn registers_per_thread(&self, warps: u64) -> u32 {
        let unit = WARP_REGISTER_UNIT / WARP;
        let share = u64::from(self.registers / WARP).checked_div(warps).unwrap_or(0);
        let share = u32::try_from(share).unwrap_or(u32::MAX) / unit * unit;
        share.min(THREAD_REGISTERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_multiprocessor_has_more_than_the_largest() {
        for sm in ALL {
            assert!(sm.threads <= LARGEST.threads && sm.blocks <= LARGEST.blocks, "{sm:?}");
            assert!(sm.registers <= LARGEST.registers, "{sm:?}");
            assert!(sm.shared_bytes <= LARGEST.shared_bytes, "{sm:?}");
            assert!(sm.shared_per_block <= LARGEST.shared_per_block, "{sm:?}");
            assert_eq!(sm.shared_per_block + sm.shared_reserved, sm.shared_bytes, "{sm:?}");
        }
    }

    #[test]
    fn the_table_is_in_order_and_has_every_architecture_that_is_named() {
        assert!(ALL.is_sorted_by_key(|sm| sm.arch));
        assert!(ALL.iter().any(|sm| sm.arch == ASYNCHRONOUS_COPIES));
        assert!(
            ALL.iter().all(|sm| sm.arch >= OLDEST && sm.shared_per_block > STATIC_SHARED_BYTES)
        );
    }

    #[test]
    fn registers_are_handed_out_to_warps_in_units() {
        let each = |warps| LARGEST.registers_per_thread(warps);
        assert_eq!((each(8), each(16), each(29), each(64)), (255, 128, 64, 32));
        assert_eq!((each(0), each(u64::MAX)), (0, 0));
    }
}
