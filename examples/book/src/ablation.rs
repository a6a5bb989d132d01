//! Effect of each key of a spec, measured by a launch of the spec without the key at the same
//! shape.

use super::resources;
use super::views::Views;
use crate::diff;
use crate::diff::{CountBasis, Delta, Hunk};
use crate::observation::{Observation, SampleShape, Spec, entries, internal};
use crate::times;
use gemm_bench::cli::Failure;
use gemm_bench::family::Family;
use gemm_draw::counters::Counter;
use gemm_runtime::Error;
use rayon::prelude::*;
use serde::Serialize;
use std::sync::OnceLock;

/// Key of a spec, and the effect of its removal.
#[derive(Clone, Debug, Serialize)]
pub struct AblationEntry {
    /// Entry as written in the spec.
    pub key: String,
    pub without: AblatedKernel,
    /// Times with and without the key, if both were measured.
    pub measured: Option<TimeComparison>,
    /// Registers per thread on an H200 with and without the key, if both were compiled.
    pub registers: Option<[u32; 2]>,
}

/// Times of two kernels at one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimeComparison {
    /// Extent m = n = k of a GEMM, or the number of reduced elements.
    pub n: u64,
    /// Milliseconds with the key and without it.
    pub milliseconds: [f64; 2],
    /// Commit that changed one of the texts since the measurement, if any.
    pub before: Option<&'static str>,
}

/// Kernel of a spec without one of its keys.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AblatedKernel {
    Counts(Vec<Delta>),
    /// No counter differs, but the source does: operations are in another order or at other
    /// addresses.
    Unseen(Evidence),
    Same,
    /// The launch is refused for these operands, with the message of the launch.
    Refused(String),
    /// The spec is invalid, with the first line of its fault.
    None(String),
}

/// Evidence of a change that no counter shows.
#[derive(Clone, Debug, Serialize)]
pub struct Evidence {
    /// Parts of the page that differ if the key is left out.
    pub views: Vec<&'static str>,
    /// First lines of the difference, from the source without the key to the source with it.
    pub text: Vec<Hunk>,
    /// Number of further lines that differ.
    pub more: usize,
}

/// Maximum number of shown lines of a difference.
const LINES: usize = 16;

/// Returns the ablation of each entry of a spec, for a kernel that was launched.
///
/// # Errors
/// Returns the error of a launch without one of the entries. A spec that is invalid without an
/// entry is not an error.
pub(super) fn ablations(
    family: Family,
    spec: &Spec,
    line: &str,
    at: SampleShape,
    looked: &Observation,
) -> Result<Vec<AblationEntry>, Failure> {
    let all = entries(line)?;
    let with = looked.counts()?;
    // The views of the kernel are computed once, when the first key needs them.
    let views = OnceLock::new();
    let unseen = |without: &Spec| -> Result<AblatedKernel, Failure> {
        let own = views.get_or_init(|| Views::new(spec, looked).map_err(|error| error.to_string()));
        let own = own.as_ref().map_err(|error| internal(error))?;
        Ok(unseen(own, &Views::new(without, &without.look(at)?)?))
    };
    let entry = |left_out: usize| {
        let rest = all.iter().enumerate().filter(|(i, _)| *i != left_out);
        let rest: Vec<&str> = rest.map(|(_, entry)| &**entry).collect();
        let rest = rest.join(", ");
        let counted = Spec::parse(family, &rest).and_then(|spec| Ok((spec.counts(at)?, spec)));
        let without = match counted {
            Ok((counts, without)) => {
                // The spec with the key is the base, so that the delta is the cost of leaving the
                // key out.
                let deltas = diff::counters(&with, &counts);
                if deltas.is_empty() { unseen(&without)? } else { AblatedKernel::Counts(deltas) }
            }
            Err(Failure::Spec(faults) | Failure::Runtime(Error::Spec(faults))) => {
                AblatedKernel::None(first_line(&faults.to_string()))
            }
            Err(Failure::Runtime(Error::Unmet(unmet))) => AblatedKernel::Refused(unmet.to_string()),
            Err(other) => return Err(other),
        };
        let measured = match without {
            AblatedKernel::Counts(_) | AblatedKernel::Unseen(_) => compared([line, &rest], family),
            _ => None,
        };
        let registers = match without {
            AblatedKernel::None(_) => None,
            _ => registers([line, &rest], family),
        };
        Ok(AblationEntry { key: all[left_out].clone(), without, measured, registers })
    };
    let ledger: Result<Vec<AblationEntry>, Failure> =
        (0..all.len()).into_par_iter().map(entry).collect();
    let mut ledger = ledger?;
    // Sorts by the largest growth of a counter. Invalid specs are last.
    ledger.sort_by_key(|entry| match &entry.without {
        AblatedKernel::Counts(deltas) => (0, std::cmp::Reverse(weight(deltas))),
        AblatedKernel::Unseen(_) => (1, std::cmp::Reverse(0)),
        AblatedKernel::Same | AblatedKernel::Refused(_) | AblatedKernel::None(_) => {
            (2, std::cmp::Reverse(0))
        }
    });
    Ok(ledger)
}

