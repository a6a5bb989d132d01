//! Wrapping of lines that are too wide.

/// Indentation of a continuation line, in columns.
const INDENT: usize = 4;

/// Wraps a statement to `width` columns, if it has positions at which it can break. The positions
/// are tried in this order: a conditional before each of its two branches; an assignment before a
/// long value; a call after its parenthesis and, if necessary, between its arguments. Without a
/// call, an index breaks after its bracket and between its terms.
pub(super) fn code(text: &str, width: usize) -> Vec<String> {
    if text.len() <= width {
        return vec![text.to_owned()];
    }
    let inner = |text: &str| {
        let lines = code(text, width.saturating_sub(INDENT));
        lines.into_iter().map(|line| format!("{:INDENT$}{line}", ""))
    };
    if let Some((cond, yes, no)) = choice(text) {
        if cond.len() > width
            && let Some(at) = outside(text, " = ", 0)
        {
            let (target, value) = (&text[..at + 2], &text[at + 3..]);
            return std::iter::once(target.to_owned()).chain(inner(value)).collect();
        }
        let arms = [format!("? {yes}"), format!(": {no}")];
        return std::iter::once(cond.to_owned())
            .chain(arms.iter().flat_map(|t| inner(t)))
            .collect();
    }
    let parts = bracketed(text, *b"()").or_else(|| bracketed(text, *b"[]"));
    let Some((head, operands, tail)) = parts else { return vec![text.to_owned()] };
    if head.len() > width
        && let Some(at) = outside(text, " = ", 0)
    {
        let (target, value) = (&text[..at + 2], &text[at + 3..]);
        return std::iter::once(target.to_owned()).chain(inner(value)).collect();
    }
    let whole = format!("{operands}{tail}");
    let mut lines = vec![head.to_owned()];
    if INDENT + whole.len() <= width {
        lines.extend(inner(&whole));
    } else {
        for operand in separate(&whole) {
            lines.extend(inner(operand));
        }
    }
    lines
}

/// Returns the comment lines unchanged if all fit; otherwise wraps the sentences again.
pub(super) fn comments(lines: &[&str], width: usize) -> Vec<String> {
    const MARK: &str = "// ";
    if lines.iter().all(|line| MARK.len() + line.len() <= width) {
        return lines.iter().map(|line| format!("{MARK}{line}")).collect();
    }
    let mut filled: Vec<String> = Vec::new();
    for paragraph in lines.split_inclusive(|line| line.ends_with('.')) {
        let mut words = paragraph.iter().flat_map(|line| line.split(' '));
        let mut own = format!("{MARK}{}", words.next().unwrap_or_default());
        for word in words {
            if own.len() + 1 + word.len() > width {
                filled.push(std::mem::replace(&mut own, format!("{MARK}{word}")));
            } else {
                own.push(' ');
                own.push_str(word);
            }
        }
        filled.push(own);
    }
    filled
}

/// Wraps a comment to `width` columns and indents continuation lines. It breaks after a comma if
/// possible, otherwise at any space.
pub(super) fn comment(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text.to_owned();
    while rest.len() > width {
        let start = rest.find(|c: char| c != '/' && c != ' ').unwrap_or(rest.len());
        let fits = |&(at, _): &(usize, &str)| start < at && at <= width;
        let spaces = || rest.match_indices(' ').filter(fits).rev();
        let at = spaces().find(|&(at, _)| rest[..at].ends_with(',')).or_else(|| spaces().next());
        let Some((at, _)) = at else { break };
        let later = format!("//{:INDENT$}{}", "", &rest[at + 1..]);
        rest.truncate(at);
        lines.push(std::mem::replace(&mut rest, later));
    }
    lines.push(rest);
    lines
}

/// Byte positions of a text, each with the number of brackets that are open before it.
fn depths(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut open = 0_usize;
    text.bytes().enumerate().map(move |(at, byte)| {
        let before = open;
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        (at, before)
    })
}

/// First position of `mark` at or after `from`, outside all brackets.
fn outside(text: &str, mark: &str, from: usize) -> Option<usize> {
    let begins = |at: usize| text.as_bytes()[at..].starts_with(mark.as_bytes());
    depths(text).find(|&(at, open)| at >= from && open == 0 && begins(at)).map(|(at, _)| at)
}

/// Splits a conditional outside all brackets into the condition with its prefix, and the two
/// branches.
fn choice(text: &str) -> Option<(&str, &str, &str)> {
    let yes = outside(text, " ? ", 0)?;
    let no = outside(text, " : ", yes + 3)?;
    Some((&text[..yes], &text[yes + 3..no], &text[no + 3..]))
}

/// Finds the longest text in top-level brackets of this kind, such as the arguments of a call.
/// Returns the text up to and including the bracket, the bracketed text, and the rest.
fn bracketed(text: &str, [opens, closes]: [u8; 2]) -> Option<(&str, &str, &str)> {
    let mut longest: Option<(usize, usize)> = None;
    let mut start = None;
    for (at, open) in depths(text) {
        match (text.as_bytes()[at], open, start) {
            (byte, 0, _) if byte == opens => start = Some(at + 1),
            (byte, 1, Some(from)) if byte == closes => {
                let length = longest.map_or(0, |(from, to)| to - from);
                longest = if at - from > length { Some((from, at)) } else { longest };
                start = None;
            }
            _ => {}
        }
    }
    let (from, to) = longest.filter(|(from, to)| from < to)?;
    Some((&text[..from], &text[from..to], &text[to..]))
}

