//! Loops.

use super::KernelBuilder;
use crate::ir::{Change, Expr, Loop, Stmt, Ty, Unroll, Var};

/// The head of a loop: `for (var = from; test; change)`. The variable goes up by 1, and the compiler is
/// asked for nothing, unless it is said otherwise.
#[must_use]
pub struct For<T> {
    from: Expr,
    test: T,
    change: Change,
    unroll: Unroll,
}

impl For<()> {
    /// While the variable is less than `end`.
    pub fn below(from: impl Into<Expr>, end: impl Into<Expr>) -> For<impl FnOnce(Var) -> Expr> {
        let end = end.into();
        For::new(from, |var: Var| Expr::from(var).lt(end))
    }

    /// While the variable is greater than `end`.
    pub fn above(from: impl Into<Expr>, end: impl Into<Expr>) -> For<impl FnOnce(Var) -> Expr> {
        let end = end.into();
        For::new(from, |var: Var| Expr::from(var).gt(end))
    }
}

impl<T: FnOnce(Var) -> Expr> For<T> {
    /// While a test holds, which is written with the variable.
    pub fn new(from: impl Into<Expr>, test: T) -> Self {
        let from = from.into();
        let one = if from.ty() == Ty::U64 { Expr::U64(1) } else { Expr::I32(1) };
        Self { from, test, change: Change::Add(one), unroll: Unroll::Auto }
    }

    /// How the variable changes after each round.
    pub fn change(self, change: Change) -> Self {
        Self { change, ..self }
    }

    /// What the compiler is asked for.
    pub fn unroll(self, unroll: Unroll) -> Self {
        Self { unroll, ..self }
    }
}

impl KernelBuilder {
    /// A loop; its body is written with the variable.
    pub fn loop_<T: FnOnce(Var) -> Expr>(
        &mut self,
        name: &str,
        head: For<T>,
        body: impl FnOnce(&mut Self, Var),
    ) {
        let For { from, test, change, unroll } = head;
        let var = self.var(name, from.ty());
        let body = self.block(|b| body(b, var));
        self.push(Stmt::For(Loop { var, from, test: test(var), change, unroll, body }));
    }

    /// `for (int name = 0; name < count; ++name)`, fully unrolled.
    pub fn unrolled(
        &mut self,
        name: &str,
        count: impl Into<Expr>,
        body: impl FnOnce(&mut Self, Var),
    ) {
        self.loop_(name, For::below(0, count).unroll(Unroll::Full), body);
    }
}
