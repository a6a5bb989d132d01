//! Occupancy of a kernel on each architecture.

use gemm_dsl::ir::VerifiedKernel;
use gemm_dsl::target::arch::{ALL, WARP};
use gemm_perf::occupancy::{Block, Limit, limits, occupancy};
use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub struct Occupancy {
    /// Name of the architecture, such as `sm_90`.
    pub arch: String,
    pub registers: u32,
    /// Bytes of spill stores and loads.
    pub spilled: u64,
    /// Resident blocks of the kernel on an SM.
    pub blocks: u32,
    /// Resident warps per SM, and the maximum of the SM.
    pub warps: [u32; 2],
    /// Resource that limits the number of resident blocks.
    pub limit: String,
}

/// Registers and spills of a kernel on one architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Number of the architecture, such as 90.
    pub arch: u32,
    pub registers: u32,
    /// Bytes of spill stores and loads together.
    pub spilled: u64,
}

/// Returns the occupancy on each architecture for which the compiler reported registers.
pub fn all(kernel: &VerifiedKernel, registers: &[Registers]) -> Vec<Occupancy> {
    let known = registers.iter().filter_map(|of| {
        let sm = ALL.iter().find(|sm| sm.arch == of.arch)?;
        let threads = kernel.geometry.threads();
        let shared_bytes = kernel.shared_bytes();
        let block = Block { threads, registers: of.registers, shared_bytes };
        let fits = occupancy(sm, block);
        let limits = limits(sm, block);
        let names: Vec<String> = limits.iter().map(Limit::to_string).collect();
        let full = limits.contains(&Limit::Threads) && fits.share >= 1.0;
        Some(Occupancy {
            arch: format!("sm_{}", of.arch),
            registers: of.registers,
            spilled: of.spilled,
            blocks: fits.blocks,
            warps: [fits.blocks * threads.div_ceil(WARP), sm.threads / WARP],
            limit: names.join(" and ") + if full { ": the SM is full" } else { "" },
        })
    });
    known.collect()
}
