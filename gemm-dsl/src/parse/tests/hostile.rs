//! Hostile texts cause no panic, no message of unbounded length and no other meaning.

use super::super::{MAX_FAULTS, from_text};
use crate::spec::{ReduceSpec, SgemmSpec, Table};
use crate::syntax::{MAX_DEPTH, MAX_TEXT};
use crate::{Family, Plan};
use proc_macro2::TokenStream;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Limit of the length of all messages of a spec, in bytes: [`MAX_FAULTS`] messages with a few
/// lines each.
const MAX_MESSAGE: usize = 32 * 1024;

/// Returns the messages of a text's faults; empty if it has none.
fn message<S: Family + Table>(text: &str) -> String {
    from_text::<S>(text).map_or_else(|faults| faults.to_string(), |_| String::new())
}

/// A faulty text has messages of bounded length. A valid text is printed as a text with the same
/// meaning.
fn is_held<S: Family + Table>(text: &str) -> Result<(), TestCaseError> {
    match from_text::<S>(text) {
        Ok(plan) => prop_assert_eq!(from_text::<S>(&plan.spec().to_string()), Ok(plan)),
        Err(faults) => {
            prop_assert!(faults.iter().count() <= MAX_FAULTS + 1);
            for fault in faults.iter() {
                prop_assert!(!fault.message().is_empty());
                if let Some(excerpt) = fault.excerpt() {
                    prop_assert!(
                        excerpt.indent + excerpt.width <= excerpt.text.chars().count() + 1
                    );
                }
            }
            prop_assert!(
                faults.to_string().len() <= MAX_MESSAGE,
                "{} bytes",
                faults.to_string().len()
            );
        }
    }
    Ok(())
}

#[test]
fn nesting_is_refused_at_the_bracket_that_goes_too_deep() {
    let nested = |depth: usize| format!("tile: {}{}", "(".repeat(depth), ")".repeat(depth));
    assert!(message::<SgemmSpec>(&nested(MAX_DEPTH)).starts_with("`tile` takes a size"));
    let expected = "brackets are nested more than 64 deep; a spec needs no such nesting";
    for depth in [MAX_DEPTH + 1, 30_000] {
        let Err(faults) = from_text::<SgemmSpec>(&nested(depth)) else { panic!("{depth}") };
        let places: Vec<_> =
            faults.iter().map(|f| (f.message(), f.excerpt().map(|at| at.column))).collect();
        assert_eq!(places, [(expected, Some("tile: ".len() + MAX_DEPTH + 1))]);
    }
    let Ok(tokens) = nested(MAX_DEPTH + 1).parse::<TokenStream>() else { panic!("lexer") };
    assert_eq!(
        super::super::sgemm(tokens, false).plan.map_err(|e| e.to_string()).err().as_deref(),
        Some(expected)
    );
}

#[test]
fn a_text_that_is_too_long_is_refused() {
    let longest = format!("{}shuffle", " ".repeat(MAX_TEXT - 7));
    assert_eq!(message::<ReduceSpec>(&longest), "");
    let expected = "a spec of 65537 bytes is too long; use at most 65536\n  |\n1 | ";
    let message = message::<ReduceSpec>(&format!(" {longest}"));
    assert!(message.starts_with(expected), "{message}");
    assert!(message.len() < 400, "{message}");
}

/// Text and macro reject it in the same way.
#[test]
fn a_long_name_is_refused_in_few_words() {
    let long = "x".repeat(30_000);
    for line in [
        format!("name: {long}"),
        format!("epilogue: |{long}| {long}"),
        format!("epilogue: |acc| {{ let {long} = acc; {long} }}"),
    ] {
        let text = message::<SgemmSpec>(&line);
        assert!(text.contains("has 30000 characters; use at most 128\n"), "{text}");
        let Ok(tokens) = line.parse::<TokenStream>() else { panic!("lexer") };
        let Err(faults) = super::super::sgemm(tokens, false).plan else { panic!("a long name") };
        let told = faults.to_string();
        assert!(text.starts_with(&told) && text.len() < 600 && told.len() < 200, "{told}");
    }
}

