//! Registers, spills and shared memory of specs, from a file that a test compares with the
//! compiler.

use crate::times::normal;
use gemm_bench::family::Family;
use gemm_perf::csv;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Output of `cargo bless-registers`: a line that names the compiler, a line with column names,
/// then rows.
const FILE: &str = include_str!("../../../snapshots/book/registers.csv");

/// Resources of the preferred kernel of a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    pub registers: u32,
    /// Bytes of spill stores and of spill loads per thread.
    pub spills: [u32; 2],
    /// Bytes of shared memory per block.
    pub shared_bytes: u64,
}

/// Returns the resources of a spec on the architecture of an H200, if it was compiled.
pub fn of_line(family: Family, line: &str) -> Option<Resources> {
    static KNOWN: OnceLock<HashMap<String, Resources>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| {
        let row = |line: &str| {
            let cells = csv::cells(line);
            let [name, line, _, registers, stores, loads, shared_bytes] = &cells[..] else {
                return None;
            };
            let resources = Resources {
                registers: registers.parse().ok()?,
                spills: [stores.parse().ok()?, loads.parse().ok()?],
                shared_bytes: shared_bytes.parse().ok()?,
            };
            Some((format!("{name} {line}"), resources))
        };
        FILE.lines().skip(2).filter_map(row).collect()
    });
    known.get(&format!("{} {}", family.macro_name(), normal(family, line)?)).copied()
}

/// Returns the spec and, for each key, the spec without this key, all in canonical form. Invalid
/// specs are skipped.
pub fn lines(family: Family, line: &str) -> Vec<String> {
    let entries = crate::observation::entries(line).unwrap_or_default();
    let without = |left_out: usize| {
        let rest = entries.iter().enumerate().filter(|(i, _)| *i != left_out);
        rest.map(|(_, entry)| &**entry).collect::<Vec<_>>().join(", ")
    };
    // The index past the last key removes no key.
    let all = (0..=entries.len()).rev().map(without);
    all.filter_map(|line| normal(family, &line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_known_however_it_is_written() {
        let written = "float4, tile: 32x32x32, thread: 2x2";
        let known = lines(Family::Sgemm, written);
        assert_eq!(Some(&known[0]), normal(Family::Sgemm, written).as_ref());
        assert!(known.len() > 1 && known.len() <= 4, "{known:?}");
        let stage = gemm_dsl::stages::sgemm().into_iter().find(|of| of.index == 22);
        let line = stage.expect("a stage").spec.to_string();
        let keys: Vec<&str> = line.split(", ").collect();
        let turned = keys.iter().rev().copied().collect::<Vec<_>>().join(", ");
        let [own, other] = [&line, &turned].map(|line| of_line(Family::Sgemm, line));
        assert!(own.is_some() && own == other, "{own:?}, {other:?}");
        assert_eq!(of_line(Family::Sgemm, "no spec"), None);
        assert_eq!(of_line(Family::Reduce, &line), None);
    }
}
