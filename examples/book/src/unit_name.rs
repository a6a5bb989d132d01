//! Units of an SM and of the memory behind it.

use serde::{Serialize, Serializer};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitName {
    /// Warp schedulers, which issue instructions.
    Issue,
    Shared,
    L2,
    /// Device memory behind the L2 cache.
    Memory,
    TensorCores,
}

impl UnitName {
    /// All units, in the order of table columns.
    pub const ALL: [Self; 5] =
        [Self::Issue, Self::Shared, Self::L2, Self::Memory, Self::TensorCores];

    /// Name of the unit within a sentence.
    pub fn text(self) -> &'static str {
        match self {
            Self::Issue => "instruction issue",
            Self::Shared => "shared memory",
            Self::L2 => "L2 cache",
            Self::Memory => "memory",
            Self::TensorCores => "tensor cores",
        }
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

impl Serialize for UnitName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}
