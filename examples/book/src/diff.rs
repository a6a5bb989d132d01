//! Differences between two kernels: keys, counters and source.

use super::occupancy::Occupancy;
use gemm_draw::counters::Counter;
use gemm_runtime::sim::{Counters, SassCounters};
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// Unchanged lines shown around a change.
const CONTEXT: usize = 2;

/// Differences from a base kernel to another one.
#[derive(Clone, Debug, Serialize)]
pub struct KernelDiff {
    pub base: String,
    pub line: String,
    pub keys: Vec<Key>,
    pub counters: Vec<Delta>,
    /// Number of launches whose counters are summed, for the base and for this kernel. It exceeds
    /// one if a kernel without a batch is compared with a batch.
    pub launches: [usize; 2],
    /// First differences of the sources.
    pub hunks: Vec<Hunk>,
    /// Number of further lines of the difference, including context lines.
    pub more: usize,
    /// True if the sources differ only in the kernel's name and the leading comment.
    pub is_same_kernel: bool,
    /// Bytes of shared memory per block of the base.
    pub shared_bytes: u64,
    /// Occupancy of the base on each architecture with a compiler report.
    pub residents: Vec<Occupancy>,
}

impl KernelDiff {
    /// Sentence about counters that sum several launches.
    pub fn repeated(&self) -> Option<String> {
        let of = |name: &str, launches| {
            format!("Counters of {name} cover {launches} launches, one per GEMM.")
        };
        match self.launches {
            [1, 1] => None,
            [launches, 1] => Some(of(&self.base, launches)),
            [_, launches] => Some(of("this kernel", launches)),
        }
    }

    /// Pairs the occupancies of the base and of this kernel by architecture.
    pub fn residents<'r>(&'r self, now: &'r [Occupancy]) -> Vec<[&'r Occupancy; 2]> {
        let now_of = |before: &&Occupancy| now.iter().find(|now| now.arch == before.arch);
        self.residents.iter().filter_map(|before| Some([before, now_of(&before)?])).collect()
    }
}

/// Key that differs between two specs.
#[derive(Clone, Debug, Serialize)]
pub struct Key {
    /// Entry of the base, or empty if it lacks the key.
    pub before: String,
    /// Entry of this kernel, or empty if it lacks the key.
    pub now: String,
}

/// Counters of a launch, from source and for the compiled kernel.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub text: Counters,
    /// Predicted counters of the compiled kernel.
    pub compiled: SassCounters,
}

impl Counts {
    /// Sums the counters of a number of equal launches.
    pub(super) fn times(self, launches: usize) -> Self {
        let mut all = self;
        for _ in 1..launches {
            all.text += self.text;
            all.compiled += self.compiled;
        }
        all
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountBasis {
    /// Model of the compiled kernel.
    Compiled,
    /// Source, because the model of the compiled kernel lacks the count.
    TextAlone,
    /// Source, although the compiled kernel may have a lower count.
    Text,
}

impl CountBasis {
    /// Words for the basis in a sentence.
    pub fn text(self) -> &'static str {
        match self {
            Self::Compiled => "as compiled",
            Self::TextAlone | Self::Text => "from source",
        }
    }
}

/// Counter that differs between two kernels.
#[derive(Clone, Debug, Serialize)]
pub struct Delta {
    /// Name of the counter, with spaces.
    pub name: String,
    pub by: CountBasis,
    /// Count of the base, at the same shape.
    pub before: u64,
    pub now: u64,
}

impl Delta {
    /// Returns true for this source counter.
    pub(super) fn is(&self, counter: Counter) -> bool {
        self.by != CountBasis::Compiled && self.name == counter.name()
    }

