//! Options of the program `ladder`.

pub mod options;
pub mod variants;
