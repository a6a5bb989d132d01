//! Rules for single GEMMs, measured on an H200.
//!
//! The first 43 rules were written by hand, in `examples/bench/src/tune/table/h200.first`. They
//! cover:
//!
//! * large GEMMs without split-K whose last wave of large tiles is nearly full;
//! * GEMMs with a large K whose B is K-major or whose C is small;
//! * large GEMMs with one to sixteen rows or columns of C;
//! * C with many elements, by rules of an earlier table.
//!
//! `tune --table h200.rs --times FILE --rows 100 --first h200.first` wrote all other rules. Its
//! report, before three of the hand-written rules were added:
//!
//! ```text
//! 100 rows, the first 40 by hand, of 60 lines,
//! from the times of 131 lines at 1452 shapes on NVIDIA H200
//! slower than the best line, at them:
//! 4.6 % in the geometric mean, at most 70.9 %, at 1024x3x4096 nt
//! slower than the best line, at 1068 drawn shapes, by tables of others:
//! 11.7 % in the geometric mean, at most 1390.9 %, at 1443x2x29 nn
//! time of cuBLAS over that of the table:
//! 1.582 in the geometric mean, 0.693 at least, at 1x8032x93 tt
//! ```

use gemm_runtime::{SgemmTable, sgemm_table};

