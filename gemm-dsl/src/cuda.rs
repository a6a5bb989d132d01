//! The CUDA C back end. It decides spelling only: names, indentation, parentheses, comments. Every
//! decision about what is computed was made before, so a verified kernel cannot fail to print.

mod asynchronous;
mod atomic;
mod expr;
mod helper;
mod prelude;
mod stmt;
#[cfg(test)]
mod tests;
mod types;
mod wrap;

use crate::ir::{Kernel, Stmt, VerifiedKernel};
use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;
use std::ptr;

/// The text of a kernel, and where its statements stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The CUDA C translation unit.
    pub text: String,
    /// For each statement, by its number ([`Kernel::statements`](crate::ir::Kernel::statements)), its lines, counted from 0: of one
    /// that has others inside it, theirs too, and the line behind that closes it; of comments that stand together all.
    pub lines: Vec<Range<usize>>,
}

/// The CUDA C translation unit of a kernel. It needs no header, so NVRTC compiles it as it is.
pub fn source(kernel: &VerifiedKernel) -> String {
    print(Printer::new(kernel)).text
}

/// The same text, and where statements stand in it.
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

/// The first line of a statement's text, for messages that point at it.
pub fn statement(kernel: &VerifiedKernel, statement: &Stmt) -> String {
    let mut out = Printer::new(kernel);
    out.width = usize::MAX;
    stmt::block(&mut out, std::slice::from_ref(statement));
    // What only tells the compiler something is not what is pointed at.
    let tells = ["#pragma", helper::asynchronous::KEEP];
    let line = out.text.lines().find(|l| !tells.iter().any(|t| l.trim_start().starts_with(t)));
    line.unwrap_or_default().trim().to_owned()
}

/// The columns that a line may fill before it is broken.
const WIDTH: usize = 100;

/// Text under construction; it owns the indentation.
struct Printer<'k> {
    kernel: &'k VerifiedKernel,
    text: String,
    level: usize,
    width: usize,
    /// The lines of the statements printed so far, where somebody asks for them.
    places: Option<HashMap<*const Stmt, Range<usize>>>,
}

impl<'k> Printer<'k> {
    fn new(kernel: &'k VerifiedKernel) -> Self {
        Self { kernel, text: String::new(), level: 0, width: WIDTH, places: None }
    }

    /// Prints something, and notes which lines it stands in.
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
            // With a comment at its end it is as long as it is.
            Some(_) => vec![text.to_owned()],
            None => wrap::code(text, width),
        };
        for line in lines {
            // Writing to a String cannot fail.
            _ = writeln!(self.text, "{:indent$}{line}", "");
        }
    }

    /// Lines of comment. Where one of them is too long here, sentences are filled anew.
    fn comments<'c>(&mut self, lines: impl Iterator<Item = &'c str>) {
        let (indent, width) = (4 * self.level, self.width.saturating_sub(4 * self.level));
        for line in wrap::comments(&lines.collect::<Vec<_>>(), width) {
            // Writing to a String cannot fail.
            _ = writeln!(self.text, "{:indent$}{line}", "");
        }
    }

    /// A line with a comment at its end, or above it where the two would not fit.
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

    fn indented(&mut self, body: impl FnOnce(&mut Self)) {
        self.level += 1;
        body(self);
        self.level -= 1;
    }
}
