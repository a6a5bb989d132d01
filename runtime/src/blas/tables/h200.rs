//! Rules for single GEMMs, measured on an H200.
//!
//! The first thirteen rules were written by hand, in
//! `examples/bench/src/tune/table/h200.first`. They cover:
//!
//! * large GEMMs without split-K that nearly fill each wave of large tiles: `waves(1x1)` is the
//!   number of elements of C for each SM, and a tile has 32,768;
//! * GEMMs that fill one wave of 128x64 tiles, for which four slices of K share the work of a tile;
//! * large GEMMs whose last wave is not full, by stream-K;
//! * GEMMs with a large K whose B is K-major.
//!
//! `tune --table h200.rs --times FILE --rows 170 --first h200.first` wrote all other rules, with
//! seven rules by hand. FILE has the times of the grid, of 1800 random sizes, and of 1056 GEMMs
//! with at most 64 rows or columns. `tune` printed this report:
//!
//! ```text
//! 170 rules, the first 7 by hand, of 70 specs, from the times of 91 specs at 3982 shapes on
//! NVIDIA H200
//! slower than the best spec, at these shapes:
//! 3.3 % in the geometric mean, at most 100.3 %, at 8x76x3761 tt
//! slower than the best spec, at 3606 drawn shapes, by cross-validated tables:
//! 6.6 % in the geometric mean, at most 325.0 %, at 56549x16x538 tn
//! cuBLAS time over that of the table:
//! 1.586 in the geometric mean, at least 0.551, at 37577x4x79 nn
//! ```

use gemm_runtime::{SgemmTable, sgemm_table};

