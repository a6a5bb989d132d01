//! Parts of the program `scale` that need no GPU: options, memory demand, prediction and output.

pub mod elements;
pub mod memory;
pub mod options;
pub mod sums;
pub mod table;
