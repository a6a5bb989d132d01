//! Each fault in a table of GEMMs is reported once, at its own tokens, and the table still has its
//! type.

use gemm_runtime::{Device, Error, MatrixMut, MatrixRef, N, SgemmTable, sgemm_table};

const NO_ELSE: SgemmTable = sgemm_table! {
    m <= 8 => tile: 8x8x8;
    waves(64x64) >= 2.0 => tile: 64x64x8, thread: 8x8;
};

const UNREACHABLE: SgemmTable = sgemm_table! {
    m <= 8 => tile: 8x8x8;
    (m <= 8) => tile: 16x16x8, thread: 2x2;
    1.5 < 2.0 => tile: 32x32x8, thread: 4x4;
    else => block: 8x8;
    n > 99 => tile: 64x64x8, thread: 8x8;
};

const CONDITIONS: SgemmTable = sgemm_table! {
    m => tile: 8x8x8;
    m <= 8.0 => tile: 8x8x8;
    waves(64x64) >= 2 => tile: 8x8x8;
    waves(64) > 1.0 => tile: 8x8x8;
    waves > 1.0 => tile: 8x8x8;
    waves(0x64) > 1.0 => tile: 8x8x8;
    wave(64x64) > 1.0 => tile: 8x8x8;
    aligned == padded => tile: 8x8x8;
    len <= 8 && alined => tile: 8x8x8;
    f32(m) > 1.0 => tile: 8x8x8;
    exp(1.0) > 1.0 => tile: 8x8x8;
    { let sms = 8; m <= sms } => tile: 8x8x8;
    { let waves = 8; m <= waves } => tile: 8x8x8;
    k % m == 0 => tile: 8x8x8;
    nn > 0 => tile: 8x8x8;
    else => block: 8x8;
};

const OTHER_WORK: SgemmTable<(N,)> = sgemm_table! {
    m <= 8 => block: 8x8, epilogue: |acc, bias[n]| acc + bias;
    m <= 9 => block: 8x8;
    m <= 10 => block: 8x8, epilogue: |acc, bias[n]| acc + bias, batch: strided;
    else => block: 8x8, scaled, epilogue: |acc, bias[n]| acc + bias;
};

const VARIANT: SgemmTable = sgemm_table! {
    m <= 8 => tile: 8x8x8;
    invariant;
    n <= 8 => block: 8x8, partials: 2, unroll: 4;
    else => block: 8x8;
};

const INVARIANT: SgemmTable = sgemm_table! {
    invariant;
    invariant;
    m <= 8 => tile: 8x8x8, partials: 2;
    n <= 8 => block: 8x8, partials: 1;
    else => block: 8x8, unroll: 4, partials: 4;
};

const ACCURATE: SgemmTable = sgemm_table! {
    accuracy: bound;
    m <= 8 => tile: 64x64x32, arith: f16x3, mma: wgmma;
    n <= 8 => tile: 64x64x32, arith: bf16x6, mma: wgmma;
    else => tile: 64x64x32, arith: bf16, mma: wgmma;
};

const CLASSES: SgemmTable = sgemm_table! {
    accuracy: exact;
    m <= 8 => tile: 64x64x32, arith: bf16x6, mma: wgmma;
    accuracy: norm;
    else => tile: 8x8x8;
};

const LINES: SgemmTable = sgemm_table! {
    m <= 8 => tlie: 8x8x8;
    n <= 8 => tile: 8x8x8, thread: 3x3;
    else => block: 8x8, epilogue: |acc| acc + bias;
};

const LYING: SgemmTable = sgemm_table! {
    nt => layout: nt, tile: 8x8x8;
    padded => pitched;
    tt || k <= 8 => tile: 64x30x16, thread: 4x2, float4;
    else => tile: 8x8x8;
};

const MANY: SgemmTable<(f32, f32)> = sgemm_table! {
    else => block: 8x8, epilogue: |acc, x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12|
        acc + x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10 + x11 + x12
};

const EMPTY: SgemmTable = sgemm_table! { invariant };

fn main() -> Result<(), Error> {
    let device = Device::auto()?;
    let a = device.upload(&[1.0])?;
    let mut c = device.alloc(1)?;
    let a = MatrixRef::new(&a, 1, 1)?;
    // The operand is missing.
    let table = sgemm_table! { else => epilogue: |acc, bias[n]| acc + bias };
    table.call(&device).launch(&a, &a, &mut MatrixMut::new(&mut c, 1, 1)?)?;
    Ok(())
}
