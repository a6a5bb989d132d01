//! Uniformity analysis: finds the variables that have the same value in all threads that can see
//! them.
//!
//! A variable is uniform under two conditions. First, every assigned value is computed from
//! literals, constants, parameters, block coordinates and uniform variables. Second, no assignment
//! is nested in more divergent statements than the declaration. Divergence around the declaration
//! is harmless, because an inactive thread never sees the variable.

use gemm_dsl::ir::{Change, Expr, Kernel, Special, Stmt, Ty};

/// For each variable: true if its value may differ between threads.
pub(crate) fn varying(kernel: &Kernel) -> Vec<bool> {
    let floats = kernel.vars.iter();
    let varying: Vec<bool> = floats.map(|v| matches!(v.ty, Ty::F32 | Ty::F32X4)).collect();
    // Parameters of a device function may differ from call to call.
    let own = kernel.own_variables();
    let varying: Vec<bool> = varying.iter().zip(own).map(|(v, own)| *v || !own).collect();
    let mut pass = UniformityPass { depth: vec![0; varying.len()], varying, changed: true };
    // Optimistic fixed point: each pass finds variables that depend on the ones found before.
    while pass.changed {
        pass.changed = false;
        pass.block(&kernel.body, 0);
    }
    pass.varying
}

/// Returns true if the value of an expression may differ between threads. Only integers, and
/// booleans computed from integers, are treated as uniform; other types would gain nothing.
pub(crate) fn differs(expr: &Expr, varying: &[bool]) -> bool {
    let mut differs = false;
    expr.visit(&mut |e| {
        differs |= match e {
            Expr::Var(v) => varying.get(v.id).copied().unwrap_or(true),
            Expr::Special(s) => matches!(s, Special::ThreadX | Special::ThreadY),
            Expr::Load(_) | Expr::Call(..) | Expr::Apply(..) | Expr::Pack(_) | Expr::Lane(..) => {
                true
            }
            // Numbers of other types are computed per lane, even if all lanes agree.
            Expr::F32(_) | Expr::F64(_) | Expr::U32(_) | Expr::I64(_) | Expr::Bitcast(..) => true,
            Expr::Cast(to, _) => !Ty::Scalar(*to).is_index(),
            Expr::Const(c) => !c.ty.is_index() && c.ty != Ty::Bool,
            Expr::Param(p) => !p.ty.is_index(),
            _ => false,
        }
    });
    differs
}

struct UniformityPass {
    varying: Vec<bool>,
    /// Number of divergent statements that enclose each variable's declaration.
    depth: Vec<u32>,
    changed: bool,
}

impl UniformityPass {
    fn differs(&self, expr: &Expr) -> bool {
        differs(expr, &self.varying)
    }

    fn mark(&mut self, var: usize, differs: bool) {
        if let Some(known) = self.varying.get_mut(var)
            && differs
            && !*known
        {
            *known = true;
            self.changed = true;
        }
    }

    fn declare(&mut self, var: usize, depth: u32) {
        if let Some(declared) = self.depth.get_mut(var) {
            *declared = depth;
        }
    }

    fn block(&mut self, block: &[Stmt], depth: u32) {
        for stmt in block {
            match stmt {
                Stmt::Let { var, value } | Stmt::Mut { var, value } => {
                    self.declare(var.id, depth);
                    self.mark(var.id, self.differs(value));
                }
                Stmt::Assign { var, value } => {
                    let deeper = self.depth.get(var.id).is_none_or(|&d| depth > d);
                    self.mark(var.id, deeper || self.differs(value));
                }
                Stmt::If { cond, then, otherwise } => {
                    let inner = depth + u32::from(self.differs(cond));
                    self.block(then, inner);
                    self.block(otherwise, inner);
                }
                Stmt::For(l) => {
                    let (Change::Add(by) | Change::Sub(by) | Change::Mul(by) | Change::Div(by)) =
                        &l.change;
                    // Change and test depend on assignments in the body, which the next pass takes
                    // into account.
                    self.mark(l.var.id, self.differs(&l.from) || self.differs(by));
                    let inner = depth + u32::from(self.differs(&l.test));
                    self.declare(l.var.id, inner);
                    self.block(&l.body, inner);
                }
                Stmt::Section(section) => self.block(&section.body, depth),
                // Each lane of an atomic may read a different old value.
                Stmt::Atomic(atomic) => {
                    if let Some(old) = atomic.old {
                        self.declare(old.id, depth);
                        self.mark(old.id, true);
                    }
                }
                Stmt::Mbarrier(_)
                | Stmt::ProxyFence(_)
                | Stmt::TensorCopy(_)
                | Stmt::Wgmma(_)
                | Stmt::WgmmaSync(_)
                | Stmt::RegisterLimit(_)
                | Stmt::NamedBarrier { .. }
                | Stmt::Fence { .. }
                | Stmt::Registers { .. }
                | Stmt::Store { .. }
                | Stmt::StoreRemote { .. }
                | Stmt::Barrier(_)
                | Stmt::CopyAsync { .. }
                | Stmt::Point { .. }
                | Stmt::Advance { .. }
                | Stmt::LoadMatrix(_)
                | Stmt::Mma(_)
                | Stmt::Choose { .. }
                | Stmt::CopyCommit
                | Stmt::CopyWait { .. }
                | Stmt::Comment(_) => {}
            }
        }
    }
}
