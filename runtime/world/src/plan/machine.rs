//! Machine models: GPUs and their links, as data.

mod rates;

pub use rates::{Rate, Splits};

use gemm_dsl::spec::GemmLayout;
use gemm_perf::H200 as DEVICE;

/// Model of GPUs and their links, sufficient to predict the time of a schedule.
///
/// Two machines were measured, with GEMMs in `f32`: [`ClusterModel::h200_nccl`] and
/// [`ClusterModel::h200_copy_engines`]. [`ClusterModel::computing`] adapts a machine to a kernel.
/// Derive other machines from these:
///
/// ```
/// use gemm_world::plan::{ClusterModel, Gpu, Hosts};
///
/// let one_host = ClusterModel::h200_nccl();
/// // Hosts with eight GPUs each (not measured) and a higher GEMM rate.
/// let gpu = Gpu { flops: 160e12, ..one_host.gpu };
/// let (name, hosts) = ("8 hosts with 8 x H200", Some(Hosts::infiniband(8)));
/// let many = ClusterModel { name, gpu, hosts, ..one_host };
/// assert!(many.gpu.product([8192, 2048, 8192]) < one_host.gpu.product([8192, 2048, 8192]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterModel {
    /// Name for printed output, such as `H200, NCCL`.
    pub name: &'static str,
    /// Model of each GPU. All GPUs are alike.
    pub gpu: Gpu,
    /// Link between a GPU and the others.
    pub link: Link,
    /// Share of its speed that a GEMM loses while its GPU takes part in an exchange, from 0
    /// (nothing) to 1 (all).
    pub lost: f64,
    /// Assignment of ranks to hosts. `None` if all ranks are on one host.
    pub hosts: Option<Hosts>,
    /// True if padded blocks are packed before they are sent, and unpacked on arrival. Each copy
    /// has its own memory until all exchanges are complete.
    pub staging: bool,
    /// Stored layout of A and B, which determines the blocks that are padded.
    pub layout: GemmLayout,
}

/// Throughput figures of a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// Peak rate in `f32` with all SMs busy, in floating-point operations (additions and
    /// multiplications) per second.
    pub flops: f64,
    /// Tile shapes that an SM may compute; a kernel exists for each.
    pub tiles: &'static [Tile],
    /// Number of SMs of the GPU.
    pub multiprocessors: usize,
    /// Seconds that a launch takes in addition to its GEMM.
    pub launch: f64,
    /// Memory bandwidth in bytes per second, reads and writes together.
    pub memory: f64,
    /// Cost of the splits of A and B before the multiplication, zero for `f32`.
    pub splits: Splits,
    /// Rates in arithmetics other than `f32`, used by [`Gpu::computing`].
    pub rates: &'static [Rate],
}

/// Tile of C computed by one SM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tile {
    /// Rows of C in the tile.
    pub rows: usize,
    /// Columns of C in the tile.
    pub cols: usize,
    /// Share of [`Gpu::flops`] that a GEMM reaches with this tile.
    pub reached: f64,
}

/// Speed of a link: latency and rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Seconds until the first byte arrives.
    pub latency: f64,
    /// Bytes per second after the first byte, in each direction.
    pub rate: f64,
}

/// Assignment of ranks to hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hosts {
    /// Number of ranks per host, with consecutive numbers.
    pub gpus: usize,
    /// Link between a host and the others.
    pub network: Link,
    /// True if data for several ranks of a host crosses the network once and is then forwarded on
    /// the host, as in NCCL's collectives. False if the data crosses the network once for each
    /// rank.
    pub once: bool,
}

impl Gpu {
    /// Predicts the seconds of a GEMM of extents `[m, n, k]` in one launch, with the fastest tiles.
    /// SMs compute tiles in waves, and the last wave takes as long as a full wave. Splits of A and
    /// B are included. A GEMM with M = 0 or N = 0 is not launched and takes 0 seconds.
    pub fn product(&self, [m, n, k]: [usize; 3]) -> f64 {
        match m == 0 || n == 0 {
            true => 0.0,
            false => self.multiplied([m, n, k]) + self.splits(m, k) + self.splits(k, n),
        }
    }

    /// Seconds to split a matrix.
    pub(super) fn splits(&self, rows: usize, cols: usize) -> f64 {
        rows as f64 * cols as f64 * self.splits.bytes / self.memory
    }

    /// Seconds of a GEMM whose splits exist.
    pub(super) fn multiplied(&self, [m, n, k]: [usize; 3]) -> f64 {
        if m == 0 || n == 0 {
            return 0.0;
        }
        let multiprocessors = self.multiprocessors.max(1);
        let time = |Tile { rows, cols, reached }: &Tile| {
            let [rows, cols] = [rows, cols].map(|extent| *extent.max(&1));
            let tiles = m.div_ceil(rows).saturating_mul(n.div_ceil(cols));
            let waves = tiles.div_ceil(multiprocessors) as f64;
            let of_wave = 2.0 * rows as f64 * cols as f64 * k as f64 * multiprocessors as f64;
            waves * of_wave / (self.flops * reached)
        };
        let fastest = self.tiles.iter().map(time).min_by(f64::total_cmp);
        self.launch + fastest.unwrap_or(0.0)
    }

