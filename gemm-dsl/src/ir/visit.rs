//! Traversals of a kernel, and predicates on its statements.

use super::{
    Access, Atomic, AtomicOp, Change, Expr, Kernel, LoadMatrix, Loop, MbarrierOp, MemoryOrder, Mma,
    Scope, Section, Space, Special, Stmt, TensorCopy, Var, Wgmma,
};
use crate::target::arch;

impl Kernel {
    /// Visits all statements of the body, including nested ones, in source order.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Stmt)) {
        self.body.iter().for_each(|stmt| stmt.visit(f));
    }

    /// Returns all statements of the body in source order. A statement's index in this list is its
    /// number.
    pub fn statements(&self) -> Vec<&Stmt> {
        let mut all = Vec::new();
        self.visit(&mut |stmt| all.push(stmt));
        all
    }

    /// Returns all sections of the body in source order.
    pub fn sections(&self) -> Vec<&Section> {
        let mut all = Vec::new();
        self.visit(&mut |stmt| {
            if let Stmt::Section(section) = stmt {
                all.push(section);
            }
        });
        all
    }

    /// Mutable version of [`visit`](Self::visit). It passes each statement with the variable of its
    /// innermost enclosing loop. `f` may change a statement before its nested statements are
    /// visited.
    pub fn visit_mut(&mut self, f: &mut impl FnMut(&mut Stmt, Option<Var>)) {
        visit_mut(&mut self.body, None, f);
    }

    fn any(&self, is_so: impl Fn(&Stmt) -> bool) -> bool {
        let mut found = false;
        self.visit(&mut |stmt| found |= is_so(stmt));
        found
    }

    /// Visits every expression of the functions and of the body, parents first.
    pub fn visit_exprs<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        for function in &self.functions {
            function.body.iter().for_each(|stmt| stmt.visit_exprs(f));
            function.value.visit(f);
        }
        self.visit(&mut |stmt| stmt.visit_exprs(f));
    }

    /// Returns true if some statement is an asynchronous copy, which requires sm_80.
    pub fn copies_asynchronously(&self) -> bool {
        self.any(|stmt| {
            matches!(stmt, Stmt::CopyAsync { .. } | Stmt::CopyCommit | Stmt::CopyWait { .. })
        })
    }

    /// Returns the oldest architecture that supports all intrinsics in the kernel.
    pub fn arch_of_intrinsics(&self) -> u32 {
        let mut arch = arch::OLDEST;
        self.visit_exprs(&mut |e| {
            if let Expr::Call(f, _) = e {
                arch = arch.max(f.info().arch);
            }
        });
        arch
    }

    /// Returns true if some statement uses tensor cores through `mma.sync`.
    pub fn multiplies_matrices(&self) -> bool {
        self.any(|stmt| matches!(stmt, Stmt::Mma(_)))
    }

    /// Returns true if some statement copies boxes or uses mbarriers, which requires sm_90.
    pub fn copies_boxes(&self) -> bool {
        self.any(|stmt| {
            matches!(stmt, Stmt::Mbarrier(_) | Stmt::ProxyFence(_) | Stmt::TensorCopy(_))
        })
    }

    /// Returns true if some statement or expression needs a cluster.
    pub fn uses_clusters(&self) -> bool {
        let mut found = self.any(|stmt| match stmt {
            Stmt::Barrier(scope) => *scope == Scope::Cluster,
            Stmt::Mbarrier(barrier) => matches!(barrier.op, MbarrierOp::ArriveRemote { .. }),
            Stmt::TensorCopy(copy) => copy.multicast.is_some(),
            Stmt::StoreRemote { .. } => true,
            _ => false,
        });
        self.visit_exprs(&mut |e| found |= *e == Expr::Special(Special::ClusterRank));
        found
    }

    /// Returns true if some thread stores asynchronously to shared memory of another block.
    pub fn stores_asynchronously(&self) -> bool {
        self.any(|stmt| matches!(stmt, Stmt::StoreRemote { barrier: Some(_), .. }))
    }

    /// Returns true if some thread arrives relaxed at an mbarrier of another block.
    pub fn arrives_relaxed(&self) -> bool {
        let is_relaxed = |op: &MbarrierOp| {
            matches!(op, MbarrierOp::ArriveRemote { order: MemoryOrder::Relaxed, .. })
        };
        self.any(|stmt| matches!(stmt, Stmt::Mbarrier(barrier) if is_relaxed(&barrier.op)))
    }

    /// Returns true if some statement must be executed by a whole warpgroup, which only sm_90
    /// supports.
    pub fn has_warpgroups(&self) -> bool {
        self.any(|stmt| {
            matches!(stmt, Stmt::Wgmma(_) | Stmt::WgmmaSync(_) | Stmt::RegisterLimit(_))
        })
    }

    /// Returns true if some atomic accesses memory in this space. Atomics on shared memory let the
    /// threads of a block communicate.
    pub fn has_atomics(&self, on: Space) -> bool {
        self.any(|stmt| match stmt {
            Stmt::Atomic(Atomic { target, .. }) => {
                self.buffers.get(target.buffer.id).is_some_and(|b| b.space == on)
            }
            _ => false,
        })
    }

    /// Returns true if blocks can communicate, because some atomic accesses global memory.
    pub fn communicates(&self) -> bool {
        self.has_atomics(Space::Global)
    }
}

