//! Rules for the simulator and for GPUs without a table of their own, such as older GPUs. They were
//! not measured. No spec needs an instruction or an amount of shared memory that some GPU lacks.

use super::F32Tables;
use crate::sgemm_table;

pub(super) static TABLES: F32Tables = F32Tables::new(
    sgemm_table! {
        m <= 16 && n <= 16 => tile: 16x16x16, thread: 4x4, float4, pad_a: 1;
        waves(128x128) > 0.75 =>
            tile: 128x128x8, thread: 8x8, fragment: split, float4, transpose, double_buffer,
            order: row_serpentine;
        waves(64x64) > 0.75 =>
            tile: 64x64x8, thread: 4x4, fragment: split, float4, transpose, double_buffer;
        else => tile: 32x32x16, thread: 4x4, float4, pad_a: 4;
    },
    sgemm_table! {
        m <= 8 && n <= 8 => tile: 8x8x8, thread: 1x4, float4, pad_a: 4, products: 8, batch: strided;
        m <= 16 && n <= 16 =>
            tile: 16x16x16, thread: 4x4, float4, pad_a: 1, products: 4, batch: strided;
        waves(128x128) > 0.75 =>
            tile: 128x128x8, thread: 8x8, fragment: split, float4, transpose, double_buffer,
            order: row_serpentine, batch: strided;
        waves(64x64) > 0.75 =>
            tile: 64x64x8, thread: 4x4, fragment: split, float4, transpose, double_buffer,
            batch: strided;
        else => tile: 32x32x16, thread: 4x4, float4, pad_a: 4, batch: strided;
    },
    75,
);
