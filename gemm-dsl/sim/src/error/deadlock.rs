//! Who waits in a deadlock, and for what.

use super::coordinates;
use std::fmt;

/// A warp that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingWarp {
    /// `blockIdx` of its block.
    pub block: (u32, u32, u32),
    /// Its number in the block.
    pub warp: u32,
    /// The first line of the text of the statement at which it waits.
    pub statement: String,
    /// For what.
    pub waits_for: WaitReason,
}

/// What a warp waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// All warps of the block.
    Block,
    /// All warps of the blocks of the cluster.
    Cluster,
    /// Those that are to arrive at a barrier with a name.
    Named {
        /// The barrier.
        barrier: u32,
        /// The threads that have arrived.
        arrived: u32,
        /// The threads that take part.
        expected: u32,
    },
    /// A phase of a barrier in shared memory.
    Phase {
        /// The name of its declaration.
        barrier: String,
        /// Which of them it is.
        index: u32,
        /// The parity that is waited for.
        parity: u32,
        /// The phase that is not complete.
        phase: u32,
        /// How many arrivals it lacks.
        arrivals: u32,
        /// How many bytes it lacks; below zero where more have come than are expected.
        bytes: i64,
    },
    /// Memory that others write: it goes round in a loop, and nobody else does anything.
    Change,
}

impl fmt::Display for WaitingWarp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "warp {} of block {} waits ", self.warp, coordinates(self.block))?;
        match &self.waits_for {
            WaitReason::Block => f.write_str("for all warps of the block")?,
            WaitReason::Cluster => f.write_str("for all warps of the cluster")?,
            WaitReason::Named { barrier, arrived, expected } => {
                write!(
                    f,
                    "at barrier {barrier}, where {arrived} of {expected} threads have arrived"
                )?;
            }
            WaitReason::Phase { barrier, index, parity, phase, arrivals, bytes } => {
                write!(
                    f,
                    "at barrier {barrier}[{index}] for parity {parity}: phase {phase} {}",
                    lacking(*arrivals, *bytes)
                )?;
            }
            WaitReason::Change => f.write_str("for others to write memory")?,
        }
        write!(f, ", in `{}`", self.statement)
    }
}

/// What a phase lacks: arrivals, bytes; of bytes it may also have too many.
fn lacking(arrivals: u32, bytes: i64) -> String {
    let count = |n: u64, of: &str| format!("{n} {of}{}", if n == 1 { "" } else { "s" });
    let lacks = [(u64::from(arrivals), "arrival"), (bytes.max(0).unsigned_abs(), "byte")];
    let lacks: Vec<String> =
        lacks.into_iter().filter(|(n, _)| *n > 0).map(|(n, of)| count(n, of)).collect();
    let more = (bytes < 0).then(|| {
        let have = if bytes == -1 { "has" } else { "have" };
        format!("{} more {have} come than are expected", count(bytes.unsigned_abs(), "byte"))
    });
    let lacks = (!lacks.is_empty()).then(|| format!("lacks {}", lacks.join(" and ")));
    match (lacks, more) {
        (Some(lacks), Some(more)) => format!("{lacks}, and {more}"),
        (Some(one), None) => one,
        (None, Some(more)) => format!("has too much: {more}"),
        (None, None) => "lacks nothing".to_owned(),
    }
}

/// The most warps that the message of a deadlock names.
const NAMED: usize = 4;

/// The warps that wait, the first few of them.
pub(super) fn named(waiting: &[WaitingWarp]) -> String {
    let names: Vec<String> = waiting.iter().take(NAMED).map(|w| w.to_string()).collect();
    let more = match waiting.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    names.join("; ") + &more
}

/// The blocks that those which wait may have waited for.
pub(super) fn not_begun(blocks: u32) -> String {
    match blocks {
        0 => String::new(),
        1 => "; and one block need not begin before these are done".into(),
        more => format!("; and {more} blocks need not begin before these are done"),
    }
}

#[cfg(test)]
mod tests {
    use super::lacking;

    #[test]
    fn what_a_phase_lacks_is_more_than_nothing() {
        assert_eq!(lacking(1, 0), "lacks 1 arrival");
        assert_eq!(lacking(2, 49152), "lacks 2 arrivals and 49152 bytes");
        let more = "49152 bytes more have come than are expected";
        assert_eq!(lacking(1, -49152), format!("lacks 1 arrival, and {more}"));
        assert_eq!(lacking(0, -49152), format!("has too much: {more}"));
        assert_eq!(lacking(0, 1), "lacks 1 byte");
    }
}
