//! The lines that a table may choose from.
//!
//! A text has a line of the DSL a line, with alternatives as in a [space](crate::tune::space); what stands behind a `#` is
//! a remark. A line that names no layout stands for one of each layout in which it is sound, under `tn` without
//! `transpose`, since nothing lies along K there.

use crate::cli::Failure;
use crate::tune::space::Space;
use gemm_dsl::parse;
use gemm_dsl::spec::{Bounds, Layout, SgemmSpec};
use std::collections::BTreeSet;

/// The lines that are tried where none are given.
pub const DEFAULT: &str = include_str!("default.lines");

/// The most combinations of a line's alternatives.
const MOST: usize = 10_000;

/// Reads lines, each only once. Of a line with alternatives those combinations that are not sound are left out.
///
/// # Errors
/// [`Failure::Usage`] with the number of the line.
pub fn read(text: &str) -> Result<Vec<SgemmSpec>, Failure> {
    let mut known = BTreeSet::new();
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let specs = specs(line).map_err(|reason| {
            Failure::Usage(format!("line {} of --lines, `{line}`: {reason}", number + 1))
        })?;
        all.extend(specs.into_iter().filter(|spec| known.insert(spec.to_string())));
    }
    match all.is_empty() {
        true => Err(Failure::Usage("--lines: there is no line. Give at least one".to_owned())),
        false => Ok(all),
    }
}

/// The sound specs of a line.
fn specs(line: &str) -> Result<Vec<SgemmSpec>, String> {
    let space = Space::parse(&[line])?;
    if space.count() > MOST {
        let count = space.count();
        return Err(format!("{count} combinations are too many to measure. Give at most {MOST}"));
    }
    let (mut specs, mut refused) = (Vec::new(), None);
    for point in space.all() {
        match layouts(&space.line(&point)) {
            Ok(more) => specs.extend(more),
            Err(reason) => refused = refused.or(Some(reason)),
        }
    }
    if let Some(spec) = specs.first() {
        usable(spec)?;
        return Ok(specs);
    }
    Err(refused.unwrap_or_else(|| "it has no combination".to_owned()))
}

/// The specs of a line without alternatives.
fn layouts(line: &str) -> Result<Vec<SgemmSpec>, String> {
    let entries = parse::entries(line).map_err(|faults| faults.to_string())?;
    let entries: Vec<&str> = entries.concat();
    let key = |entry: &&str| entry.split(':').next().unwrap_or_default().trim().to_owned();
    let of = |text: &str| text.parse::<SgemmSpec>().map_err(|faults| faults.to_string());
    if entries.iter().any(|entry| key(entry) == "layout") {
        return of(line).map(|spec| vec![spec]);
    }
    let in_layout = |layout: &Layout| {
        let kept =
            entries.iter().filter(|entry| *layout != Layout::Tn || key(entry) != "transpose");
        let kept: Vec<String> = kept.map(|entry| (*entry).to_owned()).collect();
        of(&[kept, vec![format!("layout: {layout}")]].concat().join(", "))
    };
    let all: Vec<Result<SgemmSpec, String>> = Layout::ALL.iter().map(in_layout).collect();
    let sound: Vec<SgemmSpec> = all.iter().flatten().cloned().collect();
    match (sound.is_empty(), all.into_iter().next()) {
        (true, Some(Err(reason))) => Err(reason),
        _ => Ok(sound),
    }
}

/// The canonical text of a line, if it is one for a layout that a row can have.
pub fn canonical(line: &str, layout: Layout) -> Option<String> {
    let spec: SgemmSpec = line.parse().ok()?;
    (spec.layout == layout && usable(&spec).is_ok()).then(|| spec.to_string())
}

/// Refuses what no row of such a table can be.
fn usable(spec: &SgemmSpec) -> Result<(), String> {
    let refused = [
        ("batch", spec.batch.is_some(), "products are single"),
        ("scaled", spec.scaled, "what C was is not read"),
        ("epilogue", spec.epilogue.is_some(), "sums are stored as they are"),
        ("name", spec.name.is_some(), "kernels of several rows would have one name"),
        ("bounds", spec.bounds != Bounds::Guarded, "a row is for any shape"),
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
        let specs = read(text).unwrap_or_else(|failure| panic!("{text}: {failure}"));
        specs.iter().map(SgemmSpec::to_string).collect()
    }

    #[test]
    fn a_line_without_a_layout_stands_for_all_in_which_it_is_sound() {
        let all = texts("tile: 64x64x16, thread: 4x4, transpose, pad_a: 4 # a remark\n\n# none\n");
        let line = "tile: 64x64x16, thread: 4x4, transpose, pad_a: 4";
        let expected = [
            line.to_owned(),
            format!("layout: nt, {line}"),
            "layout: tn, tile: 64x64x16, thread: 4x4, pad_a: 4".to_owned(),
            format!("layout: tt, {line}"),
        ];
        assert_eq!(all, expected);
        assert_eq!(texts("layout: tt, tile: 8x8x8"), ["layout: tt, tile: 8x8x8"]);
        assert_eq!(texts("layout: nn\nlayout: nn").len(), 1);
    }

    #[test]
    fn alternatives_multiply_and_unsound_ones_are_left_out() {
        let lines = texts("layout: nn, tile: 64x64x16, thread: 4x4 | 5x5, split_k: none | 4");
        let line = "tile: 64x64x16, thread: 4x4";
        assert_eq!(lines, [line.to_owned(), format!("{line}, split_k: 4")]);
    }

    #[test]
    fn what_can_be_no_row_is_refused_with_its_line() {
        for (text, reason) in [
            ("", "there is no line"),
            ("tile: 8x8x8\ntile: 64x64x16, thread: 5x5", "line 2 of --lines, `tile: 64x64x16"),
            ("tile: 8x8x8, batch: strided", "`batch`: products are single"),
            ("scaled", "`scaled`"),
            ("name: mine", "`name`"),
            ("bounds: aligned", "`bounds`: a row is for any shape"),
            ("epilogue: |acc| max(acc, 0.0)", "`epilogue`"),
        ] {
            let failure = read(text).expect_err(text).to_string();
            assert!(failure.contains(reason), "{text}: {failure}");
        }
    }

    #[test]
    fn the_lines_that_are_tried_by_default_are_sound() {
        let lines = texts(DEFAULT);
        assert!(lines.len() > 40, "{}", lines.len());
        for layout in ["layout: nt", "layout: tn", "layout: tt"] {
            assert!(lines.iter().filter(|line| line.starts_with(layout)).count() > 10, "{layout}");
        }
    }
}