/// Describes the change between two kernels with equal counters.
fn unseen(with: &Views, without: &Views) -> AblatedKernel {
    if with.is_same_kernel(without) {
        return AblatedKernel::Same;
    }
    let (text, more) = diff::first_hunks(&without.text, &with.text, LINES);
    AblatedKernel::Unseen(Evidence { views: with.differing(without), text, more })
}

/// Returns the times of two specs at the largest size at which both were measured.
fn compared(lines: [&str; 2], family: Family) -> Option<TimeComparison> {
    let [with, without] = lines.map(|line| times::of_line(family, line));
    let both = with.iter().filter_map(|one| {
        let other = without.iter().find(|other| other.n == one.n)?;
        let milliseconds = [one.milliseconds, other.milliseconds];
        Some(TimeComparison { n: one.n, milliseconds, before: one.before.or(other.before) })
    });
    both.max_by_key(|compared| compared.n)
}

/// Returns the registers of two specs, from `registers.csv` if it contains both specs, otherwise
/// from the measurements at the largest size.
fn registers(lines: [&str; 2], family: Family) -> Option<[u32; 2]> {
    let compiled = lines.map(|line| resources::of_line(family, line));
    if let [Some(with), Some(without)] = compiled {
        return Some([with.registers, without.registers]);
    }
    let of = |line| times::of_line(family, line).iter().max_by_key(|one| one.n);
    let [with, without] = lines.map(of);
    Some([with?.registers, without?.registers])
}

/// SASS counters that determine the time.
const COSTS: [&str; 7] = [
    "instructions",
    "shared_load_wavefronts",
    "shared_store_wavefronts",
    "global_load_requests",
    "global_store_requests",
    "global_load_sectors",
    "global_store_sectors",
];

/// Weight of a change: the largest growth of a counter, in percent.
fn weight(deltas: &[Delta]) -> u64 {
    let grown = |delta: &Delta| delta.now.saturating_sub(delta.before) * 100 / delta.before.max(1);
    let takes_time = |delta: &&Delta| {
        COSTS.iter().any(|cost| delta.is_compiled(cost))
            || delta.by == CountBasis::TextAlone && delta.is(Counter::SharedWavefronts)
    };
    deltas.iter().filter(takes_time).map(grown).max().unwrap_or(0)
}

fn first_line(text: &str) -> String {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(family: Family, line: &str) -> Vec<AblationEntry> {
        let spec = Spec::parse(family, line).expect("a spec");
        let at = spec.at().expect("a shape");
        ablations(family, &spec, line, at, &spec.look(at).expect("a launch")).expect("a ledger")
    }

    /// Measured times are reported even if no counter shows an effect of the key.
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
    }

    /// The shape has more GEMMs than a block computes. Without the key `products`, the kernel
    /// executes more instructions.
    #[test]
    fn products_of_a_block_execute_less_than_alone() {
        let line = "tile: 16x16x16, thread: 4x4, batch: strided, products: 4";
        let ledger = ledger(Family::Sgemm, line);
        let products = ledger.iter().find(|entry| entry.key == "products: 4").expect("the key");
        let AblatedKernel::Counts(deltas) = &products.without else { panic!("{products:?}") };
        let of = |name| deltas.iter().find(|delta| delta.is_compiled(name)).expect("a count");
        let instructions = of("instructions");
        assert!(3 * instructions.before < 2 * instructions.now, "{instructions:?}");
        // One block computes four GEMMs, the other three.
        let blocks = deltas.iter().find(|delta| delta.is(Counter::Blocks)).expect("blocks");
        assert_eq!((4 * 2, 4 * 7), (blocks.before, blocks.now));
    }

    #[test]
    fn ablations_without_counter_changes_show_the_source_diff() {
        let of = |line: &str, key: &str| {
            let found = ledger(Family::Sgemm, line).into_iter().find(|entry| entry.key == key);
            found.expect("the key").without
        };
        assert!(matches!(of("block: 16x16, unroll: 4", "block: 16x16"), AblatedKernel::Same));
        let unseen = |line: &str, key: &str| match of(line, key) {
            AblatedKernel::Unseen(unseen) => unseen,
            other => panic!("{other:?}"),
        };
        let bounds = "tile: 64x64x8, thread: 4x4, double_buffer, blocks_per_sm: 2";
        let bounds = unseen(bounds, "blocks_per_sm: 2");
        let lines = || bounds.text.iter().flat_map(|hunk| &hunk.lines);
        for sign in ['+', '-'] {
            assert!(lines().any(|line| line.sign == sign), "{bounds:?}");
        }
        assert!(bounds.views.is_empty() && lines().count() + bounds.more < LINES, "{bounds:?}");
    }

    #[test]
    fn parts_of_a_page_that_differ_are_named() {
        let spread = "tile: 64x64x16, thread: 8x8, float4, stages: 3, spread: 2";
        let [with, without] = [spread, spread.trim_end_matches(", spread: 2")].map(|line| {
            let spec = Spec::parse(Family::Sgemm, line).expect("a spec");
            let looked = spec.look(spec.at().expect("a shape")).expect("a launch");
            Views::new(&spec, &looked).expect("views")
        });
        let AblatedKernel::Unseen(unseen) = unseen(&with, &without) else {
            panic!("another kernel")
        };
        assert!(unseen.views.contains(&"pipeline") && !unseen.views.contains(&"order"));
    }
}
