//! Time model. It predicts the time of a launch on a device from the launch's load on each unit.
//!
//! Blocks are distributed over SMs, and each SM runs as many blocks at once as fit ([`occupancy`]).
//! The busy time of a unit is the blocks' work for the unit, divided by the unit's rate. Units work
//! concurrently, but contend with one another ([`Calibration::sharing`]).
//!
//! A block also has a minimum time, even if it is alone on an SM. Its warps issue one instruction
//! after another. It waits for tiles and at barriers ([`Waits`]), and for its machine code if a
//! round has more code than an SM caches. Blocks that share an SM take the time of their joint
//! work, or the minimum time of one block if it is longer. If the last blocks do not fill all SMs,
//! some SMs are idle. Memory moves the data that misses the caches at the same time, at its own
//! rate.
//!
//! The model describes repeated launches without pauses, as in a timing loop. Data that fits into
//! the L2 cache is therefore in the cache already.
//!
//! ```text
//! counters ──► Work  ┐
//! plan     ──► Waits ├─ LaunchLoad ──DeviceModel──► Prediction: units, waiting, tail, memory
//! shape    ──► Reads ┘
//! ```

pub mod csv;
mod devices;
mod model;
pub mod occupancy;
#[cfg(test)]
mod tests;

pub use devices::{Calibration, DEVICES, DeviceModel, H200, Rates, Source};
pub use model::{Bound, Prediction, Unit, predict, predict_program};

use gemm_sim::{Counters, SassCounters};
use std::ops::{AddAssign, Mul};

/// Total work of all blocks of a launch. Extrapolated values need not be integers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Instructions issued by all warps.
    pub instructions: f64,
    /// Multiply-adds among the instructions, excluding those of tensor cores.
    pub fma: f64,
    /// Matrix instructions of a warp among the instructions.
    pub mma: f64,
    /// Multiplications and additions in matrix instructions of warps.
    pub mma_flops: f64,
    /// Multiplications and additions in matrix instructions of warpgroups.
    pub wgmma_flops: f64,
    /// Shared-memory wavefronts, including those caused by bank conflicts.
    pub shared_wavefronts: f64,
    /// Bytes that threads read from shared memory.
    pub shared_load_bytes: f64,
    /// Cache lines that loads and stores touch.
    pub lines: f64,
    /// Sectors that loads, stores and copies touch.
    pub sectors: f64,
}

impl From<&Counters> for Work {
    fn from(c: &Counters) -> Self {
        let (mma, wgmma) = if c.wgmma > 0 { (0, c.mma_flops) } else { (c.mma_flops, 0) };
        Self {
            instructions: c.instructions as f64,
            fma: c.fma as f64,
            mma: c.mma as f64,
            mma_flops: mma as f64,
            wgmma_flops: wgmma as f64,
            shared_wavefronts: c.shared_wavefronts as f64,
            shared_load_bytes: c.shared_load_bytes as f64,
            lines: c.global_lines as f64,
            sectors: c.global_sectors as f64 + c.bulk_bytes as f64 / 32.0,
        }
    }
}

impl Work {
    /// Returns the work of the compiled kernel. Instructions and memory accesses are those of the
    /// machine code; all other counts are those of the CUDA source.
    ///
    /// If there are asynchronous copies, all wavefronts are those of the CUDA source, because only
    /// these counts include copies.
    pub fn compiled(text: &Counters, compiled: &SassCounters) -> Self {
        let work = Self::from(text);
        let wavefronts = compiled.shared_load_wavefronts + compiled.shared_store_wavefronts;
        let sectors = compiled.global_load_sectors + compiled.global_store_sectors;
        Self {
            instructions: compiled.instructions.map_or(work.instructions, |n| n as f64),
            shared_wavefronts: match text.copies {
                0 => wavefronts as f64,
                _ => work.shared_wavefronts,
            },
            sectors: sectors as f64 + text.bulk_bytes as f64 / 32.0,
            ..work
        }
    }

    fn each(&mut self) -> [&mut f64; 9] {
        [
            &mut self.instructions,
            &mut self.fma,
            &mut self.mma,
            &mut self.mma_flops,
            &mut self.wgmma_flops,
            &mut self.shared_wavefronts,
            &mut self.shared_load_bytes,
            &mut self.lines,
            &mut self.sectors,
        ]
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, mut other: Self) {
        self.each().into_iter().zip(other.each()).for_each(|(own, other)| *own += *other);
    }
}

impl Mul<f64> for Work {
    type Output = Self;

    fn mul(mut self, times: f64) -> Self {
        self.each().into_iter().for_each(|own| *own *= times);
        self
    }
}

/// Waits of a block for data, barriers and partial results.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waits {
    /// Number of waits for global memory: the number of K tiles, or of rounds of a reduction.
    pub rounds: f64,
    /// Number of rounds from the request of data to its use; 0 if data is requested only when it is
    /// needed.
    pub ahead: f64,
    /// Number of block barriers per round.
    pub barriers: f64,
    /// Bytes of straight-line machine code that each warp executes per round; 0 if a round consists
    /// of loops.
    pub code: f64,
    /// Number of partial results of a tile that other blocks write, and that the last block adds
    /// one after another.
    pub parts: f64,
    /// Bytes of each partial result.
    pub part_bytes: f64,
}

/// Data that many blocks read: a row of tiles reads the same strip of A, and a column of tiles the
/// same strip of B.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reads {
    /// Number of tiles along M and along N.
    pub tiles: [f64; 2],
    /// Bytes of the strip that a row of tiles reads, and of the strip that a column reads.
    pub strips: [f64; 2],
    /// Number of tile rows that are visited as a group, at least 1.
    pub raster: f64,
    /// Bytes that are moved only once: results, and arrays of which each block reads a different
    /// part.
    pub once: f64,
}

/// Load of one kernel launch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LaunchLoad {
    pub blocks: f64,
    pub threads: u32,
    pub registers: u32,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u64,
    /// Total work of all blocks.
    pub work: Work,
    pub waits: Waits,
    pub reads: Reads,
}

impl LaunchLoad {
    /// Returns true if all numbers are finite and not negative.
    fn is_countable(&self) -> bool {
        let (mut work, waits, reads) = (self.work, &self.waits, &self.reads);
        let waits =
            [waits.rounds, waits.ahead, waits.barriers, waits.code, waits.parts, waits.part_bytes];
        let reads = [reads.raster, reads.once].into_iter().chain(reads.tiles).chain(reads.strips);
        let all = work.each().map(|n| *n).into_iter().chain(waits).chain(reads);
        all.chain([self.blocks]).all(|n| n.is_finite() && n >= 0.0)
    }
}
