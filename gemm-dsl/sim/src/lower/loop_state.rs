//! Which variables are part of the state of a warp that goes round in a loop: those on which depends what
//! it does there.
//!
//! One that is read there only to give variables their values, none of which is part of the state, is none:
//! a counter of rounds that nobody asks before they are over. A warp leaves a loop that is inside no other
//! once, so that while it goes round there nothing else counts.

use gemm_dsl::ir::{Change, Expr, Loop, Stmt};

/// For each of so many variables, whether it is part of the state in a loop.
pub(super) fn in_loop(vars: usize, l: &Loop) -> Vec<bool> {
    let mut pass = LoopStatePass { matters: vec![false; vars], changed: true };
    // Each round finds variables of which those found before are made.
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
