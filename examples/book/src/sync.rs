//! Whether each synchronisation is needed, by experiment: the kernel without it, on what the kernel was launched with.

use crate::observation::Observation;
use gemm_bench::cli::Failure;
use gemm_dsl::cuda::{self, Listing};
use gemm_dsl::ir::{Kernel, MbarrierOp, ParamKind, Scope, Stmt, VerifiedKernel, WgmmaSync};
use gemm_runtime::fault::Fault;
use gemm_runtime::watch::{Arguments, BufferArg};
use gemm_runtime::{Counters, Error, SimError};
use rayon::prelude::*;
use serde::Serialize;

/// As many times the instructions of the launch a changed kernel may execute before it is given up: one that speaks to other blocks
/// runs several times, in several orders.
const PATIENCE: u64 = 64;
/// And these beside, of one with few.
const LEAST_PATIENCE: u64 = 1 << 22;

/// A statement that synchronises, and what the launch comes to without it.
#[derive(Clone, Debug, Serialize)]
pub struct Sync {
    /// The line of the text, counted from 1.
    pub line: usize,
    /// The first line of the statement.
    pub text: String,
    /// What it is.
    pub is: &'static str,
    /// How often a warp of the watched block came to it.
    pub times: u64,
    /// How the kernel was changed.
    pub change: &'static str,
    /// What that led to.
    pub outcome: TrialOutcome,
}

/// What the launch of a changed kernel comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialOutcome {
    /// The first fault that is found.
    Fault(PreventedFault),
    /// Something else that is no result.
    Error(String),
    /// No fault, and another result.
    Differs,
    /// No fault, and the same bits in every array whose elements the kernel promises.
    Same,
    /// No warp came to the statement.
    NotReached,
}

/// A fault that a synchronisation prevents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreventedFault {
    /// `blockIdx` of the thread.
    pub block: [u32; 3],
    /// Its `threadIdx`.
    pub thread: [u32; 2],
    /// What is wrong: with the element, and the earlier access, if it is about one.
    pub what: String,
    /// The first line of the text of the statement that it was in.
    pub statement: String,
}

impl PreventedFault {
    /// The thread and its block, in the form that all of a page has: three coordinates of a block.
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

/// What was left out of a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct RemovedSync {
    /// The line, as the text of the whole kernel has it.
    pub line: usize,
    /// The statement.
    pub text: String,
    /// How it was changed.
    pub change: &'static str,
}

/// What may be left out of a kernel.
struct RemovablePart {
    is: &'static str,
    change: &'static str,
    /// What stands in its place.
    instead: Stmt,
}

/// The statements of a kernel that synchronise, in the order of the text, each tried.
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

/// The statements that synchronise, by their numbers.
fn parts(kernel: &Kernel) -> Vec<(usize, RemovablePart)> {
    let statements = kernel.statements().into_iter().enumerate();
    statements.filter_map(|(at, stmt)| Some((at, part(stmt)?))).collect()
}

/// The lines of the text at which they begin.
pub(super) fn lines(kernel: &Kernel, listing: &Listing) -> Vec<usize> {
    parts(kernel).into_iter().map(|(at, _)| listing.lines[at].start + 1).collect()
}

/// The kernel without the synchronisation at a line, and what was changed; nothing if there is none.
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
        |broken| Failure::Usage(format!("line {line}, {}: no kernel: {broken}", part.change));
    Ok(Some((changed.map_err(broken)?, change)))
}

/// The kernel with another statement in the place of one.
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

/// The instructions after which a changed kernel is given up.
pub(super) fn patience(total: &Counters) -> u64 {
    total.instructions.saturating_mul(PATIENCE).saturating_add(LEAST_PATIENCE)
}

