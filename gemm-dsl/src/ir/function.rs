//! Pure functions: computations that a kernel shares under a name.
//!
//! A function is straight-line arithmetic on its parameters. It reads nothing else: no memory, no
//! coordinate, no constant and no parameter of the kernel. A call means its body with the
//! parameters substituted. The CUDA source defines it once, above the kernel.

use super::{Expr, Stmt, Var};

#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub name: String,
    /// Description, line by line, for the comment above it.
    pub meaning: Vec<String>,
    /// Parameters: variables of the function's own.
    pub params: Vec<Var>,
    /// Declarations and assignments of the function's own variables, and comments.
    pub body: Vec<Stmt>,
    pub value: Expr,
}