#[test]
fn many_faults_are_counted_and_long_lines_are_clipped() {
    for text in ["float4 ", "foo, ", "foo: 4, ", ", ", "block: (0), ", "items = 0, "] {
        let text = text.repeat(5_000);
        let message = message::<ReduceSpec>(&text);
        assert!(message.len() < MAX_MESSAGE, "{} bytes", message.len());
        assert!(message.contains(" more faults are not listed"), "{message}");
    }
    // The first faults are reported, whatever their total number.
    let Err(all) = from_text::<SgemmSpec>(&format!("{}float4", "foo, ".repeat(8_000))) else {
        panic!("no keys")
    };
    let all: Vec<&str> = all.iter().map(|fault| fault.message()).collect();
    assert_eq!(all.len(), MAX_FAULTS + 1);
    assert!(
        all[0].starts_with("unknown key `foo`; the keys of `sgemm_kernel!` are `name`, "),
        "{}",
        all[0]
    );
    assert!(all[1..MAX_FAULTS].iter().all(|told| *told == "unknown key `foo`"), "{all:?}");
    assert!(all[MAX_FAULTS].starts_with("7980 more faults are not listed"), "{all:?}");
    let long = "a".repeat(60_000);
    for text in [
        long.clone(),
        format!("name: {long}é"),
        format!("op: {long}"),
        format!("block: {}", "1".repeat(60_000)),
        format!("block: \"{long}\""),
        format!("block: {}", "1 x".repeat(20_000)),
        format!("shuffle: 1, block: {}", "1x".repeat(20_000)),
    ] {
        let message = message::<ReduceSpec>(&text);
        assert!((1..2_000).contains(&message.len()), "{} bytes: {message:.2000}", message.len());
    }
}

#[test]
fn the_token_is_underlined_in_the_middle_of_a_long_line() {
    let text = format!("op: max,{}items: 0,{}float4", " ".repeat(200), " ".repeat(200));
    let shown = message::<ReduceSpec>(&text);
    let expected = format!(
        "`items: 0`: a thread folds at least one item; use 1 or more\n  |\n1 | …{}items: 0,{}…\n  \
         | {}^",
        " ".repeat(18),
        " ".repeat(73),
        " ".repeat(26)
    );
    assert_eq!(shown, expected);
}

/// Pieces of random texts, valid and broken.
const PIECES: &[&str] = &[
    "tile",
    "block",
    "thread",
    "op",
    "shuffle",
    "float4",
    "stages",
    "warp",
    "name",
    ":",
    ",",
    ", ",
    ": ",
    " ",
    "<",
    ">",
    "=",
    ";",
    "-",
    "(",
    ")",
    "\"",
    "'",
    "128x128x8",
    "8x8",
    "0x8",
    "128x",
    "1.5x2",
    "128e",
    "4",
    "0",
    "sum",
    "split",
    "é",
    "r#",
    "//",
    "/*",
    "\n",
    "::",
    "x8",
    "_",
    "99999999999",
    "'a",
    "0x80x8",
    "|",
    "{",
    "]",
    "\\",
    "\u{0}",
    "\t",
];

/// Valid specs, for mutation.
const LINES: &[&str] = &[
    "op: max, block: 128, tree: interleaved, items: 4, unroll_last_warp",
    "block: 512, items: 8, shuffle, float4, name: total",
    "block: 8x32, lanes: m, coarsen: 2, unroll: 4, partials: 2",
    "tile: 128x128x8, thread: 8x8, double_buffer",
    "tile: 64x64x16, thread: 4x4, float4, transpose, pad_a: 4, pad_b: 4, stages: 3, spread: 2, \
     warp: 16x32, raster: 4, order: row_serpentine, blocks_per_sm: 2",
    "<tile: 32x32x8, thread: 2x2, prefetch, bounds: aligned, pitched,> // a comment",
];

proptest! {
    #![proptest_config(gemm_cases::cases(2_000))]

    #[test]
    fn no_text_makes_the_grammar_panic(picks in proptest::collection::vec(any::<Index>(), 0..24)) {
        let text: String = picks.iter().map(|pick| *pick.get(PIECES)).collect();
        is_held::<ReduceSpec>(&text)?;
        is_held::<SgemmSpec>(&text)?;
    }

    #[test]
    fn a_line_with_pieces_put_in_or_taken_out_is_held(
        line in select(LINES),
        changes in proptest::collection::vec((any::<Index>(), 0..6usize, any::<Index>()), 1..6),
    ) {
        let mut text: Vec<char> = line.chars().collect();
        for (at, taken, piece) in changes {
            let at = at.index(text.len() + 1);
            let until = text.len().min(at + taken);
            text.splice(at..until, piece.get(PIECES).chars());
        }
        let text: String = text.into_iter().collect();
        is_held::<ReduceSpec>(&text)?;
        is_held::<SgemmSpec>(&text)?;
    }
}
