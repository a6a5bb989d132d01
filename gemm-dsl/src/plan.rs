//! The resolved geometry of a kernel. A plan exists only for a spec that passed every check, so
//! whoever holds one need not check again.

mod decision;
mod reduce;
mod sgemm;
#[cfg(test)]
mod tests;

pub use decision::Decision;
pub(crate) use reduce::MAX_BLOCK_ELEMENTS;
pub use reduce::{BlockFold, ReducePlan};
pub use sgemm::{
    Axis, Edge, EpiloguePlan, Fill, GROUP, Guards, NaivePlan, OperandPlan, Pipeline, Pointers,
    Ragged, SgemmPlan, Shape, TiledPlan, Walk, WarpTile,
};
pub(crate) use sgemm::{MAX_EXTENT, Registers, SharedSum};

use crate::error::{self, SpecError, SpecErrors};
use crate::ir;

/// Declares a structure of copyable facts: private fields, each read by a method of its name.
macro_rules! facts {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$field_doc:meta])* $field:ident: $ty:ty,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($field: $ty,)*
        }

        impl $name {
            $(
                $(#[$field_doc])*
                pub fn $field(&self) -> $ty {
                    self.$field
                }
            )*
        }
    };
}
use facts;

/// The faults found so far.
#[derive(Default)]
struct Faults(Vec<SpecError>);

impl Faults {
    fn require(&mut self, sound: bool, fault: impl FnOnce() -> SpecError) {
        if !sound {
            self.0.push(fault());
        }
    }

    /// Whether no fault so far blames any of the keys: a check whose arithmetic rests on a wrong
    /// value would say nothing new.
    fn sound(&self, keys: &[&str]) -> bool {
        let blamed = |fault: &SpecError| fault.key().is_some_and(|key| keys.contains(&key));
        !self.0.iter().any(blamed)
    }

    fn finish(self) -> Result<(), SpecErrors> {
        SpecErrors::check(self.0)
    }
}

/// A user's name must be one that the generated text can give to a function.
fn check_name(name: Option<&str>, faults: &mut Faults) {
    let Some(name) = name else { return };
    if ir::is_identifier(name) {
        return;
    }
    faults.0.push(if name.starts_with("__") {
        error::name::leading_underscores(name)
    } else if ir::is_reserved(name) {
        error::name::taken(name)
    } else {
        error::name::not_an_identifier(name)
    });
}
