//! Pure functions: what a kernel computes in several places, with a name of its own.
//!
//! A function is straight-line arithmetic on its parameters. It reads nothing else: no memory, no
//! coordinate, no constant and no parameter of the kernel. Applying it means what its body means
//! with the parameters replaced; the text has it once, above the kernel.

use super::{Expr, Stmt, Var};

/// The definition of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name in the text.
    pub name: String,
    /// What it computes, line by line, for the comment above it.
    pub meaning: Vec<String>,
    /// Its parameters, variables of its own.
    pub params: Vec<Var>,
    /// Declarations and assignments of variables of its own, and comments.
    pub body: Vec<Stmt>,
    /// Its value.
    pub value: Expr,
}
