//! Errors of worlds and ranks.

use super::{DistributionError, ScheduleFault};
use cudarc::driver::DriverError;
use gemm_dsl::error::SpecErrors;
use gemm_dsl::ir::Elem;
use gemm_dsl::spec::{Over, ReduceSpec};
use std::any::Any;
use std::fmt;
use std::io;
use std::time::Duration;
use thiserror::Error as ThisError;

/// Result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Failure of the world, or of this rank's device. No function panics on bad arguments.
///
/// `Display` prints the message with the remedy, `Debug` the variant with its data. A `main` that
/// returns an error prints its `Debug`.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The ranks cannot continue together.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A call of this rank's device failed.
    #[error(transparent)]
    Device(#[from] gemm_runtime::Error),
}

impl Error {
    /// Error for a violated invariant of this crate.
    pub(crate) fn internal(text: String) -> Self {
        Self::Device(gemm_runtime::Error::Internal(text))
    }
}

impl From<SpecErrors> for Error {
    fn from(errors: SpecErrors) -> Self {
        Self::Device(errors.into())
    }
}

/// Failure of a [`World`](crate::World). Every surviving rank returns it within its timeout.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum WorldError {
    /// The system cannot start a thread.
    #[error(
        "cannot start a thread for {what}: {reason}. Start fewer threads, or raise the limit of \
         this process (`ulimit -u`)"
    )]
    Thread {
        /// Purpose of the thread, such as `rank 3`.
        what: String,
        /// Reason given by the system.
        reason: String,
    },
    /// Another rank failed, ended, or did not answer in time.
    #[error("rank {rank} was lost while this rank was {doing}: {why}")]
    RankLost {
        /// Number of the lost rank.
        rank: usize,
        /// Activity of the reporting rank.
        doing: String,
        /// Reason why the rank counts as lost.
        why: LossReason,
    },
    /// The ranks disagree, for example because they make different calls.
    #[error(
        "the ranks disagree about {what}: rank {rank} has {has}, but rank {other} has {others}. \
         {remedy}"
    )]
    Mismatch {
        /// Subject of the disagreement, such as `the extents of the product`.
        what: String,
        /// First rank that differs from `other`.
        rank: usize,
        /// Value on rank `rank`, as text.
        has: String,
        /// Rank that `rank` is compared with, usually rank 0.
        other: usize,
        /// Value on rank `other`, as text.
        others: String,
        /// Advice to the user, a sentence.
        remedy: &'static str,
    },
    /// Two ranks share a resource of which each rank needs its own.
    #[error("ranks {other} and {rank} have the same {what}, {value}. {remedy}")]
    Shared {
        /// Kind of the shared resource, such as `GPU`.
        what: String,
        /// Value that both ranks have.
        value: String,
        /// First rank that repeats the value of a lower rank.
        rank: usize,
        /// Lowest rank with the value.
        other: usize,
        /// Advice to the user, a sentence.
        remedy: &'static str,
    },
    /// The ranks of a job did not all arrive at the rendezvous.
    #[error("{address}, the rendezvous of the ranks: {reason}")]
    Rendezvous {
        /// Host and port of the rendezvous.
        address: String,
        /// Reason, with the missing ranks.
        reason: String,
    },
    /// An environment variable of a launcher, or of `GEMM_*`, is invalid.
    #[error("the environment has {variable}={value}: {need}")]
    Environment {
        /// Name of the variable, such as `WORLD_SIZE`.
        variable: &'static str,
        /// Value of the variable, lossily decoded.
        value: String,
        /// Requirement that the value violates.
        need: String,
    },
    /// An impossible world, or an impossible request to one.
    #[error("{what} cannot be used: {need}")]
    Impossible {
        /// Subject, such as `rank 7`.
        what: String,
        /// Requirement that the request violates.
        need: String,
    },
    /// A distribution does not fit these ranks.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
    /// The matrices admit no schedule on this number of ranks.
    #[error(transparent)]
    Schedule(#[from] ScheduleFault),
    /// A kernel's bits depend on the division of the GEMM among ranks.
    #[error(
        "`{line}` splits its sums according to the extents of the GEMM, but each rank computes \
         only a part of the GEMM: the bits would depend on the number of ranks. Leave `{key}` out, \
         or write `split_k` with a number"
    )]
    Divided {
        /// Spec of the kernel as text, all keys in canonical form.
        line: String,
        /// Key that causes the dependence.
        key: &'static str,
    },
    /// Some ranks need the kernel `pitched`, which would change its bits.
    #[error(
        "`{line}` splits its sums over K, and `pitched` would split them differently. Some rank \
         needs `pitched`, because it multiplies parts of matrices whose rows are not packed. Add \
         `pitched`, or distribute the matrices differently"
    )]
    Unpitched {
        /// Spec of the kernel as text, all keys in canonical form.
        line: String,
    },
    /// A reduction without `run` folds results whose elements are spread over ranks. Its blocks
    /// would take turns along the elements of each rank, so its bits would depend on the number of
    /// ranks.
    #[error(
        "{} folds elements that are spread over the ranks, but its blocks take turns along all \
         elements: the bits would depend on the number of ranks. {}, and cut the elements between \
         runs",
        reduction(line),
        runs(line)
    )]
    Unrun {
        /// Spec of the reduction; empty for the plain sum.
        line: String,
    },
    /// A rank's elements begin or end within a run.
    #[error(
        "the elements of rank {rank} are cut at {at} = {}·{run} + {}, within a run of {run}: cut \
         them between runs, as the distribution `1x1000000 cols/{run}` does", at / run, at % run
    )]
    CutRun {
        /// Number of the rank, from 0.
        rank: usize,
        /// Index along the folded axis, in elements, at which the rank's part begins or ends.
        at: usize,
        /// Length of a run in elements.
        run: usize,
    },
    /// The program of a rank panicked.
    #[error("rank {rank} panicked: {message}")]
    Panicked {
        /// Number of the rank, from 0.
        rank: usize,
        /// Message of the panic, if it was text.
        message: String,
    },
    /// A `.npy` file cannot be used.
    #[error("{path}: {fault}")]
    Npy {
        /// Path of the file, as passed by the user.
        path: String,
        /// Fault of the file, with advice to the user.
        fault: NpyFault,
    },
    /// The NCCL library was not found.
    #[error(
        "NCCL, which transfers data between GPUs, was not found. Install it with `pip install \
         nvidia-nccl-cu13` or Debian's `libnccl2`, or set GEMM_NCCL_PATH to the library or its \
         directory. Looked in:\n{}",
        searched.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
    )]
    NcclMissing {
        /// Searched places in order, each with the result of the search.
        searched: Vec<String>,
    },
    /// The NCCL library is too old.
    #[error("the NCCL at {path} is {}, but {} or later is needed to abort one \
        group", version(*has), version(*need))]
    NcclOld {
        /// Path of the library's file.
        path: String,
        /// Version of the library in NCCL's numbering: 22203 is 2.22.3.
        has: u32,
        /// Minimum version, in the same numbering.
        need: u32,
    },
    /// A call of NCCL failed.
    #[error("NCCL failed at {doing}: {text} (code {code}). Set NCCL_DEBUG=WARN to see more")]
    Nccl {
        /// Activity that failed, such as `an exchange`.
        doing: String,
        /// Result code of the call.
        code: i32,
        /// NCCL's text for the code, and its last error.
        text: String,
    },
    /// NCCL was not called, because the arguments are invalid.
    #[error("NCCL was not called for {doing}: {need}")]
    NcclRefused {
        /// Activity that was refused, such as `an exchange`.
        doing: String,
        /// Requirement, with the value that violates it.
        need: String,
    },
    /// NCCL did not finish by the deadline.
    #[error(
        "NCCL did not finish {doing} within {:.1} s: it waits for a rank that does not take part \
         or makes another call. Do all ranks make the same calls in the same order?",
        waited.as_secs_f64()
    )]
    NcclLate {
        /// Activity that is unfinished, such as `an exchange`.
        doing: String,
        /// Time after which the wait was given up.
        waited: Duration,
    },
}

