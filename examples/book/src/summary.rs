//! Sentences that explain the performance of a kernel, each with the part of the page that supports
//! it.

use super::report::{Report, Sentence};
use super::units::{SECTOR_BYTES, Unit, Wavefronts, issuing_fmas};
use gemm_bench::change::number;
use gemm_bench::table::percent;
use gemm_draw::view::executed;
use gemm_runtime::sim::Counters;

/// Returns the sentences for a report. All other parts of the report must be complete.
pub(super) fn sentences(report: &Report, c: &Counters) -> Vec<Sentence> {
    let mut all = Vec::new();
    let mut say = |proof, text| all.push(Sentence { text, proof });
    if let [first, second, ..] = &report.units[..] {
        say(
            "units",
            sentence(format!(
                "{} is the bottleneck: at {}, the work takes {} cycles per SM{}. Next is {} with \
                 {} cycles{}.",
                first.name,
                first.rate,
                number(first.cycles),
                from_source(first),
                second.name,
                number(second.cycles),
                from_source(second)
            )),
        );
        if c.fma > 0 {
            let share = percent(issuing_fmas(c) / first.cycles);
            say(
                "units",
                format!("Issuing the multiply-adds takes {share} of the bottleneck's cycles."),
            );
        }
    }
    let (executed, of_lines) = executed(&report.source);
    let costliest = report.source.iter().zip(executed).max_by_key(|(_, executed)| *executed);
    if let Some((line, executed)) = costliest {
        let (all, counted) = match report.of_no_line {
            Some(others) => (of_lines + others, "as compiled"),
            None => (c.instructions, "in the source"),
        };
        let share = percent(executed as f64 / all.max(1) as f64);
        let text = format!("Line {} executes {share} of all instructions {counted}.", line.number);
        say("source", text);
    }
    conflicts(report, c).into_iter().for_each(|(proof, text)| say(proof, text));
    let fetched = (SECTOR_BYTES * c.global_sectors) as f64;
    if fetched > 0.0 {
        let least: u64 =
            report.accesses.iter().filter(|a| a.space == "global").map(|a| a.least * a.times).sum();
        let moved: u64 =
            report.accesses.iter().filter(|a| a.space == "global").map(|a| a.cost * a.times).sum();
        if moved > 0 {
            let share = percent(least as f64 / moved as f64);
            say(
                "accesses",
                format!(
                    "Global accesses are {share} coalesced: perfect coalescing would transfer \
                     {share} of their sectors."
                ),
            );
        }
    }
    all
}

/// Sentences about bank conflicts, each with the part of the page that supports it. If the compiled
/// counts are known, the first sentence is about the compiled kernel. If the source has another
/// share of conflicts, a second sentence is about the source.
fn conflicts(report: &Report, c: &Counters) -> Vec<(&'static str, String)> {
    let share = |of: u64, all: u64| percent(of as f64 / all.max(1) as f64);
    let from_source = share(c.shared_bank_conflicts, c.shared_wavefronts);
    let Wavefronts { conflicts, all, is_from_source } = report.wavefronts;
    match (conflicts, c.shared_bank_conflicts) {
        _ if all == 0 => Vec::new(),
        (0, 0) => vec![("accesses", "Shared-memory accesses have no bank conflicts.".to_owned())],
        // The counts of the compiled kernel lack the writes of asynchronous copies.
        (some, _) if is_from_source => vec![(
            "accesses",
            format!(
                "In the source, bank conflicts cost {some} wavefronts of shared memory, \
                 {from_source} of all."
            ),
        )],
        (0, some) => vec![
            ("compiled", "As compiled, shared-memory accesses have no bank conflicts.".to_owned()),
            (
                "accesses",
                format!(
                    "In the source, bank conflicts cost {some} wavefronts, {from_source} of all; \
                     the compiler merges or omits these accesses."
                ),
            ),
        ],
        (conflicts, _) => {
            let compiled = share(conflicts, all);
            let text = format!(
                "As compiled, bank conflicts cost {compiled} of the wavefronts of shared memory."
            );
            let mut said = vec![("compiled", text)];
            if compiled != from_source {
                said.push((
                    "accesses",
                    format!(
                        "In the source, bank conflicts cost {from_source} of the wavefronts of \
                         shared memory."
                    ),
                ));
            }
            said
        }
    }
}

fn sentence(text: String) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Suffix for cycles that are computed from source counts.
fn from_source(unit: &Unit) -> &'static str {
    if unit.is_from_source { " (from source counts)" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_with_a_capital_letter() {
        assert_eq!(sentence("memory is the bottleneck.".into()), "Memory is the bottleneck.");
        assert_eq!(sentence("L2 cache".into()), "L2 cache");
        assert_eq!(sentence(String::new()), "");
    }
}
