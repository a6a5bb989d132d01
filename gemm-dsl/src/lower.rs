//! Lowering of plans to programs. Each part of a spec has a builder that emits its code; no pass
//! rewrites the code afterwards.

mod conversions;
mod folds;
mod literal;
mod map;
mod reduce;
mod scan;
mod sgemm;
mod tickets;

pub use map::map;
pub use reduce::{of_partials, partials, reduce, shard};
pub use scan::scan;
pub use sgemm::{
    ROW_MAX, SPLITS, UNREPRESENTABLE, accepts_splits, sgemm, sgemm_with_splits, splits_of_b,
};
