//! Waiting warps of a deadlock.

use super::coordinates;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingWarp {
    pub block: (u32, u32, u32),
    /// Number of the warp in the block.
    pub warp: u32,
    /// First line of the statement at which the warp waits.
    pub statement: String,
    pub waits_for: WaitReason,
}

/// Reason why a warp waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    Block,
    /// All warps of all blocks of the cluster.
    Cluster,
    Named {
        barrier: u32,
        arrived: u32,
        expected: u32,
    },
    Phase {
        barrier: String,
        /// Index in the declared array of mbarriers.
        index: u32,
        parity: u32,
        /// Number of the incomplete phase.
        phase: u32,
        arrivals: u32,
        /// Number of bytes still expected; negative if more bytes have arrived than were expected.
        bytes: i64,
    },
    /// A write to memory by other threads. The warp polls in a loop, and all other warps are idle.
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

/// Lists the missing arrivals and bytes of a phase, or the surplus bytes.
fn lacking(arrivals: u32, bytes: i64) -> String {
    let count = |n: u64, of: &str| format!("{n} {of}{}", if n == 1 { "" } else { "s" });
    let lacks = [(u64::from(arrivals), "arrival"), (bytes.max(0).unsigned_abs(), "byte")];
    let lacks: Vec<String> =
        lacks.into_iter().filter(|(n, _)| *n > 0).map(|(n, of)| count(n, of)).collect();
    let more = (bytes < 0).then(|| {
        let have = if bytes == -1 { "has" } else { "have" };
        format!("{} more {have} arrived than are expected", count(bytes.unsigned_abs(), "byte"))
    });
    let lacks = (!lacks.is_empty()).then(|| format!("lacks {}", lacks.join(" and ")));
    match (lacks, more) {
        (Some(lacks), Some(more)) => format!("{lacks}, and {more}"),
        (Some(one), None) => one,
        (None, Some(more)) => format!("has too much: {more}"),
        (None, None) => "lacks nothing".to_owned(),
    }
}

/// Maximum number of warps that a deadlock message names.
const NAMED: usize = 4;

/// Describes the first [`NAMED`] waiting warps.
pub(super) fn named(waiting: &[WaitingWarp]) -> String {
    let names: Vec<String> = waiting.iter().take(NAMED).map(|w| w.to_string()).collect();
    let more = match waiting.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    names.join("; ") + &more
}

/// Mentions the number of blocks that have not started.
pub(super) fn not_begun(blocks: u32) -> String {
    match blocks {
        0 => String::new(),
        1 => "; and one block need not start before these are done".into(),
        more => format!("; and {more} blocks need not start before these are done"),
    }
}

#[cfg(test)]
mod tests {
    use super::lacking;

    #[test]
    fn missing_arrivals_and_bytes_are_listed() {
        assert_eq!(lacking(1, 0), "lacks 1 arrival");
        assert_eq!(lacking(2, 49152), "lacks 2 arrivals and 49152 bytes");
        let more = "49152 bytes more have arrived than are expected";
        assert_eq!(lacking(1, -49152), format!("lacks 1 arrival, and {more}"));
        assert_eq!(lacking(0, -49152), format!("has too much: {more}"));
        assert_eq!(lacking(0, 1), "lacks 1 byte");
    }
}
