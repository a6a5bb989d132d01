//! GEMMs and reductions on many devices.
//!
//! [`plan`] says who holds which part of a matrix and who sends what to whom, as data that is checked without a device.

pub mod plan;
