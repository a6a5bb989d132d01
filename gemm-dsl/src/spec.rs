//! What a user says: plain data, one field per key of the DSL.
//!
//! A spec may be contradictory; only its plan is known to be sound. Every field has a default, so
//! a spec is written as a change of another one:
//!
//! ```
//! use gemm_dsl::spec::{Rect, SgemmSpec, Tile};
//!
//! let base = SgemmSpec::default().tile(Tile::new(128, 128, 8)).thread(Rect::new(8, 8));
//! let better = base.clone().double_buffer(true);
//! assert_eq!(better.to_string(), "tile: 128x128x8, thread: 8x8, double_buffer");
//! ```
//!
//! Each spec is declared by one table (`spec!`): a row is a key with its type, its default and its
//! part of the derived kernel name. The grammar, `Display` and the setters all follow from it.

mod epilogue;
mod reduce;
mod sgemm;
mod sizes;
mod table;

pub use epilogue::Epilogue;
pub use reduce::{Op, ReduceSpec, Tree};
pub use sgemm::{Bounds, Fragment, Lanes, Order, SgemmSpec};
pub use sizes::{Block, Rect, Tile};
pub use table::UnknownWord;

use crate::error::SpecErrors;
use crate::ir::VerifiedProgram;
use std::fmt::{Debug, Display};
use std::str::FromStr;

/// What the specs of all macros have in common.
pub trait Spec:
    Clone + PartialEq + Debug + Display + FromStr<Err = SpecErrors> + Send + Sync + 'static
{
    /// The name of the macro that takes the spec, without the `!`.
    const MACRO: &'static str;

    /// The keys of the grammar, in the order in which they are printed.
    fn keys() -> Vec<&'static str>;

    /// The kernels and launches that compute it.
    ///
    /// # Errors
    /// All of the spec's faults.
    fn program(&self) -> Result<VerifiedProgram, SpecErrors>;
}

pub(crate) use table::{Datum, Family, Key, Kind};
