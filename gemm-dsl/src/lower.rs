//! Lowering: a plan becomes a program. Constructive, by one builder per axis of a spec; nothing is
//! rewritten afterwards.

mod reduce;
mod sgemm;
mod tickets;

pub use reduce::{of_partials, partials, reduce, shard};
pub use sgemm::{
    ROW_MAX, SPLITS, UNREPRESENTABLE, accepts_splits, sgemm, sgemm_with_splits, splits_of_b,
};