    /// Largest number of rows, and of columns, of any tile.
    pub(super) fn largest(&self) -> [usize; 2] {
        let most = |extent: fn(&Tile) -> usize| self.tiles.iter().map(extent).max().unwrap_or(1);
        [most(|tile| tile.rows), most(|tile| tile.cols)]
    }
}

impl Link {
    /// Returns the seconds to move `bytes` bytes, which is 0 for 0 bytes.
    pub fn time(&self, bytes: u64) -> f64 {
        match bytes {
            0 => 0.0,
            _ => self.latency + bytes as f64 / self.rate,
        }
    }
}

impl Hosts {
    /// Creates hosts with one InfiniBand adapter of 400 Gbit/s per GPU. This was not measured: the
    /// model assumes that each adapter reaches 46 of its 50 GB/s, with NCCL's latency within a
    /// host.
    pub const fn infiniband(gpus: usize) -> Self {
        let network = Link { latency: NCCL.latency, rate: 46e9 * gpus as f64 };
        Self { gpus, network, once: true }
    }
}

/// cuBLAS in `f32` (TF32 off) on an H200: GEMMs of 8192 x 2048 x 8192, 16384 x 4096 x 16384 and
/// 32768 x 8192 x 32768 took 5.34, 42.7 and 339 ms. With tiles of 128 x 256 these are 4, 16 and 63
/// waves. A full wave reaches 53.1 TFLOP/s, and 0.8 % less in the last of these GEMMs. The share of
/// a smaller tile comes from the fastest GEMM with this tile at 1024 in
/// `tests/data/profiler/times.csv`. Larger K would give higher shares, but small tiles are used
/// only for parts that do not fill a wave of large tiles. SMs, launch time and memory bandwidth
/// come from `gemm-perf`.
const H200: Gpu = Gpu {
    flops: 53.1e12,
    tiles: &[
        Tile { rows: 128, cols: 256, reached: 1.0 },
        Tile { rows: 128, cols: 128, reached: 0.88 },
        Tile { rows: 64, cols: 128, reached: 0.90 },
        Tile { rows: 64, cols: 64, reached: 0.84 },
        Tile { rows: 32, cols: 64, reached: 0.77 },
    ],
    multiprocessors: DEVICE.sms as usize,
    launch: DEVICE.calibration.launch / 1e6,
    memory: DEVICE.peak.memory * DEVICE.calibration.reached.memory,
    splits: Splits { bytes: 0.0, once: false },
    rates: rates::H200,
};

/// All-gathers of NCCL 2.28.9 between 4 H200 of one host (NV18, NVLS off) reached 58, 251, 296, 324
/// and 341 GB/s into a GPU, at 1, 16, 64, 256 and 1024 MiB per rank. This model is within 4 % of
/// these measurements.
const NCCL: Link = Link { latency: 45e-6, rate: 330e9 };

impl ClusterModel {
    /// H200 GPUs of one host, linked by NCCL. Four GPUs were measured, with cuBLAS in `f32`.
    ///
    /// NCCL's blocks take SMs from the GEMM, which practically stops. The GEMMs multiplied a rank's
    /// own rows first, and the other rows after their arrival. They took longer by 0.9, 1.1 and 1.9
    /// times the duration of the exchange, at n = 8192, 16384 and 32768.
    ///
    /// NCCL moves contiguous bytes, so padded blocks are packed first. The model assumes that these
    /// copies run at memory speed.
    pub const fn h200_nccl() -> Self {
        Self { name: "H200, NCCL", link: NCCL, lost: 1.0, staging: true, ..Self::h200_host() }
    }

    /// H200 GPUs of one host and one process, linked by copy engines. Four GPUs were measured, with
    /// cuBLAS in `f32`.
    ///
    /// Copies reached 120 to 132 GB/s into a GPU. With concurrent copies, GEMMs reached 0.947,
    /// 0.996 and 0.984 of their speed at n = 8192, 16384 and 32768. The copies took 0.30, 0.15 and
    /// 0.075 of the time. The loss while copies run follows from both; [`ClusterModel::lost`] is
    /// 0.15. The latency was not measured; the model uses the time of a launch.
    pub const fn h200_copy_engines() -> Self {
        let link = Link { latency: H200.launch, rate: 126e9 };
        Self { name: "H200, copy engines", link, lost: 0.15, ..Self::h200_host() }
    }

    /// H200 GPUs linked through the host, in one process or by TCP between two processes. This was
    /// not measured.
    ///
    /// A block is copied to pageable memory, written into a message, read from it, and copied to
    /// the other GPU. One thread per rank performs these steps one after another, at about 10 GB/s
    /// each. The model assumes 2 GB/s in total, plus 0.1 ms per message. During these steps a rank
    /// launches nothing, so GEMMs wait.
    pub const fn h200_host() -> Self {
        Self {
            name: "H200, through the host",
            gpu: H200,
            link: Link { latency: 100e-6, rate: 2e9 },
            lost: 1.0,
            hosts: None,
            staging: false,
            layout: GemmLayout::Nn,
        }
    }
}
