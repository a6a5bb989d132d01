//! Measured on an H200, of 132 multiprocessors.
//!
//! Single products: `tune --table` over the grid of `examples/grid` and 210 drawn sizes, in all layouts, for each of four
//! parts: few columns, few rows, thin ones and others. By hand are the rows of large products whose tiles come out even.
//! Batches are by hand.

use super::Tables;
use crate::{SgemmTable, sgemm_table};

pub(super) static TABLES: Tables = Tables::new(ONE, BATCH);

/// Of single products.
pub(super) const ONE: SgemmTable = sgemm_table! {
    // A column or a few.
    n <= 8 && nn && k > 2800 && n <= 2 =>
        block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4, split_k: auto;
    n <= 8 && nn && k > 2800 && m <= 512 =>
        block: 2x1, lanes: k, thread: 2x4, float4, slices: 4, split_k: auto;
    n <= 8 && nn && k > 2800 => block: 8x1, lanes: k, thread: 4x4, float4, blocks_per_sm: 2, split_k: auto;
    n <= 8 && nn && m * n <= 2048 && k <= 512 => block: 4x1, lanes: k, unroll: 4, float4;
    n <= 8 && nn && m * n <= 2048 =>
        block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4;
    n <= 8 && nn && n <= 1 => block: 8x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2;
    n <= 8 && nn && k <= 32 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, stages: 4, blocks_per_sm: 4;
    n <= 8 && nn => block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4;
    n <= 8 && nt && k > 16384 => layout: nt, block: 1x1, lanes: k, unroll: 4, float4, slices: 32;
    n <= 8 && nt && m * n > 7400 && k <= 64 =>
        layout: nt, tile: 16x16x32, thread: 2x2, transpose, pad_a: 12, pad_b: 12, stages: 4,
        blocks_per_sm: 4;
    n <= 8 && nt && m * n > 7400 => layout: nt, block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4;
    n <= 8 && nt && k <= 10 => layout: nt, block: 4x64, unroll: 4;
    n <= 8 && nt && k <= 512 => layout: nt, block: 4x1, lanes: k, unroll: 4, float4;
    n <= 8 && nt && m * n <= 128 => layout: nt, block: 1x1, lanes: k, unroll: 4, float4, slices: 32;
    n <= 8 && nt =>
        layout: nt, block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4;
    n <= 8 && tn && k > 512 =>
        layout: tn, block: 32x1, lanes: m, unroll: 4, thread: 4x1, float4, blocks_per_sm: 2, slices: 8,
        split_k: auto;
    n <= 8 && tn && k <= 250 => layout: tn, block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4;
    n <= 8 && tn =>
        layout: tn, block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4;
    n <= 8 && m * n <= 900 && k <= 1500 => layout: tt, block: 4x1, lanes: k, unroll: 4, float4;
    n <= 8 && m * n <= 900 =>
        layout: tt, tile: 16x16x64, thread: 4x4, float4, transpose, pad_b: 4, stages: 3, blocks_per_sm: 4,
        slices: 8, split_k: auto;
    n <= 8 && k <= 512 =>
        layout: tt, tile: 16x16x32, thread: 2x2, float4, transpose, pad_b: 4, stages: 4, blocks_per_sm: 4;
    n <= 8 =>
        layout: tt, tile: 16x16x64, thread: 4x4, float4, transpose, pad_b: 4, stages: 3, blocks_per_sm: 4,
        slices: 8, split_k: auto;

    // A row or a few.
    m <= 8 && nn && k <= 400 && n <= 200 => block: 4x1, lanes: k, unroll: 4, float4;
    m <= 8 && nn && k <= 8 => block: 4x64, unroll: 4;
    m <= 8 && nn && k <= 400 && !aligned =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, stages: 4, blocks_per_sm: 4;
    m <= 8 && nn && k <= 400 => block: 1x16, unroll: 4, thread: 1x4, float4, slices: 16;
    m <= 8 && nn && m * n <= 1400 && k <= 1024 => block: 2x1, lanes: k, thread: 2x4, float4, slices: 4;
    m <= 8 && nn && m * n <= 1400 => block: 1x16, unroll: 4, thread: 1x4, float4, slices: 16, split_k: auto;
    m <= 8 && nn && k <= 512 => block: 1x16, unroll: 4, thread: 1x4, float4, slices: 16;
    m <= 8 && nn => block: 1x32, unroll: 2, thread: 4x4, float4, blocks_per_sm: 2, slices: 8, split_k: auto;
    m <= 8 && nt && k <= 32 => layout: nt, block: 4x64, unroll: 4;
    m <= 8 && nt && n <= 256 && m * n <= 90 =>
        layout: nt, block: 1x1, lanes: k, unroll: 4, float4, slices: 32;
    m <= 8 && nt && n <= 256 => layout: nt, block: 4x1, lanes: k, unroll: 4, float4;
    m <= 8 && nt && m <= 4 => layout: nt, block: 2x1, lanes: k, thread: 2x4, float4, slices: 4;
    m <= 8 && nt =>
        layout: nt, tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 12, pad_b: 12, stages: 3,
        blocks_per_sm: 4, slices: 8;
    m <= 8 && tn && k <= 74 && waves(4x1) <= 13.0 =>
        layout: tn, block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4;
    m <= 8 && tn && k <= 74 => layout: tn, block: 4x64, unroll: 4;
    m <= 8 && tn && n > 512 =>
        layout: tn, block: 1x32, unroll: 2, thread: 4x4, float4, blocks_per_sm: 2, slices: 8, split_k: auto;
    m <= 8 && tn && k <= 2048 =>
        layout: tn, block: 2x1, lanes: k, unroll: 2, thread: 4x1, float4, blocks_per_sm: 2, slices: 4;
    m <= 8 && tn => layout: tn, block: 1x16, unroll: 4, thread: 1x4, float4, slices: 16, split_k: auto;
    m <= 8 && k <= 22 => layout: tt, block: 4x64, unroll: 4;
    m <= 8 && k <= 700 => layout: tt, block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4;
    m <= 8 && n <= 128 => layout: tt, block: 1x1, lanes: k, unroll: 4, float4, slices: 32;
    m <= 8 => layout: tt, block: 1x8, thread: 4x4, float4, slices: 32, split_k: auto;

    // Thin.
    min(m, n) <= 64 && nn && k > 512 && waves(8x1) > 63.0 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, stages: 4, spread: 10,
        warp: 32x64, order: row_serpentine, blocks_per_sm: 4, split_k: auto;
    min(m, n) <= 64 && nn && k > 512 && min(m, n) > 57 =>
        tile: 16x64x32, thread: 4x4, float4, transpose, pad_a: 4, stages: 4, blocks_per_sm: 4, split_k: auto;
    min(m, n) <= 64 && nn && k > 512 && n <= 512 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, stages: 3, blocks_per_sm: 4, slices: 8,
        split_k: auto;
    min(m, n) <= 64 && nn && k > 512 =>
        tile: 16x64x32, thread: 4x4, float4, transpose, pad_a: 4, stages: 4, blocks_per_sm: 4, split_k: auto;
    min(m, n) <= 64 && nn && k <= 128 && waves(1x16) <= 32.0 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, stages: 4, blocks_per_sm: 4;
    min(m, n) <= 64 && nn && k <= 128 =>
        tile: 32x32x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, stages: 4,
        order: row_serpentine, blocks_per_sm: 4;
    min(m, n) <= 64 && nn && waves(1x32) <= 1.0 => block: 2x1, lanes: k, thread: 2x4, float4, slices: 4;
    min(m, n) <= 64 && nn && m * n <= 131072 =>
        tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, stages: 3, blocks_per_sm: 4, slices: 8;
    min(m, n) <= 64 && nn =>
        tile: 32x64x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, stages: 4, spread: 12,
        order: column_serpentine, blocks_per_sm: 3;
    min(m, n) <= 64 && nt && k <= 8 && m * n <= 13000 => layout: nt, block: 4x64, unroll: 4;
    min(m, n) <= 64 && nt && k <= 430 && m * n <= 13000 =>
        layout: nt, block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4;
    min(m, n) <= 64 && nt && k <= 430 && waves(1x16) <= 32.0 =>
        layout: nt, tile: 16x16x32, thread: 2x2, transpose, pad_a: 12, pad_b: 12, stages: 4,
        blocks_per_sm: 4;
    min(m, n) <= 64 && nt && k <= 430 =>
        layout: nt, tile: 32x32x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 12, pad_b: 12,
        stages: 4, order: row_serpentine, blocks_per_sm: 4;
    min(m, n) <= 64 && nt && n > 900 =>
        layout: nt, tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 12, pad_b: 12,
        stages: 3, spread: 8, warp: 32x64, order: row_serpentine, blocks_per_sm: 3, split_k: auto;
    min(m, n) <= 64 && nt && m * n > 60000 =>
        layout: nt, tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 12, pad_b: 12,
        stages: 3, spread: 12, warp: 64x32, order: column_serpentine, blocks_per_sm: 3, split_k: auto;
    min(m, n) <= 64 && nt && waves(1x16) <= 2.6 =>
        layout: nt, block: 2x1, lanes: k, thread: 2x4, float4, slices: 4;
    min(m, n) <= 64 && nt && k > 6000 =>
        layout: nt, tile: 32x32x64, thread: 4x4, fragment: split, float4, transpose, pad_a: 12, pad_b: 12,
        stages: 2, order: row_serpentine, blocks_per_sm: 2, slices: 4, split_k: auto;
    min(m, n) <= 64 && nt && min(m, n) <= 60 =>
        layout: nt, tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 12, pad_b: 12, stages: 3,
        blocks_per_sm: 4, slices: 8;
    min(m, n) <= 64 && nt => layout: nt, block: 4x1, lanes: k, unroll: 2, thread: 4x4, float4;
    min(m, n) <= 64 && tn && k <= 256 && m * n <= 3600 =>
        layout: tn, block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4;
    min(m, n) <= 64 && tn && k <= 256 && m * n <= 170000 =>
        layout: tn, tile: 16x16x32, thread: 2x2, float4, stages: 4, blocks_per_sm: 4;
    min(m, n) <= 64 && tn && k <= 256 =>
        layout: tn, tile: 32x64x32, thread: 4x4, fragment: split, float4, stages: 4, spread: 12,
        order: column_serpentine, blocks_per_sm: 3;
    min(m, n) <= 64 && tn && m * n <= 50000 && k <= 2048 =>
        layout: tn, tile: 16x16x32, thread: 2x2, float4, stages: 4, blocks_per_sm: 4, split_k: auto;
    min(m, n) <= 64 && tn && m * n <= 50000 =>
        layout: tn, tile: 16x16x64, thread: 4x4, float4, stages: 3, blocks_per_sm: 4, slices: 8,
        split_k: auto;
    min(m, n) <= 64 && tn && k <= 512 =>
        layout: tn, tile: 32x32x64, thread: 4x4, fragment: split, float4, stages: 2, order: row_serpentine,
        blocks_per_sm: 2, slices: 4;
    min(m, n) <= 64 && tn && m <= 36 =>
        layout: tn, tile: 64x128x16, thread: 8x8, fragment: split, float4, stages: 3, spread: 8,
        warp: 32x64, order: row_serpentine, blocks_per_sm: 3, stream_k;
    min(m, n) <= 64 && tn =>
        layout: tn, tile: 64x64x16, thread: 8x8, fragment: split, float4, stages: 4, spread: 10,
        warp: 32x64, order: row_serpentine, blocks_per_sm: 4, split_k: auto;
    min(m, n) <= 64 && k > 200 && k <= 400 =>
        layout: tt, block: 4x1, lanes: k, unroll: 2, thread: 1x4, float4;
    min(m, n) <= 64 && k <= 400 && m * n > 90000 =>
        layout: tt, tile: 32x32x32, thread: 4x4, fragment: split, float4, transpose, pad_b: 4, stages: 4,
        order: row_serpentine, blocks_per_sm: 4;
    min(m, n) <= 64 && k <= 5 => layout: tt, block: 4x64, unroll: 4;
    min(m, n) <= 64 && k <= 400 =>
        layout: tt, tile: 16x16x32, thread: 2x2, float4, transpose, pad_b: 4, stages: 4, blocks_per_sm: 4;
    min(m, n) <= 64 && m * n > 50000 && m <= 256 && k <= 1024 =>
        layout: tt, tile: 32x32x64, thread: 4x4, fragment: split, float4, transpose, pad_b: 4, stages: 2,
        order: row_serpentine, blocks_per_sm: 2, slices: 4;
    min(m, n) <= 64 && m * n > 50000 && m <= 256 =>
        layout: tt, tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_b: 4, stages: 3,
        spread: 8, warp: 32x64, order: row_serpentine, blocks_per_sm: 3, split_k: auto;
    min(m, n) <= 64 && m * n > 50000 && k <= 2048 =>
        layout: tt, tile: 32x32x32, thread: 4x4, fragment: split, float4, transpose, pad_b: 4, stages: 4,
        order: row_serpentine, blocks_per_sm: 4, split_k: auto;
    min(m, n) <= 64 && m * n > 50000 =>
        layout: tt, tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_b: 4, stages: 3,
        spread: 12, warp: 64x32, order: column_serpentine, blocks_per_sm: 3, split_k: auto;
    min(m, n) <= 64 && k <= 2600 && min(m, n) <= 50 =>
        layout: tt, tile: 16x16x32, thread: 2x2, float4, transpose, pad_b: 4, stages: 4, blocks_per_sm: 4,
        split_k: auto;
    min(m, n) <= 64 && k <= 2600 =>
        layout: tt, tile: 16x16x64, thread: 4x4, float4, transpose, pad_b: 4, stages: 3, blocks_per_sm: 4,
        slices: 8;
    min(m, n) <= 64 && m > 2048 =>
        layout: tt, tile: 64x16x32, thread: 4x4, float4, transpose, pad_b: 4, stages: 4, blocks_per_sm: 4,
        split_k: auto;
    min(m, n) <= 64 && max(m, n) <= 128 =>
        layout: tt, tile: 16x16x64, thread: 4x4, float4, transpose, pad_b: 4, stages: 3, blocks_per_sm: 4,
        slices: 8, split_k: auto;
    min(m, n) <= 64 =>
        layout: tt, tile: 32x32x64, thread: 4x4, fragment: split, float4, transpose, pad_b: 4, stages: 2,
        order: row_serpentine, blocks_per_sm: 2, slices: 4, split_k: auto;

    // Large, and the last round of large tiles is nearly full.
    aligned && min(m, n) > 512 && k > 256 && waves(128x256) >= 0.9 * floor(waves(128x256) + 0.999) && nn =>
        tile: 128x256x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, stages: 5, spread: 10,
        warp: 32x128, raster: 8, order: column_serpentine;
    aligned && min(m, n) > 512 && k > 256 && waves(128x256) >= 0.9 * floor(waves(128x256) + 0.999) && nt =>
        layout: nt, tile: 256x128x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, pad_b: 12,
        stages: 3, spread: 12, warp: 32x128, raster: 16, order: column_serpentine;
    aligned && min(m, n) > 512 && k > 256 && waves(128x256) >= 0.9 * floor(waves(128x256) + 0.999) && tn =>
        layout: tn, tile: 256x128x16, thread: 16x8, fragment: split, float4, stages: 5, spread: 1,
        warp: 128x32, raster: 8, order: row_serpentine;
    aligned && min(m, n) > 512 && k > 256 && waves(128x256) >= 0.9 * floor(waves(128x256) + 0.999) && tt =>
        layout: tt, tile: 256x128x16, thread: 8x16, fragment: split, float4, transpose, pad_b: 4, stages: 3,
        spread: 10, warp: 32x128, raster: 8, order: column_serpentine;

    // All others.
    nn && k > 730 && waves(1x256) <= 7.4 =>
        tile: 16x64x32, thread: 4x4, float4, transpose, pad_a: 4, stages: 4, blocks_per_sm: 4, split_k: auto;
    nn && k > 730 && m * n > 3900000 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, stages: 3, spread: 8,
        warp: 32x64, order: row_serpentine, blocks_per_sm: 3, stream_k;
    nn && k > 730 && m * n <= 2300000 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, stages: 3, spread: 8,
        warp: 32x64, order: row_serpentine, blocks_per_sm: 3, stream_k;
    nn && k > 730 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, stages: 3, spread: 10,
        warp: 32x64, order: row_serpentine;
    nn && waves(1x256) <= 23.0 && m * n <= 70000 =>
        tile: 16x16x32, thread: 2x2, float4, transpose, pad_a: 4, stages: 4, blocks_per_sm: 4;
    nn && waves(1x256) <= 23.0 =>
        tile: 32x32x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 4, stages: 4,
        order: row_serpentine, blocks_per_sm: 4;
    nn && k <= 16 => tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 4, stages: 4, blocks_per_sm: 4;
    nn && waves(1x256) <= 73.07 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, stages: 3, spread: 10,
        warp: 32x64, order: row_serpentine;
    nn =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, stages: 5, spread: 8,
        order: row_serpentine;
    nt && k <= 240 && waves(256x128) <= 0.14 && m * n <= 70000 =>
        layout: nt, tile: 16x16x32, thread: 2x2, transpose, pad_a: 12, pad_b: 12, stages: 4,
        blocks_per_sm: 4;
    nt && k <= 240 && waves(256x128) <= 0.14 =>
        layout: nt, tile: 32x32x32, thread: 4x4, fragment: split, float4, transpose, pad_a: 12, pad_b: 12,
        stages: 4, order: row_serpentine, blocks_per_sm: 4;
    nt && k <= 32 =>
        layout: nt, tile: 16x128x16, thread: 4x4, float4, transpose, pad_a: 12, pad_b: 12, stages: 4,
        blocks_per_sm: 4;
    nt && k <= 240 =>
        layout: nt, tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 12, pad_b: 12,
        stages: 3, spread: 10, warp: 32x64, order: row_serpentine;
    nt && m <= 80 =>
        layout: nt, tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 12, pad_b: 12, stages: 3,
        blocks_per_sm: 4, slices: 8;
    nt && k <= 500 =>
        layout: nt, tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 12, pad_b: 12,
        stages: 3, spread: 10, warp: 32x64, order: row_serpentine;
    nt && max(m, n) <= 4000 =>
        layout: nt, tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 12, pad_b: 12,
        stages: 3, spread: 8, warp: 32x64, order: row_serpentine, blocks_per_sm: 3, split_k: auto;
    nt =>
        layout: nt, tile: 256x128x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, pad_b: 12,
        stages: 3, spread: 14, warp: 64x64, raster: 8, order: column_serpentine, split_k: auto;
    tn && k <= 430 && m * n <= 65536 =>
        layout: tn, tile: 16x16x32, thread: 2x2, float4, stages: 4, blocks_per_sm: 4;
    tn && k <= 4 && m * n <= 800000 =>
        layout: tn, tile: 16x128x16, thread: 4x4, float4, stages: 4, blocks_per_sm: 4;
    tn && k <= 430 && m * n <= 800000 =>
        layout: tn, tile: 32x32x32, thread: 4x4, fragment: split, float4, stages: 4, order: row_serpentine,
        blocks_per_sm: 4;
    tn && k <= 16 => layout: tn, tile: 16x128x16, thread: 4x4, float4, stages: 4, blocks_per_sm: 4;
    tn && k <= 430 && m * n <= 3000000 =>
        layout: tn, tile: 64x64x16, thread: 8x8, fragment: split, float4, stages: 3, spread: 10,
        warp: 32x64, order: row_serpentine;
    tn && k <= 430 =>
        layout: tn, tile: 64x128x16, thread: 8x8, fragment: split, float4, stages: 3, spread: 8,
        warp: 32x64, order: row_serpentine, blocks_per_sm: 3;
    tn && max(m, n) <= 980 && m <= 128 =>
        layout: tn, tile: 16x16x64, thread: 4x4, float4, stages: 3, blocks_per_sm: 4, slices: 8,
        split_k: auto;
    tn && max(m, n) <= 980 && k <= 2048 =>
        layout: tn, tile: 32x32x64, thread: 4x4, fragment: split, float4, stages: 2, order: row_serpentine,
        blocks_per_sm: 2, slices: 4;
    tn && max(m, n) <= 980 =>
        layout: tn, tile: 64x64x16, thread: 8x8, fragment: split, float4, stages: 4, spread: 10,
        warp: 32x64, order: row_serpentine, blocks_per_sm: 4, split_k: auto;
    tn && k > 512 =>
        layout: tn, tile: 64x64x16, thread: 8x8, fragment: split, float4, stages: 4, spread: 10,
        warp: 32x64, order: row_serpentine, blocks_per_sm: 4, split_k: auto;
    tn && m * n <= 524288 =>
        layout: tn, tile: 32x32x32, thread: 4x4, fragment: split, float4, stages: 4, order: row_serpentine,
        blocks_per_sm: 4;
    tn =>
        layout: tn, tile: 64x64x32, thread: 8x8, fragment: split, float4, stages: 3, warp: 32x64,
        order: row_serpentine, blocks_per_sm: 2, slices: 2;
    k <= 512 && waves(1x256) <= 11.9 && m * n <= 70000 =>
        layout: tt, tile: 16x16x32, thread: 2x2, float4, transpose, pad_b: 4, stages: 4, blocks_per_sm: 4;
    k <= 512 && waves(1x256) <= 11.9 =>
        layout: tt, tile: 32x32x32, thread: 4x4, fragment: split, float4, transpose, pad_b: 4, stages: 4,
        order: row_serpentine, blocks_per_sm: 4;
    k <= 512 && waves(1x256) > 73.07 =>
        layout: tt, tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_b: 4, stages: 5,
        spread: 8, order: row_serpentine;
    k <= 50 =>
        layout: tt, tile: 16x128x16, thread: 4x4, float4, transpose, pad_b: 4, stages: 4, blocks_per_sm: 4;
    k <= 512 =>
        layout: tt, tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_b: 4, stages: 3,
        spread: 10, warp: 32x64, order: row_serpentine;
    m <= 80 =>
        layout: tt, tile: 16x16x64, thread: 4x4, float4, transpose, pad_b: 4, stages: 3, blocks_per_sm: 4,
        slices: 8, split_k: auto;
    aligned && max(m, n) <= 4000 =>
        layout: tt, tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_b: 4, stages: 3,
        spread: 12, warp: 64x32, order: column_serpentine, blocks_per_sm: 3, split_k: auto;
    aligned =>
        layout: tt, tile: 256x128x16, thread: 8x16, fragment: split, float4, transpose, pad_b: 4, stages: 3,
        spread: 10, warp: 32x128, raster: 8, order: column_serpentine, split_k: auto;
    k > 1650 =>
        layout: tt, tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_b: 4, stages: 3,
        spread: 8, warp: 32x64, order: row_serpentine, blocks_per_sm: 3, stream_k;
    m * n <= 240000 =>
        layout: tt, tile: 32x32x32, thread: 4x4, fragment: split, float4, transpose, pad_b: 4, stages: 4,
        order: row_serpentine, blocks_per_sm: 4, split_k: auto;
    else =>
        layout: tt, tile: 64x64x16, thread: 8x8, fragment: split, float4, transpose, pad_b: 4, stages: 4,
        spread: 10, warp: 32x64, order: row_serpentine, blocks_per_sm: 4, split_k: auto;
};