/// Reason for the loss of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossReason {
    /// The connection of the rank was closed, for example because its process ended.
    Gone,
    /// The rank sent nothing for this time.
    Late(Duration),
    /// The rank failed with this message.
    Failed(String),
    /// The program of the rank has ended without an error, but another rank still waits for this
    /// rank.
    Finished,
    /// Ranks wait for each other in a circle, and no message is under way. The text names the rank
    /// for which each of them waits.
    Deadlock(String),
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => {
                f.write_str("its connection was closed; see the last output of its process")
            }
            Self::Late(time) => {
                write!(f, "nothing has arrived from it for {:.1} s", time.as_secs_f64())
            }
            Self::Failed(with) => write!(f, "it failed with: {with}"),
            Self::Finished => {
                f.write_str("it has finished; do all ranks make the same calls in the same order?")
            }
            Self::Deadlock(who) => write!(f, "ranks wait for one another: {who}"),
        }
    }
}

/// Formats a reduction's spec, which may be empty.
fn reduction(line: &str) -> String {
    match line {
        "" => "the plain sum".to_owned(),
        line => format!("`{line}`"),
    }
}

pub(crate) fn impossible(what: String, need: &str) -> Error {
    Error::World(WorldError::Impossible { what, need: need.to_owned() })
}