/// Rules that choose for each shape the spec with the lowest cost for neighbouring shapes.
pub const GEMM: SgemmTable = sgemm_table! {
    aligned && min(m, n) > 512 && k > 256 && waves(1x1) > 29000.0 * floor(waves(128x256) + 0.999) &&
    (nn || nt || tn && k > 16384) =>
        tile: 128x256x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 10, warp: 32x128, raster: 8, stage_c, order: column_serpentine,
        blocks_per_sm: 1;
    aligned && min(m, n) > 512 && k > 256 && waves(1x1) > 29000.0 * floor(waves(256x128) + 0.999) &&
    tn =>
        tile: 256x128x16, thread: 16x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 5, spread: 6, warp: 128x32, raster: 8, stage_c, order: row_serpentine,
        blocks_per_sm: 1;
    aligned && min(m, n) > 512 && k > 256 && waves(1x1) > 29000.0 * floor(waves(256x128) + 0.999) =>
        tile: 256x128x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 14, warp: 64x64, raster: 8, order: column_serpentine, blocks_per_sm: 1;
    aligned && min(m, n) >= 256 && waves(128x64) > 0.9 && waves(128x64) <= 1.0 && k > 700 &&
    k <= 4096 && nn =>
        tile: 64x128x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 5, warp: 64x64, order: column_serpentine, blocks_per_sm: 1, slices: 4;
    aligned && min(m, n) >= 256 && waves(128x64) > 0.9 && waves(128x64) <= 1.0 && k > 700 &&
    k <= 4096 && (k <= 2500 || tn || tt) =>
        tile: 128x64x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, warp: 64x64, order: column_serpentine, blocks_per_sm: 1, slices: 4;
    aligned && nt && k > 8192 && m > 128 && m * n > 140000 && (n <= 64 || m * n > 500000) =>
        tile: 256x64x16, thread: 16x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 14, warp: 128x32, stage_c, order: row_serpentine, blocks_per_sm: 2,
        stream_k;
    aligned && tt && k > 700 && min(m, n) > 256 && m * n > 3200000 =>
        tile: 256x64x16, thread: 16x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 14, warp: 128x32, stage_c, order: row_serpentine, blocks_per_sm: 2,
        stream_k;
    aligned && k > 700 && m > 256 && n > 384 && m * n > 8000000 =>
        tile: 128x192x24, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 15, warp: 32x64, raster: 8, stage_c, order: row_serpentine,
        blocks_per_sm: 1, stream_k;
    aligned && (nn || nt) && k > 1000 && m > 256 && n > 384 && m * n > 3200000 =>
        tile: 128x128x24, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 20, warp: 32x64, raster: 8, stage_c, order: row_serpentine,
        blocks_per_sm: 1, stream_k;
    aligned && k > 1000 && m > 256 && n > 384 && (nt && m * n > 500000 || tn && m * n > 3200000) =>
        tile: 128x128x24, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 20, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 1,
        stream_k;
    aligned && nt && k > 2048 && min(m, n) > 128 && m * n > 140000 &&
    (k > 8192 || m * n > 500000) =>
        tile: 256x64x16, thread: 16x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 14, warp: 128x32, stage_c, order: row_serpentine, blocks_per_sm: 2,
        split_k: auto;
    aligned && nt && k > 2048 && n > 64 && m * n > 140000 && waves(128x128) <= 0.49 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3,
        split_k: auto;
    aligned && nt && k > 2048 && n > 48 && n <= 64 && m * n > 140000 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, warp: 32x64, order: row_serpentine, blocks_per_sm: 1, slices: 4,
        split_k: auto;
    min(m, n) > 28 && k <= 6 && waves(64x64) <= 0.26 && n <= 1800 =>
        block: 4x64, unroll: 4, blocks_per_sm: 1;
    min(m, n) > 28 && k <= 6 && waves(64x64) <= 0.26 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    min(m, n) > 28 && k <= 206 && waves(64x64) <= 0.26 && m * n <= 81000 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    min(m, n) > 28 && k <= 206 && waves(64x64) <= 0.26 =>
        tile: 32x32x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, order: row_serpentine, blocks_per_sm: 4;
    min(m, n) > 28 && k <= 23 && n <= 70 =>
        tile: 32x64x8, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, blocks_per_sm: 4;
    min(m, n) > 28 && k <= 23 && waves(64x128) > 0.28 =>
        tile: 32x128x8, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, blocks_per_sm: 4;
    min(m, n) > 28 && k <= 23 && m * n <= 103000 => block: 4x64, unroll: 4, blocks_per_sm: 1;
    min(m, n) > 28 && k <= 23 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    min(m, n) > 28 && k <= 206 && waves(64x64) <= 0.5 =>
        tile: 32x64x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, order: column_serpentine, blocks_per_sm: 3;
    min(m, n) > 28 && k <= 39 && waves(64x64) > 2.0 =>
        tile: 32x128x16, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3;
    min(m, n) > 28 && k <= 206 && waves(64x64) > 2.0 && m <= 800 =>
        tile: 32x128x16, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 2,
        blocks_per_sm: 4;
    min(m, n) > 28 && k <= 206 && waves(64x64) > 2.0 =>
        tile: 64x64x16, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 2,
        blocks_per_sm: 4;
    min(m, n) > 28 && k <= 206 && aligned =>
        tile: 64x64x8, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, double_buffer,
        blocks_per_sm: 4;
    min(m, n) > 28 && k <= 206 && waves(64x64) <= 0.845 && m * n <= 200000 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    min(m, n) > 28 && k <= 206 && waves(64x64) <= 0.845 =>
        tile: 64x64x16, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4;
    min(m, n) > 28 && k <= 106 =>
        tile: 32x64x16, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 2,
        blocks_per_sm: 4;
    min(m, n) > 28 && k <= 206 =>
        tile: 32x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, order: column_serpentine, blocks_per_sm: 4, slices: 4;
    min(m, n) > 28 && waves(64x64) > 0.7 && m <= 32 && k <= 4000 =>
        tile: 32x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 2, order: column_serpentine, blocks_per_sm: 3, slices: 4;
    min(m, n) > 28 && waves(64x64) > 0.7 && m <= 32 =>
        tile: 32x128x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, blocks_per_sm: 1, slices: 4, split_k: auto;
    min(m, n) > 28 && waves(64x64) > 0.7 && k <= 512 && waves(128x64) <= 0.76 =>
        tile: 32x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, order: column_serpentine, blocks_per_sm: 4, slices: 4;
    min(m, n) > 28 && waves(64x64) > 0.7 && k <= 512 && waves(256x128) <= 0.26 =>
        tile: 64x128x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 15, warp: 32x64, order: row_serpentine, blocks_per_sm: 1, slices: 2;
    min(m, n) > 28 && waves(64x64) > 0.7 && k <= 512 && m <= 16384 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 2, order: column_serpentine, slices: 2;
    min(m, n) > 28 && waves(64x64) > 0.7 && k <= 512 =>
        tile: 64x64x16, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4;
    min(m, n) > 28 && waves(64x64) > 0.7 && n <= 32 =>
        tile: 128x32x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, blocks_per_sm: 1, slices: 4, split_k: auto;
    min(m, n) > 28 && waves(64x64) > 0.7 && waves(256x64) > 1.49 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3,
        stream_k;
    min(m, n) > 28 && waves(64x64) > 0.7 && waves(64x128) <= 0.4 && m * n <= 262144 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    min(m, n) > 28 && waves(64x64) > 0.7 && waves(64x128) <= 0.4 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, spread: 10, warp: 32x64, order: row_serpentine, blocks_per_sm: 4, split_k: auto;
    min(m, n) > 28 && waves(64x64) > 0.7 && m <= 128 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3,
        split_k: auto;
    min(m, n) > 28 && waves(64x64) > 0.7 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, spread: 10, warp: 32x64, order: row_serpentine, blocks_per_sm: 4, stream_k;
    min(m, n) > 28 && m * n > 6000 && m * n <= 30000 && k <= 600 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8;
    min(m, n) > 28 && m * n <= 30000 && k <= 600 && (nn || tn) =>
        block: 1x8, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 32, split_k: auto;
    min(m, n) > 28 && m * n <= 30000 && k <= 600 =>
        block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1;
    min(m, n) > 28 && m * n <= 3500 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4, split_k: auto;
    min(m, n) > 28 && m * n <= 14600 && k <= 1024 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4, split_k: auto;
    min(m, n) > 28 && m * n <= 14600 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
    min(m, n) > 28 && m * n <= 30000 && k > 4096 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, warp: 32x64, order: row_serpentine, blocks_per_sm: 1, slices: 4,
        split_k: auto;
    min(m, n) > 28 && min(m, n) <= 128 && m * n <= 30000 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
    min(m, n) > 28 && m * n <= 30000 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8;
    min(m, n) > 28 && min(m, n) <= 32 && m <= 256 && k <= 2048 =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    min(m, n) > 28 && min(m, n) <= 32 && m <= 256 =>
        tile: 32x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 2, order: column_serpentine, blocks_per_sm: 3, slices: 4, split_k: auto;
    min(m, n) > 28 && min(m, n) <= 32 && waves(128x256) > 0.15 =>
        tile: 128x32x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, blocks_per_sm: 1, slices: 4, split_k: auto;
    min(m, n) > 28 && min(m, n) <= 32 && waves(256x128) <= 0.04 =>
        tile: 64x32x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, blocks_per_sm: 1, slices: 8, split_k: auto;
    min(m, n) > 28 && min(m, n) <= 32 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    min(m, n) > 28 && k <= 530 && waves(64x128) <= 0.155 && waves(128x64) <= 0.12 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    min(m, n) > 28 && k <= 530 && waves(64x128) <= 0.155 =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    min(m, n) > 28 && k <= 530 && m <= 40 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    min(m, n) > 28 && k <= 400 =>
        tile: 32x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, order: column_serpentine, blocks_per_sm: 4, slices: 4;
    min(m, n) > 28 && k <= 530 && !tn =>
        tile: 32x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, blocks_per_sm: 1, slices: 8;
    min(m, n) > 28 && k <= 530 =>
        tile: 32x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 2, order: column_serpentine, blocks_per_sm: 3, slices: 4;
    min(m, n) > 28 && waves(64x64) > 0.46 && m > 5000 =>
        tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 8, blocks_per_sm: 1, split_k: auto;
    min(m, n) > 28 && waves(64x64) > 0.46 && k <= 3400 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, blocks_per_sm: 3, slices: 2, split_k: auto;
    min(m, n) > 28 && waves(64x64) > 0.46 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, spread: 10, warp: 32x64, order: row_serpentine, blocks_per_sm: 4, split_k: auto;
    min(m, n) > 28 && k <= 720 && max(m, n) <= 1024 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    min(m, n) > 28 && k <= 720 =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    min(m, n) > 28 && m * n <= 167000 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, warp: 32x64, order: row_serpentine, blocks_per_sm: 1, slices: 4,
        split_k: auto;
    min(m, n) > 28 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, blocks_per_sm: 3, slices: 2, split_k: auto;
    k <= 5 && waves(128x64) <= 0.06 => block: 4x64, unroll: 4, blocks_per_sm: 1;
    k > 128 && k <= 287 && waves(128x64) <= 0.06 && m * n <= 300 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    k > 128 && k <= 287 && waves(128x64) <= 0.06 =>
        block: 2x1, lanes: k, thread: 2x4, float4, blocks_per_sm: 1, slices: 4;
    k <= 287 && waves(128x64) <= 0.06 && m * n > 2500 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    k <= 287 && waves(128x64) <= 0.06 && m * n <= 158 =>
        block: 4x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1;
    k <= 287 && waves(128x64) <= 0.06 && n <= 2 =>
        block: 4x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1;
    k <= 287 && waves(128x64) <= 0.06 =>
        block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1;
    k <= 287 && n > 16384 && m * n > 524288 =>
        tile: 32x64x16, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 2,
        blocks_per_sm: 4;
    k <= 287 && n > 16384 && (nt || tt) =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, double_buffer;
    k <= 287 && n > 16384 && n <= 36000 => block: 4x64, unroll: 4, blocks_per_sm: 1;
    k <= 90 && n > 16384 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    k <= 287 && n > 16384 =>
        tile: 8x64x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4;
    k <= 5 && m <= 17 => block: 4x64, unroll: 4, blocks_per_sm: 1;
    k <= 8 && m <= 17 =>
        tile: 32x64x8, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, blocks_per_sm: 4;
    k <= 8 && max(m, n) <= 1003 => block: 4x64, unroll: 4, blocks_per_sm: 1;
    k <= 8 => tile: 32x64x8, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, blocks_per_sm: 4;
    k <= 287 && m > 8192 && min(m, n) > 8 =>
        tile: 64x32x16, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 2,
        blocks_per_sm: 8;
    k <= 287 && m > 4070 && min(m, n) > 8 && min(m, n) <= 16 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    k <= 287 && m > 4070 && min(m, n) > 8 =>
        tile: 64x32x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, blocks_per_sm: 1, slices: 8, split_k: auto;
    k <= 287 && m > 4070 && waves(256x128) <= 0.14 =>
        block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1;
    k <= 287 && m > 4070 && m * n > 14600 =>
        tile: 64x8x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4, split_k: auto;
    k <= 32 && m > 4070 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    k <= 287 && m > 4070 =>
        block: 16x1, lanes: m, unroll: 4, thread: 4x1, float4, blocks_per_sm: 1, slices: 16,
        split_k: auto;
    k <= 88 && m <= 2 => block: 1x16, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 16;
    k <= 88 && m * n > 74000 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    k <= 88 && m * n <= 1420 => block: 4x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1;
    k <= 88 && max(m, n) > 6000 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    k <= 88 && m * n <= 4096 =>
        block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1;
    k <= 88 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    k <= 287 && n > 3917 && waves(256x128) <= 0.24 =>
        block: 1x8, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 32, split_k: auto;
    k <= 287 && n > 3917 =>
        tile: 8x64x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4;
    k <= 287 && m * n > 32768 =>
        tile: 32x32x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, order: row_serpentine, blocks_per_sm: 4;
    k <= 287 && n <= 1 => block: 4x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1;
    k <= 287 && n <= 4 => block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1;
    k <= 287 && m * n <= 1600 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    k <= 287 && m <= 5 => block: 1x4, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1;
    k <= 287 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8;
    m <= 16 && n <= 12 && k <= 970 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    m <= 16 && n <= 12 && k <= 16384 =>
        block: 1x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1, slices: 32;
    m <= 16 && n <= 12 && !nt =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8,
        split_k: auto;
    m <= 16 && n <= 12 => block: 1x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1, slices: 32;
    m <= 16 && n <= 340 && k <= 2960 && m * n <= 63 =>
        block: 1x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1, slices: 32;
    m <= 16 && n <= 340 && k <= 2960 && m * n <= 920 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    m <= 16 && n <= 340 && k <= 2960 && !aligned =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4, split_k: auto;
    m <= 16 && n <= 340 && k <= 2960 =>
        block: 1x8, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 32, split_k: auto;
    m <= 16 && n <= 340 && (nn || tn) && m * n <= 512 =>
        block: 1x8, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 32, split_k: auto;
    m <= 16 && n <= 340 && (nn || tn) =>
        tile: 8x64x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4, split_k: auto;
    m <= 16 && n <= 340 && m * n <= 128 =>
        block: 1x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1, slices: 32;
    m <= 16 && n <= 340 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    m > 8 && m <= 16 && waves(64x128) > 0.8 && !tt =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    m > 8 && m <= 16 && waves(64x128) > 0.8 =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    m > 8 && m <= 16 && k <= 400 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8;
    m > 8 && m <= 16 && (nt || tt) =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
    m > 8 && m <= 16 && waves(128x64) <= 0.8 =>
        tile: 16x64x32, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4, split_k: auto;
    m > 8 && m <= 16 =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    m > 1 && m <= 16 && (nn || tn) && waves(128x64) <= 0.5 =>
        tile: 8x64x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4, split_k: auto;
    m <= 16 && (nn || tn) && waves(128x64) <= 0.5 && k <= 512 =>
        block: 1x8, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 32, split_k: auto;
    m <= 16 && (nn || tn) && waves(128x64) <= 0.5 =>
        block: 1x16, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 16, split_k: auto;
    m <= 16 && (nn || tn) && min(m, n) <= 1 =>
        block: 1x16, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 16;
    m <= 16 && (nn || tn) && k <= 7500 =>
        tile: 8x64x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4;
    m <= 16 && (nn || tn) =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    m <= 16 && m * n <= 1024 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    m <= 16 && min(m, n) <= 1 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    m <= 16 && n > 40000 =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
    m <= 4 && m * n <= 4500 =>
        block: 2x1, lanes: k, thread: 2x4, float4, blocks_per_sm: 1, slices: 4;
    m <= 4 && k <= 3000 => block: 1x4, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1;
    m <= 4 => block: 1x4, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1, slices: 2;
    m <= 16 && !aligned && waves(128x64) <= 1.67 =>
        tile: 8x64x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4, split_k: auto;
    m <= 16 && !aligned =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
    m <= 16 && m * n <= 14000 =>
        block: 1x4, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1, slices: 2;
    m <= 16 && (tn || tt) =>
        tile: 8x64x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4, split_k: auto;
    m <= 16 => block: 1x4, lanes: k, thread: 8x4, float4, blocks_per_sm: 1, slices: 2;
    n <= 2 && (tn || tt) && waves(128x64) <= 0.01 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    n <= 2 && (tn || tt) =>
        block: 16x1, lanes: m, unroll: 4, thread: 4x1, float4, blocks_per_sm: 1, slices: 16,
        split_k: auto;
    n <= 2 && m * n <= 200 => block: 1x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1, slices: 32;
    n <= 2 && k <= 8192 =>
        block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4;
    n <= 2 =>
        block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4,
        split_k: auto;
    n > 30000 =>
        tile: 32x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, order: column_serpentine, slices: 2;
    n > 900 && k > 1024 && m <= 25 =>
        tile: 32x128x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, blocks_per_sm: 1, slices: 4, split_k: auto;
    n > 900 && k > 1024 =>
        tile: 32x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 2, order: column_serpentine, blocks_per_sm: 3, slices: 4, split_k: auto;
    n > 900 && waves(64x128) > 0.6 =>
        tile: 32x128x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, blocks_per_sm: 1, slices: 4, split_k: auto;
    n > 900 && waves(128x64) <= 0.25 =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    n > 900 =>
        tile: 32x64x32, thread: 8x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, order: row_serpentine, blocks_per_sm: 1, slices: 2, split_k: auto;
    n <= 8 && m * n <= 1400 && k <= 4096 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    n <= 8 && m * n <= 300 =>
        block: 2x1, lanes: k, thread: 2x4, float4, blocks_per_sm: 1, slices: 4, split_k: auto;
    n <= 8 && m * n <= 1400 =>
        block: 8x1, lanes: k, thread: 4x4, float4, blocks_per_sm: 2, split_k: auto;
    n <= 8 && (tn || tt) && m <= 512 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4, split_k: auto;
    n <= 8 && (tn || tt) =>
        tile: 64x8x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4, split_k: auto;
    n <= 8 && m * n <= 4096 && aligned =>
        block: 2x1, lanes: k, thread: 2x4, float4, blocks_per_sm: 1, slices: 4;
    n <= 8 && m * n <= 4096 && m <= 460 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4, split_k: auto;
    n <= 8 && m * n <= 4096 =>
        block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4;
    n <= 8 && min(m, n) <= 4 =>
        block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1;
    n <= 8 && waves(64x64) <= 0.9 =>
        tile: 64x8x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4, split_k: auto;
    n <= 8 && !nt =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
    n <= 8 => block: 4x1, lanes: k, thread: 4x8, float4, blocks_per_sm: 1;
    max(m, n) > 4070 && n > 16 && min(m, n) <= 22 =>
        tile: 256x32x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 7, blocks_per_sm: 1, slices: 2, split_k: auto;
    max(m, n) > 4070 && n > 16 =>
        tile: 128x32x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, blocks_per_sm: 1, slices: 4, split_k: auto;
    max(m, n) > 4070 && (nn || nt) =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
    max(m, n) > 4070 && n <= 11 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    max(m, n) > 4070 =>
        tile: 64x16x32, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4, split_k: auto;
    max(m, n) <= 198 && k <= 1560 =>
        block: 2x1, lanes: k, thread: 2x4, float4, blocks_per_sm: 1, slices: 4;
    max(m, n) <= 198 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8, split_k: auto;
    k <= 1000 && waves(64x128) <= 0.18 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8;
    k <= 1000 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    k <= 5200 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
    waves(64x64) <= 0.09 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
    else =>
        tile: 128x32x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, blocks_per_sm: 1, slices: 4, split_k: auto;
};
