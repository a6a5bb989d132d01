//! Why a kernel is as fast as it is, in sentences, each of which a part of the page proves.

use super::report::{Report, Sentence};
use super::units::{conflicts, issuing_fmas};
use crate::change::number;
use crate::show::percent;
use gemm_runtime::{Compiled, Counters};

/// The sentences of a report whose other parts are there.
pub(super) fn sentences(
    report: &Report,
    c: &Counters,
    compiled: Option<&Compiled>,
) -> Vec<Sentence> {
    let mut all = Vec::new();
    let mut say = |proof, text| all.push(Sentence { text, proof });
    if let [first, second, ..] = &report.units[..] {
        say(
            "units",
            format!(
                "{} has most to do: {} cycles of a multiprocessor at {}; next is {} with {}.",
                first.name,
                number(first.cycles),
                first.rate,
                second.name,
                number(second.cycles)
            ),
        );
        if c.fma > 0 {
            let share = percent(issuing_fmas(c) / first.cycles);
            say("units", format!("Issuing the multiply-adds alone takes {share} of that."));
        }
    }
    let costliest = report.source.iter().filter_map(|line| Some((line, line.charged?)));
    if let Some((line, charged)) = costliest.max_by_key(|(_, charged)| charged.instructions) {
        let share = percent(charged.instructions as f64 / c.instructions.max(1) as f64);
        let text = format!("Line {} executes {share} of all instructions.", line.number);
        say("source", text);
    }
    let [conflicts, wavefronts] = conflicts(c, compiled);
    match conflicts {
        _ if wavefronts == 0 => {}
        0 => say("accesses", "No access to shared memory has a bank conflict.".to_owned()),
        conflicts => {
            let share = percent(conflicts as f64 / wavefronts as f64);
            say(
                "accesses",
                format!("Bank conflicts are {share} of the wavefronts of shared memory."),
            );
        }
    }
    let fetched = 32.0 * c.global_sectors as f64;
    if fetched > 0.0 {
        let least: u64 =
            report.accesses.iter().filter(|a| a.space == "global").map(|a| a.least * a.times).sum();
        let moved: u64 =
            report.accesses.iter().filter(|a| a.space == "global").map(|a| a.cost * a.times).sum();
        if moved > 0 {
            let share = percent(least as f64 / moved as f64);
            say(
                "accesses",
                format!("Of the sectors that accesses to global memory move, {share} would do."),
            );
        }
    }
    all
}
