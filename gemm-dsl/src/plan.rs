//! Plans: a spec's kernel geometry, with all defaults resolved.
//!
//! A plan is built only from a spec that passed every check, so code that uses a plan does not
//! check again. The draft of a tiled plan becomes a plan only with a `Passed` token.

mod decision;
mod map;
mod messages;
mod reduce;
mod residency;
mod scan;
mod sgemm;
#[cfg(test)]
mod tests;

pub use decision::Decision;
use decision::{Decided, decided};
pub use map::MapPlan;
pub(crate) use map::{MAX_COLUMNS, RowClass};
pub(crate) use reduce::MAX_BLOCK_ELEMENTS;
pub use reduce::{AccumulatorPart, BlockFold, Blocks, ReducePlan, Share, Types};
pub use scan::ScanPlan;
pub use sgemm::{
    Axis, DirectPlan, Edge, EpiloguePlan, Fill, GROUP, Guards, KernelKind, MmaPlan, NaivePlan,
    OperandPlan, Pipeline, Pointers, Ragged, ReadPlan, SgemmPlan, SplitsPlan, TiledPlan, Walk,
    WarpTile, WgmmaPlan,
};
pub(crate) use sgemm::{
    MAX_EXTENT, MAX_SPLIT, Registers, SharedBytes, WARPGROUP, even_registers, launch_registers,
};

use crate::error::{self, SpecError, SpecErrors};
use crate::ir;
use crate::spec::{Key, KeyKind, MapSpec, ReduceSpec, ScanSpec, SgemmSpec, Table};

/// Declares a `Copy` struct of facts. Each field is private and has a getter of the same name.
/// Fields marked `decided` also store the reason for their value.
macro_rules! facts {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$field_doc:meta])* $field:ident: $ty:ty,)*
    } $(decided {
        $($(#[$decided_doc:meta])* $decided:ident: $decided_ty:ty,)*
    })?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($field: $ty,)*
            $($(pub(in crate::plan) $decided: Decided<$decided_ty>,)*)?
        }

        impl $name {
            $(
                $(#[$field_doc])*
                pub fn $field(&self) -> $ty {
                    self.$field
                }
            )*
            $($(
                $(#[$decided_doc])*
                pub fn $decided(&self) -> $decided_ty {
                    self.$decided.value
                }
            )*)?
        }
    };
}
use facts;

/// Errors found so far in a spec.
#[derive(Default)]
pub(crate) struct Faults(Vec<SpecError>);

impl Faults {
    fn require(&mut self, sound: bool, fault: impl FnOnce() -> SpecError) {
        if !sound {
            self.0.push(fault());
        }
    }

    /// Returns true if no fault so far concerns any of `keys`. Callers skip a check if its
    /// arithmetic depends on an invalid value.
    fn sound(&self, keys: &[&str]) -> bool {
        debug_assert!(keys.iter().all(|name| is_key(name)), "{keys:?} contains an unknown key");
        keys.iter().all(|key| self.has_no_fault(key))
    }

    /// Returns true if no fault so far concerns the key.
    fn has_no_fault(&self, key: &str) -> bool {
        !self.0.iter().any(|fault| fault.key() == Some(key))
    }

    /// Reports dimensions of 0 and numbers below the minimum in the key table.
    pub(crate) fn check_minimums<S: Table>(&mut self, spec: &S) {
        let size = |key: &&Key<S>| matches!(key.kind, KeyKind::Size { .. });
        for key in S::KEYS.iter().filter(size) {
            if (key.smallest)(spec) == Some(0) {
                let size = (key.text)(spec).unwrap_or_default();
                self.0.push(error::table::zero_dimension(key.name, &size));
            }
        }
        for key in S::KEYS {
            if let (Some(number), Some((least, why))) = ((key.smallest)(spec), key.least)
                && number < least
            {
                self.0.push(error::table::below(key.name, number, least, why));
            }
        }
    }

    /// Reports keys that are given but have no effect. If several such keys depend on one another,
    /// only the first is reported.
    pub(crate) fn check_acting<S: Table>(&mut self, spec: &S) {
        for key in S::KEYS {
            let Some(on) = key.acts_on.as_ref().filter(|_| key.is_idle(spec)) else { continue };
            let mut deciding = on.rests_on.iter().filter_map(|name| S::key(name));
            if self.has_no_fault(key.name) && !deciding.any(|key| key.is_idle(spec)) {
                let keys: Vec<&'static str> =
                    std::iter::once(key.name).chain(on.rests_on.iter().copied()).collect();
                let remedy = on.suggestion.text(key.name, spec);
                self.0.push(error::table::nothing_to_act_on(&keys, on.because, &remedy));
            }
        }
    }

    pub(crate) fn finish(self) -> Result<Passed, SpecErrors> {
        SpecErrors::check(self.0)?;
        Ok(Passed(()))
    }
}

/// Returns true if some family has a key of this name. A fault must not name any other key.
fn is_key(name: &str) -> bool {
    SgemmSpec::key(name).is_some()
        || ReduceSpec::key(name).is_some()
        || MapSpec::key(name).is_some()
        || ScanSpec::key(name).is_some()
}

/// Proof that a spec passed every check.
pub(crate) struct Passed(());

/// Checks a user-given kernel name. It becomes part of a CUDA function name, so it must be an
/// identifier.
fn check_name(name: Option<&str>, faults: &mut Faults) {
    let Some(name) = name else { return };
    if !ir::is_identifier(name) {
        faults.0.push(messages::not_an_identifier(name));
    } else if name.bytes().all(|b| b == b'_') {
        faults.0.push(messages::no_letter(name));
    } else if name.len() > ir::MAX_NAME {
        faults.0.push(messages::too_long(name, ir::MAX_NAME));
    }
}
