//! Lowering of plans to programs. One builder per axis of a spec constructs the code; no pass
//! rewrites it afterwards.

mod reduce;
mod sgemm;
mod tickets;

pub use reduce::{of_partials, partials, reduce, shard};
pub use sgemm::{
    ROW_MAX, SPLITS, UNREPRESENTABLE, accepts_splits, sgemm, sgemm_with_splits, splits_of_b,
};
