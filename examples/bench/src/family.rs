//! Kernel families, as named on a command line.

use clap::ValueEnum;
use gemm_dsl::spec::Spec;
use gemm_runtime::{ReduceSpec, SgemmSpec};

/// Kernels of one macro.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Family {
    /// Reductions of arrays, `reduce_kernel!`
    Reduce,
    /// Matrix multiplications, `sgemm_kernel!`
    Sgemm,
}

impl Family {
    pub const ALL: [Self; 2] = [Self::Reduce, Self::Sgemm];

    /// Returns the name of the family's macro, without the `!`.
    pub fn macro_name(self) -> &'static str {
        match self {
            Self::Reduce => ReduceSpec::MACRO,
            Self::Sgemm => SgemmSpec::MACRO,
        }
    }

    /// Returns the word for the family on a command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reduce => "reduce",
            Self::Sgemm => "sgemm",
        }
    }

    pub fn other(self) -> Self {
        match self {
            Self::Reduce => Self::Sgemm,
            Self::Sgemm => Self::Reduce,
        }
    }
}
