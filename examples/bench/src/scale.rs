//! The program `scale`, but for what it measures: its options, what memory that takes, what is predicted, and how it is shown.

pub mod elements;
pub mod memory;
pub mod options;
pub mod sums;
pub mod table;
