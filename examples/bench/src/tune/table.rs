//! GEMM tables from measurements: the candidate specs, their times, and the fitted table.

pub mod condition;
pub mod fit;
pub mod lines;
pub mod model;
pub mod options;
pub mod samples;
pub mod times;
pub mod tree;
