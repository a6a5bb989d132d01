//! Lowering: a plan becomes a program. Constructive, by one builder per axis of a spec; nothing is
//! rewritten afterwards.

mod reduce;

pub use reduce::reduce;
