//! Rules for single GEMMs, measured on an H200.
//!
//! The first seven rules were written by hand, in `examples/bench/src/tune/table/h200.first`. They
//! cover:
//!
//! * large GEMMs without split-K whose last wave of large tiles is nearly full;
//! * GEMMs with a large K whose B is K-major.
//!
//! `tune --table h200.rs --times FILE --rows 140 --first h200.first` wrote all other rules. FILE
//! has the times of the grid and of 1800 random sizes. `tune` printed this report before four of
//! the seven handwritten rules were added:
//!
//! ```text
//! 140 rules, the first 3 by hand, of 60 specs, from the times of 91 specs at 2954 shapes on
//! NVIDIA H200
//! slower than the best spec, at these shapes:
//! 2.5 % in the geometric mean, at most 63.8 %, at 3227x29x6500 nt
//! slower than the best spec, at 2566 drawn shapes, by cross-validated tables:
//! 5.5 % in the geometric mean, at most 300.0 %, at 7964x18x6991 nt
//! cuBLAS time over that of the table:
//! 1.681 in the geometric mean, at least 0.631, at 3227x29x6500 nt
//! ```

use gemm_runtime::{SgemmTable, sgemm_table};

/// Rules that choose for each shape the spec with the lowest cost for neighbouring shapes.
pub const GEMM: SgemmTable = sgemm_table! {
    aligned && min(m, n) > 512 && k > 256 && waves(128x256) > 0.9 * floor(waves(128x256) + 0.999) &&
    (nn || tn && k > 16384) =>
        tile: 128x256x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 5, spread: 10, warp: 32x128, raster: 8, order: column_serpentine, blocks_per_sm: 1;
    aligned && min(m, n) > 512 && k > 256 && waves(256x128) > 0.9 * floor(waves(256x128) + 0.999) &&
    tn =>
        tile: 256x128x16, thread: 16x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 5, warp: 128x32, raster: 8, order: row_serpentine, blocks_per_sm: 1;
    aligned && min(m, n) > 512 && k > 256 && waves(256x128) > 0.9 * floor(waves(256x128) + 0.999) =>
        tile: 256x128x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 14, warp: 64x64, raster: 8, order: column_serpentine, blocks_per_sm: 1;
    aligned && nt && k > 8192 && m > 128 && m * n > 140000 && (n <= 64 || m * n > 500000) =>
        tile: 256x64x16, thread: 16x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 14, warp: 128x32, order: row_serpentine, blocks_per_sm: 2, stream_k;
    aligned && nt && k > 2048 && min(m, n) > 128 && m * n > 140000 &&
    (k > 8192 || m * n > 500000) =>
        tile: 256x64x16, thread: 16x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 14, warp: 128x32, order: row_serpentine, blocks_per_sm: 2, split_k: auto;
    aligned && nt && k > 2048 && n > 64 && m * n > 140000 && waves(128x128) <= 0.49 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3,
        split_k: auto;
    aligned && nt && k > 2048 && n > 48 && n <= 64 && m * n > 140000 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, warp: 32x64, order: row_serpentine, blocks_per_sm: 1, slices: 4,
        split_k: auto;
    aligned && nt && m > 4 && m <= 8 && n > 900 && k > 900 =>
        block: 1x4, lanes: k, thread: 8x4, float4, blocks_per_sm: 1, slices: 2;
    aligned && nt && m > 2 && m <= 4 && n > 900 && k > 900 =>
        block: 1x4, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1, slices: 2;
    aligned && tt && m > 2 && m <= 4 && n > 900 && k > 900 =>
        block: 2x1, lanes: k, thread: 2x4, float4, blocks_per_sm: 1, slices: 4;
    aligned && m > 1 && m <= 2 && (nt || tt) && n > 512 && k > 1200 =>
        block: 2x1, lanes: k, thread: 2x4, float4, blocks_per_sm: 1, slices: 4;
    aligned && n > 2 && n <= 4 && m > 900 && k > 900 && (nn || nt) =>
        block: 8x1, lanes: k, thread: 4x4, float4, blocks_per_sm: 2, split_k: auto;
    aligned && nt && n > 4 && n <= 16 && m > 2048 && k > 900 =>
        block: 4x1, lanes: k, thread: 4x8, float4, blocks_per_sm: 1;
    m * n > 49400 && m * n <= 226000 && k <= 23 && waves(64x128) > 0.24 =>
        tile: 32x64x8, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, blocks_per_sm: 4;
    m * n > 49400 && k <= 23 && waves(64x128) > 0.24 =>
        tile: 32x128x8, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, blocks_per_sm: 4;
    m * n > 49400 && k <= 1 => block: 4x64, unroll: 4, blocks_per_sm: 1;
    m * n > 74000 && k <= 23 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    m * n > 49400 && k <= 10 => block: 4x64, unroll: 4, blocks_per_sm: 1;
    m * n > 49400 && k <= 23 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    m * n > 49400 && m * n <= 68000 && k <= 130 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    m * n > 49400 && m * n <= 68000 && k <= 240 && waves(128x64) <= 0.2 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    m * n > 49400 && m * n <= 68000 && k <= 240 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8;
    m * n > 160000 && m * n <= 262144 && k <= 100 =>
        tile: 32x64x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, order: column_serpentine, blocks_per_sm: 3;
    m * n > 160000 && m * n <= 262144 && k <= 240 =>
        tile: 32x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, order: column_serpentine, blocks_per_sm: 4, slices: 4;
    m * n > 49400 && m * n <= 262144 && k <= 240 && waves(256x128) > 0.3 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    m * n > 49400 && m * n <= 262144 && k <= 225 =>
        tile: 32x32x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, order: row_serpentine, blocks_per_sm: 4;
    m * n > 49400 && m * n <= 262144 && k <= 240 =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
    m * n > 700000 && k > 100 && k <= 240 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 2, order: column_serpentine, slices: 2;
    m * n > 49400 && k > 100 && k <= 240 && n <= 1700 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, blocks_per_sm: 3, slices: 2;
    m * n > 49400 && k > 100 && k <= 240 =>
        tile: 32x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, order: column_serpentine, blocks_per_sm: 4, slices: 4;
    m * n > 1900000 && k <= 240 =>
        tile: 64x64x16, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 2,
        blocks_per_sm: 4;
    m * n > 49400 && k <= 240 && aligned && waves(128x64) <= 0.7 =>
        tile: 64x64x8, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, double_buffer,
        blocks_per_sm: 4;
    m * n > 49400 && k <= 240 && aligned =>
        tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 15, warp: 64x32, order: column_serpentine, blocks_per_sm: 3;
    m * n > 800000 && k <= 240 =>
        tile: 32x128x16, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 2,
        blocks_per_sm: 4;
    m * n > 49400 && k <= 240 && waves(64x64) <= 0.8 =>
        tile: 64x64x16, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4;
    m * n > 49400 && k <= 240 =>
        tile: 32x64x16, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 2,
        blocks_per_sm: 4;
    m * n > 49400 && waves(64x128) > 0.49 && waves(128x64) <= 0.49 && n <= 12 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    m * n > 49400 && waves(64x128) > 0.49 && waves(128x64) <= 0.49 && n <= 32 =>
        tile: 128x32x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, blocks_per_sm: 1, slices: 4, split_k: auto;
    m * n > 49400 && waves(64x128) > 0.49 && waves(128x64) <= 0.49 && n <= 56 =>
        tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 8, blocks_per_sm: 1, split_k: auto;
    m * n > 49400 && waves(64x128) > 0.49 && waves(128x64) <= 0.49 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, warp: 32x64, order: row_serpentine, blocks_per_sm: 1, slices: 4,
        split_k: auto;
    m * n > 49400 && waves(64x128) > 0.49 && k <= 630 && waves(256x128) <= 0.23 =>
        tile: 32x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, order: column_serpentine, blocks_per_sm: 4, slices: 4;
    m * n > 49400 && waves(64x128) > 0.49 && k <= 630 && waves(256x128) <= 0.26 =>
        tile: 64x128x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 15, warp: 32x64, order: row_serpentine, blocks_per_sm: 1, slices: 2;
    m * n > 49400 && waves(64x128) > 0.49 && k <= 630 && n <= 256 =>
        tile: 64x32x16, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 2,
        blocks_per_sm: 8;
    m * n > 49400 && waves(64x128) > 0.49 && k <= 630 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 2, order: column_serpentine, slices: 2;
    m * n > 49400 && waves(64x128) > 0.49 && waves(64x64) > 3.99 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3,
        stream_k;
    m * n > 49400 && waves(64x128) > 0.49 && waves(128x64) <= 0.57 =>
        tile: 32x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, order: column_serpentine, blocks_per_sm: 4, slices: 4;
    m * n > 49400 && waves(64x128) > 0.49 && m <= 137 =>
        tile: 32x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, order: column_serpentine, blocks_per_sm: 4, slices: 4;
    m * n > 49400 && waves(64x128) > 0.49 && !aligned =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, spread: 10, warp: 32x64, order: row_serpentine, blocks_per_sm: 4, stream_k;
    m * n > 49400 && waves(64x128) > 0.49 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3,
        stream_k;
    m * n > 49400 && m <= 32 && min(m, n) <= 16 && (nn || tn) =>
        tile: 16x64x32, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4, split_k: auto;
    m * n > 49400 && m <= 32 && min(m, n) <= 16 =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
    m * n > 49400 && m <= 32 && k <= 1024 =>
        tile: 32x64x32, thread: 8x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, order: row_serpentine, blocks_per_sm: 1, slices: 2, split_k: auto;
    m * n > 49400 && m <= 32 =>
        tile: 32x128x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, blocks_per_sm: 1, slices: 4, split_k: auto;
    m * n > 49400 && n <= 28 && (tn || tt) =>
        tile: 64x32x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, blocks_per_sm: 1, slices: 8, split_k: auto;
    m * n > 49400 && n <= 28 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    m * n > 49400 && m * n <= 246000 && waves(64x64) > 0.55 && k <= 1024 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    m * n > 49400 && waves(64x64) > 0.55 && k <= 1024 && m <= 3000 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, warp: 32x64, order: row_serpentine, blocks_per_sm: 1, slices: 4,
        split_k: auto;
    m * n > 49400 && waves(64x64) > 0.55 && k <= 1024 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    m * n > 49400 && waves(64x64) > 0.55 && max(m, n) > 2700 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3,
        split_k: auto;
    m * n > 49400 && waves(64x64) > 0.55 && waves(256x64) <= 0.28 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, spread: 10, warp: 32x64, order: row_serpentine, blocks_per_sm: 4, stream_k;
    m * n > 49400 && waves(64x64) > 0.55 =>
        tile: 32x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 2, order: column_serpentine, blocks_per_sm: 3, slices: 4, split_k: auto;
    m * n > 49400 && k > 800 && waves(128x64) > 0.23 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, spread: 10, warp: 32x64, order: row_serpentine, blocks_per_sm: 4, split_k: auto;
    m * n > 49400 && k > 800 && waves(128x64) <= 0.19 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, warp: 32x64, order: row_serpentine, blocks_per_sm: 1, slices: 4,
        split_k: auto;
    m * n > 49400 && k > 800 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, blocks_per_sm: 3, slices: 2, split_k: auto;
    m * n > 49400 && waves(64x64) <= 0.28 && !nn =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    m * n > 49400 && waves(64x64) <= 0.28 =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    m * n > 49400 && !tn =>
        tile: 32x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, blocks_per_sm: 1, slices: 8;
    m * n > 49400 =>
        tile: 32x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 2, order: column_serpentine, blocks_per_sm: 3, slices: 4;
    k <= 2 && m * n <= 2310 && n <= 3 => block: 4x64, unroll: 4, blocks_per_sm: 1;
    k <= 245 && m * n <= 2310 && n <= 3 =>
        block: 4x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1;
    k <= 290 && m * n <= 2310 && n <= 3 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    k <= 5 && m * n <= 2310 => block: 4x64, unroll: 4, blocks_per_sm: 1;
    k <= 128 && m * n <= 2310 && max(m, n) <= 720 =>
        block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1;
    k <= 128 && m * n <= 2310 =>
        block: 1x16, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 16;
    k <= 290 && m * n <= 2310 && m <= 1 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    k <= 290 && m * n <= 390 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    k <= 290 && m * n <= 2310 =>
        block: 2x1, lanes: k, thread: 2x4, float4, blocks_per_sm: 1, slices: 4;
    k <= 8 && waves(64x128) <= 0.125 => block: 4x64, unroll: 4, blocks_per_sm: 1;
    k <= 8 && waves(256x64) <= 0.27 =>
        tile: 32x64x8, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, blocks_per_sm: 4;
    k <= 8 && m * n <= 2600 =>
        tile: 32x64x8, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, blocks_per_sm: 4;
    k <= 8 => block: 4x64, unroll: 4, blocks_per_sm: 1;
    k > 129 && k <= 290 && m <= 3 =>
        block: 1x16, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 16;
    k > 129 && k <= 290 && m <= 5 =>
        block: 1x4, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1;
    k > 129 && k <= 290 && m > 4096 =>
        tile: 64x8x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4, split_k: auto;
    k > 129 && k <= 290 && min(m, n) <= 4 =>
        block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1;
    k > 129 && k <= 290 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8;
    k <= 290 && m <= 2 && m * n > 8192 =>
        tile: 8x64x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4;
    k <= 64 && m <= 2 => block: 1x16, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 16;
    k <= 290 && m <= 2 =>
        block: 1x8, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 32, split_k: auto;
    k <= 290 && n > 4 && n <= 4096 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    k <= 290 && n > 4 && m * n <= 15100 =>
        block: 1x16, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 16;
    k <= 290 && n > 4 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    k <= 290 && min(m, n) > 3 =>
        block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1;
    k <= 290 && n <= 1 && !nt =>
        block: 16x1, lanes: m, unroll: 4, thread: 4x1, float4, blocks_per_sm: 1, slices: 16,
        split_k: auto;
    k <= 290 && n <= 1 => block: 4x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1;
    k <= 290 && !tn =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    k <= 290 => block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1;
    m * n > 78 && m * n <= 840 && k <= 2020 && m <= 200 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    m * n > 78 && m * n <= 840 && k <= 2020 =>
        block: 4x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1;
    m * n <= 840 && k > 780 && k <= 2020 =>
        block: 1x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1, slices: 32;
    m * n <= 840 && k <= 2020 && n <= 1 =>
        block: 4x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1;
    m * n <= 840 && k <= 2020 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    m * n > 280 && m * n <= 840 && nt =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    m * n <= 128 && nt => block: 1x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1, slices: 32;
    m * n <= 840 && nt && k <= 5000 =>
        block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4;
    m * n <= 840 && nt =>
        block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4,
        split_k: auto;
    m * n <= 840 && m <= 1 =>
        block: 1x8, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 32, split_k: auto;
    m * n <= 256 && min(m, n) <= 2 =>
        block: 1x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1, slices: 32;
    m * n <= 256 =>
        block: 2x1, lanes: k, thread: 2x4, float4, blocks_per_sm: 1, slices: 4, split_k: auto;
    m * n <= 840 && n > 3 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8, split_k: auto;
    m * n <= 840 && !nn =>
        block: 16x1, lanes: m, unroll: 4, thread: 4x1, float4, blocks_per_sm: 1, slices: 16,
        split_k: auto;
    m * n <= 840 =>
        block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4,
        split_k: auto;
    n > 570 && min(m, n) > 8 && max(m, n) > 2000 =>
        tile: 32x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 2, order: column_serpentine, blocks_per_sm: 3, slices: 4, split_k: auto;
    n > 570 && min(m, n) > 8 && k <= 420 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8;
    n > 570 && min(m, n) > 8 && waves(256x64) <= 0.08 =>
        tile: 32x64x32, thread: 8x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, order: row_serpentine, blocks_per_sm: 1, slices: 2, split_k: auto;
    n > 570 && min(m, n) > 8 =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
    n > 570 && m <= 1 && !nn =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    n > 570 && m <= 1 && m * n <= 4096 =>
        block: 1x8, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 32, split_k: auto;
    n > 570 && m <= 1 => block: 1x16, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 16;
    n > 570 && !nt && m * n <= 2048 =>
        block: 2x1, lanes: k, thread: 2x4, float4, blocks_per_sm: 1, slices: 4;
    n > 570 && !nt =>
        tile: 8x64x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4, split_k: auto;
    n > 570 && k <= 1200 => block: 1x4, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1;
    n > 570 =>
        tile: 8x64x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4, split_k: auto;
    n <= 2 && (tn || tt) =>
        block: 16x1, lanes: m, unroll: 4, thread: 4x1, float4, blocks_per_sm: 1, slices: 16,
        split_k: auto;
    n <= 2 => block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4;
    n <= 8 && aligned && min(m, n) > 6 =>
        tile: 64x8x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4, split_k: auto;
    n <= 8 && aligned && k <= 1024 =>
        block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1;
    n <= 8 && aligned => block: 8x1, lanes: k, thread: 4x4, float4, blocks_per_sm: 2, split_k: auto;
    n <= 8 && m * n <= 2300 && !tn =>
        block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4;
    n <= 8 && m * n <= 2300 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8, split_k: auto;
    n <= 8 && k <= 374 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8;
    n <= 8 && m * n <= 2700 =>
        block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4;
    n <= 8 =>
        tile: 64x8x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4, split_k: auto;
    k <= 1160 && waves(64x128) > 0.034 && m * n <= 26000 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8;
    k <= 1160 && waves(64x128) > 0.034 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    k <= 1160 && m * n <= 2048 =>
        block: 2x1, lanes: k, thread: 2x4, float4, blocks_per_sm: 1, slices: 4;
    k <= 1160 && nt => block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1;
    k <= 1160 && m * n <= 13000 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4, split_k: auto;
    k <= 1160 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8;
    m * n <= 2427 && k <= 4000 && n <= 340 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4, split_k: auto;
    m * n <= 2427 && k <= 4000 =>
        block: 2x1, lanes: k, thread: 2x4, float4, blocks_per_sm: 1, slices: 4;
    m * n <= 2427 && min(m, n) <= 8 =>
        tile: 8x64x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4, split_k: auto;
    m * n <= 2427 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8, split_k: auto;
    m * n <= 14600 && m <= 21 =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
    m * n <= 14600 && k <= 1297 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4, split_k: auto;
    m * n <= 14600 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
    k <= 4096 && n <= 12 =>
        tile: 128x32x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, blocks_per_sm: 1, slices: 4, split_k: auto;
    k <= 4096 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
    waves(64x64) <= 0.11 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, warp: 32x64, order: row_serpentine, blocks_per_sm: 1, slices: 4,
        split_k: auto;
    else =>
        tile: 128x32x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, blocks_per_sm: 1, slices: 4, split_k: auto;
};
