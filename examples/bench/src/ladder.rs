//! What the program `ladder` is asked for.

pub mod options;
pub mod variants;
