//! The live page of the book: a line of a spec in, what the compiler and the simulator say of it out.
//!
//! ```text
//! a line ──parse, plan──► faults ─────────────────────────────────┐
//!          └──► program ──launch──► what was seen ──draw──► HTML ──┴──► Report ──abi──► a page
//! ```
//!
//! It is built for `wasm32-unknown-unknown` and put into one page, and for the host, where tests ask the same
//! [`answer`]. It has no device: [`launch`] follows the steps of a program on the simulator alone, on packed arrays of
//! one small problem.

#[cfg(target_arch = "wasm32")]
mod abi;
mod answer;
pub mod launch;
mod operands;
pub mod subject;

pub use answer::{Report, answer, unknown};
