//! What each key is for, by experiment: the spec without it, at the same shape.

use super::change::{self, Delta};
use super::gather::{At, Spec, counted, entries};
use super::report::Counter;
use super::{measured, resources};
use crate::cli::Failure;
use crate::family::Family;
use gemm_runtime::{Counters, Error};
use rayon::prelude::*;
use serde::Serialize;

/// A key, and what it costs to leave it out.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// As it is written.
    pub key: String,
    /// What becomes of the kernel.
    pub without: Without,
    /// How long both took, of those that were measured.
    pub measured: Option<Compared>,
    /// Registers of a thread on an H200 with the key and without it, where both were compiled.
    pub registers: Option<[u32; 2]>,
}

/// Times of two kernels at a size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Rows, columns and terms of a product, or the elements that are reduced.
    pub n: u64,
    /// Milliseconds with the key, and without it.
    pub milliseconds: [f64; 2],
}

/// A kernel without one of its keys.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Without {
    /// It counts otherwise.
    Counts(Vec<Delta>),
    /// No counter sees it: it changes when things happen, or where, or only the machine code.
    Unseen,
    /// It does not take what this one does: what its launch says.
    Refused(String),
    /// There is no such kernel: what the check of its spec says.
    None(String),
}

/// The entries of a line.
///
/// # Errors
/// What a launch without one of them finds; that its spec is faulty is no error.
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
        let rest = rest.join(", ");
        let without = match Spec::parse(family, &rest).and_then(|spec| spec.counters(at)) {
            Ok(counters) => {
                // Base and now change places: what leaving it out costs.
                let deltas = change::counters(&with, &counted(&counters));
                if deltas.is_empty() { Without::Unseen } else { Without::Counts(deltas) }
            }
            Err(Failure::Spec(faults) | Failure::Runtime(Error::Spec(faults))) => {
                Without::None(first_line(&faults.to_string()))
            }
            Err(Failure::Runtime(Error::Unmet(unmet))) => Without::Refused(unmet.to_string()),
            Err(other) => return Err(other),
        };
        let measured = match without {
            Without::Counts(_) | Without::Unseen => compared([line, &rest], family),
            _ => None,
        };
        let registers = match without {
            Without::None(_) => None,
            _ => registers([line, &rest], family),
        };
        Ok(Entry { key: all[left_out].clone(), without, measured, registers })
    };
    let ledger: Result<Vec<Entry>, Failure> = (0..all.len()).into_par_iter().map(entry).collect();
    let mut ledger = ledger?;
    // The one without which most instructions are executed comes first, and what is no kernel last.
    ledger.sort_by_key(|entry| match &entry.without {
        Without::Counts(deltas) => (0, std::cmp::Reverse(weight(deltas))),
        Without::Unseen => (1, std::cmp::Reverse(0)),
        Without::Refused(_) | Without::None(_) => (2, std::cmp::Reverse(0)),
    });
    Ok(ledger)
}

/// The times of two lines at the largest size at which both were measured.
fn compared(lines: [&str; 2], family: Family) -> Option<Compared> {
    let [with, without] = lines.map(|line| measured::of_line(family, line));
    let both = with.iter().filter_map(|one| {
        let other = without.iter().find(|other| other.n == one.n)?;
        Some(Compared { n: one.n, milliseconds: [one.milliseconds, other.milliseconds] })
    });
    both.max_by_key(|compared| compared.n)
}

/// The registers of two lines, as both were compiled for the file of stages, or both for the one of times: at the largest size.
fn registers(lines: [&str; 2], family: Family) -> Option<[u32; 2]> {
    let compiled = lines.map(|line| resources::of_line(family, line));
    if let [Some(with), Some(without)] = compiled {
        return Some([with.registers, without.registers]);
    }
    let of = |line| measured::of_line(family, line).iter().max_by_key(|one| one.n);
    let [with, without] = lines.map(of);
    Some([with?.registers, without?.registers])
}

/// What takes time.
const COSTS: [Counter; 4] = [
    Counter::Instructions,
    Counter::SharedWavefronts,
    Counter::GlobalSectors,
    Counter::GlobalRequests,
];

/// How much a change weighs: the most that a counter grows by, in percent.
fn weight(deltas: &[Delta]) -> u64 {
    let grown = |delta: &Delta| delta.now.saturating_sub(delta.before) * 100 / delta.before.max(1);
    let costing = deltas.iter().filter(|delta| COSTS.iter().any(|cost| delta.is(*cost)));
    costing.map(grown).max().unwrap_or(0)
}

fn first_line(text: &str) -> String {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(family: Family, line: &str) -> Vec<Entry> {
        let spec = Spec::parse(family, line).expect("a spec");
        let at = spec.at().expect("a shape");
        of(family, line, at, &spec.counters(at).expect("counters")).expect("a ledger")
    }

    /// What was measured with a key and without it is said, whether or not counters see it.
    #[test]
    fn a_key_has_the_times_that_were_measured() {
        let [items, shuffle] = &ledger(Family::Reduce, "items: 2, shuffle")[..] else {
            panic!("two keys")
        };
        let [items, shuffle] =
            if items.key == "shuffle" { [shuffle, items] } else { [items, shuffle] };
        let times = shuffle.measured.expect("stages 4 and 5");
        assert!(times.n == 1 << 28 && times.milliseconds[0] < times.milliseconds[1], "{times:?}");
        assert_eq!(items.measured, None);
        for key in [items, shuffle] {
            assert!(key.registers.is_some_and(|of| of.iter().all(|n| (1..256).contains(n))));
        }
        let keys = ledger(Family::Sgemm, "block: 16x16, unroll: 4");
        let unseen = keys.iter().find(|entry| matches!(entry.without, Without::Unseen));
        let unseen = unseen.expect("blocks of another shape do the same");
        assert_eq!((&*unseen.key, unseen.measured), ("block: 16x16", None));
    }
}
