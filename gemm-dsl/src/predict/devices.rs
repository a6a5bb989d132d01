//! What devices have and how fast it is: of one that was measured, of others as published.

use crate::arch::{ALL, LARGEST, Multiprocessor};

/// Where the figures of a device come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Measured; what the model has beside the published ones was fitted to `tests/profiler/times.csv`.
    Measured,
    /// Published by its maker, in the document that is named; latencies, overheads and how units share a
    /// multiprocessor are those of the one that was measured.
    Published(&'static str),
}

/// A device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Device {
    /// As `--for` takes it.
    pub name: &'static str,
    /// As in 90 for `sm_90`.
    pub arch: u32,
    /// Multiprocessors.
    pub sms: u32,
    /// Cycles of a multiprocessor in a second, in 10^6, under load.
    pub clock_mhz: f64,
    /// Multiply-adds of all lanes that a multiprocessor does in a cycle.
    pub fma: f64,
    /// Multiplications and additions of 16-bit numbers that the tensor cores of a multiprocessor do in a cycle, as
    /// instructions of a warp ask for them.
    pub mma_flops: f64,
    /// The same as instructions of a warpgroup do.
    pub wgmma_flops: f64,
    /// Bytes that a multiprocessor gets from the second-level cache in a cycle.
    pub l2_bytes: f64,
    /// What of the second-level cache one copy of data has, in bytes.
    pub l2_capacity: f64,
    /// Bytes of memory in a second.
    pub memory_rate: f64,
    /// Figures that no document has.
    pub times: Times,
    /// Where they come from.
    pub source: Source,
}

/// What takes time beside the rates of units, in cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
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
    /// A launch behind another one, in microseconds.
    pub launch: f64,
    /// Each further launch of the same program, in microseconds.
    pub next_launch: f64,
    /// How units stand in one another's way: work of `a` and of `b` cycles takes `(a^x + b^x)^(1/x)`.
    pub sharing: f64,
}

const TIMES: Times = Times {
    cache: 490.0,
    memory: 620.0,
    barrier: 60.0,
    block: 500.0,
    fma: 1.1,
    other: 1.7,
    mma: 6.0,
    returned: 160.0,
    launch: 3.4,
    next_launch: 1.6,
    sharing: 2.4,
};

/// The one that was measured.
pub const H200: Device = Device {
    name: "h200",
    arch: 90,
    sms: 132,
    clock_mhz: 1980.0,
    fma: 128.0,
    mma_flops: 1200.0,
    wgmma_flops: 4096.0,
    l2_bytes: 40.0,
    l2_capacity: 30e6,
    memory_rate: 4.3e12,
    times: TIMES,
    source: Source::Measured,
};

const fn published(
    (name, arch): (&'static str, u32),
    (sms, clock_mhz): (u32, f64),
    (fma, mma_flops): (f64, f64),
    (l2_capacity, memory_rate): (f64, f64),
    source: &'static str,
) -> Device {
    Device {
        name,
        arch,
        sms,
        clock_mhz,
        fma,
        mma_flops,
        wgmma_flops: mma_flops,
        l2_capacity,
        memory_rate,
        source: Source::Published(source),
        ..H200
    }
}

/// All devices. Rates of tensor cores are those of dense products with sums of 32 bits, over multiprocessors and clock.
pub const DEVICES: [Device; 6] = [
    H200,
    published(
        ("a100", 80),
        (108, 1410.0),
        (64.0, 2048.0),
        (20e6, 2.039e12),
        "NVIDIA A100 Tensor Core GPU Architecture, 2020, and the datasheet of the A100 80GB SXM",
    ),
    published(
        ("l40s", 89),
        (142, 2520.0),
        (128.0, 1024.0),
        (96e6, 864e9),
        "NVIDIA L40S datasheet, and NVIDIA Ada GPU Architecture, 2022",
    ),
    published(
        ("rtx4090", 89),
        (128, 2520.0),
        (128.0, 512.0),
        (72e6, 1.008e12),
        "NVIDIA Ada GPU Architecture, 2022, appendix A",
    ),
    published(
        ("rtx5090", 120),
        (170, 2407.0),
        (128.0, 512.0),
        (96e6, 1.792e12),
        "NVIDIA RTX Blackwell GPU Architecture, 2025, appendix A",
    ),
    published(
        ("b200", 100),
        (148, 1965.0),
        (128.0, 8192.0),
        (63e6, 8e12),
        "NVIDIA DGX B200 datasheet, 2024",
    ),
];

impl Device {
    /// That of a name, upper case or lower.
    pub fn named(name: &str) -> Option<&'static Self> {
        DEVICES.iter().find(|device| device.name.eq_ignore_ascii_case(name))
    }

    /// What its multiprocessors have.
    pub fn multiprocessor(&self) -> &'static Multiprocessor {
        ALL.iter().find(|sm| sm.arch == self.arch).unwrap_or(&LARGEST)
    }

    /// Cycles of so many bytes of memory.
    pub(super) fn memory_cycles(&self, bytes: f64) -> f64 {
        bytes / self.memory_rate * self.hertz()
    }

    pub(super) fn hertz(&self) -> f64 {
        self.clock_mhz * 1e6
    }
}
