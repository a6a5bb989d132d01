//! Effect of each synchronisation, found by running the kernel without it on the same arguments.

use crate::observation::Observation;
use gemm_bench::cli::Failure;
use gemm_dsl::cuda::{self, Listing};
use gemm_dsl::ir::{Kernel, MbarrierOp, ParamKind, Scope, Stmt, VerifiedKernel, WgmmaSync};
use gemm_runtime::Error;
use gemm_runtime::sim::fault::Fault;
use gemm_runtime::sim::watch::{Arguments, BufferArg};
use gemm_runtime::sim::{Counters, SimError};
use rayon::prelude::*;
use serde::Serialize;

/// Instruction limit for a changed kernel, relative to the instructions of the launch. The factor
/// is large because kernels with inter-block synchronisation run several times, in several orders.
const PATIENCE: u64 = 64;
/// Instructions added to the limit, for small launches.
const LEAST_PATIENCE: u64 = 1 << 22;

/// Synchronising statement, and the outcome of a launch without it.
#[derive(Clone, Debug, Serialize)]
pub struct Sync {
    /// Line of the source, counted from 1.
    pub line: usize,
    /// First line of the statement.
    pub text: String,
    /// Kind of synchronisation in words.
    pub is: &'static str,
    /// Number of executions by warps of the recorded block.
    pub times: u64,
    /// Description of the change to the kernel.
    pub change: &'static str,
    pub outcome: TrialOutcome,
}

/// Outcome of a changed kernel's launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialOutcome {
    /// First fault that the simulator finds.
    Fault(PreventedFault),
    /// Any other error, with its message.
    Error(String),
    /// No fault, but different results.
    Differs,
    /// No fault, and bit-identical results in every array with deterministic contents.
    Same,
    /// No warp executes the statement.
    NotReached,
}

/// Fault that occurs without a synchronisation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreventedFault {
    /// `blockIdx` of the faulty thread.
    pub block: [u32; 3],
    /// `threadIdx.x` and `threadIdx.y` of the thread.
    pub thread: [u32; 2],
    /// Message of the fault. For a race it names the element and the earlier access.
    pub what: String,
    /// First line of the faulty statement.
    pub statement: String,
}

impl PreventedFault {
    /// Names the thread and its block. A block has three coordinates everywhere on the page.
    pub fn at(&self) -> String {
        let ([x, y, z], [of_x, of_y]) = (self.block, self.thread);
        format!("thread ({of_x}, {of_y}) of block ({x}, {y}, {z})")
    }

    pub(super) fn new(fault: &Fault) -> Self {
        let ((x, y, z), thread) = (fault.block, fault.thread);
        Self {
            block: [x, y, z],
            thread: [thread.0, thread.1],
            what: fault.kind.to_string(),
            statement: fault.statement.clone(),
        }
    }
}

/// Synchronisation removed from a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct RemovedSync {
    /// Line in the text of the unmodified kernel.
    pub line: usize,
    pub text: String,
    pub change: &'static str,
}

/// Removable part of a statement.
struct RemovablePart {
    is: &'static str,
    change: &'static str,
    /// Statement that replaces the original one.
    instead: Stmt,
}

/// Tries the removal of each synchronising statement, in source order.
pub(super) fn trials(looked: &Observation, listing: &Listing) -> Result<Vec<Sync>, Failure> {
    let kernel = &looked.kernel;
    let statements = kernel.statements();
    let patience = patience(&looked.profile.total);
    let unchanged = looked.arguments.replay(kernel, &[], patience).map_err(Error::from)?;
    let bits = bits(kernel, &unchanged.buffers);
    let of = |(at, part): (usize, RemovablePart)| {
        let lines = &listing.lines[at];
        let was_reached = looked.profile.statements[at].instructions > 0;
        let times = looked.trace.events.iter().filter(|event| event.stmt as usize == at).count();
        let outcome = match was_reached || times > 0 {
            false => TrialOutcome::NotReached,
            true => tried(kernel, at, part.instead, &looked.arguments, patience, &bits),
        };
        Sync {
            line: lines.start + 1,
            text: cuda::statement(kernel, statements[at]),
            is: part.is,
            times: times as u64,
            change: part.change,
            outcome,
        }
    };
    Ok(parts(kernel).into_par_iter().map(of).collect())
}

/// Synchronising statements with their indices in the kernel.
fn parts(kernel: &Kernel) -> Vec<(usize, RemovablePart)> {
    let statements = kernel.statements().into_iter().enumerate();
    statements.filter_map(|(at, stmt)| Some((at, part(stmt)?))).collect()
}

