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
//! part of the derived kernel name; where it has them, its least number, the kernels that it acts
//! on and whether it says what is computed. The grammar, `Display`, the setters, those checks, the
//! documentation, which rows of a table go together, and the random specs of the tests all follow from it.

mod arith;
mod epilogue;
mod expression;
mod factor;
mod gemm_types;
mod reduce;
mod sgemm;
mod sizes;
mod table;

pub use arith::{Accuracy, Arith};
pub(crate) use epilogue::EpilogueInput;
pub use epilogue::{Along, ArgSlot, Epilogue, EpilogueArg};
pub use expression::{Finish, Fold, Identity, Map};
pub use factor::Factor;
pub use gemm_types::GemmTypes;
pub use reduce::{
    AccType, DataType, IndexType, LaunchForm, Op, Over, ReduceSpec, ResultType, Tree,
};
pub(crate) use sgemm::Sharing;
pub use sgemm::{
    Batch, Bounds, Copies, Fragment, GemmLayout, Instruction, Lanes, Order, SgemmSpec, SplitK,
};
pub use sizes::{Block, Rect, Tile};
pub use table::{Datum, KeyInfo, KeyKind, UnknownWord};

use crate::error::SpecErrors;
use std::fmt::{Debug, Display};
use std::str::FromStr;

/// What the specs of all macros have in common.
pub trait Spec:
    Clone + PartialEq + Debug + Display + FromStr<Err = SpecErrors> + Send + Sync + 'static
{
    /// The name of the macro that takes the spec, without the `!`.
    const MACRO: &'static str;

    /// The keys of the grammar, in the order in which they are printed.
    fn table() -> Vec<KeyInfo>;

    /// The names of the keys, in the same order.
    fn keys() -> Vec<&'static str> {
        Self::table().iter().map(|key| key.name).collect()
    }

    /// Gives a key a value; false if there is no such key, or if its values are of another kind.
    fn set(&mut self, key: &str, value: &Datum) -> bool;

    /// Gives a key its default.
    fn reset(&mut self, key: &str);
}

/// What every family of kernels has: a macro and the keys of its specs.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FamilyInfo {
    /// The name of the macro, without the `!`.
    pub macro_name: &'static str,
    /// The keys of its specs.
    pub table: fn() -> Vec<KeyInfo>,
}

impl FamilyInfo {
    const fn new<S: Spec>() -> Self {
        Self { macro_name: S::MACRO, table: S::table }
    }
}

/// All families.
pub const FAMILIES: &[FamilyInfo] =
    &[FamilyInfo::new::<ReduceSpec>(), FamilyInfo::new::<SgemmSpec>()];

#[cfg(test)]
mod tests;

pub(crate) use table::{Key, Table, Typed};
