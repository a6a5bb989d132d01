//! Splitting of spec text into its parts, for programs that do not need a parsed spec.

use crate::error::SpecErrors;
use crate::syntax::{TokenKind, Tokens, lex};
use std::ops::Range;

/// Returns the entries of a spec, each as the list of its alternatives, in their original text.
/// `stages: 3 | 4, float4` has the entries `stages: 3` or `4`, and `float4`. Empty entries and
/// angle brackets around the spec are skipped.
///
/// A bar at the start of a value opens the parameters of a closure, as in
/// `epilogue: |acc| max(acc, 0.0)`. Commas inside a closure do not separate entries. Two bars
/// without a space between them are an operator. All other bars separate alternatives.
///
/// # Errors
/// Returns the first fault with its place, if the text cannot be split into tokens.
pub fn entries(text: &str) -> Result<Vec<Vec<&str>>, SpecErrors> {
    let (tokens, places) = lex(text).map_err(|fault| fault.in_text(text))?;
    let mut tokens = Tokens::all(&tokens);
    if let [first, .., last] = tokens.tokens()
        && first.is('<')
        && last.is('>')
    {
        tokens = tokens.inner();
    }
    let written = |part: Range<usize>| match (places.get(part.start), part.end.checked_sub(1)) {
        (Some(first), Some(last)) if !part.is_empty() => &text[first.start..places[last].end],
        _ => "",
    };
    let mut entries = Vec::new();
    let mut entry = Vec::new();
    let (mut rest, mut start) = (tokens, tokens.span().start);
    loop {
        rest = rest.after(alternative(rest));
        entry.push(written(start..rest.span().start));
        if !rest.first(1).iter().any(|token| token.is('|')) {
            let entry = std::mem::take(&mut entry);
            if entry != [""] {
                entries.push(entry);
            }
        }
        if rest.is_empty() {
            return Ok(entries);
        }
        rest = rest.after(1);
        start = rest.span().start;
    }
}

/// Returns the number of tokens before the next comma or bar that separates entries or
/// alternatives.
fn alternative(tokens: Tokens<'_>) -> usize {
    let mut at = 0;
    // A closure can only begin where a value begins: at the first token, or after the first colon.
    let mut starts = true;
    while at < tokens.len() {
        let bar = tokens[at].is('|');
        if bar && starts {
            let parameters = tokens.after(at + 1).until(|token| token.is('|'));
            at += parameters.len() + 2;
            starts = false;
            continue;
        }
        if bar && matches!(tokens[at].kind, TokenKind::Punct { joint: true }) {
            at += 2;
            continue;
        }
        if bar || tokens[at].is(',') {
            return at;
        }
        starts = tokens[at].is(':');
        at += tokens.after(at).unit();
    }
    tokens.len()
}

/// Returns the name and the argument of a macro call such as `reduce_kernel!(op: max)`, which any
/// tokens may precede. Returns `None` for any other text.
pub fn call(text: &str) -> Option<(&str, &str)> {
    let (tokens, places) = lex(text).ok()?;
    let end = tokens.len() - usize::from(tokens.last()?.is(';'));
    let tokens = Tokens::all(&tokens).first(end);
    let bang = tokens.until(|token| token.is('!')).len();
    let group = tokens.after(bang + 1);
    let name = bang.checked_sub(1).filter(|&name| tokens[name].is_word())?;
    let is_group = group.first(1).iter().all(|token| token.kind == TokenKind::Open);
    if group.is_empty() || !is_group || group.unit() < group.len() {
        return None;
    }
    let group = group.span();
    let inner = places[group.start].end..places[group.end - 1].start;
    Some((&text[places[name].clone()], &text[inner]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn parts(line: &str, expected: &[&[&str]]) {
        assert_eq!(entries(line).expect("tokens"), expected);
    }

    #[test]
    fn entries_end_at_commas_and_alternatives_at_bars() {
        parts("", &[]);
        parts(" <float4, block: 64> ", &[&["float4"], &["block: 64"]]);
        parts("float4", &[&["float4"]]);
        parts("tile: 8x8x8 | 16x16x8,\n float4,", &[&["tile: 8x8x8", "16x16x8"], &["float4"]]);
        parts("a | b: 2 | none, c", &[&["a", "b: 2", "none"], &["c"]]);
        parts("stages: 3 | ", &[&["stages: 3", ""]]);
        parts("stages: 3 | , float4", &[&["stages: 3", ""], &["float4"]]);
        parts("f(1, 2 | 3), [4, 5] | {6, 7}", &[&["f(1, 2 | 3)"], &["[4, 5]", "{6, 7}"]]);
    }

    #[test]
    fn a_closure_belongs_to_its_entry() {
        parts(
            "epilogue: |acc| max(acc, 0.0), float4",
            &[&["epilogue: |acc| max(acc, 0.0)"], &["float4"]],
        );
        parts(
            "epilogue: |acc, bias[n], c[m, n]| { let t = acc + bias; max(t, c) } | none",
            &[&["epilogue: |acc, bias[n], c[m, n]| { let t = acc + bias; max(t, c) }", "none"]],
        );
        parts(
            "epilogue: |x| x | |x| if x < 0.0 || x > 6.0 { 0.0 } else { x } | none, stages: 2 | 3",
            &[
                &["epilogue: |x| x", "|x| if x < 0.0 || x > 6.0 { 0.0 } else { x }", "none"],
                &["stages: 2", "3"],
            ],
        );
        parts("epilogue: |x, y", &[&["epilogue: |x, y"]]);
    }

    #[test]
    fn a_text_of_no_tokens_is_refused_as_a_spec_is() {
        for text in ["tile: (8x8x8".to_owned(), "name: \"a".to_owned(), "(".repeat(100_000)] {
            let spec = text.parse::<crate::spec::SgemmSpec>().expect_err("no spec");
            assert_eq!(entries(&text).expect_err("no tokens"), spec);
            assert_eq!(call(&text), None);
        }
    }

    #[test]
    fn a_call_has_a_name_and_an_argument() {
        for (text, name, argument) in [
            ("reduce_kernel!(op: max)", "reduce_kernel", "op: max"),
            ("gemm_runtime::sgemm_kernel![];", "sgemm_kernel", ""),
            ("const G: SgemmKernel = sgemm_kernel! { float4 };", "sgemm_kernel", " float4 "),
        ] {
            assert_eq!(call(text), Some((name, argument)));
        }
        for text in ["op: max", "", ";", "f(x)", "f!", "!(a)", "f!(a) b", "e: |a| f!(a", "f! a (b)"]
        {
            assert_eq!(call(text), None, "{text}");
        }
    }
}