/// What is left out of a statement.
fn part(stmt: &Stmt) -> Option<RemovablePart> {
    let part = |is, change, instead| Some(RemovablePart { is, change, instead });
    let without = |is| part(is, "without it", Stmt::Comment("Nothing.".to_owned()));
    let weaker = |is, instead| part(is, "with one more group in flight", instead);
    match stmt {
        Stmt::Barrier(Scope::Warp) => without("barrier of the warp"),
        Stmt::Barrier(Scope::Block) => without("barrier of the block"),
        Stmt::Barrier(Scope::Cluster) => without("barrier of the cluster"),
        // No kernel has one.
        Stmt::Barrier(Scope::Device) => None,
        Stmt::NamedBarrier { wait: true, .. } => without("barrier with a number"),
        Stmt::NamedBarrier { wait: false, .. } => without("arrival at a barrier with a number"),
        Stmt::Fence { .. } => without("fence"),
        Stmt::ProxyFence(_) => without("fence between threads and asynchronous units"),
        Stmt::CopyWait { pending } => {
            weaker("wait for copies", Stmt::CopyWait { pending: pending.clone() + 1 })
        }
        Stmt::Mbarrier(barrier) => match barrier.op {
            // Without its count there is no such barrier.
            MbarrierOp::Init { .. } => None,
            MbarrierOp::Arrive => without("arrival at a barrier in shared memory"),
            MbarrierOp::ArriveRemote { .. } => {
                without("arrival at a barrier in shared memory of another block")
            }
            MbarrierOp::ArriveExpect { .. } => {
                without("arrival at a barrier in shared memory, which says how many bytes come")
            }
            MbarrierOp::Wait { .. } => without("wait at a barrier in shared memory"),
        },
        Stmt::WgmmaSync(WgmmaSync::Fence { .. }) => without("fence before matrix instructions"),
        Stmt::WgmmaSync(WgmmaSync::Wait { pending, accumulators }) => {
            let (pending, accumulators) = (pending + 1, accumulators.clone());
            weaker(
                "wait for matrix instructions",
                Stmt::WgmmaSync(WgmmaSync::Wait { pending, accumulators }),
            )
        }
        // What computes, moves elements or starts what is waited for: others are told of none of that by the statement itself.
        Stmt::Let { .. }
        | Stmt::Mut { .. }
        | Stmt::Assign { .. }
        | Stmt::Registers { .. }
        | Stmt::Choose { .. }
        | Stmt::Store { .. }
        | Stmt::If { .. }
        | Stmt::For(_)
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
        | Stmt::Assume(_)
        | Stmt::Comment(_) => None,
    }
}

/// Launches a kernel with another statement in the place of one.
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
        Err(broken) => return TrialOutcome::Error(format!("no kernel: {broken}")),
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
        // Where it was by then is not the same on every run.
        SimError::OutOfInstructions { instructions, .. } => {
            TrialOutcome::Error(format!("it is not done after {instructions} instructions"))
        }
        other => TrialOutcome::Error(other.to_string()),
    }
}

/// What a launch has left in arrays whose elements its kernel promises: not in those that depend on the order of blocks.
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
    use crate::observation::Spec;
    use gemm_bench::family::Family;

    fn syncs(family: Family, line: &str) -> Vec<Sync> {
        let spec = Spec::parse(family, line).expect("a spec");
        let looked = spec.look(spec.at().expect("a shape")).expect("a launch");
        trials(&looked, &cuda::listing(&looked.kernel)).expect("arguments that fit")
    }

    /// What is wrong; nothing where nothing is.
    fn fault(sync: &Sync) -> &str {
        match &sync.outcome {
            TrialOutcome::Fault(fault) => &fault.what,
            _ => "",
        }
    }

    /// Stage 5: a barrier before the first product, and two around each copy.
    #[test]
    fn barriers_of_one_buffer_prevent_races_both_ways() {
        let found = syncs(Family::Sgemm, "tile: 32x32x32");
        // 32 warps come to the first; seven more tiles are copied.
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

    /// Each block has one tile of K, so that nothing is read behind the loop's wait.
    #[test]
    fn what_is_not_needed_in_a_run_is_said_so() {
        let line = "tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, stages: 3, slices: 8, split_k: auto";
        let found = syncs(Family::Sgemm, line);
        assert!(found.iter().any(|sync| sync.outcome == TrialOutcome::Same), "{found:#?}");
        assert!(found.iter().any(|sync| fault(sync).contains("data race on partials")));
    }
}
