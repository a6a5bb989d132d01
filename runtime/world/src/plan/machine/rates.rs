//! How fast products are in each arithmetic, as they were measured.

use super::{ClusterModel, Gpu, Tile};
use gemm_dsl::spec::{Arith, Instruction, SgemmSpec};
use gemm_perf::Calibration;

/// How fast a GPU is in an arithmetic that tensor cores compute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Which one.
    pub arith: Arith,
    /// By which instruction.
    pub mma: Instruction,
    /// Additions and multiplications of the product in a second, where all multiprocessors have a tile: where several products
    /// stand for one of `f32`, those of that one.
    pub flops: f64,
    /// What a multiprocessor computes of C at a time.
    pub tiles: &'static [Tile],
    /// Seconds of the launches of a product beside what they do.
    pub launch: f64,
}

const LARGE: &[Tile] = &[Tile { rows: 128, cols: 256, reached: 1.0 }];
const SQUARE: &[Tile] = &[Tile { rows: 128, cols: 128, reached: 1.0 }];
const SMALL: &[Tile] = &[Tile { rows: 64, cols: 128, reached: 1.0 }];

/// Under `mma: sync`, of a launch.
const fn sync(arith: Arith, teraflops: f64, tiles: &'static [Tile]) -> Rate {
    Rate { arith, mma: Instruction::Sync, flops: teraflops * 1e12, tiles, launch: LAUNCH }
}

/// Under `mma: wgmma`, of as many launches.
const fn wgmma(arith: Arith, teraflops: f64, launches: u32) -> Rate {
    let launch = LAUNCH + (launches - 1) as f64 * NEXT_LAUNCH;
    Rate { arith, mma: Instruction::Wgmma, flops: teraflops * 1e12, tiles: SQUARE, launch }
}

/// Seconds of a launch, and of each further one of the same program.
const LAUNCH: f64 = CALIBRATION.launch / 1e6;
const NEXT_LAUNCH: f64 = CALIBRATION.next_launch / 1e6;
const CALIBRATION: Calibration = gemm_perf::H200.calibration;

/// Stages 35, 36, 40, 41 and 42 of the ladder on an H200 in `tests/data/profiler/times.csv` (2026-11-24), at 4096 and 8192: `bf16` by
/// `mma.sync` 211 and 226 TFLOP/s, `bf16x6` 57.3 and 58.5; by `wgmma`, with what makes splits, `bf16` 580 and 679, `bf16x6` 129 and
/// 135, `f16x3` 205 and 227. What is here is without splits, whose bytes are in [`Gpu::splits`], and without waves of which some
/// tiles are missing.
///
/// The others were not measured. `f16` is as fast as `bf16` and `tf32` half as fast (NVIDIA H100 Tensor Core GPU Architecture, 2022);
/// `bf16x9` has nine products where `bf16x6` has six, and `tf32x3` three, half as fast.
pub(super) const H200: &[Rate] = &[
    sync(Arith::Bf16, 225.0, LARGE),
    sync(Arith::F16, 225.0, LARGE),
    sync(Arith::Tf32, 112.0, LARGE),
    sync(Arith::Bf16x6, 59.3, SMALL),
    sync(Arith::Bf16x9, 39.5, SMALL),
    sync(Arith::Tf32x3, 59.3, SMALL),
    wgmma(Arith::Bf16, 775.0, 3),
    wgmma(Arith::F16, 775.0, 3),
    wgmma(Arith::Tf32, 387.0, 3),
    wgmma(Arith::Bf16x6, 144.0, 4),
    wgmma(Arith::Bf16x9, 96.0, 4),
    wgmma(Arith::Tf32x3, 144.0, 4),
    wgmma(Arith::F16x3, 252.0, 7),
];

/// What is made of numbers before tensor cores multiply them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Splits {
    /// Bytes that are read and written for each number of A and of B; 0 where nothing is made.
    pub bytes: f64,
    /// Whether a rank makes those of its own parts once, for all of its products.
    pub once: bool,
}

impl Splits {
    /// Those of a kernel: numbers are read, once more where their lines are scaled, and each plane is written.
    fn from_spec(spec: &SgemmSpec) -> Self {
        if !spec.is_wgmma() {
            return Self::default();
        }
        let reads = if spec.arith.is_scaled() { 2.0 } else { 1.0 };
        let bytes = f64::from(spec.types().a.size()) * reads + f64::from(spec.staged_bytes());
        Self { bytes, once: spec.loses_as_a_whole() }
    }
}

impl Gpu {
    /// The same GPU where products are those of a kernel: as fast as its arithmetic is. One that has no such rate is taken to
    /// be as fast as in `f32`.
    ///
    /// ```
    /// use gemm_dsl::spec::SgemmSpec;
    /// use gemm_world::plan::ClusterModel;
    ///
    /// let gpu = ClusterModel::h200_nccl().gpu;
    /// let spec: SgemmSpec = "tile: 128x128x32, arith: bf16x6, mma: wgmma".parse()?;
    /// let speed = gpu.product([8192; 3]) / gpu.computing(&spec).product([8192; 3]);
    /// assert!(speed > 2.4 && speed < 2.7, "{speed}");
    /// # Ok::<(), gemm_dsl::SpecErrors>(())
    /// ```
    #[must_use]
    pub fn computing(&self, spec: &SgemmSpec) -> Self {
        let splits = Splits::from_spec(spec);
        let is_its = |rate: &&Rate| (rate.arith, rate.mma) == (spec.arith, spec.mma);
        match self.rates.iter().find(is_its) {
            None => Self { splits, rates: &[], ..*self },
            Some(Rate { flops, tiles, launch, .. }) => {
                Self { flops: *flops, tiles, launch: *launch, splits, rates: &[], ..*self }
            }
        }
    }
}

impl ClusterModel {
    /// The same machine where products are those of a kernel: as fast as its arithmetic is, of matrices that are stored as it
    /// takes them.
    #[must_use]
    pub fn computing(&self, spec: &SgemmSpec) -> Self {
        Self { gpu: self.gpu.computing(spec), layout: spec.layout, ..*self }
    }
}
