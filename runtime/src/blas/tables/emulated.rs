//! Rules for FP32 emulation on tensor cores, for the GEMMs where it is faster on an H200. They
//! precede the `f32` rules.
//!
//! `tune --table FILE --accuracy norm` measured 1900 shapes; the conditions and specs follow from
//! its times. Emulation pays only for large GEMMs with at least 128 rows and columns, because
//! separate launches compute and check the splits. These rules apply to 871 of the 1900 shapes. For
//! these shapes, the geometric means of two ratios are:
//!
//! | class | time of chosen spec / time of best spec tried | speed / speed of cuBLAS in `f32` |
//! | --- | --- | --- |
//! | `bound` | 1.019 | 1.66 |
//! | `norm` | 1.022 | 1.90 |
//!
//! Batches of small matrices gain nothing, because splitting them costs as much as multiplying
//! them. For a batch of 64, `f32` was faster at M = N = K = 128 and 256. At 512, tensor cores were
//! at least 1.3 times as fast.

/// Rules of `bf16x6`, for large GEMMs.
const BF16X6: &str = "\
    min(m, n) >= 128 && k >= 64 && f64(m * n) * f64(k) > 2e8 && m * n > 2097152 =>
        tile: 128x128x64, arith: bf16x6, mma: wgmma, copy: tma, float4, producer, raster: 8,
        stages: 2, persistent, blocks_per_sm: 1;
    min(m, n) >= 128 && k >= 64 && f64(m * n) * f64(k) > 2e8 && waves(64x128) <= 0.13 =>
        tile: 64x64x64, arith: bf16x6, mma: wgmma, copy: tma, float4, producer, raster: 8,
        stages: 4, blocks_per_sm: 1, split_k: auto;
    min(m, n) >= 128 && k >= 64 && f64(m * n) * f64(k) > 2e8 && waves(64x64) > 2.0 =>
        tile: 128x128x64, arith: bf16x6, mma: wgmma, copy: tma, float4, producer, raster: 8,
        stages: 2, blocks_per_sm: 1;
    min(m, n) >= 128 && k >= 64 && f64(m * n) * f64(k) > 2e8 =>
        tile: 128x64x64, arith: bf16x6, mma: wgmma, copy: tma, float4, producer, raster: 8,
        stages: 3, blocks_per_sm: 1, split_k: auto;
";

/// `f16x3`, for larger GEMMs with a large K.
const F16X3: &str = "\
    min(m, n) >= 128 && k >= 64 && f64(m * n) * f64(k) > 3e8 && waves(64x64) > 2.0 && k > 256 =>
        tile: 128x128x64, arith: f16x3, mma: wgmma, copy: tma, float4, producer, raster: 8,
        stages: 3, persistent, blocks_per_sm: 1;
    min(m, n) >= 128 && k >= 64 && f64(m * n) * f64(k) > 3e8 && m * n > 524288 && k > 700 =>
        tile: 128x64x64, arith: f16x3, mma: wgmma, copy: tma, float4, producer, raster: 8,
        stages: 4, blocks_per_sm: 1;
    min(m, n) >= 128 && k >= 64 && f64(m * n) * f64(k) > 3e8 && m * n > 131072 && k > 3000 =>
        tile: 128x64x64, arith: f16x3, mma: wgmma, copy: tma, float4, producer, raster: 8,
        stages: 4, blocks_per_sm: 1, split_k: auto;
";

/// Rules of `bf16x6` for batches of large matrices.
const BATCHES_BF16X6: &str = "\
    min(m, n) >= 384 && k >= 64 && f64(m * n) * f64(k * batch) > 2e8 && waves(64x64) > 2.0 =>
        tile: 128x128x64, arith: bf16x6, mma: wgmma, copy: tma, float4, producer, raster: 8,
        stages: 2, blocks_per_sm: 1, batch: strided;
    min(m, n) >= 384 && k >= 64 && f64(m * n) * f64(k * batch) > 2e8 =>
        tile: 128x64x64, arith: bf16x6, mma: wgmma, copy: tma, float4, producer, raster: 8,
        stages: 3, blocks_per_sm: 1, split_k: auto, batch: strided;
";
const BATCHES_F16X3: &str = "\
    min(m, n) >= 384 && k >= 64 && f64(m * n) * f64(k * batch) > 3e8 && waves(64x64) > 2.0 &&
    k > 256 =>
        tile: 128x128x64, arith: f16x3, mma: wgmma, copy: tma, float4, producer, raster: 8,
        stages: 3, blocks_per_sm: 1, batch: strided;
    min(m, n) >= 384 && k >= 64 && f64(m * n) * f64(k * batch) > 3e8 && k > 1000 =>
        tile: 128x64x64, arith: f16x3, mma: wgmma, copy: tma, float4, producer, raster: 8,
        stages: 4, blocks_per_sm: 1, split_k: auto, batch: strided;
";

/// Rules within the error bound of `f32`: for single GEMMs, and for batches.
pub(super) const BOUND: [&[&str]; 2] = [&[BF16X6], &[BATCHES_BF16X6]];
/// Rules with an error bound relative to the greatest magnitude of a row or column: for single
/// GEMMs, and for batches.
pub(super) const NORM: [&[&str]; 2] = [&[F16X3, BF16X6], &[BATCHES_F16X3, BATCHES_BF16X6]];
