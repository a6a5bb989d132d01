//! Benchmark of reductions: shapes, input, launches, peers, checks and reports.

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