/// Converts an error of the driver into one of the device. `doing` names the activity that failed.
pub(crate) fn failed(doing: impl Into<String>) -> impl FnOnce(DriverError) -> Error {
    let failed = gemm_runtime::internal::failed(doing);
    move |error| failed(error).into()
}

/// Describes the valid ranks, for a message about an invalid rank.
pub(crate) fn numbered(ranks: usize) -> String {
    format!("there are {ranks} ranks, numbered from 0")
}

/// Suggests a `run`, and the keys that it requires, for a reduction without one.
fn runs(line: &str) -> String {
    let mut spec: ReduceSpec = line.parse().unwrap_or_default();
    let mut others = String::new();
    if spec.over == Over::Rows && spec.group.is_some_and(|group| group != spec.block) {
        // With `run`, several blocks fold a row, so `group` must be the whole block.
        spec.group = Some(spec.block);
        others = format!(", add `group: {}`", spec.block);
    }
    let place = if spec.blocks.is_some() { " instead of `blocks`" } else { "" };
    let round = spec.plan().map_or(1, |plan| plan.elements_per_round()).max(1);
    // Largest multiple of a round that is at most 2¹⁶ elements, or one round.
    let run = (1 << 16_u64).max(round) / round * round;
    format!(
        "Write `run: {run}`, or another multiple of the {round} elements that a block reads at \
         once{place}{others}"
    )
}

/// Formats a version number of NCCL.
fn version(number: u32) -> String {
    let (major, minor, patch) = match number {
        0..10_000 => (number / 1000, number / 100 % 10, number % 100),
        _ => (number / 10_000, number / 100 % 100, number % 100),
    };
    format!("{major}.{minor}.{patch}")
}

impl From<DistributionError> for Error {
    fn from(error: DistributionError) -> Self {
        Self::World(error.into())
    }
}

impl From<ScheduleFault> for Error {
    fn from(fault: ScheduleFault) -> Self {
        Self::World(fault.into())
    }
}

/// Converts a panic of a rank into an error.
pub(crate) fn panicked(rank: usize, panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let message = text.unwrap_or_else(|| "a value that is not text".to_owned());
    Error::World(WorldError::Panicked { rank, message })
}

/// Fault of a `.npy` file, with advice to the user.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum NpyFault {
    /// The system cannot read the file.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// The file does not start with the header of a `.npy` file.
    #[error("it is not a .npy file: {0}. Write it with numpy.save")]
    Format(String),
    /// The elements of the file have another type.
    #[error(
        "its elements are of type {found}, but {need} ({descr}) is needed. Convert it: \
         numpy.save(path, array.astype({descr}))"
    )]
    ElementType {
        /// NumPy's name of the type in the file.
        found: String,
        /// NumPy's name of the required type.
        need: &'static str,
        /// NumPy's descriptor of the required type.
        descr: &'static str,
    },
    /// NumPy has no such element type.
    #[error("the .npy format has no elements of type {0}")]
    Untyped(Elem),
    /// The file is shorter than its header announces.
    #[error("it is truncated: the header announces more data than the file has")]
    Truncated,
    /// The array has more than two dimensions.
    #[error("it has {has} dimensions, but a matrix has 2")]
    Dimensions {
        /// Number of dimensions, at least 3.
        has: usize,
    },
    /// The file is column-major, so a rank cannot read single rows of it.
    #[error("it is column-major: write it with numpy.save(path, numpy.ascontiguousarray(array))")]
    ByColumn,
}

impl From<io::Error> for NpyFault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated,
            io::ErrorKind::InvalidData => Self::Format(error.to_string()),
            _ => Self::Unreadable(error.to_string()),
        }
    }
}
