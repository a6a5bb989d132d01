//! The benchmark of single products of all shapes: what is measured, on which matrices, and what follows.

pub mod arena;
pub mod options;
pub mod repeats;
pub mod report;
