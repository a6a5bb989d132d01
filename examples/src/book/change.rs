//! What has changed from one kernel to another: keys, counters, the text.

use super::report::{Counted, Counter};
use super::resident::Resident;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// Lines of the text around a change.
const CONTEXT: usize = 2;

/// What has changed since another kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// What that one is called.
    pub base: String,
    /// Its spec.
    pub line: String,
    /// Keys that it does not have, or has otherwise, and what it has.
    pub keys: Vec<Key>,
    /// Counters that differ.
    pub counters: Vec<Delta>,
    /// The text, as far as it differs.
    pub hunks: Vec<Hunk>,
    /// Bytes of shared memory that a block of the other one has.
    pub shared_bytes: u64,
    /// What of the other one fits on each architecture, where its compiler has said how many registers it has.
    pub residents: Vec<Resident>,
}

impl Change {
    /// On each architecture what the other one has, and what this one has.
    pub fn residents<'r>(&'r self, now: &'r [Resident]) -> Vec<[&'r Resident; 2]> {
        let now_of = |before: &&Resident| now.iter().find(|now| now.arch == before.arch);
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

/// A counter that differs.
#[derive(Clone, Debug, Serialize)]
pub struct Delta {
    /// Its name.
    pub name: String,
    /// In the base, at the same shape.
    pub before: u64,
    /// Here.
    pub now: u64,
}

impl Delta {
    /// Whether it is of this counter.
    pub(super) fn is(&self, counter: Counter) -> bool {
        self.name == counter.name()
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

/// The counters that differ.
pub fn counters(before: &[Counted], now: &[Counted]) -> Vec<Delta> {
    let value = |all: &[Counted], name: &str| {
        all.iter().find(|counted| counted.name == name).map_or(0, |counted| counted.value)
    };
    let mut names: Vec<&str> = now.iter().map(|counted| &*counted.name).collect();
    let gone = before.iter().map(|counted| &*counted.name);
    names.extend(gone.filter(|name| !now.iter().any(|counted| counted.name == **name)));
    let deltas = names.into_iter().map(|name| Delta {
        name: name.to_owned(),
        before: value(before, name),
        now: value(now, name),
    });
    deltas.filter(|delta| delta.before != delta.now).collect()
}

/// Where two texts differ, with the words that do.
pub fn hunks(before: &str, now: &str) -> Vec<Hunk> {
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
