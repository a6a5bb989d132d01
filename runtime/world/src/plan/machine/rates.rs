//! Measured rates of GEMMs in each arithmetic.

use super::{ClusterModel, Gpu, Tile};
use gemm_dsl::spec::{Arith, Factor, Instruction, SgemmSpec};
use gemm_perf::Calibration;

/// Rate of a GPU in an arithmetic of tensor cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Arithmetic to which the rate applies.
    pub arith: Arith,
    /// Tensor core instruction of the rate.
    pub mma: Instruction,
    /// Floating-point operations (additions and multiplications) per second with all SMs busy. For
    /// FP32 emulation, the operations of the emulated `f32` GEMM are counted.
    pub flops: f64,
    /// Tile shapes that an SM may compute.
    pub tiles: &'static [Tile],
    /// Seconds that all launches of a GEMM take in addition to their work.
    pub launch: f64,
}

const LARGE: &[Tile] = &[Tile { rows: 128, cols: 256, reached: 1.0 }];
const SQUARE: &[Tile] = &[Tile { rows: 128, cols: 128, reached: 1.0 }];
const SMALL: &[Tile] = &[Tile { rows: 64, cols: 128, reached: 1.0 }];

/// Rate under `mma: sync`, with one launch.
const fn sync(arith: Arith, teraflops: f64, tiles: &'static [Tile]) -> Rate {
    Rate { arith, mma: Instruction::Sync, flops: teraflops * 1e12, tiles, launch: LAUNCH }
}

/// Rate under `mma: wgmma`, with `launches` launches.
const fn wgmma(arith: Arith, teraflops: f64, launches: u32) -> Rate {
    let launch = LAUNCH + (launches - 1) as f64 * NEXT_LAUNCH;
    Rate { arith, mma: Instruction::Wgmma, flops: teraflops * 1e12, tiles: SQUARE, launch }
}

/// Seconds of one launch of a program.
const LAUNCH: f64 = CALIBRATION.launch / 1e6;
const NEXT_LAUNCH: f64 = CALIBRATION.next_launch / 1e6;
const CALIBRATION: Calibration = gemm_perf::H200.calibration;

/// Stages 35, 36, 40, 41 and 42 of the ladder on an H200 in `tests/data/profiler/times.csv`
/// (2026-11-24), at 4096 and 8192. `mma.sync` reached 211 and 226 TFLOP/s in `bf16`, and 57.3 and
/// 58.5 in `bf16x6`. `wgmma`, with splits, reached 580 and 679 in `bf16`, 129 and 135 in `bf16x6`,
/// and 205 and 227 in `f16x3`. The rates below exclude splits, whose bytes are in [`Gpu::splits`],
/// and incomplete waves.
///
/// The other rates were not measured. `f16` is as fast as `bf16`, and `tf32` half as fast (NVIDIA
/// H100 Tensor Core GPU Architecture, 2022). `bf16x9` needs nine matmuls instead of the six of
/// `bf16x6`. `tf32x3` needs three matmuls at half the speed.
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

/// Splits that a GEMM computes before tensor cores multiply.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Splits {
    /// Bytes read and written per element of A and B, or 0 without splits.
    pub bytes: f64,
    /// True if a rank splits its own shards once for all its multiplications.
    pub once: bool,
}

impl Splits {
    /// Returns the cost of a kernel's splits. Each element is read once, or twice if rows and
    /// columns are scaled, and each split is written once.
    fn from_spec(spec: &SgemmSpec) -> Self {
        if !spec.converts_matrices() {
            return Self::default();
        }
        let reads = if spec.arith.is_scaled() { 2.0 } else { 1.0 };
        let staged = spec.staged_bytes(Factor::A);
        let bytes = f64::from(spec.types().a.size()) * reads + f64::from(staged);
        Self { bytes, once: spec.falls_back_as_a_whole() }
    }
}

impl Gpu {
    /// Returns the same GPU with the rates of a kernel's arithmetic. Without a matching rate, the
    /// GPU keeps its `f32` rate.
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
    /// Returns the same machine with the rates of a kernel's arithmetic and the layout of its
    /// matrices.
    #[must_use]
    pub fn computing(&self, spec: &SgemmSpec) -> Self {
        Self { gpu: self.gpu.computing(spec), layout: spec.layout, ..*self }
    }
}
