//! What the program `tune` searches, and what it knows of what it found.

pub mod options;
pub mod predicted;
pub mod rank;
pub mod space;
pub mod table;
pub mod target;
