//! Module of the live page of the book, which runs the compiler and the simulator on a spec that
//! the reader types.
//!
//! ```text
//! a spec ──parse, plan──► faults ─────────────────────────────────┐
//!          └──► program ──launch──► recorded run  ──draw──► HTML ──┴──► Report ──abi──► a page
//! ```
//!
//! The crate is built for `wasm32-unknown-unknown` and embedded in a page. Tests call the same
//! [`answer`] on the host. There is no device: [`launch`] runs the steps of a program on the
//! simulator, on packed arrays of one small problem.

#[cfg(target_arch = "wasm32")]
mod abi;
mod answer;
pub mod launch;
mod operands;
pub mod subject;

pub use answer::{Report, answer, unknown};
