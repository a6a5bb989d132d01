//! Variables that are part of a warp's state in a loop, because they determine what the warp does
//! in the loop.
//!
//! A variable is not part of the state if it is read only to assign variables outside the state. An
//! example is a round counter that is read only after the loop. A warp enters an outermost loop
//! only once, so nothing else affects what it does while it iterates.

use gemm_dsl::ir::{Change, Expr, Loop, Stmt};

/// For each of `vars` variables: true if it is part of the state in the loop.
pub(super) fn in_loop(vars: usize, l: &Loop) -> Vec<bool> {
    let mut pass = LoopStatePass { matters: vec![false; vars], changed: true };
    // Each pass adds the variables from which variables of the state are computed.
    while pass.changed {
        pass.changed = false;
        pass.head(l);
        l.body.iter().for_each(|stmt| stmt.visit(&mut |stmt| pass.stmt(stmt)));
    }
    pass.matters
}

struct LoopStatePass {
    matters: Vec<bool>,
    changed: bool,
}

impl LoopStatePass {
    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let { var, value } | Stmt::Mut { var, value } | Stmt::Assign { var, value } => {
                self.given(var.id, value);
            }
            Stmt::For(l) => self.head(l),
            stmt => stmt.visit_exprs(&mut |e| self.read_here(e)),
        }
    }

    fn head(&mut self, l: &Loop) {
        self.read(&l.test);
        let (Change::Add(by) | Change::Sub(by) | Change::Mul(by) | Change::Div(by)) = &l.change;
        self.given(l.var.id, &l.from);
        self.given(l.var.id, by);
    }

    /// Marks the variables that `value` reads, if the assignment affects what the warp does.
    fn given(&mut self, var: usize, value: &Expr) {
        let mut acts = self.matters[var];
        // Memory accesses, and calls that require converged lanes, are part of what the warp does.
        value.visit(&mut |e| acts |= matches!(e, Expr::Load(_) | Expr::Call(..)));
        if acts {
            self.read(value);
        }
    }

    fn read(&mut self, expr: &Expr) {
        expr.visit(&mut |e| self.read_here(e));
    }

    fn read_here(&mut self, e: &Expr) {
        if let Expr::Var(var) = e
            && !self.matters[var.id]
        {
            self.matters[var.id] = true;
            self.changed = true;
        }
    }
}
