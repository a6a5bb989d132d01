//! The CUDA C++ back end. It decides only the spelling: names, indentation, parentheses, comments.
//! All computation is fixed by the kernel, so printing a verified kernel cannot fail.

mod asynchronous;
mod atomic;
mod expr;
mod helper;
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

/// CUDA source of a kernel, with the lines of each statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// CUDA C++ translation unit.
    pub text: String,
    /// Line range of each statement, indexed by its number
    /// ([`Kernel::statements`](crate::ir::Kernel::statements)), counted from 0. The range of a
    /// compound statement includes its nested statements and the closing line. Adjacent comments
    /// share one range.
    pub lines: Vec<Range<usize>>,
}

/// Prints a kernel as a CUDA C++ translation unit. It needs no headers, so NVRTC compiles it
/// directly.
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
        stmt::block(out, &kernel.body);
    });
    out.line("}");
    out
}

/// First source line of a statement, for messages that refer to it.
pub fn statement(kernel: &VerifiedKernel, statement: &Stmt) -> String {
    let mut out = Printer::new(kernel);
    out.width = usize::MAX;
    stmt::block(&mut out, std::slice::from_ref(statement));
    // Skips lines that only instruct the compiler.
    let tells = ["#pragma", helper::asynchronous::KEEP];
    let line = out.text.lines().find(|l| !tells.iter().any(|t| l.trim_start().starts_with(t)));
    line.unwrap_or_default().trim().to_owned()
}

/// Maximum line width of the source, in columns.
const WIDTH: usize = 100;

/// CUDA source under construction, with its indentation.
struct Printer<'k> {
    kernel: &'k VerifiedKernel,
    text: String,
    level: usize,
    width: usize,
    /// Line ranges of the statements printed so far, if requested.
    places: Option<HashMap<*const Stmt, Range<usize>>>,
}

impl<'k> Printer<'k> {
    fn new(kernel: &'k VerifiedKernel) -> Self {
        Self { kernel, text: String::new(), level: 0, width: WIDTH, places: None }
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
            // A line with a trailing comment is not broken.
            Some(_) => vec![text.to_owned()],
            None => wrap::code(text, width),
        };
        for line in lines {
            _ = writeln!(self.text, "{:indent$}{line}", "");
        }
    }

    /// Prints comment lines. If one of them is too wide at this indentation, whole sentences are
    /// refilled.
    fn comments<'c>(&mut self, lines: impl Iterator<Item = &'c str>) {
        let (indent, width) = (4 * self.level, self.width.saturating_sub(4 * self.level));
        for line in wrap::comments(&lines.collect::<Vec<_>>(), width) {
            _ = writeln!(self.text, "{:indent$}{line}", "");
        }
    }

    /// Prints a line with a trailing comment, or with the comment above if the two do not fit.
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

    /// Prints lines with trailing comments in one column; a comment may be empty.
    fn table(&mut self, lines: &[(String, &str)]) {
        let column = lines.iter().map(|(text, _)| text.len()).max().unwrap_or(0);
        for (text, comment) in lines {
            match comment {
                &"" => self.line(text),
                comment => self.line(format!("{text:column$}  // {comment}")),
            }
        }
    }

    fn indented(&mut self, body: impl FnOnce(&mut Self)) {
        self.level += 1;
        body(self);
        self.level -= 1;
    }
}
