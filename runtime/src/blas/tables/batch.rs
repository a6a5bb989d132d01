//! Rules for batches and lists, written by hand. Some rules were measured on an H200.

use crate::{SgemmTable, sgemm_table};

/// Several small GEMMs share a block. Large GEMMs use the kernels of single GEMMs.
pub(super) const GEMMS: SgemmTable = sgemm_table! {
    m <= 8 && n <= 8 =>
        tile: 8x8x8, thread: 1x4, float4, pad_a: 4, blocks_per_sm: 1, products: 8, batch: strided;
    m <= 16 && n <= 16 =>
        tile: 16x16x16, thread: 4x4, float4, pad_a: 1, blocks_per_sm: 1, products: 4,
        batch: strided;
    m <= 32 && n <= 32 =>
        tile: 32x32x32, thread: 4x4, fragment: split, float4, pad_a: 4, order: row_serpentine,
        blocks_per_sm: 1, batch: strided;
    m <= 64 && n <= 64 =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, pad_a: 4, stages: 3, warp: 32x64,
        order: row_serpentine, blocks_per_sm: 1, batch: strided;
    m <= 128 && n <= 128 =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, stages: 3,
        warp: 32x64, order: column_serpentine, blocks_per_sm: 2, batch: strided;
    waves(128x256) > 0.75 && nn =>
        tile: 128x256x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, stages: 5,
        spread: 10, warp: 32x128, raster: 8, order: column_serpentine, blocks_per_sm: 1,
        batch: strided;
    waves(128x256) > 0.75 && nt =>
        tile: 256x128x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, pad_b: 12,
        stages: 3, spread: 12, warp: 32x128, raster: 16, order: column_serpentine, blocks_per_sm: 1,
        batch: strided;
    waves(128x256) > 0.75 && tn =>
        tile: 256x128x16, thread: 16x8, fragment: split, float4, stages: 5, spread: 1, warp: 128x32,
        raster: 8, order: row_serpentine, blocks_per_sm: 1, batch: strided;
    waves(128x256) > 0.75 =>
        tile: 256x128x16, thread: 8x16, fragment: split, float4, transpose, pad_b: 4, stages: 3,
        spread: 10, warp: 32x128, raster: 8, order: column_serpentine, blocks_per_sm: 1,
        batch: strided;
    nn =>
        tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, stages: 5,
        spread: 8, order: row_serpentine, blocks_per_sm: 1, batch: strided;
    nt =>
        tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 12, pad_b: 12,
        stages: 3, spread: 12, warp: 64x32, order: column_serpentine, blocks_per_sm: 3,
        batch: strided;
    tn =>
        tile: 64x64x16, thread: 8x8, fragment: split, float4, stages: 3, spread: 10, warp: 32x64,
        order: row_serpentine, blocks_per_sm: 1, batch: strided;
    else =>
        tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_b: 4, stages: 3,
        spread: 12, warp: 64x32, order: row_serpentine, blocks_per_sm: 1, batch: strided;
};
