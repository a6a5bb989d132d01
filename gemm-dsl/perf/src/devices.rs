//! Figures of devices. The figures of the H200 include a measured calibration; the figures of other
//! devices are published.

use gemm_dsl::target::arch::{ALL, Multiprocessor};
use gemm_dsl::target::device as facts;
use std::fmt;

/// Source of a device's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The calibration was fitted to `tests/data/profiler/times.csv`. Peak rates and the size of
    /// the L2 cache are from the named documents of the manufacturer.
    Measured(&'static str),
    /// Figures are from the named document of the manufacturer. The L2 rate of an SM and the
    /// [`Calibration`] come from the measured device.
    Published(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured(documents) => write!(
                f,
                "measured efficiencies; published peak rates and L2 cache size ({documents})"
            ),
            Self::Published(document) => {
                write!(f, "published rates ({document}); all else as measured on {}", H200.name)
            }
        }
    }
}

/// Rates of units. All are per SM and cycle, except the rate of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Multiply-adds of all threads, excluding tensor cores.
    pub fma: f64,
    /// Multiplications and additions of 16-bit numbers on tensor cores, by instructions of a warp.
    pub mma_flops: f64,
    /// Multiplications and additions of 16-bit numbers on tensor cores, by instructions of a
    /// warpgroup.
    pub wgmma_flops: f64,
    /// Bytes from the L2 cache.
    pub l2_bytes: f64,
    /// Bytes from memory per second, for all SMs together.
    pub memory: f64,
}

/// Figures of a device that predictions use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceModel {
    /// Name, as the option `--for` takes it.
    pub name: &'static str,
    pub multiprocessor: Multiprocessor,
    pub sms: u32,
    /// SM clock under load, in MHz.
    pub clock_mhz: f64,
    /// Peak rates. No launch exceeds them.
    pub peak: Rates,
    /// Size of the L2 cache in bytes.
    pub l2_capacity: f64,
    /// Fitted figures, which are in no document.
    pub calibration: Calibration,
    pub source: Source,
}

/// Fitted figures: shares of the peak rates that kernels reach, and latencies. Latencies are in
/// cycles unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Share of each peak rate that kernels reach.
    pub reached: Rates,
    /// Share of the L2 cache that holds repeatedly read data. It is below 1 because each half of
    /// the cache has its own copies.
    pub kept: f64,
    /// Latency of a load from the L2 cache, until its data is available to all threads of the
    /// block.
    pub cache: f64,
    /// Additional latency of a load that misses the L2 cache.
    pub memory: f64,
    /// Duration of a block's barrier.
    pub barrier: f64,
    /// Overhead of a block: from its launch to its first instruction, and from its last instruction
    /// to the first of the next block.
    pub block: f64,
    /// Average number of cycles from a multiply-add of a warp to its next instruction.
    pub fma: f64,
    /// Average number of cycles from any other instruction to the next one.
    pub other: f64,
    /// Average number of cycles from a matrix instruction of a warp to its next instruction.
    pub mma: f64,
    /// Bytes per cycle that shared memory returns to registers.
    pub returned: f64,
    /// Bytes of machine code that an SM caches. If a round has more, each block fetches its code
    /// again.
    pub code_kept: f64,
    /// Bytes of machine code that are fetched per cycle for a block, and for a block with a single
    /// warp.
    pub code: [f64; 2],
    /// Bytes of machine code that are fetched per cycle for all blocks of an SM together.
    pub code_of_all: f64,
    /// Time of a launch that directly follows another launch, in microseconds.
    pub launch: f64,
    /// Time of each further launch of the same program, in microseconds.
    pub next_launch: f64,
    /// Exponent x for the contention between units: work of `a` and of `b` cycles takes
    /// `(a^x + b^x)^(1/x)`.
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

/// Peak L2 rate of an SM in bytes per cycle: two sectors.
const L2_BYTES: f64 = 64.0;

/// Device to which the calibration was fitted.
pub const H200: DeviceModel = device(facts::H200, Source::Measured(facts::H200.source));

/// Creates a device with published figures and the calibration of the measured one.
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

/// Returns the SM of an architecture. An unknown architecture is a compile error.
const fn multiprocessor(arch: u32) -> Multiprocessor {
    let mut nth = 0;
    while ALL[nth].arch != arch {
        nth += 1;
    }
    ALL[nth]
}

/// All devices. Tensor-core rates are those of dense GEMMs with 32-bit accumulators, divided by the
/// number of SMs and by the clock.
pub const DEVICES: [DeviceModel; 6] = [
    H200,
    published(facts::A100),
    published(facts::L40S),
    published(facts::RTX_4090),
    published(facts::RTX_5090),
    published(facts::B200),
];

impl DeviceModel {
    /// Finds a device by its name, ignoring case.
    pub fn named(name: &str) -> Option<&'static Self> {
        DEVICES.iter().find(|device| device.name.eq_ignore_ascii_case(name))
    }

    /// Returns the rates that kernels reach.
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

    /// Returns the SM clock in Hz.
    pub fn hertz(&self) -> f64 {
        self.clock_mhz * 1e6
    }

    /// Returns the peak memory rate of an SM, in bytes per cycle.
    pub fn memory_of_cycle(&self) -> f64 {
        self.peak.memory / self.hertz() / f64::from(self.sms)
    }
}
