//! Reference results of reductions and GEMMs in `f64`, and error bounds, for tests and for
//! programs. Profiler counts are in [`profiler`].
//!
//! The bounds hold for every order of operations and every input. A result whose error exceeds its
//! bound is therefore wrong. `UNIT` = 2^-24 is the maximum relative error of one rounding to `f32`.

pub mod arith;
pub mod beside;
pub mod depth;
pub mod epilogue;
pub mod exact;
pub mod fold;
pub mod product;
pub mod profiler;
pub mod random;
pub mod reduction;
pub mod sharing;

/// Unit roundoff of `f32`.
pub const UNIT: f64 = 1.0 / (1 << 24) as f64;
