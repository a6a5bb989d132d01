//! What a reduction or a product ought to give, in `f64`, and how far a result may be off: the one
//! place for it, for tests and for programs. Beside it what the profiler counts ([`profiler`]).
//!
//! Bounds are those that hold for every order of operations and every input of the family, so a
//! result beyond one is wrong. `UNIT` = 2^-24 is the most by which one rounding to `f32` changes a
//! value, relative to it.

pub mod arith;
pub mod beside;
pub mod depth;
pub mod epilogue;
pub mod fold;
pub mod product;
pub mod profiler;
pub mod random;
pub mod reduction;
pub mod sharing;

/// The unit roundoff of `f32`.
pub const UNIT: f64 = 1.0 / (1 << 24) as f64;
