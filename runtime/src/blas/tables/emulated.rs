//! Rows by which tensor cores stand for `f32` where that is faster on an H200: they come before those of `f32`.
//!
//! Where it is faster, and by which lines, follows from the times of `tune --table FILE --accuracy norm` at 1900 shapes: of
//! large products, since planes are made and looked at in launches of their own, that have 128 rows and columns at least. At
//! the 863 shapes among these that come to such rows the row is slower than the best of all lines that were tried by
//! 1.9 % in the geometric mean, and 1.66 times as fast as cuBLAS in `f32` under `bound`, 1.91 times under `norm`. Rows of
//! batches are the same, where all products together are as large.

/// The keys that all lines have, and those of one.
macro_rules! rows {
    ($beside:literal: $($when:expr => $tile:literal, $arith:literal, $rest:literal;)*) => {
        concat!($(
            $when, " => tile: ", $tile, ", arith: ", $arith,
            ", mma: wgmma, copy: tma, float4, producer, raster: 8, ", $rest, $beside, ";\n",
        )*)
    };
}

/// By `bf16x6`, where the product of all extents is large.
macro_rules! bound {
    ($extents:literal, $beside:literal) => {
        rows! { $beside:
            large!($extents, "2e8", "m * n > 2097152") => "128x128x64", "bf16x6", "stages: 2, persistent";
            large!($extents, "2e8", "waves(64x128) <= 0.13") => "64x64x64", "bf16x6", "stages: 4, split_k: auto";
            large!($extents, "2e8", "waves(64x64) > 2.0") => "128x128x64", "bf16x6", "stages: 2";
            large!($extents, "2e8") => "128x64x64", "bf16x6", "stages: 3, split_k: auto";
        }
    };
}

/// By `f16x3`, where it is larger, and sums are long.
macro_rules! norm {
    ($extents:literal, $beside:literal) => {
        rows! { $beside:
            large!($extents, "3e8", "waves(64x64) > 2.0 && k > 256") => "128x128x64", "f16x3", "stages: 3, persistent";
            large!($extents, "3e8", "m * n > 524288 && k > 700") => "128x64x64", "f16x3", "stages: 4";
            large!($extents, "3e8", "m * n > 131072 && k > 3000") => "128x64x64", "f16x3", "stages: 4, split_k: auto";
            large!($extents, "3e8", "m * n > 500000 && k > 700") => "64x64x64", "f16x3", "stages: 4";
        }
    };
}

macro_rules! large {
    ($extents:literal, $least:literal) => {
        concat!("min(m, n) >= 128 && k >= 64 && ", $extents, " > ", $least)
    };
    ($extents:literal, $least:literal, $and:literal) => {
        concat!(large!($extents, $least), " && ", $and)
    };
}

/// As far off as `f32` may be: rows of single products, and of batches.
pub(super) const BOUND: [&str; 2] =
    [bound!("f64(m * n) * f64(k)", ""), bound!("f64(m * n) * f64(k * batch)", ", batch: strided")];
/// The same, and relative to the greatest of a line.
pub(super) const NORM: [&str; 2] = [
    concat!(norm!("f64(m * n) * f64(k)", ""), bound!("f64(m * n) * f64(k)", "")),
    concat!(
        norm!("f64(m * n) * f64(k * batch)", ", batch: strided"),
        bound!("f64(m * n) * f64(k * batch)", ", batch: strided")
    ),
];
