//! Candidate specs of a table.
//!
//! A file has one spec per line, with alternatives as in a [space](crate::tune::space); `#` begins
//! a comment. A spec must not have a layout, and must be valid in every layout.

use crate::cli::Failure;
use crate::tune::space::Space;
use gemm_dsl::SpecErrors;
use gemm_dsl::spec::{Accuracy, Bounds, SgemmSpec};
use gemm_dsl::tables::KernelTable;
use std::collections::BTreeSet;

const DEFAULT: &str = include_str!("default.lines");
/// Candidates that emulate `f32` on tensor cores, of any accuracy class.
const EMULATED: &str = include_str!("emulated.lines");

/// Returns the default candidates within an accuracy class.
///
/// # Errors
/// Returns the errors of [`read`].
pub fn default(granted: Accuracy) -> Result<Vec<SgemmSpec>, Failure> {
    let mut all = read(&format!("{DEFAULT}\n{EMULATED}"), Accuracy::Norm)?;
    all.retain(|spec| class(spec) <= granted);
    Ok(all)
}

/// Maximum number of combinations of a spec's alternatives.
const MOST: usize = 10_000;

/// Parses candidates within an accuracy class, without duplicates. Invalid combinations of
/// alternatives are left out.
///
/// # Errors
/// Returns [`Failure::Usage`] with the number of the faulty line.
pub fn read(text: &str, granted: Accuracy) -> Result<Vec<SgemmSpec>, Failure> {
    let mut known = BTreeSet::new();
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let specs = specs(line, granted).map_err(|reason| {
            Failure::Usage(format!("spec {} of --lines, `{line}`: {reason}", number + 1))
        })?;
        all.extend(specs.into_iter().filter(|spec| known.insert(spec.to_string())));
    }
    match all.is_empty() {
        true => Err(Failure::Usage("--lines: there is no spec. Give at least one".to_owned())),
        false => Ok(all),
    }
}

/// Returns the valid specs of a line.
fn specs(line: &str, granted: Accuracy) -> Result<Vec<SgemmSpec>, String> {
    let space = Space::parse(&[line])?;
    if space.count() > MOST {
        let count = space.count();
        return Err(format!("{count} combinations are too many to measure. Give at most {MOST}"));
    }
    let (mut specs, mut refused) = (Vec::new(), None);
    for point in space.all() {
        match spec(&space.line(&point)) {
            Ok(spec) => specs.push(spec),
            Err(reason) => refused = refused.or(Some(reason)),
        }
    }
    if specs.is_empty() {
        return Err(refused.unwrap_or_else(|| "it has no combination of alternatives".to_owned()));
    }
    specs.iter().try_for_each(|spec| usable(spec, granted))?;
    Ok(specs)
}
/// Parses a spec without alternatives, which must be valid in every layout.
fn spec(line: &str) -> Result<SgemmSpec, String> {
    let spec: SgemmSpec = line.parse().map_err(|faults: SpecErrors| faults.to_string())?;
    // Parsing the spec as the last rule of a table checks every layout.
    let row: Result<KernelTable<SgemmSpec>, SpecErrors> =
        format!("accuracy: {};\nelse => {spec}", Accuracy::Norm).parse();
    row.map_err(|faults| faults.to_string())?;
    Ok(spec)
}

/// Parses a spec. Returns `None` if a rule may not have it.
pub fn of_row(line: &str) -> Option<SgemmSpec> {
    spec(line).ok().filter(|spec| usable(spec, Accuracy::Norm).is_ok())
}

/// Returns the accuracy class that a rule with this spec requires.
pub fn class(spec: &SgemmSpec) -> Accuracy {
    spec.arith.accuracy().unwrap_or_default()
}

/// Rejects specs that no rule of a table of this accuracy may have.
fn usable(spec: &SgemmSpec, granted: Accuracy) -> Result<(), String> {
    let (arith, class) = (spec.arith, class(spec));
    if class > granted {
        return Err(format!("`arith: {arith}` is of accuracy `{class}`. Add --accuracy {class}"));
    }
    let refused = [
        ("batch", spec.batch.is_some(), "GEMMs are not batched"),
        ("scaled", spec.scaled, "the old C is not read"),
        ("epilogue", spec.epilogue.is_some(), "accumulators are stored unchanged"),
        ("name", spec.name.is_some(), "kernels of several rules would share a name"),
        ("bounds", spec.bounds != Bounds::Guarded, "a rule applies to any shape"),
    ];
    match refused.into_iter().find(|(_, is_refused, _)| *is_refused) {
        Some((key, _, because)) => Err(format!("`{key}`: {because}. Leave it out")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let specs =
            read(text, Accuracy::Norm).unwrap_or_else(|failure| panic!("{text}: {failure}"));
        specs.iter().map(SgemmSpec::to_string).collect()
    }

    #[test]
    fn a_line_is_for_matrices_however_they_lie() {
        let line = "tile: 64x64x16, thread: 4x4, transpose, pad_a: 4";
        assert_eq!(texts(&format!("{line} # a remark\n\n# none\n")), [line]);
        // The duplicate is left out.
        assert_eq!(texts("order: row\norder: row").len(), 1);
    }

    #[test]
    fn alternatives_multiply_and_unsound_ones_are_left_out() {
        let lines = texts("tile: 64x64x16, thread: 4x4 | 5x5, split_k: none | 4");
        let line = "tile: 64x64x16, thread: 4x4";
        assert_eq!(lines, [line.to_owned(), format!("{line}, split_k: 4")]);
    }

    #[test]
    fn invalid_rules_are_rejected_with_their_spec() {
        for (text, reason) in [
            ("", "there is no spec"),
            ("tile: 8x8x8\ntile: 64x64x16, thread: 5x5", "spec 2 of --lines, `tile: 64x64x16"),
            ("tile: 8x8x8, batch: strided", "`batch`: GEMMs are not batched"),
            ("scaled", "`scaled`"),
            ("layout: tt, tile: 8x8x8", "`layout` follows from the matrices"),
            ("pitched", "`pitched`"),
            ("name: mine", "`name`"),
            ("bounds: aligned", "`bounds`: a rule applies to any shape"),
            ("epilogue: |acc| max(acc, 0.0)", "`epilogue`"),
            ("tile: 64x64x64, arith: f32 | f16x3, mma: wgmma", "Add --accuracy norm"),
            ("tile: 64x64x64, arith: bf16, mma: wgmma", "`arith: bf16`"),
        ] {
            let failure = read(text, Accuracy::Ieee).expect_err(text).to_string();
            assert!(failure.contains(reason), "{text}: {failure}");
        }
    }

    #[test]
    fn the_lines_that_are_tried_by_default_are_sound() {
        let count = |granted| default(granted).map_or(0, |specs| specs.len());
        let counts = [Accuracy::Ieee, Accuracy::Bound, Accuracy::Norm].map(count);
        assert!(counts[0] > 40 && counts[0] < counts[1] && counts[1] < counts[2], "{counts:?}");
    }
}
