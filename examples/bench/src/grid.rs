//! Benchmark of single GEMMs of all shapes: options, operands, repeated timing and summary.

pub mod arena;
pub mod options;
pub mod repeats;
pub mod report;
