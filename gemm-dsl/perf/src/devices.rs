//! Figures of devices: the H200's with measured calibration, others as published.

use gemm_dsl::target::arch::{ALL, Multiprocessor};
use gemm_dsl::target::device as facts;
use std::fmt;

/// Source of a device's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The calibration was fitted to `tests/data/profiler/times.csv`. Peak rates and the size of
    /// the L2 cache come from the maker's documents, which are named.
    Measured(&'static str),
    /// Figures come from the maker's document, which is named. The L2 rate of an SM and all of
    /// [`Calibration`] are those of the measured device.
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

/// Rates of units, for an SM in a cycle, except for memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Multiply-adds of all lanes, without tensor cores.
    pub fma: f64,
    /// Multiplications and additions of 16-bit numbers by tensor cores, with instructions of a
    /// warp.
    pub mma_flops: f64,
    /// Multiplications and additions of 16-bit numbers by tensor cores, with instructions of a
    /// warpgroup.
    pub wgmma_flops: f64,
    /// Bytes from the L2 cache.
    pub l2_bytes: f64,
    /// Bytes from memory in a second, for all SMs.
    pub memory: f64,
}

/// Figures of a device that predictions use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceModel {
    /// Name, as `--for` takes it.
    pub name: &'static str,
    pub multiprocessor: Multiprocessor,
    pub sms: u32,
    /// SM clock under load, in MHz.
    pub clock_mhz: f64,
    /// Peak rates, which no launch exceeds.
    pub peak: Rates,
    /// Size of the L2 cache in bytes.
    pub l2_capacity: f64,
    /// Fitted figures, which no document states.
    pub calibration: Calibration,
    pub source: Source,
}

/// Fitted figures: attained shares of the peak rates, and latencies in cycles unless stated
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Share of each peak rate that kernels attain.
    pub reached: Rates,
    /// Share of the L2 cache that keeps repeatedly read data; each half of the cache has its own
    /// copies.
    pub kept: f64,
    /// Latency of a load from the L2 cache, until its data is ready for all threads of the block.
    pub cache: f64,
    /// Additional latency of a load that misses the L2 cache.
    pub memory: f64,
    /// Duration of a block's barrier.
    pub barrier: f64,
    /// Start and end of a block: from its launch to its first instruction, and from its last one to
    /// the next block's.
    pub block: f64,
    /// Average distance from a warp's multiply-add to its next instruction.
    pub fma: f64,
    /// Average distance from any other instruction to the next one.
    pub other: f64,
    /// Average distance from a warp's matrix instruction to the next instruction.
    pub mma: f64,
    /// Bytes that shared memory returns to registers in a cycle.
    pub returned: f64,
    /// Bytes of machine code that an SM caches. If a round has more, each block fetches it again.
    pub code_kept: f64,
    /// Bytes of machine code fetched in a cycle for a block, and for a block of one warp.
    pub code: [f64; 2],
    /// Bytes of machine code fetched in a cycle for all blocks of an SM together.
    pub code_of_all: f64,
    /// Launch behind another one, in microseconds.
    pub launch: f64,
    /// Each further launch of the same program, in microseconds.
    pub next_launch: f64,
    /// Contention between units: work of `a` and of `b` cycles takes `(a^x + b^x)^(1/x)`.
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

/// Peak L2 rate of an SM in bytes a cycle: two sectors.
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

/// Returns the SM of an architecture; an unknown one does not compile.
const fn multiprocessor(arch: u32) -> Multiprocessor {
    let mut nth = 0;
    while ALL[nth].arch != arch {
        nth += 1;
    }
    ALL[nth]
}

/// All devices. Tensor-core rates are those of dense GEMMs with 32-bit accumulators, divided by SMs
/// and clock.
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

    /// Returns the attainable rates, as shares of [`DeviceModel::peak`].
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

    /// Returns the peak memory rate of an SM, in bytes a cycle.
    pub fn memory_of_cycle(&self) -> f64 {
        self.peak.memory / self.hertz() / f64::from(self.sms)
    }
}
