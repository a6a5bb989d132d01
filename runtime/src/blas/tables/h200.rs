//! By hand are the first twelve rows. Large products whose last round of large tiles is nearly full take those without
//! sharing them. Where B lies along K and K is long, and for a few of the thinnest products, a tree is grown from too
//! few shapes to have rows of their own: what they have was best at those, but for two that stand for what was not
//! measured, a row times a matrix that lies along K. All others are of `tune --table --rows 72`, but that two of them,
//! which had tiles of 128x256 for few shapes, have shared ones, one of them in two rows. It said:
//!
//! 72 rows of 36 lines, from the times of 79 lines at 1136 shapes on NVIDIA H200
//! slower than the best line, at them: 3.4 % in the geometric mean, at most 86.2 %, at 16x4096x32768 nn
//! slower than the best line, at 748 drawn shapes, by tables of others: 12.9 % in the geometric mean, at most
//! 4359.1 %, at 3x1402x97 nn
//! time of cuBLAS over that of the table: 1.588 in the geometric mean, 0.538 at least, at 1x3779x1594 nt
//!
//! By the same times the whole table, with those by hand, is 3.1 % slower than the best line, and the time of cuBLAS
//! over its own 1.593; over the grid of `examples/grid` 1.413, where M or N is at most 64 1.653, elsewhere 1.084.

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
    nt && k > 8192 && m > 128 && m * n > 140000 && (n <= 64 || m * n > 500000) =>
        tile: 256x64x16, thread: 16x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 14, warp: 128x32, order: row_serpentine, blocks_per_sm: 2, stream_k;
    nt && k > 8192 && min(m, n) > 128 && m * n > 140000 =>
        tile: 256x64x16, thread: 16x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 14, warp: 128x32, order: row_serpentine, blocks_per_sm: 2, split_k: auto;
    nt && k > 2048 && n > 64 && m * n > 140000 && waves(128x128) <= 0.49 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3, split_k: auto;
    nt && k > 2048 && n <= 64 && m * n > 140000 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 4, warp: 32x64, order: row_serpentine, slices: 4, split_k: auto;
    tt && k > 8192 && m * n > 500000 =>
        tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 15, warp: 64x32, order: column_serpentine, blocks_per_sm: 3, stream_k;
    m <= 16 && m > 8 && n > 512 && k > 8192 =>
        tile: 16x64x32, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4, blocks_per_sm: 4,
        split_k: auto;
    m <= 1 && (nt || tt) && n > 512 && k > 256 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, slices: 8;
    m <= 2 && (nt || tt) && n > 512 && k > 1200 => block: 2x1, lanes: k, thread: 2x4, float4, slices: 4;
    m <= 1 && n <= 4 && n > 1 && k > 8192 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, slices: 8, split_k: auto;
    m * n > 140000 && k <= 38 && n <= 200 =>
        tile: 32x32x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        order: row_serpentine, blocks_per_sm: 4;
    m * n > 140000 && k <= 38 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4, blocks_per_sm: 4;
    m * n > 140000 && m * n <= 900000 && k <= 128 =>
        tile: 32x64x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        order: column_serpentine, blocks_per_sm: 3;
    m * n > 3000000 && k <= 128 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 10, warp: 32x64, order: row_serpentine;
    m * n > 140000 && k <= 128 && waves(256x64) <= 0.5 =>
        tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 15, warp: 64x32, order: column_serpentine, blocks_per_sm: 3;
    m * n > 140000 && k <= 128 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 12, warp: 32x64, order: row_serpentine, blocks_per_sm: 2, slices: 2;
    m * n > 140000 && m * n <= 390000 && k <= 560 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 4, warp: 32x64, order: row_serpentine, slices: 4, split_k: auto;
    m * n > 140000 && k <= 560 && waves(64x64) > 7.0 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3, stream_k;
    m * n > 140000 && k <= 560 && waves(128x64) > 1.4 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 10, warp: 32x64, order: row_serpentine;
    m * n > 140000 && k <= 560 && !aligned =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 12, warp: 32x64, order: row_serpentine, blocks_per_sm: 2, slices: 2;
    m * n > 140000 && k <= 560 =>
        tile: 64x128x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 15, warp: 32x64, order: row_serpentine, slices: 2;
    m * n > 140000 && min(m, n) > 800 && min(m, n) <= 3000 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3, stream_k;
    m * n > 140000 && min(m, n) > 800 && nn =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3, stream_k;
    m * n > 140000 && min(m, n) > 800 =>
        tile: 128x256x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 5,
        spread: 10, warp: 32x128, raster: 8, order: column_serpentine, stream_k;
    m * n > 140000 && waves(64x128) > 0.3 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        spread: 10, warp: 32x64, order: row_serpentine, blocks_per_sm: 4, stream_k;
    m * n > 140000 && k <= 16384 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 4, warp: 32x64, order: row_serpentine, slices: 4, split_k: auto;
    m * n > 140000 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3, stream_k;
    waves(64x64) <= 0.02 && k > 1024 && k <= 2048 && min(m, n) > 15 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4, blocks_per_sm: 4,
        split_k: auto;
    waves(64x64) <= 0.02 && k > 1024 && min(m, n) > 15 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3, blocks_per_sm: 4,
        slices: 8, split_k: auto;
    waves(64x64) <= 0.02 && k > 1024 && n <= 3 => block: 1x1, lanes: k, unroll: 4, float4, slices: 32;
    waves(64x64) <= 0.02 && k > 1024 && (nn || tn) && n <= 50 =>
        block: 2x1, lanes: k, thread: 2x4, float4, slices: 4, split_k: auto;
    waves(64x64) <= 0.02 && k > 1024 && (nn || tn) =>
        block: 1x8, unroll: 4, thread: 1x4, float4, slices: 32, split_k: auto;
    waves(64x64) <= 0.02 && k > 1024 && max(m, n) <= 16 =>
        block: 1x1, lanes: k, unroll: 4, float4, slices: 32;
    waves(64x64) <= 0.02 && k > 1024 => block: 2x1, lanes: k, thread: 2x4, float4, slices: 4, split_k: auto;
    waves(64x64) <= 0.02 && m * n > 220 && k <= 5 => block: 4x64, unroll: 4;
    waves(64x64) <= 0.02 && m * n > 220 && k <= 256 => block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4;
    waves(64x64) <= 0.02 && m * n > 220 && m * n <= 300 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, slices: 8;
    waves(64x64) <= 0.02 && m * n > 220 && m * n <= 2048 =>
        block: 2x1, lanes: k, thread: 2x4, float4, slices: 4;
    waves(64x64) <= 0.02 && m * n > 220 && (nn || tn) =>
        block: 1x16, unroll: 4, thread: 1x4, float4, slices: 16;
    waves(64x64) <= 0.02 && m * n > 220 => block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4;
    waves(64x64) <= 0.02 && max(m, n) <= 6 && !nn && k <= 512 => block: 4x1, lanes: k, unroll: 4, float4;
    waves(64x64) <= 0.02 && max(m, n) <= 6 && !nn =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, slices: 8;
    waves(64x64) <= 0.02 && max(m, n) <= 6 && aligned =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, slices: 8;
    waves(64x64) <= 0.02 && max(m, n) <= 6 && k <= 64 => block: 4x1, lanes: k, unroll: 4, float4;
    waves(64x64) <= 0.02 && max(m, n) <= 6 => block: 1x1, lanes: k, unroll: 4, float4, slices: 32;
    waves(64x64) <= 0.02 && k > 512 => block: 1x1, lanes: k, unroll: 4, float4, slices: 32;
    waves(64x64) <= 0.02 && k <= 2 => block: 4x64, unroll: 4;
    waves(64x64) <= 0.02 && k <= 200 => block: 4x1, lanes: k, unroll: 4, float4;
    waves(64x64) <= 0.02 && n <= 3 => block: 4x1, lanes: k, unroll: 4, float4;
    waves(64x64) <= 0.02 => block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, slices: 8;
    k > 1200 && k <= 16384 && min(m, n) > 32 && waves(64x64) <= 0.04 =>
        tile: 32x32x64, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 2,
        order: row_serpentine, blocks_per_sm: 2, slices: 4, split_k: auto;
    k > 1200 && min(m, n) > 32 && waves(64x64) <= 0.04 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 4, warp: 32x64, order: row_serpentine, slices: 4, split_k: auto;
    k > 1200 && min(m, n) > 32 && m * n <= 65536 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 4, warp: 32x64, order: row_serpentine, slices: 4, split_k: auto;
    k > 1200 && min(m, n) > 32 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        spread: 12, warp: 32x64, order: row_serpentine, blocks_per_sm: 2, slices: 2, split_k: auto;
    k > 1200 && n > 2 && n <= 4 => block: 8x1, lanes: k, thread: 4x4, float4, blocks_per_sm: 2, split_k: auto;
    k > 1200 && n <= 4 && !nt =>
        block: 32x1, lanes: m, unroll: 2, thread: 4x4, float4, blocks_per_sm: 2, slices: 8, split_k: auto;
    k > 1200 && k <= 16384 && n <= 4 =>
        block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4;
    k > 1200 && n <= 4 =>
        block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4, split_k: auto;
    k > 1200 && min(m, n) <= 4 && m <= 2 =>
        block: 1x16, unroll: 4, thread: 1x4, float4, slices: 16, split_k: auto;
    k > 1200 && min(m, n) <= 4 =>
        block: 1x32, unroll: 2, thread: 4x4, float4, blocks_per_sm: 2, slices: 8, split_k: auto;
    k > 1200 && max(m, n) > 1700 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3, blocks_per_sm: 4,
        slices: 8;
    k > 1200 && m * n <= 16384 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3, blocks_per_sm: 4,
        slices: 8, split_k: auto;
    k > 1200 =>
        tile: 32x64x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        order: column_serpentine, blocks_per_sm: 3, split_k: auto;
    m * n <= 4096 && k <= 32 && waves(64x128) > 0.1 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4, blocks_per_sm: 4;
    m * n <= 4096 && k <= 32 && waves(256x64) <= 0.02 => block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4;
    m * n <= 4096 && k <= 32 => block: 4x64, unroll: 4;
    m * n <= 4096 && n <= 3 && m <= 230 => block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, slices: 8;
    m * n <= 4096 && n <= 3 => block: 4x1, lanes: k, unroll: 4, float4;
    m * n <= 4096 && waves(256x64) > 0.1 => block: 1x8, unroll: 4, thread: 1x4, float4, slices: 32;
    m * n <= 4096 && k <= 140 => block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4;
    m * n <= 4096 => block: 2x1, lanes: k, thread: 2x4, float4, slices: 4;
    k <= 5 && m * n <= 65536 => block: 4x64, unroll: 4;
    k <= 5 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4, blocks_per_sm: 4;
    k <= 90 && n <= 4 && !nn =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4, blocks_per_sm: 4;
    k <= 90 && n <= 4 => block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4;
    k <= 90 && m * n <= 100000 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4, blocks_per_sm: 4;
    k <= 90 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4, blocks_per_sm: 4;
    n <= 4 && waves(64x128) <= 0.375 =>
        block: 32x1, lanes: m, unroll: 2, thread: 4x4, float4, blocks_per_sm: 2, slices: 8, split_k: auto;
    n <= 4 => block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4;
    waves(64x64) <= 0.03 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4, blocks_per_sm: 4,
        split_k: auto;
    m <= 2 => block: 1x16, unroll: 4, thread: 1x4, float4, slices: 16;
    m * n <= 131072 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3, blocks_per_sm: 4,
        slices: 8;
    else =>
        tile: 32x32x64, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4, stages: 2,
        order: row_serpentine, blocks_per_sm: 2, slices: 4;
};
