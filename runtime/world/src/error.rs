//! What can go wrong between ranks.

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

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure of the ranks together, or of one rank's device. No call panics.
///
/// `Debug` is the message, as `Display` is: a `main` that returns an error shows the remedy.
#[derive(ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The ranks of a world could not go on.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A call of a device failed.
    #[error(transparent)]
    Device(#[from] gemm_runtime::Error),
}

impl Error {
    /// The generator contradicted itself.
    pub(crate) fn internal(text: String) -> Self {
        Self::Device(gemm_runtime::Error::Internal(text))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<SpecErrors> for Error {
    fn from(errors: SpecErrors) -> Self {
        Self::Device(errors.into())
    }
}

/// What the ranks of a [`World`](crate::World) can come to. Each rank that lives is told, by a deadline.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum WorldError {
    /// The system has no thread.
    #[error(
        "there is no thread for {what}: {reason}. Start fewer, or raise the limit of this process (`ulimit -u`)"
    )]
    Thread {
        /// What it would have been for.
        what: String,
        /// What the system says.
        reason: String,
    },
    /// A rank that others waited for does not answer any more, or did not in time.
    #[error("rank {rank} was lost while this one was {doing}: {why}")]
    RankLost {
        /// The rank that was waited for.
        rank: usize,
        /// What this rank was at.
        doing: String,
        /// What is known of it.
        why: LossReason,
    },
    /// Ranks that do not do the same.
    #[error(
        "the ranks are at odds over {what}: rank {rank} has {has}, but rank {other} has {others}. {remedy}"
    )]
    Mismatch {
        /// Over what, as in `the extents of the product`.
        what: String,
        /// The first rank that has something else than the one below.
        rank: usize,
        /// What it has.
        has: String,
        /// The lowest rank.
        other: usize,
        /// What that one has.
        others: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Ranks that have the same of what each needs one of its own.
    #[error("ranks {other} and {rank} have the same {what}, {value}. {remedy}")]
    Shared {
        /// Of what, as in `GPU`.
        what: String,
        /// The same of both.
        value: String,
        /// The first rank that has what one below has.
        rank: usize,
        /// The lowest that has it.
        other: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// Not all ranks came to the place where they meet.
    #[error("{address}, where the ranks meet: {reason}")]
    Rendezvous {
        /// Host and port.
        address: String,
        /// What happened there, with the ranks that are missing.
        reason: String,
    },
    /// A variable of the environment that says which rank this process is, and does not.
    #[error("the environment has {variable}={value}: {need}")]
    Environment {
        /// Its name.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What it has to be.
        need: String,
    },
    /// A world, or something asked of one, that cannot be.
    #[error("{what} cannot be: {need}")]
    Impossible {
        /// What, as in `rank 7`.
        what: String,
        /// What is needed.
        need: String,
    },
    /// A layout that is not for these ranks.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
    /// There is no schedule of a product of such matrices on so many ranks.
    #[error(transparent)]
    Schedule(#[from] ScheduleFault),
    /// A kernel that gives a part of a product other bits than the whole.
    #[error(
        "`{line}` shares its sums out by the extents of what it computes, of which each rank has a part: the bits would depend \
         on how many ranks there are. Leave `{key}` out, or write `split_k` with a number"
    )]
    Divided {
        /// The line of the kernel.
        line: String,
        /// The key by which it does so.
        key: &'static str,
    },
    /// A kernel that would have to be `pitched` on some ranks, and gives other bits then.
    #[error(
        "`{line}` shares the terms of a sum out, otherwise where it is `pitched`, which it would have to be here: some rank multiplies \
         parts of matrices between whose rows others lie. Add `pitched`, or deal the matrices out otherwise"
    )]
    Unpitched {
        /// The line of the kernel.
        line: String,
    },
    /// A reduction whose blocks take turns, of elements of which each rank has some.
    #[error(
        "{} folds elements of which each rank has some, by blocks that take turns along all of them: the bits would depend on \
         how many ranks there are. {}, and cut the elements between runs",
        reduction(line),
        runs(line)
    )]
    Unrun {
        /// The line of the kernel.
        line: String,
    },
    /// A rank has a part of a run.
    #[error(
        "the elements of rank {rank} are cut at {at} = {}·{run} + {}, within a run of {run}: cut them between runs, as the layout \
         `1x1000000 cols/{run}` does", at / run, at % run
    )]
    CutRun {
        /// The rank.
        rank: usize,
        /// The index at which its part begins or ends.
        at: usize,
        /// Elements of a run.
        run: usize,
    },
    /// What a rank was to do has panicked.
    #[error("rank {rank} panicked: {message}")]
    Panicked {
        /// The rank.
        rank: usize,
        /// What it said.
        message: String,
    },
    /// A file that is not what it should be.
    #[error("{path}: {fault}")]
    Npy {
        /// The file.
        path: String,
        /// What is wrong with it, and what to do.
        fault: NpyFault,
    },
    /// NCCL was found nowhere.
    #[error(
        "NCCL, which carries data between GPUs, was not found. Install it with `pip install nvidia-nccl-cu13` or \
         Debian's `libnccl2`, or set GEMM_NCCL_PATH to the library or its directory. Looked in:\n{}",
        searched.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
    )]
    NcclMissing {
        /// The places tried, in order, each with what was found there.
        searched: Vec<String>,
    },
    /// NCCL is there, but it is too old.
    #[error("the NCCL at {path} is {}, but {} or later is needed, which can give up in one group", version(*has), version(*need))]
    NcclOld {
        /// Where it is.
        path: String,
        /// Its version, as NCCL numbers them: 22203 of 2.22.3.
        has: u32,
        /// The oldest that will do.
        need: u32,
    },
    /// NCCL failed.
    #[error(
        "NCCL failed at {doing}: {text} (code {code}). With NCCL_DEBUG=WARN in the environment it says more"
    )]
    Nccl {
        /// What it was to do.
        doing: String,
        /// What it returned.
        code: i32,
        /// What it says of that, and of the last error.
        text: String,
    },
    /// NCCL was not called, since what it was to be given cannot be.
    #[error("NCCL was not called for {doing}: {need}")]
    NcclRefused {
        /// What it was to do.
        doing: String,
        /// What is needed, with the value that is not so.
        need: String,
    },
    /// NCCL was not done by the deadline.
    #[error(
        "NCCL was not done with {doing} after {:.1} s: it waits for a rank that does not take part, or that does \
         something else. Do all ranks make the same calls in the same order?",
        waited.as_secs_f64()
    )]
    NcclLate {
        /// What it was at.
        doing: String,
        /// For how long it was waited for.
        waited: Duration,
    },
}

