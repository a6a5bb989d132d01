//! What can go wrong between ranks.

use std::fmt;
use std::time::Duration;
use thiserror::Error;

/// What the ranks of a [`World`](crate::world::World) can come to. Each rank that lives is told, by a deadline.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WorldError {
    /// A rank that others waited for does not answer any more, or did not in time.
    #[error("rank {rank} was lost while this one was {doing}: {why}")]
    RankLost {
        /// The rank that was waited for.
        rank: usize,
        /// What this rank was at.
        doing: String,
        /// What is known of it.
        why: Lost,
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
    /// A world that cannot be.
    #[error("there can be no world of {what}: {need}")]
    Impossible {
        /// Of what.
        what: String,
        /// What is needed.
        need: String,
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
    #[error("NCCL failed at {doing}: {text} (code {code})")]
    Nccl {
        /// What it was to do.
        doing: String,
        /// What it returned.
        code: i32,
        /// What it says of that, and of the last error.
        text: String,
    },
}

/// What is known of a rank that was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lost {
    /// Its connection is closed, as that of a process that has ended is.
    Gone,
    /// Nothing has come of it for so long.
    Late(Duration),
    /// It has failed, and says with what.
    Failed(String),
    /// It has done all that it wanted to, and does not take part any more.
    Finished,
    /// All ranks that live wait for one another: who for whom.
    Deadlock(String),
}

impl fmt::Display for Lost {
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
            Self::Deadlock(who) => write!(f, "all ranks wait: {who}"),
        }
    }
}

/// A version of NCCL as it is written.
fn version(number: u32) -> String {
    let (major, minor, patch) = match number {
        0..10_000 => (number / 1000, number / 100 % 10, number % 100),
        _ => (number / 10_000, number / 100 % 100, number % 100),
    };
    format!("{major}.{minor}.{patch}")
}
