//! What a page says of a kernel, as data.

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

/// A kernel, and what was seen of it in one launch on the simulator.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The macro that makes it, without its `!`.
    pub family: &'static str,
    /// What it is called in the ladder, or its kernel's name.
    pub title: String,
    /// The spec.
    pub line: String,
    /// The kernel that was launched, of several the one that does most.
    pub kernel: String,
    /// Which of the kernels that compute the same it is.
    pub variant: String,
    /// The shape that was simulated, in words.
    pub shape: String,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Products of a batch that a block computes, each by threads of its own; 1 of a reduction.
    pub products: u32,
    /// Shared memory of a block, in bytes.
    pub shared_bytes: u64,
    /// What its plan decided, and why.
    pub decisions: Vec<Decision>,
    /// Why it is as fast as it is, in sentences.
    pub answer: Vec<Sentence>,
    /// All counters that are not 0.
    pub counters: Vec<CounterValue>,
    /// What the profiler would count.
    pub compiled: Vec<Metric>,
    /// Multiply-adds of the product, or the elements of each array that is folded.
    pub work: u64,
    /// What is asked of each unit of a multiprocessor, those that are asked most first.
    pub units: Vec<Unit>,
    /// What is asked of shared memory, and what conflicts take of that.
    pub wavefronts: Wavefronts,
    /// Where bytes go.
    pub memory: Memory,
    /// How long it took on a device, of a stage.
    pub measured: Option<StageTimes>,
    /// The text, line by line.
    pub source: Vec<SourceLine>,
    /// Instructions as compiled that no line asks for: those of the kernel as a whole, its end among them. None where it is not
    /// known how many it executes.
    pub of_no_line: Option<u64>,
    /// How its warps access memory, in the order of the text.
    pub accesses: Vec<Access>,
    /// What fits on the multiprocessors of each architecture.
    pub residents: Vec<Occupancy>,
    /// The same of the kernel that stands in for this one, where that was compiled.
    pub fallback: Option<Fallback>,
    /// Where the compiler has said nothing, and why.
    pub refused: Vec<UncompiledArch>,
    /// What each key of the spec is for.
    pub ledger: Vec<AblationEntry>,
    /// What warps of a block do, in order.
    pub pipelines: Vec<Pipeline>,
    /// Who brings, reads and stores the elements of tiles.
    pub owners: Option<Ownership>,
    /// What happens round by round.
    pub steps: Steps,
    /// The partial values of a reduction.
    pub folds: Option<Partials>,
    /// Why they are not shown, of a reduction that has none.
    pub no_folds: Option<&'static str>,
    /// What matrix instructions of four warps read, and how it came there.
    pub tensor: Option<WgmmaTiles>,
    /// What becomes of tiles that do not fill the matrices.
    pub edges: Option<Edges>,
    /// Why there are no such tiles, of a product that takes none.
    pub no_edges: Option<String>,
    /// In which order blocks take tiles.
    pub order: Option<BlockOrder>,
    /// What a page could show and does not.
    pub undrawn: Vec<Omission>,
    /// What each synchronisation prevents.
    pub syncs: Vec<Sync>,
    /// What has changed since another kernel.
    pub change: Option<KernelDiff>,
    /// How its lanes access the arrays of both, where that is otherwise than there.
    pub beside: Vec<AccessComparison>,
}

impl Report {
    /// Whether tiles go through slots that are drawn.
    pub fn has_ring(&self) -> bool {
        self.tensor.as_ref().is_some_and(|tensor| tensor.ring.is_some())
    }

    /// Whether it is known what each warpgroup multiplies.
    pub fn has_held(&self) -> bool {
        self.tensor.as_ref().is_some_and(|tensor| !tensor.held.is_empty())
    }
}

/// The kernel that stands in for another one where its contract is not met.
#[derive(Clone, Debug, Serialize)]
pub struct Fallback {
    /// Which of the kernels that compute the same it is.
    pub variant: String,
    /// What of it fits on multiprocessors.
    pub residents: Vec<Occupancy>,
}

/// An architecture for which the compiler has said nothing.
#[derive(Clone, Debug, Serialize)]
pub struct UncompiledArch {
    /// The architecture, as `sm_90`; none where there is no compiler at all.
    pub arch: Option<String>,
    /// Why not.
    pub why: String,
}

/// What a plan decided.
#[derive(Clone, Debug, Serialize)]
pub struct Decision {
    /// Of what.
    pub name: String,
    /// The value.
    pub value: String,
    /// Why; empty where there was no choice.
    pub reason: String,
}

/// A part that is not drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Omission {
    /// The `id` that it would have.
    pub part: &'static str,
    /// What it would answer.
    pub question: &'static str,
    /// Why it is not there.
    pub why: String,
}

/// A sentence, and the part of the page that proves it.
#[derive(Clone, Debug, Serialize)]
pub struct Sentence {
    /// The text.
    pub text: String,
    /// The `id` of that part.
    pub proof: &'static str,
}
