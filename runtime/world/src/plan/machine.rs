//! What a schedule runs on, as data.

mod rates;

pub use rates::{Rate, Splits};

use gemm_dsl::spec::GemmLayout;
use gemm_perf::H200 as DEVICE;

/// GPUs and what connects them, as far as it is known how long a schedule takes on them.
///
/// The two that were measured are [`ClusterModel::h200_nccl`] and [`ClusterModel::h200_copy_engines`], with products in `f32`;
/// [`ClusterModel::computing`] is for those of a kernel. Others are made of these:
///
/// ```
/// use gemm_world::plan::{ClusterModel, Gpu, Hosts};
///
/// let one_host = ClusterModel::h200_nccl();
/// // Hosts of eight, which nobody has measured here, with faster products.
/// let gpu = Gpu { flops: 160e12, ..one_host.gpu };
/// let (name, hosts) = ("8 hosts with 8 x H200", Some(Hosts::infiniband(8)));
/// let many = ClusterModel { name, gpu, hosts, ..one_host };
/// assert!(many.gpu.product([8192, 2048, 8192]) < one_host.gpu.product([8192, 2048, 8192]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterModel {
    /// What it is called where something is printed of it.
    pub name: &'static str,
    /// Each of its GPUs.
    pub gpu: Gpu,
    /// What a GPU gets of the others, and gives them.
    pub link: Link,
    /// The share of its speed that a product loses while an exchange runs in which its GPU takes part: 0 is nothing, 1 is all of
    /// it.
    pub lost: f64,
    /// Which ranks are on one host; none where all are.
    pub hosts: Option<Hosts>,
    /// Whether a block between whose rows something lies is packed before it is sent, and what comes is unpacked: each in
    /// memory of its own, which is given back when all exchanges are done.
    pub staging: bool,
    /// How A and B are stored, which says between which rows something lies.
    pub layout: GemmLayout,
}

/// How fast a GPU is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// Additions and multiplications in a second, where all multiprocessors have a tile, in `f32`.
    pub flops: f64,
    /// What a multiprocessor may compute of C at a time: there is a kernel for each of them.
    pub tiles: &'static [Tile],
    /// How many multiprocessors it has.
    pub multiprocessors: usize,
    /// Seconds of a launch beside those of its product.
    pub launch: f64,
    /// Bytes in a second that its memory reads and writes.
    pub memory: f64,
    /// What is made of A and B before they are multiplied; of `f32` nothing.
    pub splits: Splits,
    /// How fast it is in other arithmetics than `f32`, for [`Gpu::computing`].
    pub rates: &'static [Rate],
}

/// A part of C.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tile {
    /// Its rows.
    pub rows: usize,
    /// Its columns.
    pub cols: usize,
    /// The share of [`Gpu::flops`] that is reached with it.
    pub reached: f64,
}

/// How fast data travels: a latency and a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Seconds until the first byte is there.
    pub latency: f64,
    /// Bytes in a second, behind it, in each direction.
    pub rate: f64,
}

/// How ranks are dealt out to hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hosts {
    /// Ranks of a host, whose numbers follow one another.
    pub gpus: usize,
    /// What a host gets of the others, and gives them.
    pub network: Link,
    /// Whether what several ranks of a host get of one other rank in an exchange comes to the host once, and is passed on there,
    /// as collectives of NCCL do it, or once for each, as where everybody sends to everybody.
    pub once: bool,
}

impl Gpu {
    /// Seconds of a product of `[m, n, k]` in one launch, with the tiles that are fastest for it: multiprocessors take tiles in
    /// waves, and the last one takes as long as any. Before it, splits are made of A and B. Nothing is launched for none.
    pub fn product(&self, [m, n, k]: [usize; 3]) -> f64 {
        match m == 0 || n == 0 {
            true => 0.0,
            false => self.multiplied([m, n, k]) + self.splits(m, k) + self.splits(k, n),
        }
    }

