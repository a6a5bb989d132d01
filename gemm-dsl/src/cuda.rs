//! CUDA C++ back end. It chooses only the spelling: names, indentation, parentheses and comments.
//! The kernel determines all computation, so printing a verified kernel cannot fail.

mod asynchronous;
mod atomic;
mod expr;
mod extremum;
mod helper;
mod launch;
mod prelude;
mod stmt;
#[cfg(test)]
mod tests;
mod types;
mod unsigned;
mod wrap;

use crate::ir::{Kernel, Stmt, VerifiedKernel};
use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;
use std::ptr;
use stmt::section::SectionFunctions;

/// CUDA source of a kernel, with the line range of each statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// CUDA C++ translation unit.
    pub text: String,
    /// Line range of each statement, counted from 0. The index is the statement's number
    /// ([`Kernel::statements`](crate::ir::Kernel::statements)). The range of a compound statement
    /// includes its nested statements and its closing line. Adjacent comments share one range.
    pub lines: Vec<Range<usize>>,
}

/// Prints a kernel as a CUDA C++ translation unit. The source includes no headers, so NVRTC can
/// compile it directly.
pub fn source(kernel: &VerifiedKernel) -> String {
    print(Printer::new(kernel)).text
}

/// Prints the same source, with the line ranges of its statements.
pub fn listing(kernel: &VerifiedKernel) -> Listing {
    let places = Some(HashMap::new());
    let printed = print(Printer { places, ..Printer::new(kernel) });
    let places = printed.places.unwrap_or_default();
    let lines =
        kernel.statements().into_iter().map(|stmt| match places.get(&ptr::from_ref(stmt)) {
            Some(lines) => lines.clone(),
            None => unreachable!("stmt::block: every statement is printed"),
        });
    Listing { lines: lines.collect(), text: printed.text }
}

fn print(mut out: Printer<'_>) -> Printer<'_> {
    prelude::head(&mut out);
    prelude::definitions(&mut out);
    prelude::functions(&mut out);
    prelude::constants(&mut out);
    prelude::signature(&mut out);
    out.line("{");
    out.indented(|out| {
        prelude::shared(out);
        let kernel: &Kernel = out.kernel;
        out.sections = SectionFunctions::of_kernel(out.kernel);
        stmt::block(out, &kernel.body);
    });
    out.line("}");
    out
}

/// Returns the first source line of a statement, for messages about the statement.
pub fn statement(kernel: &VerifiedKernel, statement: &Stmt) -> String {
    let mut out = Printer::new(kernel);
    out.width = usize::MAX;
    stmt::block(&mut out, std::slice::from_ref(statement));
    // Skips lines that are only directives to the compiler.
    let tells = ["#pragma", helper::asynchronous::KEEP];
    let line = out.text.lines().find(|l| !tells.iter().any(|t| l.trim_start().starts_with(t)));
    line.unwrap_or_default().trim().to_owned()
}

/// Maximum line width of the source, in columns.
const WIDTH: usize = 100;

/// CUDA source that is being printed, with its indentation.
struct Printer<'k> {
    kernel: &'k VerifiedKernel,
    text: String,
    level: usize,
    width: usize,
    /// Line ranges of the statements printed so far; `None` unless they were requested.
    places: Option<HashMap<*const Stmt, Range<usize>>>,
    sections: SectionFunctions<'k>,
}

impl<'k> Printer<'k> {
    fn new(kernel: &'k VerifiedKernel) -> Self {
        let sections = SectionFunctions::default();
        Self { kernel, text: String::new(), level: 0, width: WIDTH, places: None, sections }
    }

    /// Prints statements and records their line range.
    fn noted(&mut self, stmts: &[Stmt], print: impl FnOnce(&mut Self)) {
        let lines = |out: &Self| out.places.as_ref().map(|_| out.text.matches('\n').count());
        let first = lines(self);
        print(self);
        let end = lines(self);
        if let (Some(places), Some(first), Some(end)) = (&mut self.places, first, end) {
            places.extend(stmts.iter().map(|stmt| (ptr::from_ref(stmt), first..end)));
        }
    }

    fn line(&mut self, text: impl AsRef<str>) {
        let text = text.as_ref();
        if text.is_empty() {
            self.text.push('\n');
            return;
        }
        let (indent, width) = (4 * self.level, self.width.saturating_sub(4 * self.level));
        let lines = match text.split_once("//") {
            Some(("", _)) => wrap::comment(text, width),
            // A line with a trailing comment is not wrapped.
            Some(_) => vec![text.to_owned()],
            None => wrap::code(text, width),
        };
        for line in lines {
            _ = writeln!(self.text, "{:indent$}{line}", "");
        }
    }

    /// Prints comment lines. If one is too wide at the current indentation, the sentences are
    /// wrapped again.
    fn comments<'c>(&mut self, lines: impl Iterator<Item = &'c str>) {
        let (indent, width) = (4 * self.level, self.width.saturating_sub(4 * self.level));
        for line in wrap::comments(&lines.collect::<Vec<_>>(), width) {
            _ = writeln!(self.text, "{:indent$}{line}", "");
        }
    }

    /// Prints a line with a trailing comment. If they do not fit on one line, the comment is
    /// printed above.
    fn line_with(&mut self, text: &str, comment: &str) {
        if comment.is_empty() {
            self.line(text);
        } else if 4 * self.level + text.len() + comment.len() + 5 <= WIDTH {
            self.line(format!("{text}  // {comment}"));
        } else {
            self.line(format!("// {comment}"));
            self.line(text);
        }
    }

    /// Prints lines whose trailing comments are aligned; a comment may be empty. A comment that
    /// does not fit in its column stands directly beside its line, or above it.
    fn table(&mut self, lines: &[(String, &str)]) {
        let column = lines.iter().map(|(text, _)| text.len()).max().unwrap_or(0);
        for (text, comment) in lines {
            match comment {
                &"" => self.line(text),
                comment if 4 * self.level + column + comment.len() + 5 <= WIDTH => {
                    self.line(format!("{text:column$}  // {comment}"));
                }
                comment => self.line_with(text, comment),
            }
        }
    }

    fn indented(&mut self, body: impl FnOnce(&mut Self)) {
        self.level += 1;
        body(self);
        self.level -= 1;
    }
}