/// What is known of a rank that was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossReason {
    /// Its connection is closed, as that of a process that has ended is.
    Gone,
    /// Nothing has come of it for so long.
    Late(Duration),
    /// It has failed, and says with what.
    Failed(String),
    /// It has done all that it wanted to, and does not take part any more.
    Finished,
    /// Ranks wait for one another, and for nothing that is under way, so that none of them can go on: who for whom.
    Deadlock(String),
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => {
                f.write_str("its connection was closed; look at what its process has said last")
            }
            Self::Late(time) => write!(f, "nothing has come of it for {:.1} s", time.as_secs_f64()),
            Self::Failed(with) => write!(f, "it failed with: {with}"),
            Self::Finished => {
                f.write_str("it has finished; do all ranks make the same calls in the same order?")
            }
            Self::Deadlock(who) => write!(f, "ranks wait for one another: {who}"),
        }
    }
}

/// A reduction by its line, of which there may be nothing.
fn reduction(line: &str) -> String {
    match line {
        "" => "the plain sum".to_owned(),
        line => format!("`{line}`"),
    }
}

/// That something cannot be, and what it would need.
pub(crate) fn impossible(what: String, need: &str) -> Error {
    Error::World(WorldError::Impossible { what, need: need.to_owned() })
}

/// An error of the driver, as an error of the device: `doing` says what failed.
pub(crate) fn failed(doing: impl Into<String>) -> impl FnOnce(DriverError) -> Error {
    let failed = gemm_runtime::internal::failed(doing);
    move |error| failed(error).into()
}

/// Which ranks there are, for who names another one.
pub(crate) fn numbered(ranks: usize) -> String {
    format!("there are {ranks} ranks, numbered from 0")
}

/// What to write so that a reduction folds runs.
fn runs(line: &str) -> String {
    let mut spec: ReduceSpec = line.parse().unwrap_or_default();
    let mut others = String::new();
    if spec.over == Over::Rows && spec.group.is_some_and(|group| group != spec.block) {
        // Several blocks fold a row that one block has for itself.
        spec.group = Some(spec.block);
        others = format!(" and `group: {}`", spec.block);
    }
    let place = if spec.blocks.is_some() { ", in place of `blocks`" } else { "" };
    let round = spec.plan().map_or(1, |plan| plan.elements_per_round()).max(1);
    // A multiple near to what launches well.
    let run = (1 << 16_u64).max(round) / round * round;
    format!(
        "Write `run: {run}`, or another multiple of {round}, what a block takes in at once{place}{others}"
    )
}

/// A version of NCCL as it is written.
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

/// What a rank that has panicked fails with.
pub(crate) fn panicked(rank: usize, panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let message = text.unwrap_or_else(|| "something that is no text".to_owned());
    Error::World(WorldError::Panicked { rank, message })
}

/// Fault of a `.npy` file, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum NpyFault {
    /// The system cannot read it.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// It does not start as a `.npy` file does.
    #[error("it is no .npy file: {0}. Write it with numpy.save")]
    Format(String),
    /// Its elements are of another type.
    #[error(
        "its elements are of type {found}, but {need} ({descr}) is needed. Convert it: \
         numpy.save(path, array.astype({descr}))"
    )]
    ElementType {
        /// NumPy's name of the type.
        found: String,
        /// NumPy's name of the type that is needed.
        need: &'static str,
        /// NumPy's descriptor of that type.
        descr: &'static str,
    },
    /// NumPy has no such elements.
    #[error("there are no files of {0}")]
    Untyped(Elem),
    /// It ends before its data does.
    #[error("it is truncated: it ends before its data does")]
    Truncated,
    /// The array has more than two dimensions.
    #[error("it has {has} dimensions, but a matrix has 2")]
    Dimensions {
        /// Number of its dimensions.
        has: usize,
    },
    /// It is column-major, so that a rank's rows cannot be read by themselves.
    #[error(
        "it lies column by column: write it with numpy.save(path, numpy.ascontiguousarray(array))"
    )]
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
