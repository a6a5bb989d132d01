//! Lines of the DSL taken apart by their tokens, where a program needs the parts and not the spec:
//! entries at the commas, alternatives at the bars. What stands in brackets, and the parameters of a
//! closure with what follows them, belongs to its entry.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// The entries of a line, each with its alternatives, as they were written. The angle brackets that
/// may stand around a line are left out.
///
/// A bar that starts a value opens the parameters of a closure, `epilogue: |acc| max(acc, 0.0)`; two
/// bars without a space between them are an operator; any other bar parts alternatives.
///
/// # Errors
/// Says where the line is none of tokens.
pub fn entries(line: &str) -> Result<Vec<Vec<&str>>, String> {
    let line = line.trim();
    let line = line.strip_prefix('<').map_or(line, |line| line.strip_suffix('>').unwrap_or(line));
    let tokens: TokenStream = line.parse().map_err(|_| {
        format!("`{line}` cannot be taken apart: a bracket or a quote is not closed")
    })?;
    let mut splitter = Splitter { line, from: 0, entries: Vec::new(), entry: Vec::new() };
    let mut in_parameters = false;
    // Whether a value starts here.
    let mut starts = true;
    // The second bar of an operator.
    let mut operator = false;
    for token in tokens {
        let TokenTree::Punct(punct) = &token else {
            (starts, operator) = (false, false);
            continue;
        };
        let bar = punct.as_char() == '|';
        if in_parameters {
            in_parameters = !bar;
            continue;
        }
        match punct.as_char() {
            '|' if operator => operator = false,
            '|' if starts => in_parameters = true,
            '|' if punct.spacing() == Spacing::Joint => operator = true,
            '|' => {
                splitter.alternative(&token);
                starts = true;
                continue;
            }
            ',' => {
                splitter.alternative(&token);
                splitter.entry();
                starts = true;
                continue;
            }
            _ => {}
        }
        starts = punct.as_char() == ':';
    }
    splitter.end();
    Ok(splitter.entries)
}

/// The key and the value of an entry or of an alternative; `None` for a flag or a bare value.
pub fn value(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once(':')?;
    let is_word = key.trim().chars().all(|c| c.is_alphanumeric() || c == '_');
    is_word.then_some((key.trim(), value.trim()))
}

/// The key of an entry: the word before the colon, or the flag.
pub fn key(text: &str) -> &str {
    value(text).map_or(text, |(key, _)| key).trim()
}

struct Splitter<'l> {
    line: &'l str,
    /// Where the alternative at hand starts.
    from: usize,
    entries: Vec<Vec<&'l str>>,
    entry: Vec<&'l str>,
}

impl Splitter<'_> {
    /// Ends the alternative at hand before a separator.
    fn alternative(&mut self, separator: &TokenTree) {
        let at = separator.span().byte_range();
        self.entry.push(self.line.get(self.from..at.start).unwrap_or_default().trim());
        self.from = at.end;
    }

    /// Ends the entry at hand; an empty one is none.
    fn entry(&mut self) {
        let entry = std::mem::take(&mut self.entry);
        if !matches!(entry[..], [""]) {
            self.entries.push(entry);
        }
    }

    fn end(&mut self) {
        self.entry.push(self.line.get(self.from..).unwrap_or_default().trim());
        self.entry();
    }
}

/// The name and the argument of a macro call, `reduce_kernel!(op: max)`; `None` for any other text.
pub fn call(text: &str) -> Option<(String, &str)> {
    let tokens: Vec<TokenTree> = text.parse::<TokenStream>().ok()?.into_iter().collect();
    let is = |token: &TokenTree, char| matches!(token, TokenTree::Punct(p) if p.as_char() == char);
    let tokens = match &tokens[..] {
        [call @ .., end] if is(end, ';') => call,
        call => call,
    };
    // A path before the name does not matter.
    let [.., TokenTree::Ident(name), bang, TokenTree::Group(group)] = tokens else {
        return None;
    };
    if !is(bang, '!') || group.delimiter() == Delimiter::None {
        return None;
    }
    let inner = group.span_open().byte_range().end..group.span_close().byte_range().start;
    Some((name.to_string(), text.get(inner)?))
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
    }

    #[test]
    fn what_is_no_text_of_tokens_is_refused() {
        assert!(entries("tile: (8x8x8").is_err() && entries("name: \"a").is_err());
    }

    #[test]
    fn keys_are_words_before_the_colon() {
        assert_eq!((key("tile: 8x8x8"), key(" float4 "), key("f: |a| a")), ("tile", "float4", "f"));
        assert_eq!(value("f : |a| a "), Some(("f", "|a| a")));
        assert_eq!((value("float4"), value("|a| { let t: f32 = a; t }")), (None, None));
    }

    #[test]
    fn a_call_has_a_name_and_an_argument() {
        let parts = |text| call(text).expect("a call");
        assert_eq!(parts("reduce_kernel!(op: max)"), ("reduce_kernel".to_owned(), "op: max"));
        assert_eq!(parts("gemm_runtime::sgemm_kernel![];").1, "");
        assert_eq!(parts("sgemm_kernel! { float4 }").1, " float4 ");
        for text in ["op: max", "", "f(x)", "f!", "epilogue: |acc| f!(acc", "tile: 8x8x8"] {
            assert!(call(text).is_none(), "{text}");
        }
    }
}
