//! Serialisation of kernels, tables and epilogues, as their text. Needs the feature `serde`.

use crate::blas::Epilogue;
use crate::kernel::operands::{ByName, Operands};
use crate::kernel::{Elements, MapOperands, MapResults};
use crate::kernel::{Kernel, Table};
use crate::kernel::{Map, ReduceKernel, ReduceTable};
use gemm_dsl::serialise::parsed;
use gemm_dsl::spec::{MapSpec, ReduceSpec, SgemmSpec};
use gemm_dsl::tables::TableFamily;
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

/// Serialises the line of the spec.
impl<F, E> Serialize for Kernel<F, E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.spec_line())
    }
}

/// Parses the spec. The error lists all faults, or names the right type of the kernel.
impl<'de, E: Operands> Deserialize<'de> for Kernel<SgemmSpec, E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(parsed(deserializer)?).map_err(D::Error::custom)
    }
}

/// Parses the spec. The error lists all faults, or names the right type of the kernel.
impl<'de, T: Elements, R: Elements> Deserialize<'de> for ReduceKernel<T, R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(parsed(deserializer)?).map_err(D::Error::custom)
    }
}

/// Parses the spec. The error lists all faults.
impl<'de> Deserialize<'de> for Kernel<ReduceSpec, ByName> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(parsed(deserializer)?).map_err(D::Error::custom)
    }
}

/// Parses the spec. The error lists all faults, or names the right type of the kernel.
impl<'de, E: MapOperands, R: MapResults> Deserialize<'de> for Map<E, R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(parsed(deserializer)?).map_err(D::Error::custom)
    }
}

/// Parses the spec. The error lists all faults.
impl<'de> Deserialize<'de> for Kernel<MapSpec, ByName> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(parsed(deserializer)?).map_err(D::Error::custom)
    }
}

/// Serialises the rules as text.
impl<F: TableFamily, E> Serialize for Table<F, E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

/// Parses the rules. The error lists all faults, or names the right type of the kernels.
impl<'de, E: Operands> Deserialize<'de> for Table<SgemmSpec, E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(&parsed(deserializer)?).map_err(D::Error::custom)
    }
}

/// Parses the rules. The error lists all faults, or names the right type of the kernels.
impl<'de, T: Elements, R: Elements> Deserialize<'de> for ReduceTable<T, R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(&parsed(deserializer)?).map_err(D::Error::custom)
    }
}

/// Serialises the text of the expression.
impl<E> Serialize for Epilogue<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

/// Parses the expression. The error lists all faults, or names the right type of the epilogue.
impl<'de, E: Operands> Deserialize<'de> for Epilogue<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(parsed(deserializer)?).map_err(D::Error::custom)
    }
}
