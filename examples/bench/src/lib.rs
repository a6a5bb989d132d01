//! Code shared by the example programs: command lines, input, GPU measurements, and output of
//! results.

pub mod change;
pub mod cli;
pub mod data;
pub mod epilogue;
pub mod family;
pub mod figures;
pub mod gpu;
pub mod grid;
pub mod ladder;
pub mod lower_bound;
pub mod npy;
pub mod operands;
pub mod peer;
pub mod plot;
pub mod predict;
pub mod products;
pub mod progress;
pub mod report;
pub mod rows;
pub mod sample;
pub mod scale;
pub mod shapes;
pub mod table;
pub mod table_source;
pub mod texts;
pub mod timing;
pub mod tune;
pub mod typed;
mod unfused;

/// Examples of the README, compiled and run as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
