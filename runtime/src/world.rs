//! Many devices that work on one product or one reduction.

// What ranks say to one another, whoever they are: `wire` is what an end can do, `inbox` holds what has come. Two kinds
// of ends: `mailbox` (ranks of one process) and `tcp` (processes). `agree` is written over either; `codec` is how
// numbers and texts lie in messages.
#[allow(dead_code, reason = "a world is made of these, and there is none yet")]
mod agree;
mod codec;
mod error;
mod inbox;
#[allow(dead_code, reason = "a world is made of these, and there is none yet")]
mod mailbox;
#[allow(dead_code, reason = "a world is made of these, and there is none yet")]
mod tcp;
#[cfg(test)]
mod tests;
#[allow(dead_code, reason = "a world is made of these, and there is none yet")]
mod wire;

pub use error::{Lost, WorldError};
