//! Rows by which tensor cores stand for `f32` where that is faster on an H200: they come before those of `f32`.
//!
//! Where it is faster, and by which lines, follows from the times of `tune --table FILE --accuracy norm` at 1900 shapes: of
//! large products, since splits are made and looked at in launches of their own, that have 128 rows and columns at least. At
//! the 871 shapes among these that come to such rows the row is slower than the best of all lines that were tried by
//! 1.9 % in the geometric mean under `bound` and 2.2 % under `norm`, and 1.66 and 1.90 times as fast as cuBLAS in `f32`.
//!
//! Batches of small matrices do not gain: as much is made of splits as is multiplied. Of 64 products `f32` was faster at 128
//! and 256 cubed, and tensor cores were at 512, by 1.3 times at least.

/// By `bf16x6`: large products.
const BF16X6: &str = "\
    min(m, n) >= 128 && k >= 64 && f64(m * n) * f64(k) > 2e8 && m * n > 2097152 =>
        tile: 128x128x64, arith: bf16x6, mma: wgmma, copy: tma, float4, producer, raster: 8, stages: 2, persistent;
    min(m, n) >= 128 && k >= 64 && f64(m * n) * f64(k) > 2e8 && waves(64x128) <= 0.13 =>
        tile: 64x64x64, arith: bf16x6, mma: wgmma, copy: tma, float4, producer, raster: 8, stages: 4, split_k: auto;
    min(m, n) >= 128 && k >= 64 && f64(m * n) * f64(k) > 2e8 && waves(64x64) > 2.0 =>
        tile: 128x128x64, arith: bf16x6, mma: wgmma, copy: tma, float4, producer, raster: 8, stages: 2;
    min(m, n) >= 128 && k >= 64 && f64(m * n) * f64(k) > 2e8 =>
        tile: 128x64x64, arith: bf16x6, mma: wgmma, copy: tma, float4, producer, raster: 8, stages: 3, split_k: auto;
";

/// By `f16x3`: larger ones of long sums.
const F16X3: &str = "\
    min(m, n) >= 128 && k >= 64 && f64(m * n) * f64(k) > 3e8 && waves(64x64) > 2.0 && k > 256 =>
        tile: 128x128x64, arith: f16x3, mma: wgmma, copy: tma, float4, producer, raster: 8, stages: 3, persistent;
    min(m, n) >= 128 && k >= 64 && f64(m * n) * f64(k) > 3e8 && m * n > 524288 && k > 700 =>
        tile: 128x64x64, arith: f16x3, mma: wgmma, copy: tma, float4, producer, raster: 8, stages: 4;
    min(m, n) >= 128 && k >= 64 && f64(m * n) * f64(k) > 3e8 && m * n > 131072 && k > 3000 =>
        tile: 128x64x64, arith: f16x3, mma: wgmma, copy: tma, float4, producer, raster: 8, stages: 4, split_k: auto;
";

/// The same of batches.
const BATCHES_BF16X6: &str = "\
    min(m, n) >= 384 && k >= 64 && f64(m * n) * f64(k * batch) > 2e8 && waves(64x64) > 2.0 =>
        tile: 128x128x64, arith: bf16x6, mma: wgmma, copy: tma, float4, producer, raster: 8, stages: 2, batch: strided;
    min(m, n) >= 384 && k >= 64 && f64(m * n) * f64(k * batch) > 2e8 =>
        tile: 128x64x64, arith: bf16x6, mma: wgmma, copy: tma, float4, producer, raster: 8, stages: 3, split_k: auto, batch: strided;
";
const BATCHES_F16X3: &str = "\
    min(m, n) >= 384 && k >= 64 && f64(m * n) * f64(k * batch) > 3e8 && waves(64x64) > 2.0 && k > 256 =>
        tile: 128x128x64, arith: f16x3, mma: wgmma, copy: tma, float4, producer, raster: 8, stages: 3, batch: strided;
    min(m, n) >= 384 && k >= 64 && f64(m * n) * f64(k * batch) > 3e8 && k > 1000 =>
        tile: 128x64x64, arith: f16x3, mma: wgmma, copy: tma, float4, producer, raster: 8, stages: 4, split_k: auto, batch: strided;
";

/// As far off as `f32` may be: rows of single products, and of batches.
pub(super) const BOUND: [&[&str]; 2] = [&[BF16X6], &[BATCHES_BF16X6]];
/// The same, and relative to the greatest of a line.
pub(super) const NORM: [&[&str]; 2] = [&[F16X3, BF16X6], &[BATCHES_F16X3, BATCHES_BF16X6]];
