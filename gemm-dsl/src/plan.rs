//! The resolved geometry of a kernel. A plan exists only for a spec that passed every check, so
//! whoever holds one need not check again.

mod reduce;
mod sgemm;

pub use reduce::{Finish, ReducePlan};
pub use sgemm::{NaivePlan, Pipeline, SgemmPlan, Shape, TiledPlan, WarpTile};

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
