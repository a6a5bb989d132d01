//! What pages show of a kernel, as data: its text with what each line costs, how its lanes access memory, what fits on a
//! multiprocessor, and at which small shape all that is seen.
//!
//! It knows the generator and its simulator and no device, so that the pages of the book, which are made ahead, and the live
//! page, which is made in a browser, draw the same by the same code.

pub mod access;
pub mod algebra;
pub mod compiler;
pub mod counters;
pub mod metrics;
pub mod number;
pub mod occupancy;
pub mod shapes;
pub mod source;
pub mod suggestion;
pub mod view;