    /// Returns true for this counter of the compiled kernel.
    pub(super) fn is_compiled(&self, quantity: &str) -> bool {
        self.by == CountBasis::Compiled && self.name == quantity.replace('_', " ")
    }
}

/// Consecutive lines of a difference.
#[derive(Clone, Debug, Serialize)]
pub struct Hunk {
    pub lines: Vec<Edit>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Edit {
    /// `-`, `+`, or a space for an unchanged line.
    pub sign: char,
    /// Line number, in the source of the base for `-`, otherwise in that of this kernel.
    pub number: usize,
    /// Parts of the line, each with `true` for a changed part.
    pub parts: Vec<(bool, String)>,
}

/// Returns the keys that differ between the entries of two specs.
pub fn keys(before: &[String], now: &[String]) -> Vec<Key> {
    let name = |entry: &str| entry.split(':').next().unwrap_or_default().to_owned();
    let old_of = |entry: &str| before.iter().find(|old| name(old) == name(entry));
    let mut keys: Vec<Key> = Vec::new();
    for entry in now {
        let old = old_of(entry).cloned().unwrap_or_default();
        if old != *entry {
            keys.push(Key { before: old, now: entry.clone() });
        }
    }
    let gone = before.iter().filter(|old| !now.iter().any(|entry| name(entry) == name(old)));
    keys.extend(gone.map(|old| Key { before: old.clone(), now: String::new() }));
    keys
}

/// Source counters without a SASS counterpart.
const TEXT_ALONE: [&str; 9] = [
    "warp_barriers",
    "mbarrier_waits",
    "divergent_branches",
    "global_load_bytes",
    "global_store_bytes",
    "shared_load_bytes",
    "shared_store_bytes",
    "bulk_bytes",
    "multicast_bytes",
];

/// Shared-memory counters that the compiler model lacks for asynchronous copies.
const WITH_COPIES: [&str; 2] = ["shared_wavefronts", "shared_bank_conflicts"];

/// Returns the counters that differ: first those of the compiled kernel, then source counters.
pub fn counters(before: &Counts, now: &Counts) -> Vec<Delta> {
    let compiled = SassCounters::QUANTITIES.iter().filter_map(|of| {
        let [before, now] = [before, now].map(|counts| (of.of)(&counts.compiled));
        Some((of.name, CountBasis::Compiled, before?, now?))
    });
    let is_known = [before, now].iter().all(|counts| counts.compiled.instructions.is_some());
    let have_copies = [before, now].iter().any(|counts| counts.text.copies > 0);
    let text = before.text.each().zip(now.text.each()).map(|((name, before), (_, now))| {
        let is_alone = TEXT_ALONE.contains(&name)
            || have_copies && WITH_COPIES.contains(&name)
            || !is_known && name == "instructions";
        (name, if is_alone { CountBasis::TextAlone } else { CountBasis::Text }, before, now)
    });
    let differ = compiled.chain(text).filter(|(_, _, before, now)| before != now);
    differ
        .map(|(name, by, before, now)| Delta { name: name.replace('_', " "), by, before, now })
        .collect()
}

/// Returns at most `most` lines of the difference between two sources, and the number of further
/// lines.
pub fn first_hunks(before: &str, now: &str, most: usize) -> (Vec<Hunk>, usize) {
    let mut all = hunks(before, now);
    let lines: usize = all.iter().map(|hunk| hunk.lines.len()).sum();
    let mut left = most;
    for hunk in &mut all {
        hunk.lines.truncate(left);
        left -= hunk.lines.len();
    }
    all.retain(|hunk| !hunk.lines.is_empty());
    (all, lines.saturating_sub(most))
}

/// Returns the difference between two sources, with the changed words marked.
fn hunks(before: &str, now: &str) -> Vec<Hunk> {
    let diff = TextDiff::from_lines(before, now);
    let groups = diff.grouped_ops(CONTEXT);
    let hunk = |ops: &Vec<similar::DiffOp>| {
        let changes = ops.iter().flat_map(|op| diff.iter_inline_changes(op));
        let lines = changes.map(|change| {
            let (sign, number) = match change.tag() {
                ChangeTag::Delete => ('-', change.old_index()),
                ChangeTag::Insert => ('+', change.new_index()),
                ChangeTag::Equal => (' ', change.new_index()),
            };
            let parts = change
                .iter_strings_lossy()
                .map(|(is_changed, text)| (is_changed, text.trim_end_matches('\n').to_owned()));
            Edit { sign, number: number.map_or(0, |at| at + 1), parts: parts.collect() }
        });
        Hunk { lines: lines.collect() }
    };
    groups.iter().map(hunk).collect()
}
