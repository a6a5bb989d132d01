//! What has changed from one kernel to another: keys, counters, the text.

use super::occupancy::Occupancy;
use gemm_draw::counters::Counter;
use gemm_runtime::{Counters, SassCounters};
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// Lines of the text around a change.
const CONTEXT: usize = 2;

/// What has changed since another kernel.
#[derive(Clone, Debug, Serialize)]
pub struct KernelDiff {
    /// What that one is called.
    pub base: String,
    /// Its spec.
    pub line: String,
    /// Keys that it does not have, or has otherwise, and what it has.
    pub keys: Vec<Key>,
    /// Counters that differ.
    pub counters: Vec<Delta>,
    /// How many launches of the base, and of this one, these are of: more than one of a product that stands beside a batch.
    pub launches: [usize; 2],
    /// The text, where it differs: the first lines of that.
    pub hunks: Vec<Hunk>,
    /// How many lines more differ, or stand around such.
    pub more: usize,
    /// Whether the two texts are one but for the kernel's name and the comment above it.
    pub is_same_kernel: bool,
    /// Bytes of shared memory that a block of the other one has.
    pub shared_bytes: u64,
    /// What of the other one fits on each architecture, where its compiler has said how many registers it has.
    pub residents: Vec<Occupancy>,
}

impl KernelDiff {
    /// Which counters are of several launches, in words.
    pub fn repeated(&self) -> Option<String> {
        let of = |name: &str, launches| {
            format!("Counters of {name} are of {launches} launches, one for each product.")
        };
        match self.launches {
            [1, 1] => None,
            [launches, 1] => Some(of(&self.base, launches)),
            [_, launches] => Some(of("this kernel", launches)),
        }
    }

    /// On each architecture what the other one has, and what this one has.
    pub fn residents<'r>(&'r self, now: &'r [Occupancy]) -> Vec<[&'r Occupancy; 2]> {
        let now_of = |before: &&Occupancy| now.iter().find(|now| now.arch == before.arch);
        self.residents.iter().filter_map(|before| Some([before, now_of(&before)?])).collect()
    }
}

/// A key that differs.
#[derive(Clone, Debug, Serialize)]
pub struct Key {
    /// What the base has; empty if it has none.
    pub before: String,
    /// What this one has.
    pub now: String,
}

/// What was counted of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// By the text.
    pub text: Counters,
    /// As compiled.
    pub compiled: SassCounters,
}

impl Counts {
    /// Those of so many launches.
    pub(super) fn times(self, launches: usize) -> Self {
        let mut all = self;
        for _ in 1..launches {
            all.text += self.text;
            all.compiled += self.compiled;
        }
        all
    }
}

/// What a count is told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountBasis {
    /// The model of the compiler.
    Compiled,
    /// The text, as nothing else tells it.
    TextAlone,
    /// The text, of which the compiler may need less.
    Text,
}

impl CountBasis {
    /// As it is said of a count.
    pub fn text(self) -> &'static str {
        match self {
            Self::Compiled => "as compiled",
            Self::TextAlone | Self::Text => "by the text",
        }
    }
}

/// A counter that differs.
#[derive(Clone, Debug, Serialize)]
pub struct Delta {
    /// Its name.
    pub name: String,
    /// What tells it.
    pub by: CountBasis,
    /// In the base, at the same shape.
    pub before: u64,
    /// Here.
    pub now: u64,
}

impl Delta {
    /// Whether it is of this counter of the text.
    pub(super) fn is(&self, counter: Counter) -> bool {
        self.by != CountBasis::Compiled && self.name == counter.name()
    }

    /// Whether it is of this count as compiled.
    pub(super) fn is_compiled(&self, quantity: &str) -> bool {
        self.by == CountBasis::Compiled && self.name == quantity.replace('_', " ")
    }
}

/// Lines that lie together.
#[derive(Clone, Debug, Serialize)]
pub struct Hunk {
    /// Its lines.
    pub lines: Vec<Edit>,
}

/// A line of one of the texts, or of both.
#[derive(Clone, Debug, Serialize)]
pub struct Edit {
    /// `-`, `+` or a space.
    pub sign: char,
    /// Its number in the text that it is of.
    pub number: usize,
    /// Its parts, and whether they are what differs.
    pub parts: Vec<(bool, String)>,
}

/// The keys of two specs that differ: entries of their lines, one after the other.
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

/// The counters of the text that the machine code has none beside, as bytes and waits are what they are.
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

/// Those of shared memory, which the model of the compiler does not tell of asynchronous copies.
const WITH_COPIES: [&str; 2] = ["shared_wavefronts", "shared_bank_conflicts"];

/// The counters that differ: as compiled, then by the text.
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

/// The first lines of where two texts differ, so many at most, and how many more there are.
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

/// Where two texts differ, with the words that do.
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
