//! Walks over a kernel.

use super::{Access, Expr, Guard, Intrinsic, Kernel, Step, Stmt};
use std::collections::BTreeSet;

impl Kernel {
    /// Visits every statement of the body, those inside others too, in the order of the text.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Stmt)) {
        fn block<'a>(stmts: &'a [Stmt], f: &mut impl FnMut(&'a Stmt)) {
            for stmt in stmts {
                f(stmt);
                match stmt {
                    Stmt::If { then, otherwise, .. } => {
                        block(then, f);
                        block(otherwise, f);
                    }
                    Stmt::For(l) => block(&l.body, f),
                    _ => {}
                }
            }
        }
        block(&self.body, f);
    }

    /// The intrinsics that the kernel uses, sorted.
    pub fn intrinsics(&self) -> Vec<Intrinsic> {
        use Intrinsic as I;
        let mut found = BTreeSet::new();
        self.visit(&mut |stmt| {
            stmt.visit_exprs(&mut |e| {
                if let Expr::Call(f, _) = e {
                    found.insert(*f);
                }
            });
            found.extend(match stmt {
                Stmt::CopyAsync { target, guard, .. } => {
                    let wide = target.lanes == 4;
                    Some(match guard {
                        None if wide => I::CopyAsync16,
                        None => I::CopyAsync4,
                        Some(Guard { or_zero: true, .. }) if wide => I::CopyAsync16Guarded,
                        Some(Guard { or_zero: true, .. }) => I::CopyAsync4Guarded,
                        Some(_) if wide => I::CopyAsync16If,
                        Some(_) => I::CopyAsync4If,
                    })
                }
                Stmt::CopyCommit => Some(I::CopyCommit),
                Stmt::CopyWait { .. } => Some(I::CopyWait),
                _ => None,
            });
        });
        found.into_iter().collect()
    }
}

impl Stmt {
    /// Visits the expressions of this statement itself, not those of the blocks inside it.
    pub fn visit_exprs<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        let index = |a: &'a Access, f: &mut dyn FnMut(&'a Expr)| {
            a.index.iter().for_each(|e| e.visit(&mut |e| f(e)));
        };
        match self {
            Stmt::Let { value, .. } | Stmt::Mut { value, .. } | Stmt::Assign { value, .. } => {
                value.visit(f);
            }
            Stmt::Store { target, value } => {
                index(target, f);
                value.visit(f);
            }
            Stmt::If { cond, .. } | Stmt::Assume(cond) => cond.visit(f),
            Stmt::For(l) => {
                l.from.visit(f);
                l.test.visit(f);
                let (Step::Add(by) | Step::Sub(by) | Step::Mul(by) | Step::Div(by)) = &l.step;
                by.visit(f);
            }
            Stmt::CopyAsync { target, source, guard } => {
                index(target, f);
                index(source, f);
                if let Some(guard) = guard {
                    guard.cond.visit(f);
                }
            }
            Stmt::Point { pointer, at } => {
                pointer.index.iter().for_each(|e| e.visit(f));
                index(at, f);
            }
            Stmt::Advance { pointer, by } => {
                pointer.index.iter().for_each(|e| e.visit(f));
                by.visit(f);
            }
            Stmt::Registers { .. }
            | Stmt::Barrier(_)
            | Stmt::CopyCommit
            | Stmt::CopyWait { .. }
            | Stmt::Comment(_) => {}
        }
    }
}
