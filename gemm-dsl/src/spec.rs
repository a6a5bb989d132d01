//! Specs: plain data with one field per key of the DSL.
//!
//! The values of a spec may contradict each other; only a spec that has a plan is valid. Every
//! field has a default, so a spec is written as a change of another spec:
//!
//! ```
//! use gemm_dsl::spec::{Rect, SgemmSpec, Tile};
//!
//! let base = SgemmSpec::default().tile(Tile::new(128, 128, 8)).thread(Rect::new(8, 8));
//! let better = base.clone().double_buffer(true);
//! assert_eq!(better.to_string(), "tile: 128x128x8, thread: 8x8, double_buffer");
//! ```
//!
//! Each spec is declared by one `spec!` table with a row per key. A row gives the key's type, its
//! default, and the key's part of the kernel's name. It may add a minimum, the kernels on which the
//! key acts, and a mark for keys that change the result. Everything else is derived from the table:
//! the grammar, `Display`, the setters, the checks, the documentation, the compatibility of a
//! table's rules, and the random specs of the tests.

mod arith;
mod epilogue;
mod expression;
mod factor;
mod gemm_types;
mod map;
mod reduce;
mod scan;
mod sgemm;
mod sizes;
mod table;

pub use arith::{Accuracy, Arith};
pub(crate) use epilogue::EpilogueInput;
pub use epilogue::{Along, ArgSlot, Epilogue, EpilogueArg, Pairs};
pub use expression::{Elementwise, Finish, Fold, Identity, Map};
pub use factor::Factor;
pub use gemm_types::GemmTypes;
pub use map::{MapOperand, MapResult, MapSpec};
pub use reduce::{
    AccType, DataType, IndexType, LaunchForm, Op, Over, ReduceSpec, ResultType, Tree,
};
pub use scan::{ScanOp, ScanOver, ScanSpec};
pub(crate) use sgemm::Sharing;
pub use sgemm::{
    Batch, Bounds, Convert, Copies, Fragment, GemmLayout, Instruction, Lanes, MatrixType, Order,
    SgemmSpec, SplitK,
};
pub use sizes::{Block, Rect, Tile};
pub use table::{Datum, KeyInfo, KeyKind, UnknownWord, newer_word};

use crate::error::SpecErrors;
use std::fmt::{Debug, Display};
use std::str::FromStr;

/// Common interface of the specs of all kernel macros.
pub trait Spec:
    Clone + PartialEq + Debug + Display + FromStr<Err = SpecErrors> + Send + Sync + 'static
{
    /// Name of the macro that takes the spec, without the `!`.
    const MACRO: &'static str;
    /// Prefix of the names of CUDA functions.
    const PREFIX: &'static str;

    /// Returns the keys of the grammar, in the order in which they are printed.
    fn table() -> Vec<KeyInfo>;

    /// Returns the names of the keys, in the order of [`table`](Self::table).
    fn keys() -> Vec<&'static str> {
        Self::table().iter().map(|key| key.name).collect()
    }

    /// Sets a key. Returns false if there is no such key, or if it takes another kind of value.
    fn set(&mut self, key: &str, value: &Datum) -> bool;

    /// Resets a key to its default.
    fn reset(&mut self, key: &str);
}

/// Kernel family: a macro and the keys of its specs.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FamilyInfo {
    /// Name of the macro, without the `!`.
    pub macro_name: &'static str,
    /// Returns the keys of the family's specs.
    pub table: fn() -> Vec<KeyInfo>,
}

impl FamilyInfo {
    const fn new<S: Spec>() -> Self {
        Self { macro_name: S::MACRO, table: S::table }
    }
}

pub const FAMILIES: &[FamilyInfo] = &[
    FamilyInfo::new::<ReduceSpec>(),
    FamilyInfo::new::<SgemmSpec>(),
    FamilyInfo::new::<MapSpec>(),
    FamilyInfo::new::<ScanSpec>(),
];

#[cfg(test)]
mod tests;

pub(crate) use table::{Key, Table, Typed};
