//! By hand are the first three rows: large products whose last round of large tiles is nearly full take those without
//! sharing them. All others are of `tune --table --rows 64`, which of such tiles was given those that blocks share alone,
//! and said:
//!
//! 64 rows of 36 lines, from the times of 77 lines at 721 shapes on NVIDIA H200
//! slower than the best line, at them: 5.1 % in the geometric mean, at most 166.7 %, at 1x4x32768 nn
//! slower than the best line, at 341 drawn shapes, by tables of others: 23.1 % in the geometric mean, at most
//! 2337.6 %, at 39x15x4327 nt
//! time of cuBLAS over that of the table: 1.470 in the geometric mean, 0.336 at least, at 1x4x32768 nn

use gemm_runtime::{SgemmTable, sgemm_table};

/// For each shape the line that costs least around it.
pub const GEMM: SgemmTable = sgemm_table! {
    aligned && min(m, n) > 512 && k > 256 && waves(128x256) > 0.9 * floor(waves(128x256) + 0.999) && nn =>
        tile: 128x256x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 5,
        spread: 10, warp: 32x128, raster: 8, order: column_serpentine;
    aligned && min(m, n) > 512 && k > 256 && waves(256x128) > 0.9 * floor(waves(256x128) + 0.999) && tn =>
        tile: 256x128x16, thread: 16x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 5,
        warp: 128x32, raster: 8, order: row_serpentine;
    aligned && min(m, n) > 512 && k > 256 && waves(256x128) > 0.9 * floor(waves(256x128) + 0.999) =>
        tile: 256x128x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 14, warp: 64x64, raster: 8, order: column_serpentine;
    waves(128x128) > 0.26 && k <= 16 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4, blocks_per_sm: 4;
    waves(128x128) > 0.26 && k <= 256 && waves(128x256) <= 0.24 && waves(64x128) <= 0.5 =>
        tile: 32x64x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        spread: 12, order: column_serpentine, blocks_per_sm: 3;
    waves(128x128) > 0.26 && k <= 256 && waves(128x256) <= 0.24 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        warp: 32x64, order: row_serpentine, slices: 4;
    waves(128x128) > 0.26 && k <= 256 && min(m, n) <= 200 =>
        tile: 64x32x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        spread: 12, order: column_serpentine, blocks_per_sm: 3;
    waves(128x128) > 0.26 && k <= 256 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 10, warp: 32x64, order: row_serpentine;
    waves(128x128) > 0.26 && m * n <= 65536 =>
        block: 32x1, lanes: m, unroll: 2, thread: 4x4, float4, blocks_per_sm: 2, slices: 8, split_k: auto;
    waves(128x128) > 0.26 && k > 1000 && !tt =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3, stream_k;
    waves(128x128) > 0.26 && k > 1000 =>
        tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 12, warp: 64x32, order: column_serpentine, blocks_per_sm: 3, stream_k;
    waves(128x128) > 0.26 && waves(64x256) <= 0.4 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        warp: 32x64, order: row_serpentine, slices: 4, split_k: auto;
    waves(128x128) > 0.26 && !tn =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3;
    waves(128x128) > 0.26 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        warp: 32x64, order: row_serpentine, blocks_per_sm: 2, slices: 2;
    n <= 15 && k <= 128 && m * n > 4096 => block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4;
    n <= 15 && k <= 4 => block: 4x64, unroll: 4;
    n <= 15 && k <= 128 && min(m, n) <= 3 => block: 4x1, lanes: k, unroll: 4, float4;
    n <= 15 && k <= 128 => block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4;
    n <= 15 && m * n <= 512 && k <= 512 && min(m, n) <= 4 => block: 4x1, lanes: k, unroll: 4, float4;
    n <= 15 && m * n <= 512 && k <= 512 => block: 1x1, lanes: k, unroll: 4, float4, slices: 32;
    n <= 15 && m * n <= 128 => block: 1x1, lanes: k, unroll: 4, float4, slices: 32;
    n <= 15 && m * n <= 512 =>
        block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4, split_k: auto;
    n <= 15 && waves(64x256) > 0.49 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3, blocks_per_sm: 4,
        slices: 8, split_k: auto;
    n <= 2 => block: 4x1, lanes: k, unroll: 4, float4;
    n <= 15 && tn =>
        tile: 32x32x64, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 2,
        order: row_serpentine, blocks_per_sm: 2, slices: 4, split_k: auto;
    n <= 15 && k > 16384 => block: 8x1, lanes: k, thread: 4x4, float4, blocks_per_sm: 2, split_k: auto;
    n <= 15 && max(m, n) > 800 => block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4;
    n <= 15 && waves(256x128) <= 0.01 => block: 2x1, lanes: k, thread: 2x4, float4, slices: 4;
    n <= 15 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4, blocks_per_sm: 4,
        split_k: auto;
    k > 4096 && waves(64x128) > 0.03 && min(m, n) <= 32 && m <= 8 =>
        block: 1x32, unroll: 2, thread: 4x4, float4, blocks_per_sm: 2, slices: 8, split_k: auto;
    k > 4096 && waves(64x128) > 0.03 && min(m, n) <= 32 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3, blocks_per_sm: 4,
        slices: 8, split_k: auto;
    k > 4096 && waves(64x128) > 0.03 && waves(64x128) <= 0.2 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        warp: 32x64, order: row_serpentine, slices: 4, split_k: auto;
    k > 4096 && waves(64x128) > 0.03 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        spread: 10, warp: 32x64, order: row_serpentine, blocks_per_sm: 4, stream_k;
    k > 4096 && m <= 8 && min(m, n) <= 2 =>
        block: 1x16, unroll: 4, thread: 1x4, float4, slices: 16, split_k: auto;
    k > 4096 && m <= 8 =>
        block: 1x32, unroll: 4, thread: 1x4, float4, blocks_per_sm: 2, slices: 8, split_k: auto;
    k > 4096 && tn =>
        tile: 32x32x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        order: row_serpentine, blocks_per_sm: 4, split_k: auto;
    k > 4096 && m * n <= 8192 =>
        tile: 32x32x64, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 2,
        order: row_serpentine, blocks_per_sm: 2, slices: 4, split_k: auto;
    k > 4096 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        warp: 32x64, order: row_serpentine, slices: 4, split_k: auto;
    m * n <= 3000 && k <= 60 => block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4;
    m * n <= 128 && k <= 256 => block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4;
    m * n <= 128 => block: 1x1, lanes: k, unroll: 4, float4, slices: 32;
    m * n <= 300 && !aligned =>
        block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4;
    m * n <= 3000 && !aligned => block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4;
    m * n <= 3000 && k <= 256 => block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4;
    m * n <= 3000 => block: 2x1, lanes: k, thread: 2x4, float4, slices: 4;
    m * n > 72000 && k > 1024 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        spread: 10, warp: 32x64, order: row_serpentine, blocks_per_sm: 4, split_k: auto;
    m * n > 72000 && k <= 64 && m <= 200 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4, blocks_per_sm: 4;
    m * n > 72000 && k <= 64 =>
        tile: 32x32x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        order: row_serpentine, blocks_per_sm: 4;
    m * n > 72000 && k <= 500 =>
        tile: 32x32x64, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 2,
        order: row_serpentine, blocks_per_sm: 2, slices: 4;
    m * n > 72000 && (tn || tt) =>
        tile: 64x16x32, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4, blocks_per_sm: 4;
    m * n > 72000 =>
        tile: 32x64x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        spread: 12, order: column_serpentine, blocks_per_sm: 3;
    k <= 6 => block: 4x64, unroll: 4;
    k <= 128 && min(m, n) <= 8 => block: 1x16, unroll: 4, thread: 1x4, float4, slices: 16;
    k <= 128 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4, blocks_per_sm: 4;
    nt && m * n <= 32768 => block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4;
    nt && k <= 1024 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3, blocks_per_sm: 4,
        slices: 8;
    nt =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        warp: 32x64, order: row_serpentine, slices: 4, split_k: auto;
    m <= 8 && k <= 2048 => block: 1x16, unroll: 4, thread: 1x4, float4, slices: 16;
    m <= 8 => block: 1x32, unroll: 2, thread: 4x4, float4, blocks_per_sm: 2, slices: 8, split_k: auto;
    m * n <= 4096 && (tn || tt) =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3, blocks_per_sm: 4,
        slices: 8;
    m * n <= 4096 && k <= 2048 => block: 1x16, unroll: 4, thread: 1x4, float4, slices: 16;
    m * n <= 4096 =>
        tile: 32x32x64, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 2,
        order: row_serpentine, blocks_per_sm: 2, slices: 4, split_k: auto;
    k <= 2048 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3, blocks_per_sm: 4,
        slices: 8;
    min(m, n) <= 32 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3, blocks_per_sm: 4,
        slices: 8, split_k: auto;
    waves(128x128) <= 0.02 =>
        tile: 64x32x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        spread: 12, order: column_serpentine, blocks_per_sm: 3, split_k: auto;
    min(m, n) <= 60 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4, blocks_per_sm: 4,
        split_k: auto;
    else =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        warp: 32x64, order: row_serpentine, slices: 4, split_k: auto;
};
