//! Serialisation of specs, expressions and tables, as their text. Needs the feature `serde`.

use crate::spec::{Epilogue, MapSpec, ReduceSpec, ScanSpec, SgemmSpec};
use crate::tables::{KernelTable, TableFamily};
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use std::fmt::Display;
use std::str::FromStr;

/// Parses a serialised text. The errors are those of the text, with all faults.
///
/// # Errors
/// Returns an error if the value is not a string, or if the text is faulty.
pub fn parsed<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

macro_rules! as_text {
    ($($name:ty)*) => {$(
        /// Serialises the canonical text.
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        /// Parses the text. The error lists all faults.
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                parsed(deserializer)
            }
        }
    )*};
}

as_text! { ReduceSpec MapSpec ScanSpec SgemmSpec Epilogue }

/// Serialises the canonical text, one rule per line.
impl<F: TableFamily> Serialize for KernelTable<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Parses the text. The error lists all faults.
impl<'de, F: TableFamily> Deserialize<'de> for KernelTable<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}