/// Lines at which the synchronising statements start.
pub(super) fn lines(kernel: &Kernel, listing: &Listing) -> Vec<usize> {
    parts(kernel).into_iter().map(|(at, _)| listing.lines[at].start + 1).collect()
}

/// Removes the synchronisation at a line. `None` if there is none.
pub(super) fn changed(
    kernel: &VerifiedKernel,
    listing: &Listing,
    line: usize,
) -> Result<Option<(VerifiedKernel, RemovedSync)>, Failure> {
    let mut parts = parts(kernel).into_iter();
    let Some((at, part)) = parts.find(|(at, _)| listing.lines[*at].start + 1 == line) else {
        return Ok(None);
    };
    let text = cuda::statement(kernel, kernel.statements()[at]);
    let change = RemovedSync { line, text, change: part.change };
    let changed = replaced(kernel, at, &part.instead);
    let broken =
        |broken| Failure::Usage(format!("line {line} {}: not a kernel: {broken}", part.change));
    Ok(Some((changed.map_err(broken)?, change)))
}

/// Replaces a statement of a kernel.
pub(super) fn replaced(
    kernel: &VerifiedKernel,
    at: usize,
    instead: &Stmt,
) -> Result<VerifiedKernel, String> {
    let mut changed: Kernel = kernel.clone().into_inner();
    let mut number = 0;
    changed.visit_mut(&mut |stmt, _| {
        if number == at {
            *stmt = instead.clone();
        }
        number += 1;
    });
    VerifiedKernel::new(changed).map_err(|broken| broken.to_string())
}

/// Instruction limit for a changed kernel.
pub(super) fn patience(total: &Counters) -> u64 {
    total.instructions.saturating_mul(PATIENCE).saturating_add(LEAST_PATIENCE)
}

/// Returns the replacement that weakens a synchronising statement.
fn part(stmt: &Stmt) -> Option<RemovablePart> {
    let part = |is, change, instead| Some(RemovablePart { is, change, instead });
    let without = |is| part(is, "removed", Stmt::Comment("Nothing.".to_owned()));
    let weaker = |is, instead| part(is, "with one more group in flight", instead);
    match stmt {
        Stmt::Barrier(Scope::Warp) => without("warp barrier"),
        Stmt::Barrier(Scope::Block) => without("block barrier"),
        Stmt::Barrier(Scope::Cluster) => without("cluster barrier"),
        // Generated kernels have no device-wide barrier.
        Stmt::Barrier(Scope::Device) => None,
        Stmt::NamedBarrier { wait: true, .. } => without("named barrier"),
        Stmt::NamedBarrier { wait: false, .. } => without("arrival at a named barrier"),
        Stmt::Fence { .. } => without("fence"),
        Stmt::ProxyFence(_) => without("proxy fence"),
        Stmt::CopyWait { pending } => {
            weaker("wait for copies", Stmt::CopyWait { pending: pending.clone() + 1 })
        }
        Stmt::Mbarrier(barrier) => match barrier.op {
            // Without the initial count, the barrier cannot be used at all.
            MbarrierOp::Init { .. } => None,
            MbarrierOp::Arrive => without("mbarrier arrival"),
            MbarrierOp::ArriveRemote { .. } => without("mbarrier arrival in another block"),
            MbarrierOp::ArriveExpect { .. } => {
                without("mbarrier arrival that sets the expected bytes")
            }
            MbarrierOp::Wait { .. } => without("mbarrier wait"),
        },
        Stmt::WgmmaSync(WgmmaSync::Fence { .. }) => without("fence before matrix instructions"),
        Stmt::WgmmaSync(WgmmaSync::Wait { pending, accumulators }) => {
            let (pending, accumulators) = (pending + 1, accumulators.clone());
            weaker(
                "wait for matrix instructions",
                Stmt::WgmmaSync(WgmmaSync::Wait { pending, accumulators }),
            )
        }
        // These statements compute, move elements or start asynchronous work, but synchronise
        // nothing.
        Stmt::Let { .. }
        | Stmt::Mut { .. }
        | Stmt::Assign { .. }
        | Stmt::Registers { .. }
        | Stmt::Choose { .. }
        | Stmt::Store { .. }
        | Stmt::StoreRemote { .. }
        | Stmt::If { .. }
        | Stmt::For(_)
        | Stmt::Section(_)
        | Stmt::Atomic(_)
        | Stmt::CopyAsync { .. }
        | Stmt::Point { .. }
        | Stmt::Advance { .. }
        | Stmt::LoadMatrix(_)
        | Stmt::Mma(_)
        | Stmt::TensorCopy(_)
        | Stmt::Wgmma(_)
        | Stmt::WgmmaSync(WgmmaSync::Commit)
        | Stmt::RegisterLimit(_)
        | Stmt::CopyCommit
        | Stmt::Comment(_) => None,
    }
}