    /// Seconds of making the splits of a matrix.
    pub(super) fn splits(&self, rows: usize, cols: usize) -> f64 {
        rows as f64 * cols as f64 * self.splits.bytes / self.memory
    }

    /// Those of a product whose splits have been made.
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

    /// The most rows and columns of a tile.
    pub(super) fn largest(&self) -> [usize; 2] {
        let most = |extent: fn(&Tile) -> usize| self.tiles.iter().map(extent).max().unwrap_or(1);
        [most(|tile| tile.rows), most(|tile| tile.cols)]
    }
}

impl Link {
    /// Seconds of so many bytes; of none, none.
    pub fn time(&self, bytes: u64) -> f64 {
        match bytes {
            0 => 0.0,
            _ => self.latency + bytes as f64 / self.rate,
        }
    }
}

impl Hosts {
    /// Hosts with an InfiniBand adapter of 400 Gbit/s for each GPU. Nothing of it was measured: of the 50 GB/s of each, 46 are
    /// taken to be reached, with the latency of NCCL within a host.
    pub const fn infiniband(gpus: usize) -> Self {
        let network = Link { latency: NCCL.latency, rate: 46e9 * gpus as f64 };
        Self { gpus, network, once: true }
    }
}

/// cuBLAS in `f32` (TF32 off) on an H200: products of 8192 x 2048 x 8192, 16384 x 4096 x 16384 and 32768 x 8192 x 32768 took
/// 5.34, 42.7 and 339 ms. With tiles of 128 x 256 these are 4, 16 and 63 waves, each as fast as 53.1 TFLOP/s, but for 0.8 % of
/// the last one. What smaller tiles reach is that of the fastest product with each at 1024 in `tests/data/profiler/times.csv`, less
/// than it would be with more terms: they are for parts that do not fill a wave of large ones. Multiprocessors,
/// launches and memory are those of the model of time.
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

/// All-gathers of NCCL 2.28.9 between 4 H200 of one host (NV18, NVLS off) came at 58, 251, 296, 324 and 341 GB/s into a GPU, at
/// 1, 16, 64, 256 and 1024 MiB a rank: within 4 % of these two.
const NCCL: Link = Link { latency: 45e-6, rate: 330e9 };

impl ClusterModel {
    /// H200 of one host, with NCCL. Four were measured, with cuBLAS in `f32`.
    ///
    /// NCCL's blocks take multiprocessors from the product, which is then as good as stopped: with own rows first and the rest
    /// when it had come, products took longer by 0.9, 1.1 and 1.9 times what the exchange took, at 8192, 16384 and 32768.
    ///
    /// NCCL moves bytes that lie one after the other: other blocks are packed, by copies that are taken to be as fast as memory.
    pub const fn h200_nccl() -> Self {
        Self { name: "H200, NCCL", link: NCCL, lost: 1.0, staging: true, ..Self::h200_host() }
    }

    /// H200 of one host, whose copy engines copy between peers, in one process. Four were measured, with cuBLAS in `f32`.
    ///
    /// Copies came at 120 to 132 GB/s into a GPU, beside products that were at 0.947, 0.996 and 0.984 of their speed at 8192,
    /// 16384 and 32768: there was something to copy for 0.30, 0.15 and 0.075 of the time, which is a loss of 0.15 meanwhile. Of
    /// the latency nothing was measured; it is taken to be that of a launch.
    pub const fn h200_copy_engines() -> Self {
        let link = Link { latency: H200.launch, rate: 126e9 };
        Self { name: "H200, copy engines", link, lost: 0.15, ..Self::h200_host() }
    }

    /// H200 whose blocks go through the host, in one process or by a connection between two. Nothing of it was measured.
    ///
    /// A block is copied to pageable memory, written into a message, taken out of it, and copied to the other GPU, by one
    /// thread of each rank and one step after the other: at about 10 GB/s each, that is 2 GB/s, and 0.1 ms for a message. A rank
    /// launches nothing meanwhile, so products wait.
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
