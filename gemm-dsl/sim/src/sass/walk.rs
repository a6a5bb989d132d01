//! Traversal of the code. It visits branches and loops as the compiler transforms them.

use super::Compiler;
use super::branch::Branch;
use super::charge::Charge;
use super::cost::SassCost;
use super::counts::CountId;
use crate::lower::code::{Op, Slot};
use crate::sass::polynomial::ValueId;
use gemm_dsl::ir::Expr;
use std::collections::BTreeSet;
use std::ops::Range;

/// Maximum number of source instructions of a branch that is always predicated.
const TINY: u64 = 6;

impl Compiler<'_, '_> {
    /// Analyses a range of code that is executed as a whole.
    pub(super) fn walk(&mut self, range: Range<usize>) {
        let code = self.code;
        let mut at = range.start;
        while at < range.end {
            let instr = &code.instrs[at];
            self.values.stmt = Some(instr.stmt);
            at = match &instr.op {
                Op::If(cond, other) => {
                    let Op::Else(end) = code.instrs[*other as usize].op else {
                        unreachable!("lowered: the other branch begins with an `Else`");
                    };
                    let cond = self.pred(cond);
                    let (other, end) = (*other as usize, end as usize);
                    self.branch(cond, at + 1..other, other + 1..end, true);
                    end + 1
                }
                Op::Unless(cond, target) => {
                    let target = *target as usize;
                    match code.instrs[target - 1].op {
                        Op::Jump(top) if top as usize == at => {
                            self.repeat(at, target);
                            target
                        }
                        Op::Jump(end) if end as usize >= target => {
                            let cond = self.uniform(cond);
                            let end = end as usize;
                            self.branch(cond, at + 1..target - 1, target..end, false);
                            end
                        }
                        _ => {
                            let cond = self.uniform(cond);
                            self.branch(cond, at + 1..target, target..target, false);
                            target
                        }
                    }
                }
                Op::Test(_, target) => {
                    self.repeat(at, *target as usize);
                    *target as usize
                }
                op => {
                    let since = self.scope.slots.mark();
                    self.statement(op);
                    if op.meets() {
                        self.met();
                    }
                    debug_assert!(
                        self.scope.slots.changed_are(since, || self.slots_assigned(op)),
                        "{op:?}"
                    );
                    at + 1
                }
            };
        }
    }

    fn branch(&mut self, cond: ValueId, then: Range<usize>, other: Range<usize>, divergent: bool) {
        // If the condition is known at build time, only one branch remains.
        if let Some(holds) = self.values.form(cond).known() {
            return self.walk(if holds != 0 { then } else { other });
        }
        let code = self.code;
        let stmt = self.values.stmt;
        let by = self.values.count();
        let after = if other.is_empty() { then.end } else { other.end };
        let is_last = code.instrs[after..].iter().all(|i| matches!(i.op, Op::End | Op::Else(_)));
        let inside = then.start..after;
        let texts = code.instrs[then.start..after].iter();
        let text: u64 = texts.map(|i| code.sites[i.site as usize].cost.instructions()).sum();
        let is_tiny = text <= TINY
            && !code.instrs[then.start..after].iter().any(|instr| self.applies(instr.stmt))
            && code.instrs[then.start..after].iter().all(|instr| Self::is_predicable(&instr.op));
        self.scope.piece += 1;
        let since = self.scope.slots.mark();
        let mut arms = [None, None];
        let mut held = [Default::default(), Default::default()];
        let stores = self.accesses.stores.len();
        let (copied, mut after_both) = (self.scope.copied, true);
        for ((arm, held), range) in arms.iter_mut().zip(&mut held).zip([then, other]) {
            self.scope.copied = copied;
            if is_tiny && !is_last {
                let outer = std::mem::replace(&mut self.scope.guarded, true);
                self.walk(range);
                self.scope.guarded = outer;
            } else if let Some(first) = code.instrs.get(range.start).filter(|_| !range.is_empty()) {
                let (rounds, copies) = (self.counts.rounds(by), self.counts.copies(by));
                let count = self.counts.add(first.site, rounds, copies);
                self.values.enter(count, false);
                self.walk(range);
                self.values.leave();
                *arm = Some(count);
            }
            *held = self.scope.slots.changed(since);
            self.scope.slots.restore(since);
            self.scope.piece += 1;
            after_both &= self.scope.copied;
        }
        self.scope.copied = after_both;
        if is_tiny && !is_last {
            self.sink(stores);
        }
        self.values.stmt = stmt;
        let slots = held[0].keys().chain(held[1].keys()).copied();
        let slots: BTreeSet<Slot> = slots.collect();
        for slot in slots {
            let before = self.read(slot);
            let [yes, no] = held.each_ref().map(|held| held.get(&slot).copied().unwrap_or(before));
            if yes != no {
                // Both branches write to the same register.
                let merged = self.values.fresh(vec![cond, yes, no], SassCost::FREE);
                self.scope.slots.set(slot, merged);
            } else {
                self.scope.slots.set(slot, yes);
            }
        }
        let instrs = &code.instrs[inside];
        let has_barriers =
            instrs.iter().any(|instr| matches!(instr.op, Op::Barrier(_) | Op::Named { .. }));
        let asks = instrs.iter().any(|instr| matches!(instr.op, Op::Atomic(_) | Op::Fence(_)));
        self.branches.all.push(Branch {
            cond,
            by,
            arms,
            divergent,
            has_barriers,
            asks,
            is_last,
            stmt,
        });
    }

    /// Returns true if a statement calls functions. Their instructions are not counted in the
    /// statement's sites.
    fn applies(&self, stmt: u32) -> bool {
        let mut applies = false;
        if let Some(stmt) = self.code.stmts.get(stmt as usize) {
            stmt.visit_exprs(&mut |expr| applies |= matches!(expr, Expr::Apply(..)));
        }
        applies
    }

    /// Returns true if an instruction can be predicated, so that a jump would save nothing.
    fn is_predicable(op: &Op) -> bool {
        matches!(
            op,
            Op::SetUniform(..)
                | Op::SetLane(..)
                | Op::SetWide(..)
                | Op::SetPred(..)
                | Op::SetVector(..)
                | Op::SetElement(..)
                | Op::Fma { .. }
                | Op::Store(_)
                | Op::Else(_)
                | Op::UseAccumulators { .. }
        )
    }

    /// Adds instructions that do not compute a value.
    pub(super) fn spend(&mut self, count: CountId, cost: SassCost) {
        let stmt = self.values.stmt;
        self.spent.push(Charge { count, stmt, cost });
    }
}