impl Stmt {
    /// Visits this statement and its nested statements, in source order.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Stmt)) {
        f(self);
        match self {
            Stmt::If { then, otherwise, .. } => {
                then.iter().chain(otherwise).for_each(|stmt| stmt.visit(f));
            }
            Stmt::For(Loop { body, .. }) | Stmt::Section(Section { body, .. }) => {
                body.iter().for_each(|stmt| stmt.visit(f));
            }
            _ => {}
        }
    }

    /// Visits the expressions of this statement, without those of nested blocks.
    pub fn visit_exprs<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        let index = |a: &'a Access, f: &mut dyn FnMut(&'a Expr)| {
            a.index.iter().for_each(|e| e.visit(&mut |e| f(e)));
        };
        match self {
            Stmt::Let { value, .. }
            | Stmt::Mut { value, .. }
            | Stmt::Assign { value, .. }
            | Stmt::Choose { nth: value, .. } => value.visit(f),
            Stmt::Store { target, value } => {
                index(target, f);
                value.visit(f);
            }
            Stmt::StoreRemote { block, target, value, barrier } => {
                block.visit(f);
                index(target, f);
                value.visit(f);
                barrier.iter().for_each(|barrier| barrier.index.visit(f));
            }
            Stmt::If { cond: e, .. } | Stmt::CopyWait { pending: e } => e.visit(f),
            Stmt::For(l) => {
                l.from.visit(f);
                l.test.visit(f);
                let (Change::Add(by) | Change::Sub(by) | Change::Mul(by) | Change::Div(by)) =
                    &l.change;
                by.visit(f);
            }
            Stmt::CopyAsync { target, source, guard } => {
                index(target, f);
                index(source, f);
                guard.iter().for_each(|guard| guard.cond.visit(f));
            }
            Stmt::Point { pointer, at } => {
                pointer.index.iter().for_each(|e| e.visit(f));
                index(at, f);
            }
            Stmt::Advance { pointer, by } => {
                pointer.index.iter().for_each(|e| e.visit(f));
                by.visit(f);
            }
            Stmt::Atomic(Atomic { op, target, value, .. }) => {
                index(target, f);
                if let AtomicOp::CompareExchange { expected } = op {
                    expected.visit(f);
                }
                value.visit(f);
            }
            Stmt::Mma(Mma { format: _, d, a, b }) => {
                [d, a, b].into_iter().for_each(|access| index(access, f));
            }
            Stmt::LoadMatrix(LoadMatrix { to, from, .. }) => {
                index(to, f);
                index(from, f);
            }
            Stmt::Mbarrier(barrier) => {
                barrier.at.index.visit(f);
                barrier.op.operand().into_iter().for_each(|e| e.visit(f));
            }
            Stmt::TensorCopy(TensorCopy { from: _, at, to, barrier, multicast }) => {
                at.iter().for_each(|e| e.visit(f));
                index(to, f);
                barrier.index.visit(f);
                multicast.iter().for_each(|e| e.visit(f));
            }
            Stmt::Wgmma(Wgmma { d, a, b, accumulate, .. }) => {
                [d, a, b].into_iter().for_each(|access| index(access, f));
                accumulate.visit(f);
            }
            Stmt::Registers { .. }
            | Stmt::Section(_)
            | Stmt::ProxyFence(_)
            | Stmt::WgmmaSync(_)
            | Stmt::RegisterLimit(_)
            | Stmt::Barrier(_)
            | Stmt::NamedBarrier { .. }
            | Stmt::Fence { .. }
            | Stmt::CopyCommit
            | Stmt::Comment(_) => {}
        }
    }
}

fn visit_mut(stmts: &mut [Stmt], inside: Option<Var>, f: &mut impl FnMut(&mut Stmt, Option<Var>)) {
    for stmt in stmts {
        f(stmt, inside);
        match stmt {
            Stmt::If { then, otherwise, .. } => {
                visit_mut(then, inside, f);
                visit_mut(otherwise, inside, f);
            }
            Stmt::For(l) => visit_mut(&mut l.body, Some(l.var), f),
            Stmt::Section(section) => visit_mut(&mut section.body, inside, f),
            _ => {}
        }
    }
}
