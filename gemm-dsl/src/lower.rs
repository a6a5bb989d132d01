//! Lowering: a plan becomes a program. Constructive, by one builder per axis of a spec; nothing is
//! rewritten afterwards.

mod reduce;
mod sgemm;
mod tickets;

pub use reduce::{of_partials, partials, reduce, shard};
pub use sgemm::{has_planes_to_give, planes_of_b, sgemm, sgemm_of};
