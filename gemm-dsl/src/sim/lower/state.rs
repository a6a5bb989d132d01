//! Which variables are part of a warp's state: those on which depends what it does.
//!
//! One that is read only to give variables their values, none of which is part of the state, is none
//! either: a counter of rounds that nobody asks, most often.

use crate::ir::{Change, Expr, Kernel, Stmt};

/// For each variable, whether it is part of the state.
pub(super) fn of_state(kernel: &Kernel) -> Vec<bool> {
    let mut pass = Pass { matters: vec![false; kernel.vars.len()], changed: true };
    // Each round finds variables of which those found before are made.
    while pass.changed {
        pass.changed = false;
        kernel.visit(&mut |stmt| pass.stmt(stmt));
    }
    pass.matters
}

struct Pass {
    matters: Vec<bool>,
    changed: bool,
}

impl Pass {
    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let { var, value } | Stmt::Mut { var, value } | Stmt::Assign { var, value } => {
                self.given(var.id, value);
            }
            Stmt::For(l) => {
                self.read(&l.test);
                let (Change::Add(by) | Change::Sub(by) | Change::Mul(by) | Change::Div(by)) =
                    &l.change;
                self.given(l.var.id, &l.from);
                self.given(l.var.id, by);
            }
            stmt => stmt.visit_exprs(&mut |e| self.read_here(e)),
        }
    }

    /// A variable is given a value.
    fn given(&mut self, var: usize, value: &Expr) {
        let mut acts = self.matters[var];
        // Where it reads memory, and whether all lanes come to a shuffle, is something the warp does.
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
