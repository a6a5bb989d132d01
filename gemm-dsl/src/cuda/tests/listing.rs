//! Line ranges of statements in a source.

use crate::cuda::{listing, source, statement};
use crate::ir::{Stmt, VerifiedKernel};
use crate::{Plan, stages};
use std::collections::BTreeSet;
use std::ops::Range;

fn kernels() -> Vec<VerifiedKernel> {
    let reductions =
        stages::reduce().into_iter().map(|stage| stage.spec.plan().and_then(|plan| plan.program()));
    let products =
        stages::sgemm().into_iter().map(|stage| stage.spec.plan().and_then(|plan| plan.program()));
    let programs = reductions.chain(products).map(|program| program.expect("a sound stage"));
    programs.flat_map(|program| program.kernels().to_vec()).collect()
}

/// Source without whitespace, so that line breaks do not matter.
fn joined<'l>(lines: impl IntoIterator<Item = &'l str>) -> String {
    lines.into_iter().flat_map(str::chars).filter(|c| !c.is_whitespace()).collect()
}

/// Receives a statement, its line range, and the range of its parent; `None` in a section, whose
/// function stands elsewhere.
type See<'s> = dyn FnMut(&Stmt, &Range<usize>, Option<&Range<usize>>) + 's;

/// Visits the statements of a block and the nested ones in order, each with its line range and its
/// parent's.
fn inside(
    block: &[Stmt],
    outer: Option<&Range<usize>>,
    (lines, next): (&[Range<usize>], &mut usize),
    see: &mut See<'_>,
) {
    for stmt in block {
        let own = &lines[*next];
        *next += 1;
        see(stmt, own, outer);
        let own = outer.map(|_| own);
        match stmt {
            Stmt::If { then, otherwise, .. } => {
                inside(then, own, (lines, next), see);
                inside(otherwise, own, (lines, next), see);
            }
            Stmt::For(l) => inside(&l.body, own, (lines, next), see),
            Stmt::Section(section) => {
                let (params, body) = section.body.split_at(section.params);
                *next += params.len();
                inside(body, None, (lines, next), see);
            }
            _ => {}
        }
    }
}

#[test]
fn statements_stand_where_the_listing_says() {
    let mut seen = 0;
    for kernel in kernels() {
        let found = listing(&kernel);
        assert_eq!(found.text, source(&kernel));
        let text: Vec<&str> = found.text.lines().collect();
        assert_eq!(found.lines.len(), kernel.statements().len());
        let mut before = 0;
        let mut told = vec![false; text.len()];
        let mut see = |stmt: &Stmt, own: &Range<usize>, outer: Option<&Range<usize>>| {
            seen += 1;
            assert!(!own.is_empty());
            if let Some(outer) = outer {
                assert!(outer.start <= own.start && own.end <= outer.end);
                assert!(before <= own.start, "{}: in the order of the text", kernel.name);
                before = own.start;
            }
            let here = joined(text[own.clone()].iter().copied());
            // A comment may be wrapped together with adjacent comments.
            match stmt {
                Stmt::Comment(_) => assert!(here.starts_with("//"), "{here}"),
                // The body may follow on the same line if it fits.
                Stmt::If { .. } => {
                    let head = here.starts_with("if(") || here.starts_with("}elseif(");
                    assert!(head, "{}: {here}", kernel.name);
                }
                _ => {
                    let text = statement(&kernel, stmt);
                    // A pointer may be declared with its first value, and its comment above it.
                    let text = match stmt {
                        Stmt::Registers { .. } => text.split(';').next().unwrap_or_default(),
                        _ => &text,
                    };
                    let expected = joined([text]);
                    assert!(here.contains(&expected), "{}: {expected} in {here}", kernel.name);
                }
            }
            told[own.clone()].fill(true);
        };
        let whole = 0..text.len();
        inside(&kernel.body, Some(&whole), (&found.lines, &mut 0), &mut see);
        // After the shared arrays, every non-empty line of the body belongs to a statement, except
        // the last brace, and head, end and comment of each function. A comment stands before the
        // head.
        let first = found.lines.iter().map(|lines| lines.start).min().unwrap_or_default();
        let head = |line: &str| {
            let (name, _) = line.trim().strip_prefix("const auto ")?.split_once(" = [&](")?;
            Some(name.to_owned())
        };
        let is_comment = |line: &str| line.trim().starts_with("//");
        let mut open = 0;
        for (n, line) in text.iter().enumerate().skip(first).filter(|(n, _)| !told[*n]) {
            if head(line).is_some() {
                open += 1;
            } else if line.trim() == "};" {
                open -= 1;
            } else if is_comment(line) {
                let next = text[n + 1];
                assert!(is_comment(next) || head(next).is_some(), "{}: {line}", kernel.name);
            } else {
                assert!(line.is_empty() || *line == "}", "{}: {line}", kernel.name);
            }
        }
        assert_eq!(open, 0, "{}: functions without end", kernel.name);
        let heads: BTreeSet<_> = text.iter().copied().filter_map(head).collect();
        let sections = kernel.sections().into_iter().map(|section| section.name.clone());
        assert_eq!(heads, sections.collect(), "{}", kernel.name);
    }
    assert!(seen > 3000, "{seen}");
}
