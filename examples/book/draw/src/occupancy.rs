//! What fits on the multiprocessors of each architecture.

use gemm_dsl::ir::VerifiedKernel;
use gemm_dsl::target::arch::{ALL, WARP};
use gemm_perf::occupancy::{Block, Limit, limits, occupancy};
use serde::Serialize;

/// A kernel on an architecture.
#[derive(Clone, Debug, Serialize)]
pub struct Occupancy {
    /// The architecture, as `sm_90`.
    pub arch: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes that are spilled.
    pub spilled: u64,
    /// Blocks on a multiprocessor.
    pub blocks: u32,
    /// Warps on a multiprocessor, and the most that any kernel could have.
    pub warps: [u32; 2],
    /// What keeps one more block from fitting.
    pub limit: String,
}

/// Registers of a kernel on an architecture, and bytes spilled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// The number of the architecture.
    pub arch: u32,
    /// Of a thread.
    pub registers: u32,
    /// In stores and loads together.
    pub spilled: u64,
}

/// What of a kernel fits, on the architectures whose compiler has said how many registers it has there.
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
            limit: names.join(" and ") + if full { ": there is no room for more" } else { "" },
        })
    });
    known.collect()
}