/// Launches a kernel with a replaced statement.
fn tried(
    kernel: &VerifiedKernel,
    at: usize,
    instead: Stmt,
    arguments: &Arguments,
    patience: u64,
    expected: &[Vec<u64>],
) -> TrialOutcome {
    let changed = match replaced(kernel, at, &instead) {
        Ok(changed) => changed,
        Err(broken) => return TrialOutcome::Error(format!("not a kernel: {broken}")),
    };
    match arguments.replay(&changed, &[], patience) {
        Err(error) => TrialOutcome::Error(error.to_string()),
        Ok(replay) => match replay.ran {
            Err(error) => found(error),
            Ok(_) if bits(&changed, &replay.buffers) == expected => TrialOutcome::Same,
            Ok(_) => TrialOutcome::Differs,
        },
    }
}

fn found(error: SimError) -> TrialOutcome {
    match error {
        SimError::Fault(fault) => TrialOutcome::Fault(PreventedFault::new(&fault)),
        // The position at which the limit is reached differs between runs, so it is not reported.
        SimError::OutOfInstructions { instructions, .. } => {
            TrialOutcome::Error(format!("the run did not end within {instructions} instructions"))
        }
        other => TrialOutcome::Error(other.to_string()),
    }
}

/// Results in arrays with deterministic contents. Arrays whose contents depend on the order of
/// blocks are skipped.
fn bits(kernel: &Kernel, buffers: &[BufferArg]) -> Vec<Vec<u64>> {
    let declared = kernel.params.iter().filter_map(|param| match param.kind {
        ParamKind::Buffer { buffer, .. } | ParamKind::TensorMap { buffer, .. } => {
            Some(&kernel.buffers[buffer.id])
        }
        ParamKind::Scalar { .. } => None,
    });
    let promised = declared.zip(buffers).filter(|(declared, _)| !declared.unordered);
    let arrays = promised.flat_map(|(_, given)| match given {
        BufferArg::One(buffer) => std::slice::from_ref(buffer),
        BufferArg::List(buffers) => &buffers[..],
    });
    arrays.map(|buffer| buffer.bits()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::looked;
    use gemm_bench::family::Family;

    fn syncs(family: Family, line: &str) -> Vec<Sync> {
        let looked = looked(family, line);
        trials(&looked, &cuda::listing(&looked.kernel)).expect("arguments that fit")
    }

    /// Message of the fault. Empty if there is none.
    fn fault(sync: &Sync) -> &str {
        match &sync.outcome {
            TrialOutcome::Fault(fault) => &fault.what,
            _ => "",
        }
    }

    /// Stage 5 has one barrier before the first tile is multiplied, and two barriers around each
    /// further copy.
    #[test]
    fn barriers_of_one_buffer_prevent_races_both_ways() {
        let found = syncs(Family::Sgemm, "tile: 32x32x32");
        // 32 warps execute the first barrier. The others are executed for seven more tiles.
        let times: Vec<u64> = found.iter().map(|sync| sync.times).collect();
        assert_eq!(times, [32, 224, 224]);
        let early =
            "data race on As[0][0]: this read is not ordered after the write by thread (0, 0)";
        let late =
            "data race on As[0][0]: this write is not ordered after the read by thread (1, 0)";
        for (sync, expected) in found.iter().zip([early, late, early]) {
            assert!(fault(sync).starts_with(expected), "{sync:?}");
        }
    }

    #[test]
    fn laxer_waits_let_copies_be_read_too_soon() {
        let line = "tile: 32x32x8, thread: 4x4, transpose, pad_a: 4, stages: 3, float4";
        let found = syncs(Family::Sgemm, line);
        let waits = found.iter().filter(|sync| sync.is == "wait for copies");
        assert_eq!(waits.clone().count(), 2);
        for wait in waits {
            assert_eq!(wait.change, "with one more group in flight");
            assert!(fault(wait).starts_with("asynchronous copy consumed before its wait"));
        }
    }

    /// Each block has a single K tile, so the wait in the loop is not needed.
    #[test]
    fn unneeded_synchronisations_are_reported() {
        let line = "tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, stages: 3, slices: \
                    8, split_k: auto";
        let found = syncs(Family::Sgemm, line);
        assert!(found.iter().any(|sync| sync.outcome == TrialOutcome::Same), "{found:#?}");
        assert!(found.iter().any(|sync| fault(sync).contains("data race on partials")));
    }
}
