// from times that follow a rule

use gemm_runtime::{SgemmTable, sgemm_table};

/// For each shape the line that was fastest around it.
pub const GEMM: SgemmTable = sgemm_table! {
    nn && min(m, n) <= 8 => tile: 8x8x8;
    nn && k > 1024 => tile: 16x16x8;
    nn && min(m, n) <= 512 => tile: 32x32x8;
    nn => tile: 24x24x8;
    nt && min(m, n) > 512 => layout: nt, tile: 24x24x8;
    nt && n <= 16 => layout: nt, tile: 8x8x8;
    nt => layout: nt, tile: 32x32x8;
    tn && min(m, n) <= 512 => layout: tn, tile: 32x32x8;
    tn => layout: tn, tile: 24x24x8;
    k > 1024 => layout: tt, tile: 16x16x8;
    min(m, n) <= 512 => layout: tt, tile: 32x32x8;
    else => layout: tt, tile: 24x24x8;
};
