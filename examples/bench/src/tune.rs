//! Search space of the program `tune`, and tools for its results.

pub mod options;
pub mod predicted;
pub mod rank;
pub mod space;
pub mod table;
pub mod target;
