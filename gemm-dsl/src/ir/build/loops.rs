//! Loop heads and loop statements.

use super::KernelBuilder;
use crate::ir::{Change, Expr, Loop, Stmt, Ty, Unroll, Var};

/// Head of a loop: `for (var = from; test; change)`. By default the variable increases by 1, and
/// the loop is not unrolled on request.
#[must_use]
pub struct For<T> {
    from: Expr,
    test: T,
    change: Change,
    unroll: Unroll,
}

impl For<()> {
    /// Loops while the variable is less than `end`, starting at `from`.
    pub fn below(from: impl Into<Expr>, end: impl Into<Expr>) -> For<impl FnOnce(Var) -> Expr> {
        let end = end.into();
        For::new(from, |var: Var| Expr::from(var).lt(end))
    }

    /// Loops while the variable is greater than `end`, starting at `from`.
    pub fn above(from: impl Into<Expr>, end: impl Into<Expr>) -> For<impl FnOnce(Var) -> Expr> {
        let end = end.into();
        For::new(from, |var: Var| Expr::from(var).gt(end))
    }
}

impl<T: FnOnce(Var) -> Expr> For<T> {
    /// Loops while `test` of the variable is true, starting at `from`.
    pub fn new(from: impl Into<Expr>, test: T) -> Self {
        let from = from.into();
        let one = if from.ty() == Ty::U64 { Expr::U64(1) } else { Expr::I32(1) };
        Self { from, test, change: Change::Add(one), unroll: Unroll::Auto }
    }

    /// Sets the change of the variable after each iteration.
    pub fn change(self, change: Change) -> Self {
        Self { change, ..self }
    }

    pub fn unroll(self, unroll: Unroll) -> Self {
        Self { unroll, ..self }
    }
}

impl KernelBuilder {
    /// Appends a loop. `body` receives the loop variable.
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

    /// Appends `for (int name = 0; name < count; ++name)`, fully unrolled.
    pub fn unrolled(
        &mut self,
        name: &str,
        count: impl Into<Expr>,
        body: impl FnOnce(&mut Self, Var),
    ) {
        self.loop_(name, For::below(0, count).unroll(Unroll::Full), body);
    }
}
