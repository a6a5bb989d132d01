//! What each key is for, by experiment: the spec without it, at the same shape.

use super::change::{self, Delta};
use super::gather::{At, Spec, counted, entries};
use crate::cli::Failure;
use crate::family::Family;
use gemm_runtime::Counters;
use rayon::prelude::*;
use serde::Serialize;

/// A key, and what it costs to leave it out.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// As it is written.
    pub key: String,
    /// What becomes of the kernel.
    pub without: Without,
}

/// A kernel without one of its keys.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Without {
    /// It counts otherwise.
    Counts(Vec<Delta>),
    /// No counter sees it: it changes when things happen, or where, or only the machine code.
    Unseen,
    /// There is no such kernel.
    None(String),
}

/// The entries of a line.
pub(super) fn of(
    family: Family,
    line: &str,
    at: At,
    counters: &Counters,
) -> Result<Vec<Entry>, Failure> {
    let all = entries(line)?;
    let with = counted(counters);
    let entry = |left_out: usize| {
        let rest = all.iter().enumerate().filter(|(i, _)| *i != left_out);
        let rest: Vec<&str> = rest.map(|(_, entry)| &**entry).collect();
        let found = Spec::parse(family, &rest.join(", ")).and_then(|spec| spec.counters(at));
        let without = match found {
            Ok(counters) => {
                // Base and now change places: what leaving it out costs.
                let deltas = change::counters(&with, &counted(&counters));
                if deltas.is_empty() { Without::Unseen } else { Without::Counts(deltas) }
            }
            Err(failure) => Without::None(first_line(&failure.to_string())),
        };
        Entry { key: all[left_out].clone(), without }
    };
    let mut ledger: Vec<Entry> = (0..all.len()).into_par_iter().map(entry).collect();
    // The one without which most instructions are executed comes first, and what is no kernel last.
    ledger.sort_by_key(|entry| match &entry.without {
        Without::Counts(deltas) => (0, std::cmp::Reverse(weight(deltas))),
        Without::Unseen => (1, std::cmp::Reverse(0)),
        Without::None(_) => (2, std::cmp::Reverse(0)),
    });
    Ok(ledger)
}

/// How much a change weighs: the most that a counter grows by, in percent.
fn weight(deltas: &[Delta]) -> u64 {
    let grown = |delta: &Delta| delta.now.saturating_sub(delta.before) * 100 / delta.before.max(1);
    let costs = ["instructions", "shared wavefronts", "global sectors", "global requests"];
    let costing = deltas.iter().filter(|delta| costs.contains(&&*delta.name));
    costing.map(grown).max().unwrap_or(0)
}

fn first_line(text: &str) -> String {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}
