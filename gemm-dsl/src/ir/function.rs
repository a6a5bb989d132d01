//! Pure functions: named computations that a kernel shares.
//!
//! A function is straight-line arithmetic on its parameters. It reads no memory, coordinates,
//! constants or kernel parameters. A call has the value of the body with the arguments in place of
//! the parameters. The CUDA source defines the function once, above the kernel.

use super::{Expr, Stmt, Var};

#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub name: String,
    /// Description for the comment above the function, line by line.
    pub meaning: Vec<String>,
    /// Parameters, which are variables of the function.
    pub params: Vec<Var>,
    /// Declarations and assignments of the function's variables, and comments.
    pub body: Vec<Stmt>,
    pub value: Expr,
}