/// Rules that give each shape the spec with the lowest cost for shapes around it.
pub const GEMM: SgemmTable = sgemm_table! {
    aligned && min(m, n) > 512 && k > 256 && waves(128x256) > 0.9 * floor(waves(128x256) + 0.999) &&
    nn =>
        tile: 128x256x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 5, spread: 10, warp: 32x128, raster: 8, order: column_serpentine, blocks_per_sm: 1;
    aligned && min(m, n) > 512 && k > 256 && waves(256x128) > 0.9 * floor(waves(256x128) + 0.999) &&
    tn =>
        tile: 256x128x16, thread: 16x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 5, warp: 128x32, raster: 8, order: row_serpentine, blocks_per_sm: 1;
    aligned && min(m, n) > 512 && k > 256 && waves(256x128) > 0.9 * floor(waves(256x128) + 0.999) =>
        tile: 256x128x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 14, warp: 64x64, raster: 8, order: column_serpentine, blocks_per_sm: 1;
    nt && k > 8192 && m > 128 && m * n > 140000 && (n <= 64 || m * n > 500000) =>
        tile: 256x64x16, thread: 16x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 14, warp: 128x32, order: row_serpentine, blocks_per_sm: 2, stream_k;
    nt && k > 2048 && min(m, n) > 128 && m * n > 140000 && (k > 8192 || m * n > 500000) =>
        tile: 256x64x16, thread: 16x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 14, warp: 128x32, order: row_serpentine, blocks_per_sm: 2, split_k: auto;
    nt && k > 2048 && n > 64 && m * n > 140000 && waves(128x128) <= 0.49 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3,
        split_k: auto;
    nt && k > 2048 && n > 48 && n <= 64 && m * n > 140000 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, warp: 32x64, order: row_serpentine, blocks_per_sm: 1, slices: 4,
        split_k: auto;
    tt && k > 8192 && m * n > 500000 =>
        tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 15, warp: 64x32, order: column_serpentine, blocks_per_sm: 3, stream_k;
    k > 16384 && min(m, n) > 32 && m * n > 8192 && m * n <= 65536 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, warp: 32x64, order: row_serpentine, blocks_per_sm: 1, slices: 4,
        split_k: auto;
    aligned && m <= 1 && n > 4 && n <= 64 && k > 1024 && (nn || tn) =>
        block: 1x8, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 32, split_k: auto;
    n <= 1 && m > 64 && m <= 4096 && k > 16384 && (nn || nt) =>
        block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4,
        split_k: auto;
    nt && m > 4 && m <= 8 && n > 900 && k > 900 =>
        block: 1x4, lanes: k, thread: 8x4, float4, blocks_per_sm: 1, slices: 2;
    nt && m > 2 && m <= 4 && n > 900 && k > 900 =>
        block: 1x4, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1, slices: 2;
    tt && m > 2 && m <= 4 && n > 900 && k > 900 =>
        block: 2x1, lanes: k, thread: 2x4, float4, blocks_per_sm: 1, slices: 4;
    n > 2 && n <= 4 && m > 900 && k > 900 && (nn || nt) =>
        block: 8x1, lanes: k, thread: 4x4, float4, blocks_per_sm: 2, split_k: auto;
    m <= 1 && (nt || tt) && n > 512 && k > 256 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    m <= 2 && (nt || tt) && n > 512 && k > 1200 =>
        block: 2x1, lanes: k, thread: 2x4, float4, blocks_per_sm: 1, slices: 4;
    n <= 1 && (tn || tt) && m > 512 && k > 256 =>
        block: 16x1, lanes: m, unroll: 4, thread: 4x1, float4, blocks_per_sm: 1, slices: 16,
        split_k: auto;
    nt && aligned && n > 4 && n <= 16 && m > 2048 && k > 900 =>
        block: 4x1, lanes: k, thread: 4x8, float4, blocks_per_sm: 1;
    m <= 1 && (nn || tn) && n > 512 && k > 2048 =>
        block: 1x16, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 16, split_k: auto;
    m <= 1 && (nn || tn) && n > 512 && k > 64 =>
        block: 1x16, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 16;
    m <= 1 && (nn || tn) && n > 8 && n <= 512 && k > 200 && k <= 1024 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    m > 2000 && n > 1 && n <= 48 && k <= 5 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    n > 2000 && m > 1 && m <= 48 && k <= 5 => block: 4x64, unroll: 4, blocks_per_sm: 1;
    m <= 1 && n <= 4 && n > 1 && k > 8192 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8,
        split_k: auto;
    n <= 1 && (nn || nt) && m > 512 && k > 256 =>
        block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4;
    min(m, n) > 48 && m * n > 140000 && k <= 38 && n <= 200 =>
        tile: 32x32x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, order: row_serpentine, blocks_per_sm: 4;
    min(m, n) > 48 && m * n > 140000 && k <= 38 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    min(m, n) > 48 && m * n > 140000 && m * n <= 900000 && k <= 128 =>
        tile: 32x64x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, order: column_serpentine, blocks_per_sm: 3;
    min(m, n) > 48 && m * n > 3000000 && k <= 128 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 10, warp: 32x64, order: row_serpentine, blocks_per_sm: 1;
    min(m, n) > 48 && m * n > 140000 && k <= 128 && waves(256x64) <= 0.5 =>
        tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 15, warp: 64x32, order: column_serpentine, blocks_per_sm: 3;
    min(m, n) > 48 && m * n > 140000 && k <= 128 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 12, warp: 32x64, order: row_serpentine, blocks_per_sm: 2, slices: 2;
    min(m, n) > 48 && m * n > 140000 && m * n <= 390000 && k <= 560 =>
        tile: 32x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, blocks_per_sm: 1, slices: 8;
    min(m, n) > 48 && m * n > 140000 && k <= 560 && waves(64x64) > 7.0 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3,
        stream_k;
    min(m, n) > 48 && m * n > 140000 && k <= 560 && waves(128x64) > 1.4 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 10, warp: 32x64, order: row_serpentine, blocks_per_sm: 1;
    min(m, n) > 48 && m * n > 140000 && k <= 560 && !aligned =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 12, warp: 32x64, order: row_serpentine, blocks_per_sm: 2, slices: 2;
    min(m, n) > 48 && m * n > 140000 && k <= 560 =>
        tile: 64x128x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 15, warp: 32x64, order: row_serpentine, blocks_per_sm: 1, slices: 2;
    min(m, n) > 48 && m * n > 140000 && min(m, n) > 800 && min(m, n) <= 3000 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3,
        stream_k;
    min(m, n) > 48 && m * n > 140000 && min(m, n) > 800 && nn =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3,
        stream_k;
    min(m, n) > 48 && m * n > 140000 && min(m, n) > 800 =>
        tile: 128x256x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 5, spread: 10, warp: 32x128, raster: 8, order: column_serpentine, blocks_per_sm: 1,
        stream_k;
    min(m, n) > 48 && m * n > 140000 && waves(64x128) > 0.3 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, spread: 10, warp: 32x64, order: row_serpentine, blocks_per_sm: 4, stream_k;
    min(m, n) > 48 && m * n > 140000 && k <= 16384 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, warp: 32x64, order: row_serpentine, blocks_per_sm: 1, slices: 4,
        split_k: auto;
    min(m, n) > 48 && m * n > 140000 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 8, warp: 32x64, raster: 8, order: row_serpentine, blocks_per_sm: 3,
        stream_k;
    m * n <= 256 && k > 1024 && nt =>
        block: 1x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1, slices: 32;
    m * n <= 2080 && k > 1024 && nt =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    m * n <= 2080 && k > 1024 && min(m, n) > 15 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8, split_k: auto;
    m * n <= 50 && k > 1024 && !aligned =>
        block: 1x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1, slices: 32;
    m * n <= 50 && k > 1024 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8,
        split_k: auto;
    m * n <= 2080 && k > 1024 && m <= 6 =>
        block: 1x8, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 32, split_k: auto;
    m * n <= 2080 && k > 1024 =>
        block: 2x1, lanes: k, thread: 2x4, float4, blocks_per_sm: 1, slices: 4, split_k: auto;
    m * n > 194 && m * n <= 300 && k > 128 =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    m * n > 194 && m * n <= 2080 && k > 128 =>
        block: 2x1, lanes: k, thread: 2x4, float4, blocks_per_sm: 1, slices: 4;
    m * n > 194 && m * n <= 2080 && k <= 5 => block: 4x64, unroll: 4, blocks_per_sm: 1;
    m * n > 194 && m * n <= 2080 && n <= 3 =>
        block: 4x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1;
    m * n > 194 && m * n <= 2080 =>
        block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1;
    m * n <= 2080 && max(m, n) > 6 && k <= 512 =>
        block: 4x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1;
    m * n <= 2080 && max(m, n) > 6 =>
        block: 1x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1, slices: 32;
    m * n <= 2080 && !nn && k <= 512 => block: 4x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1;
    m * n <= 2080 && !nn =>
        block: 1x1, lanes: k, unroll: 2, thread: 1x4, float4, blocks_per_sm: 1, slices: 8;
    m * n <= 2080 && k <= 128 =>
        block: 1x16, unroll: 4, thread: 1x4, float4, blocks_per_sm: 1, slices: 16;
    m * n <= 2080 => block: 1x1, lanes: k, unroll: 4, float4, blocks_per_sm: 1, slices: 32;
    m <= 16 && k <= 10 => block: 4x64, unroll: 4, blocks_per_sm: 1;
    m <= 16 && k <= 50 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    m <= 16 && m * n <= 40000 && k <= 800 =>
        block: 1x4, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1;
    m <= 16 && m * n <= 40000 && min(m, n) <= 8 =>
        tile: 8x64x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4, split_k: auto;
    m <= 16 && m * n <= 40000 =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
    m <= 16 && (nn || tn) && k <= 2048 =>
        tile: 8x64x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4;
    m <= 16 && (nn || tn) =>
        tile: 16x64x32, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4, split_k: auto;
    m <= 16 && m * n <= 50000 => block: 4x1, lanes: k, thread: 4x8, float4, blocks_per_sm: 1;
    m <= 16 =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    k <= 5 && waves(128x64) <= 0.15 => block: 4x64, unroll: 4, blocks_per_sm: 1;
    k <= 5 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    k <= 110 && min(m, n) > 8 && m * n <= 100000 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    k <= 110 && min(m, n) > 8 =>
        tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    k <= 110 && m * n > 16384 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    k <= 110 && n <= 3 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4;
    k <= 110 => block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1;
    waves(256x64) > 0.4 && min(m, n) <= 32 && m * n <= 262144 =>
        tile: 32x128x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, blocks_per_sm: 1, slices: 4, split_k: auto;
    waves(256x64) > 0.4 && min(m, n) <= 32 =>
        tile: 32x256x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 7, blocks_per_sm: 1, slices: 2, split_k: auto;
    waves(256x64) > 0.4 && waves(64x256) <= 0.2 =>
        tile: 48x128x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, blocks_per_sm: 1, slices: 4, split_k: auto;
    waves(256x64) > 0.4 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, spread: 10, warp: 32x64, order: row_serpentine, blocks_per_sm: 4, split_k: auto;
    min(m, n) <= 8 && k <= 700 =>
        block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1;
    min(m, n) <= 8 && waves(128x128) <= 0.5 =>
        tile: 64x8x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 4, split_k: auto;
    min(m, n) <= 8 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    n > 512 && k <= 1024 =>
        tile: 16x32x64, thread: 8x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    n > 512 =>
        tile: 32x128x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, blocks_per_sm: 1, slices: 4, split_k: auto;
    min(m, n) > 64 && k <= 1024 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    min(m, n) > 64 && waves(128x128) <= 0.06 =>
        tile: 64x64x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, warp: 32x64, order: row_serpentine, blocks_per_sm: 1, slices: 4,
        split_k: auto;
    min(m, n) > 64 =>
        tile: 128x32x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, blocks_per_sm: 1, slices: 4, split_k: auto;
    m > 8192 && min(m, n) > 32 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 4, spread: 10, warp: 32x64, order: row_serpentine, blocks_per_sm: 4, split_k: auto;
    m > 8192 && min(m, n) <= 16 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    m > 8192 =>
        tile: 256x32x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 7, blocks_per_sm: 1, slices: 2, split_k: auto;
    m > 1024 && k <= 2048 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    m > 1024 && n > 32 =>
        tile: 128x48x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, blocks_per_sm: 1, slices: 4, split_k: auto;
    m > 1024 && (nn || nt) =>
        tile: 128x32x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, blocks_per_sm: 1, slices: 4, split_k: auto;
    m > 1024 && m * n <= 65536 =>
        tile: 64x16x32, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4, split_k: auto;
    m > 1024 =>
        tile: 128x32x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, spread: 4, blocks_per_sm: 1, slices: 4, split_k: auto;
    k <= 700 && m * n > 32768 =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8;
    k <= 700 && !nt =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 4, slices: 8;
    k <= 700 => block: 1x4, lanes: k, unroll: 2, thread: 4x4, float4, blocks_per_sm: 1;
    m * n > 16384 =>
        tile: 64x32x32, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, pad_b: 4,
        stages: 3, blocks_per_sm: 1, slices: 8, split_k: auto;
    k <= 2024 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, pad_b: 4, stages: 4,
        blocks_per_sm: 4, split_k: auto;
    else =>
        tile: 32x16x64, thread: 4x8, float4, transpose, pad_a: 4, pad_b: 4, stages: 3,
        blocks_per_sm: 1, slices: 8, split_k: auto;
};
