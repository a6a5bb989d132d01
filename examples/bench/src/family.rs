//! The families of kernels, as said on a command line.

use clap::ValueEnum;
use gemm_dsl::spec::Spec;
use gemm_runtime::{ReduceSpec, SgemmSpec};

/// A family of kernels: those of one macro.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Family {
    /// Reductions of arrays, `reduce_kernel!`
    Reduce,
    /// Matrix products, `sgemm_kernel!`
    Sgemm,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Reduce, Self::Sgemm];

    /// The name of its macro, without the `!`.
    pub fn macro_name(self) -> &'static str {
        match self {
            Self::Reduce => ReduceSpec::MACRO,
            Self::Sgemm => SgemmSpec::MACRO,
        }
    }

    /// How it is said.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reduce => "reduce",
            Self::Sgemm => "sgemm",
        }
    }

    /// The one that it is not.
    pub fn other(self) -> Self {
        match self {
            Self::Reduce => Self::Sgemm,
            Self::Sgemm => Self::Reduce,
        }
    }
}
