//! The benchmark of reductions: what is measured, on which arrays, and whether the results are right.

pub mod check;
pub mod graph;
pub mod input;
pub mod launch;
pub mod options;
pub mod peers;
pub mod problem;
pub mod report;
pub mod segments;
pub mod shapes;