/// Splits arguments, each with its comma. A single argument is split into terms, each followed by
/// its sign.
fn separate(operands: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    while let Some(comma) = outside(operands, ", ", start) {
        parts.push(&operands[start..=comma]);
        start = comma + 2;
    }
    let is_one = parts.is_empty();
    while let Some(sign) = outside(operands, " + ", start).filter(|_| is_one) {
        parts.push(&operands[start..sign + 2]);
        start = sign + 3;
    }
    parts.push(&operands[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::{code, comment, comments};
    use proptest::prelude::*;

    #[test]
    fn sentences_are_filled_anew_where_a_line_is_too_long() {
        assert_eq!(comments(&["one two", "three."], 10), ["// one two", "// three."]);
        assert_eq!(comments(&["one two", "three."], 9), ["// one", "// two", "// three."]);
        assert_eq!(
            comments(&["one two three four", "five.", "Six seven."], 16),
            ["// one two three", "// four five.", "// Six seven."]
        );
    }

    #[test]
    fn a_choice_is_broken_before_its_arms_and_a_call_behind_its_parenthesis() {
        let choice = "const float4 v = a < first ? load4(&A[a * K]) : make_float4(0.0f, 0.0f);";
        assert_eq!(code(choice, 80), [choice]);
        assert_eq!(
            code(choice, 60),
            [
                "const float4 v = a < first",
                "    ? load4(&A[a * K])",
                "    : make_float4(0.0f, 0.0f);"
            ]
        );
        let call =
            "copy(&As[0][(c + BK - first) % BK][r], &a_src[i % A_PASSES][i / 8 * 8], c < first);";
        assert_eq!(
            code(call, 82),
            [
                "copy(",
                "    &As[0][(c + BK - first) % BK][r], &a_src[i % A_PASSES][i / 8 * 8], c < first);"
            ]
        );
        let index = "a_src[i] = &A[(size_t)batch * stride + (size_t)min(row, M - 1) * K + col];";
        assert_eq!(
            code(index, 68),
            ["a_src[i] = &A[", "    (size_t)batch * stride + (size_t)min(row, M - 1) * K + col];"]
        );
        assert_eq!(
            code(index, 40),
            [
                "a_src[i] = &A[",
                "    (size_t)batch * stride +",
                "    (size_t)min(row, M - 1) * K +",
                "    col];"
            ]
        );
        let each = [
            "copy(",
            "    &As[0][(c + BK - first) % BK][r],",
            "    &a_src[i % A_PASSES][i / 8 * 8],",
            "    c < first);",
        ];
        assert_eq!(code(call, 50), each);
        let nested =
            "store4(&As[row][col], col < first ? load4(&A[col]) : make_float4(-0.0f, -0.0f));";
        assert_eq!(
            code(nested, 40),
            [
                "store4(",
                "    &As[row][col],",
                "    col < first",
                "        ? load4(&A[col])",
                "        : make_float4(-0.0f, -0.0f));",
            ]
        );
        // This text has no position to break.
        assert_eq!(code("name_that_is_long(", 4), ["name_that_is_long("]);
    }

    #[test]
    fn a_comment_is_broken_behind_commas() {
        let line = "// kernel!(tile: 1x1, thread: 2x2, stages: 3)";
        assert_eq!(comment(line, 40), ["// kernel!(tile: 1x1, thread: 2x2,", "//    stages: 3)"]);
        assert_eq!(comment("// one two three", 10), ["// one two", "//    three"]);
        assert_eq!(comment("// indivisible", 4), ["// indivisible"]);
    }

    /// A line with only a kernel's name may be too long, because it has no position to break.
    #[test]
    fn no_line_of_a_stage_is_too_long() {
        use crate::{Plan, cuda, stages};
        for stage in stages::sgemm() {
            let program = stage.spec.plan().and_then(|plan| plan.program()).expect("a stage");
            for kernel in program.kernels() {
                for line in cuda::source(kernel).lines() {
                    let short = line.len() <= cuda::WIDTH || line.starts_with(&kernel.name);
                    assert!(short, "{}: {line}", stage.name);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(gemm_cases::cases(256))]

        #[test]
        fn breaking_changes_white_space_alone(
            text in "[a-c(),?: \\[\\]{}]{0,60}",
            width in 0usize..50,
        ) {
            let bare = |text: &str| text.replace(' ', "");
            prop_assert_eq!(bare(&code(&text, width).concat()), bare(&text));
            let line = format!("// {text}");
            let joined: String = comment(&line, width)
                .iter()
                .map(|line| line.trim_start_matches('/'))
                .collect();
            prop_assert_eq!(bare(&joined), bare(line.trim_start_matches('/')));
        }
    }
}
