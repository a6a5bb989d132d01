//! Data of a page of a kernel.

use super::access::Access;
use super::edges::Edges;
use super::memory::Memory;
use super::occupancy::Occupancy;
use super::pipeline::Pipeline;
use super::source::SourceLine;
use super::steps::Steps;
use super::sync::Sync;
use super::units::{Unit, Wavefronts};
use crate::ablation::AblationEntry;
use crate::comparison::AccessComparison;
use crate::diff::KernelDiff;
use crate::ownership::Ownership;
use crate::partials::Partials;
use crate::raster::BlockOrder;
use crate::times::StageTimes;
use crate::wgmma::WgmmaTiles;
pub use gemm_draw::counters::{Counter, CounterValue};
use gemm_draw::metrics::Metric;
use serde::Serialize;

/// Kernel and the results of one simulated launch.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Macro of the kernel, without its `!`.
    pub family: &'static str,
    /// Title of the stage, or the name of the kernel.
    pub title: String,
    pub line: String,
    /// Name of the launched kernel, the main one of the program.
    pub kernel: String,
    /// Variant of the kernel that was launched.
    pub variant: String,
    /// Simulated shape in words, such as `m = 128, n = 128, k = 64`.
    pub shape: String,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    pub threads: u32,
    /// Number of GEMMs of a batch that a block computes, each with its own threads. It is 1 for a
    /// reduction.
    pub products: u32,
    /// Shared memory per block, in bytes.
    pub shared_bytes: u64,
    /// Decisions of the plan with their reasons.
    pub decisions: Vec<Decision>,
    /// Sentences that explain the performance.
    pub answer: Vec<Sentence>,
    /// All counters that are not 0.
    pub counters: Vec<CounterValue>,
    /// Predicted counts of the profiler.
    pub compiled: Vec<Metric>,
    /// Multiply-adds of the GEMM, or elements of each folded array.
    pub work: u64,
    /// Load of each unit of an SM, busiest first.
    pub units: Vec<Unit>,
    /// Wavefronts of shared memory, and those caused by conflicts.
    pub wavefronts: Wavefronts,
    pub memory: Memory,
    /// Measured times of a stage.
    pub measured: Option<StageTimes>,
    /// Source of the kernel, line by line.
    pub source: Vec<SourceLine>,
    /// Predicted instructions that belong to no line, such as the exit. `None` if the compiled
    /// instructions are unknown.
    pub of_no_line: Option<u64>,
    /// Access patterns of the kernel's warps, in source order.
    pub accesses: Vec<Access>,
    /// Occupancy on each architecture with a compiler report.
    pub residents: Vec<Occupancy>,
    /// Fallback variant, if it was compiled.
    pub fallback: Option<Fallback>,
    /// Architectures without a compiler report, with the reasons.
    pub refused: Vec<UncompiledArch>,
    /// Effect of each key of the spec.
    pub ledger: Vec<AblationEntry>,
    /// Timelines of warps of a block.
    pub pipelines: Vec<Pipeline>,
    /// Threads that copy, read and store the elements of tiles.
    pub owners: Option<Ownership>,
    /// Contents of shared memory by round, or steps of a reduction.
    pub steps: Steps,
    /// Partial results of a reduction.
    pub folds: Option<Partials>,
    /// Reason for missing partial results of a reduction.
    pub no_folds: Option<&'static str>,
    /// Operands of `wgmma` instructions, and the copies that load them.
    pub tensor: Option<WgmmaTiles>,
    /// Partial tiles at a ragged shape.
    pub edges: Option<Edges>,
    /// Reason for missing edges of a GEMM that accepts only full tiles.
    pub no_edges: Option<String>,
    /// Order in which blocks compute tiles.
    pub order: Option<BlockOrder>,
    /// Parts that are not drawn.
    pub undrawn: Vec<Omission>,
    /// Faults that each synchronisation prevents.
    pub syncs: Vec<Sync>,
    /// Differences from the base, if there is one.
    pub change: Option<KernelDiff>,
    /// Access patterns that differ from the base, for arrays that both kernels access.
    pub beside: Vec<AccessComparison>,
}

impl Report {
    /// Returns true if the slots of a ring are drawn.
    pub fn has_ring(&self) -> bool {
        self.tensor.as_ref().is_some_and(|tensor| tensor.ring.is_some())
    }

    /// Returns true if the operands of each warpgroup are known.
    pub fn has_held(&self) -> bool {
        self.tensor.as_ref().is_some_and(|tensor| !tensor.held.is_empty())
    }
}

/// Variant for operands that the preferred kernel does not accept.
#[derive(Clone, Debug, Serialize)]
pub struct Fallback {
    pub variant: String,
    /// Occupancy on each architecture with a compiler report.
    pub residents: Vec<Occupancy>,
}

/// Architecture without a compiler report.
#[derive(Clone, Debug, Serialize)]
pub struct UncompiledArch {
    /// Name such as `sm_90`, or `None` if no compiler was found.
    pub arch: Option<String>,
    /// Reason for the missing report.
    pub why: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct Decision {
    pub name: String,
    pub value: String,
    /// Reason, or empty if there was no choice.
    pub reason: String,
}

/// Part of a page that is not drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Omission {
    /// HTML `id` of the part.
    pub part: &'static str,
    /// Question that the part answers.
    pub question: &'static str,
    pub why: String,
}

/// Sentence with the part of the page that proves it.
#[derive(Clone, Debug, Serialize)]
pub struct Sentence {
    pub text: String,
    /// HTML `id` of the part.
    pub proof: &'static str,
}
