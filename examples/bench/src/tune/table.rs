//! Tables of products that are made of measurements: which lines are tried, their times, and the table that follows.

pub mod condition;
pub mod fit;
pub mod lines;
pub mod model;
pub mod options;
pub mod samples;
pub mod times;
pub mod tree;
