//! from times that follow a rule

use gemm_runtime::{SgemmTable, sgemm_table};

/// For each shape, the spec with the lowest cost around it.
pub const GEMM: SgemmTable = sgemm_table! {
    min(m, n) <= 8 => tile: 8x8x8;
    min(m, n) > 512 => tile: 24x24x8;
    k <= 2048 => tile: 32x32x8;
    nn => tile: 16x16x8;
    !tt => tile: 32x32x8;
    else => tile: 16x16x8;
};