/// Of batches and lists.
pub(super) const BATCH: SgemmTable = sgemm_table! {
    m <= 8 && n <= 8 => tile: 8x8x8, thread: 1x4, float4, pad_a: 4, products: 8, batch: strided;
    m <= 16 && n <= 16 => tile: 16x16x16, thread: 4x4, float4, pad_a: 1, products: 4, batch: strided;
    m <= 32 && n <= 32 =>
        tile: 32x32x32, thread: 4x4, fragment: split, float4, pad_a: 4, order: row_serpentine, batch: strided;
    m <= 64 && n <= 64 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, pad_a: 4, stages: 3, warp: 32x64,
        order: row_serpentine, batch: strided;
    m <= 128 && n <= 128 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, stages: 3, warp: 32x64,
        order: column_serpentine, blocks_per_sm: 2, batch: strided;
    waves(128x256) > 0.75 && nn =>
        tile: 128x256x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, stages: 5, spread: 10,
        warp: 32x128, raster: 8, order: column_serpentine, batch: strided;
    waves(128x256) > 0.75 && nt =>
        layout: nt, tile: 256x128x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, pad_b: 12,
        stages: 3, spread: 12, warp: 32x128, raster: 16, order: column_serpentine, batch: strided;
    waves(128x256) > 0.75 && tn =>
        layout: tn, tile: 256x128x16, thread: 16x8, fragment: split, float4, stages: 5, spread: 1,
        warp: 128x32, raster: 8, order: row_serpentine, batch: strided;
    waves(128x256) > 0.75 =>
        layout: tt, tile: 256x128x16, thread: 8x16, fragment: split, float4, transpose, pad_b: 4, stages: 3,
        spread: 10, warp: 32x128, raster: 8, order: column_serpentine, batch: strided;
    nn =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, stages: 5, spread: 8,
        order: row_serpentine, batch: strided;
    nt =>
        layout: nt, tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 12, pad_b: 12,
        stages: 3, spread: 12, warp: 64x32, order: column_serpentine, blocks_per_sm: 3, batch: strided;
    tn =>
        layout: tn, tile: 64x64x16, thread: 8x8, fragment: split, float4, stages: 3, spread: 10, warp: 32x64,
        order: row_serpentine, batch: strided;
    else =>
        layout: tt, tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_b: 4, stages: 3,
        spread: 12, warp: 64x32, order: row_serpentine, batch: strided;
};
