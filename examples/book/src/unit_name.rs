//! The units of a multiprocessor, and of what is behind it.

use serde::{Serialize, Serializer};
use std::fmt;

/// A unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitName {
    /// What issues the instructions of warps.
    Issue,
    /// Shared memory.
    Shared,
    /// The L2 cache.
    L2,
    /// The memory of the device.
    Memory,
    /// Tensor cores.
    TensorCores,
}

impl UnitName {
    /// All of them, in the order of columns.
    pub const ALL: [Self; 5] =
        [Self::Issue, Self::Shared, Self::L2, Self::Memory, Self::TensorCores];

    /// As it stands in a sentence.
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
