//! Merging of adjacent loads.

use super::super::launch::Launch;
use super::accesses::{Accesses, Epoch, Load};
use super::cost::SassCost;
use super::values::{MergedValues, NeededValues, Values};
use crate::counters::access_fate::AccessFate;
use crate::sass::polynomial::{Polynomial, Term};
use std::collections::BTreeMap;

/// Loads that may be merged have the same straight-line piece of code, buffer, memory version, and
/// address without its constant part.
type MergeKey = (u32, u32, Epoch, Vec<Term>);

/// Merges adjacent loads in a straight-line piece of code that are certainly in the same aligned 8
/// or 16 bytes. Runs after dead values were removed, and determines the fates of all accesses.
pub(super) fn merge(
    launch: &Launch<'_>,
    NeededValues(mut values): NeededValues,
    mut accesses: Accesses,
) -> (MergedValues, Accesses) {
    let loads = std::mem::take(&mut accesses.loads);
    let mut runs: BTreeMap<MergeKey, Vec<(i64, usize)>> = BTreeMap::new();
    let mut fates = vec![AccessFate::Gone; loads.len()];
    for (at, load) in loads.iter().enumerate() {
        if !values.all[load.value as usize].needed {
            continue;
        }
        fates[at] = AccessFate::Own;
        if !load.alone {
            let key = (load.piece, load.region, load.epoch, load.form.terms.clone());
            runs.entry(key).or_default().push((load.at, at));
        }
    }
    for ((_, region, _, terms), mut run) in runs {
        let size = i64::from(launch.regions[region as usize].elem.size());
        let multiple = values.multiple(&Polynomial::from_terms(terms)) as i64 * size;
        for bytes in [16, 8].into_iter().filter(|bytes| multiple % bytes == 0) {
            merge_in(&mut values, &loads, &mut run, bytes / size, bytes as u32, &mut fates);
        }
    }
    for (load, role) in loads.iter().zip(fates) {
        accesses.claim(load.access, role);
    }
    accesses.claim_stores();
    (MergedValues(values), accesses)
}

/// Merges the loads in each window of `elements` elements, unless more than a quarter of the
/// elements is missing. Removes the merged loads from the run.
fn merge_in(
    values: &mut Values,
    loads: &[Load],
    run: &mut Vec<(i64, usize)>,
    elements: i64,
    bytes: u32,
    fates: &mut [AccessFate],
) {
    let mut windows: BTreeMap<i64, Vec<(i64, usize)>> = BTreeMap::new();
    for load in run.drain(..) {
        windows.entry(load.0.div_euclid(elements)).or_default().push(load);
    }
    for mut window in windows.into_values() {
        window.sort_unstable();
        let mut places: Vec<i64> = window.iter().map(|(at, _)| *at).collect();
        places.dedup();
        let missing = elements - places.len() as i64;
        if elements < 2 || missing > elements / 4 {
            run.append(&mut window);
            continue;
        }
        for (nth, (_, at)) in window.into_iter().enumerate() {
            if nth == 0 {
                fates[at] = AccessFate::First(bytes);
            } else {
                fates[at] = AccessFate::Gone;
                values.all[loads[at].value as usize].cost = SassCost::FREE;
            }
        }
    }
}
