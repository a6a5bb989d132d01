//! A model of time: how long a launch takes on a device, by what it asks of each unit of it.
//!
//! Blocks are handed to multiprocessors, of which each runs as many at once as fit ([`occupancy`]). What a block asks of a unit,
//! at the rate of the unit, is how long the unit works for it; units work at the same time, but stand in one another's way
//! ([`Calibration::sharing`]). A block also has a least time of its own, however empty its multiprocessor is: its warps issue one
//! instruction after the other, it waits for tiles that come and at barriers ([`Waits`]), and for its own machine code where a
//! round has more of that than is kept at hand. Blocks that share a multiprocessor
//! take the longer of both: what their work takes together, or what each takes alone. Where the last blocks do not fill the
//! multiprocessors, some of these idle. Memory moves what caches do not keep at its own rate meanwhile.
//!
//! It is a model of launches in a row, as they are timed: what fits into the second-level cache is there.
//!
//! ```text
//! counters ──► Work  ┐
//! plan     ──► Waits ├─ LaunchLoad ──predict (DeviceModel)──► Prediction: units, waiting, tail, memory
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

/// What all blocks of a launch ask for together. Numbers need not be whole: they may stand for what was not simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Instructions of warps.
    pub instructions: f64,
    /// Multiply-adds among them.
    pub fma: f64,
    /// Matrix instructions of a warp among them.
    pub mma: f64,
    /// Multiplications and additions of those.
    pub mma_flops: f64,
    /// The same of matrix instructions of a warpgroup.
    pub wgmma_flops: f64,
    /// Wavefronts of shared memory.
    pub shared_wavefronts: f64,
    /// Bytes that threads read from shared memory.
    pub shared_load_bytes: f64,
    /// Lines that loads and stores touch.
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
    /// What the machine code asks for: what was counted of the text, with the instructions and the accesses to memory that the
    /// compiler makes of it. Wavefronts of asynchronous copies are told by the text alone, and with those of the others.
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

/// What a block waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waits {
    /// How often it waits for what it has asked global memory for: tiles of K, or rounds of a reduction.
    pub rounds: f64,
    /// How many rounds what it waits for was asked for before it is needed: 0 where it is asked for when it is needed.
    pub ahead: f64,
    /// Barriers of the block in a round.
    pub barriers: f64,
    /// Bytes of machine code that each warp goes through in a round, none of it twice; 0 where a round is made of loops.
    pub code: f64,
    /// Parts of a tile that other blocks leave, and the block that comes last adds, one after the other.
    pub parts: f64,
    /// Bytes of each.
    pub part_bytes: f64,
}

/// What a launch reads of arrays that many blocks read: strips of A along rows of tiles, of B along columns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reads {
    /// Tiles along rows and along columns.
    pub tiles: [f64; 2],
    /// Bytes of what a row of tiles reads, and of what a column does.
    pub strips: [f64; 2],
    /// Tile rows that are visited together, at least 1.
    pub raster: f64,
    /// Bytes that are moved once: what is written, and all of an array that each block has its own part of.
    pub once: f64,
}

/// One launch of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LaunchLoad {
    /// Blocks.
    pub blocks: f64,
    /// Threads of a block.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u64,
    /// What all blocks ask for.
    pub work: Work,
    /// What each waits for.
    pub waits: Waits,
    /// What is read again and again.
    pub reads: Reads,
}

impl LaunchLoad {
    /// Whether all numbers are such as something can be counted to.
    fn is_countable(&self) -> bool {
        let (mut work, waits, reads) = (self.work, &self.waits, &self.reads);
        let waits =
            [waits.rounds, waits.ahead, waits.barriers, waits.code, waits.parts, waits.part_bytes];
        let reads = [reads.raster, reads.once].into_iter().chain(reads.tiles).chain(reads.strips);
        let all = work.each().map(|n| *n).into_iter().chain(waits).chain(reads);
        all.chain([self.blocks]).all(|n| n.is_finite() && n >= 0.0)
    }
}
