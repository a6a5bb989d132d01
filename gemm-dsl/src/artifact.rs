//! Artifacts: programs as data, with all that a launch needs except machine code.
//!
//! [`Plan::artifact`](crate::Plan::artifact) builds it from a spec. A macro writes it into the
//! user's crate as a constant ([`Artifact::constant`]), so that a launch parses, plans, lowers and
//! prints nothing.

mod constant;
#[cfg(test)]
mod tests;

use crate::cuda;
use crate::ir::program::LaunchProgram;
use crate::ir::{List, VerifiedProgram};
use crate::spec::{Batch, EpilogueArg, Op, Over, Pairs};
use std::borrow::Cow;

/// A program for back ends, with the CUDA C of its kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// Canonical line of the spec.
    pub line: Cow<'static, str>,
    pub interface: Interface,
    pub program: LaunchProgram,
    /// CUDA C translation unit of each kernel, in the order of the contracts.
    pub sources: List<Cow<'static, str>>,
}

/// Arguments of a call, besides those that the program itself lists.
#[derive(Clone, Debug, PartialEq)]
pub enum Interface {
    /// A, B and C of a GEMM, and these operands.
    Gemm {
        operands: List<EpilogueArg>,
        /// Locations of the matrices of a batch.
        batch: Option<Batch>,
        /// Pairs of columns that the epilogue computes.
        pairs: Pairs,
    },
    /// Operands and results of an elementwise kernel. A result may be the same view as an operand.
    Elementwise {
        operands: List<EpilogueArg>,
        /// True if matrices without padding may be passed as one row of all their elements.
        is_flat: bool,
    },
    /// Arrays to fold and arrays for results.
    Reduction {
        /// Folded axes.
        over: Over,
        /// Operator whose result is an index, which does not exist without elements.
        index: Option<Op>,
        /// Number of elements of each result, if the reduction selects several.
        topk: Option<u32>,
    },
}

impl Interface {
    /// Returns the pairs of columns that the epilogue of a GEMM computes.
    pub fn pairs(&self) -> Pairs {
        match self {
            Self::Gemm { pairs, .. } => *pairs,
            Self::Elementwise { .. } | Self::Reduction { .. } => Pairs::None,
        }
    }

    /// Operands of a call besides its matrices or arrays.
    pub fn operands(&self) -> &[EpilogueArg] {
        match self {
            Self::Gemm { operands, .. } | Self::Elementwise { operands, .. } => operands,
            Self::Reduction { .. } => &[],
        }
    }
}

impl Artifact {
    /// Artifact of a faulty macro call, which is never launched.
    pub const EMPTY: Self = Self {
        line: Cow::Borrowed(""),
        interface: Interface::Gemm { operands: List::EMPTY, batch: None, pairs: Pairs::None },
        program: LaunchProgram::EMPTY,
        sources: List::EMPTY,
    };

    /// Artifact of a verified program.
    pub fn new(line: String, interface: Interface, program: &VerifiedProgram) -> Self {
        let sources = program.kernels().iter().map(|kernel| cuda::source(kernel).into());
        Self {
            line: line.into(),
            interface,
            program: LaunchProgram::clone(program),
            sources: sources.collect(),
        }
    }

    /// Returns a Rust expression whose value equals this artifact. The expression refers to the
    /// module [`mod@items`] by the path `items`.
    pub fn constant(&self, items: &str) -> String {
        constant::text(self, items)
    }
}

/// Types in the text of [`Artifact::constant`].
pub mod items {
    pub use super::{Artifact, Interface};
    pub use crate::ir::contract::{ArrayParameter, Contract, Parameter};
    pub use crate::ir::program::{
        Argument, Array, KernelId, Launch, LaunchProgram, Slot, Step, Temp, TempFill,
    };
    pub use crate::ir::{
        Arith, BinaryOp, Cmp, Elem, Extent, HostExpr, HostOp, Integer, KernelFamily, List, Logic,
        Operand, Requirement, Scalar, Source, TensorMap, TensorSwizzle, Ty, Variant,
    };
    pub use crate::spec::{Along, ArgSlot, Batch, EpilogueArg, Op, Over, Pairs};
    pub use std::borrow::Cow;
    pub use std::option::Option;
}
