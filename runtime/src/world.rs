//! Many devices that work on one product or one reduction.

mod error;
mod wire;

pub use error::{Lost, WorldError};
