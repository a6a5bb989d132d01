//! What devices have and how fast it is: of one that was measured, of others as published.

use gemm_dsl::target::arch::{ALL, Multiprocessor};
use gemm_dsl::target::device as facts;
use std::fmt;

/// Where the figures of a device come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// What kernels reach and all [`Calibration`] were fitted to `tests/data/profiler/times.csv`; the rates that no launch exceeds, and
    /// the size of the second-level cache, are published by its maker, in the documents that are named.
    Measured(&'static str),
    /// Published by its maker, in the document that is named; what a multiprocessor gets from the second-level cache, and all of
    /// [`Calibration`], are those of the one that was measured.
    Published(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured(documents) => write!(
                f,
                "what kernels reach is measured, peak rates and the size of the L2 cache are published ({documents})"
            ),
            Self::Published(document) => {
                write!(
                    f,
                    "rates are published ({document}), all else is as measured on {}",
                    H200.name
                )
            }
        }
    }
}

/// What units do: of a multiprocessor in a cycle, but for memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Multiply-adds of all lanes.
    pub fma: f64,
    /// Multiplications and additions of 16-bit numbers that tensor cores do, as instructions of a warp ask for them.
    pub mma_flops: f64,
    /// The same as instructions of a warpgroup do.
    pub wgmma_flops: f64,
    /// Bytes from the second-level cache.
    pub l2_bytes: f64,
    /// Bytes of memory in a second, for all multiprocessors.
    pub memory: f64,
}

/// A device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceModel {
    /// As `--for` takes it.
    pub name: &'static str,
    /// What each multiprocessor has.
    pub multiprocessor: Multiprocessor,
    /// Multiprocessors.
    pub sms: u32,
    /// Cycles of a multiprocessor in a second, in 10^6, under load.
    pub clock_mhz: f64,
    /// The most that units do: no launch is faster.
    pub peak: Rates,
    /// Bytes of the second-level cache.
    pub l2_capacity: f64,
    /// Figures that no document has.
    pub calibration: Calibration,
    /// Where they come from.
    pub source: Source,
}

/// What kernels reach of what a device has, and what takes time beside the rates of units, in cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// The share of each rate that kernels reach.
    pub reached: Rates,
    /// The share of the second-level cache that keeps what launches read again: each half of it has copies of its own.
    pub kept: f64,
    /// From a load to what it brought being ready for all threads of the block, from the second-level cache.
    pub cache: f64,
    /// What it takes longer from memory.
    pub memory: f64,
    /// A barrier of a block.
    pub barrier: f64,
    /// A block, from its launch to its first instruction and from its last one to the next block's.
    pub block: f64,
    /// From one multiply-add of a warp to its next instruction, on average.
    pub fma: f64,
    /// The same of other instructions.
    pub other: f64,
    /// The same of matrix instructions of a warp.
    pub mma: f64,
    /// Bytes that shared memory gives back to registers in a cycle.
    pub returned: f64,
    /// Bytes of machine code that a multiprocessor keeps at hand. Where a round has more, each block fetches it anew.
    pub code_kept: f64,
    /// Bytes of machine code that are fetched for a block in a cycle, and for one of a single warp.
    pub code: [f64; 2],
    /// Those that are fetched for all blocks of a multiprocessor together.
    pub code_of_all: f64,
    /// A launch behind another one, in microseconds.
    pub launch: f64,
    /// Each further launch of the same program, in microseconds.
    pub next_launch: f64,
    /// How units stand in one another's way: work of `a` and of `b` cycles takes `(a^x + b^x)^(1/x)`.
    pub sharing: f64,
}

const CALIBRATION: Calibration = Calibration {
    reached: Rates { fma: 1.0, mma_flops: 0.38, wgmma_flops: 0.95, l2_bytes: 0.61, memory: 0.93 },
    kept: 0.6,
    cache: 490.0,
    memory: 625.0,
    barrier: 57.0,
    block: 490.0,
    fma: 1.12,
    other: 1.69,
    mma: 5.3,
    returned: 168.0,
    code_kept: 32.0 * 1024.0,
    code: [7.4, 4.3],
    code_of_all: 39.0,
    launch: 3.2,
    next_launch: 1.15,
    sharing: 2.0,
};

/// What a multiprocessor gets from the second-level cache at most, in bytes a cycle: two sectors.
const L2_BYTES: f64 = 64.0;

/// The one that was measured.
pub const H200: DeviceModel = device(facts::H200, Source::Measured(facts::H200.source));

/// A device whose other figures are those of the one that was measured.
const fn published(facts: facts::Device) -> DeviceModel {
    device(facts, Source::Published(facts.source))
}

const fn device(facts: facts::Device, source: Source) -> DeviceModel {
    let facts::Device { name, arch, sms, clock_mhz, fma, mma_flops, l2_capacity, memory, .. } =
        facts;
    DeviceModel {
        name,
        multiprocessor: multiprocessor(arch),
        sms,
        clock_mhz,
        peak: Rates { fma, mma_flops, wgmma_flops: mma_flops, l2_bytes: L2_BYTES, memory },
        l2_capacity,
        calibration: CALIBRATION,
        source,
    }
}

/// The multiprocessor of an architecture that kernels are compiled for; no other one compiles.
const fn multiprocessor(arch: u32) -> Multiprocessor {
    let mut nth = 0;
    while ALL[nth].arch != arch {
        nth += 1;
    }
    ALL[nth]
}

/// All devices. Rates of tensor cores are those of dense products with sums of 32 bits, over multiprocessors and clock.
pub const DEVICES: [DeviceModel; 6] = [
    H200,
    published(facts::A100),
    published(facts::L40S),
    published(facts::RTX_4090),
    published(facts::RTX_5090),
    published(facts::B200),
];

impl DeviceModel {
    /// That of a name, upper case or lower.
    pub fn named(name: &str) -> Option<&'static Self> {
        DEVICES.iter().find(|device| device.name.eq_ignore_ascii_case(name))
    }

    /// What kernels reach of [`DeviceModel::peak`].
    pub fn reached(&self) -> Rates {
        let (peak, share) = (self.peak, self.calibration.reached);
        Rates {
            fma: peak.fma * share.fma,
            mma_flops: peak.mma_flops * share.mma_flops,
            wgmma_flops: peak.wgmma_flops * share.wgmma_flops,
            l2_bytes: peak.l2_bytes * share.l2_bytes,
            memory: peak.memory * share.memory,
        }
    }

    /// Cycles of a second.
    pub fn hertz(&self) -> f64 {
        self.clock_mhz * 1e6
    }

    /// Bytes of memory at most for each multiprocessor, in one of its cycles.
    pub fn memory_of_cycle(&self) -> f64 {
        self.peak.memory / self.hertz() / f64::from(self.sms)
    }
}
