//! Compiler log with the source lines that it names.

use std::collections::BTreeSet;
use std::fmt::Write;

/// Number of lines shown before and after a line that the log names.
const CONTEXT: usize = 2;

/// Log, followed by the numbered source lines around each `name(line)` of the log. The named lines
/// are marked.
pub(super) fn listing(log: &str, name: &str, source: &str) -> String {
    let log = log.trim_end();
    let named = named_lines(log, name);
    let lines: Vec<&str> = source.lines().collect();
    let mut out = log.to_owned();
    let mut last_shown = 0;
    for (i, line) in lines.iter().enumerate() {
        let number = i + 1;
        let near = number.saturating_sub(CONTEXT)..=number + CONTEXT;
        if named.range(near).next().is_none() {
            continue;
        }
        if number != last_shown + 1 || last_shown == 0 {
            _ = write!(out, "\n{:>8}", "...");
        }
        let mark = if named.contains(&number) { '>' } else { ' ' };
        _ = write!(out, "\n{mark}{number:>5} | {line}");
        last_shown = number;
    }
    out
}

/// Numbers `n` of all `name(n)` in the log.
fn named_lines(log: &str, name: &str) -> BTreeSet<usize> {
    let number = |rest: &str| rest.split_once(')')?.0.parse::<usize>().ok();
    log.split(&format!("{name}(")).skip(1).filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::listing;

    const SOURCE: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten";

    #[test]
    fn shows_the_lines_around_an_error() {
        let shown = listing("k.cu(5): error: no\n", "k.cu", SOURCE);
        let expected = "k.cu(5): error: no\n     ...\n     3 | three\n     4 | four\n\
                        >    5 | five\n     6 | six\n     7 | seven";
        assert_eq!(shown, expected);
    }

    #[test]
    fn separates_distant_lines_and_ignores_other_files() {
        let shown = listing("k.cu(1): a\nk.cu(10): b\nother(5): c", "k.cu", SOURCE);
        assert_eq!(shown.matches("...").count(), 2);
        assert!(shown.contains(">    1 | one"));
        assert!(shown.contains(">   10 | ten"));
        assert!(!shown.contains("| five"));
    }

    #[test]
    fn a_log_that_names_no_line_stands_alone() {
        assert_eq!(listing("bad option", "k.cu", SOURCE), "bad option");
        assert_eq!(listing("k.cu(99): past the end", "k.cu", SOURCE), "k.cu(99): past the end");
        assert_eq!(listing("k.cu(", "k.cu", SOURCE), "k.cu(");
    }
}
