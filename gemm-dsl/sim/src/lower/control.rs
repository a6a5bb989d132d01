//! Lowering of branches and loops.

use super::super::counters::IrClass;
use super::Lowering;
use crate::lower::code;
use crate::lower::code::expr::Uniform;
use crate::lower::code::{LoopIndex, Op};
use crate::lower::uniformity;
use gemm_dsl::ir::{BinaryOp, Change, Expr, Loop, Stmt, Ty, Unroll, Var};

/// Maximum number of iterations of a loop that is unrolled.
const MAX_ROUNDS: usize = 1 << 12;
/// Maximum number of instructions of one unrolled loop.
const MAX_UNROLLED: usize = 1 << 18;
/// Maximum wasted work of all unrolling in a kernel: iterations without an instruction, and
/// discarded instructions.
const MAX_WASTED: usize = 1 << 20;

impl<'k> Lowering<'_, 'k> {
    pub(super) fn branch(&mut self, cond: &Expr, then: &'k [Stmt], otherwise: &'k [Stmt]) {
        let stmt = self.stmt;
        if uniformity::differs(cond, &self.varying) {
            let cond = self.pred(cond);
            self.cost.add(IrClass::Branch);
            let entry = self.emit(Op::If(cond, 0));
            self.block(then);
            self.stmt = stmt;
            self.land(entry);
            let middle = self.emit(Op::Else(0));
            self.block(otherwise);
            self.stmt = stmt;
            self.land(middle);
            self.emit(Op::End);
            return;
        }
        let cond = self.uniform(cond);
        if let Uniform::Static(holds) = cond {
            self.block(if holds != 0 { then } else { otherwise });
            return;
        }
        self.cost.add(IrClass::Branch);
        let entry = self.emit(Op::Unless(cond, 0));
        self.block(then);
        if otherwise.is_empty() {
            self.land(entry);
        } else {
            self.stmt = stmt;
            let skip = self.emit(Op::Jump(0));
            self.land(entry);
            self.block(otherwise);
            self.land(skip);
        }
    }

    pub(super) fn repeat(&mut self, l: &'k Loop) {
        if l.unroll == Unroll::Full && self.unrolled(l) {
            return;
        }
        let (stmt, first) = (self.stmt, self.here());
        self.nested += 1;
        let divergent = uniformity::differs(&l.test, &self.varying);
        if divergent {
            self.emit(Op::Loop);
        }
        self.set(l.var, &l.from);
        let top = self.here();
        let exit = if divergent {
            let test = self.pred(&l.test);
            self.cost.add(IrClass::Branch);
            self.emit(Op::Test(test, 0))
        } else {
            let test = self.uniform(&l.test);
            self.cost.add(IrClass::Branch);
            self.emit(Op::Unless(test, 0))
        };
        let round = self.round(l.var);
        self.enclosing.enter(l.var.id, round);
        self.block(&l.body);
        self.enclosing.leave();
        self.stmt = stmt;
        let next = stepped(l);
        self.set(l.var, &next);
        self.emit(Op::Jump(top));
        self.land(exit);
        if divergent {
            self.emit(Op::End);
        }
        self.nested -= 1;
        if self.nested == 0 {
            let code = first as usize..self.here() as usize;
            let loop_state = self.loop_state(l);
            self.code.loops.push(code::Loop { code, loop_state });
        }
    }

    /// Location of a loop variable's value.
    fn round(&self, var: Var) -> LoopIndex {
        let place = self.places[var.id];
        match var.ty {
            Ty::I32 | Ty::U64 if !self.varying[var.id] => LoopIndex::Uniform(place),
            Ty::U64 => LoopIndex::Wide(place),
            _ => LoopIndex::Lane(place),
        }
    }

    /// Lowers the body once for each iteration, if the iterations are static and not too many.
    /// Returns false otherwise.
    fn unrolled(&mut self, l: &'k Loop) -> bool {
        let stmt = self.stmt;
        let before = (self.code.instrs.len(), self.code.sites.len(), self.code.loops.len());
        if self.wasted > MAX_WASTED {
            return false;
        }
        let Some(rounds) = self.rounds(l) else { return false };
        for &value in &rounds {
            self.statics[l.var.id] = Some(value);
            let here = self.code.instrs.len();
            self.enclosing.enter(l.var.id, LoopIndex::Static(value));
            self.block(&l.body);
            self.enclosing.leave();
            self.wasted += usize::from(here == self.code.instrs.len());
            let grown = self.code.instrs.len() - before.0;
            let is_large = grown.saturating_mul(rounds.len()) > MAX_UNROLLED;
            if is_large && grown > MAX_UNROLLED / 64 || self.wasted > MAX_WASTED {
                self.wasted += grown;
                self.code.instrs.truncate(before.0);
                self.code.sites.truncate(before.1);
                self.code.loops.truncate(before.2);
                self.statics[l.var.id] = None;
                self.stmt = stmt;
                return false;
            }
        }
        self.statics[l.var.id] = None;
        self.stmt = stmt;
        true
    }

    /// Values of the loop variable; `None` if some value is not static.
    fn rounds(&mut self, l: &Loop) -> Option<Vec<i64>> {
        let mut rounds = Vec::new();
        let mut value = self.fixed(&l.from);
        let next = stepped(l);
        while let Some(v) = value {
            self.statics[l.var.id] = Some(v);
            match self.fixed(&l.test) {
                Some(0) => break,
                Some(_) if rounds.len() < MAX_ROUNDS => rounds.push(v),
                _ => {
                    value = None;
                    break;
                }
            }
            value = self.fixed(&next);
        }
        self.statics[l.var.id] = None;
        value.map(|_| rounds)
    }
}

/// Value of the loop variable in the next iteration.
fn stepped(l: &Loop) -> Expr {
    let (op, by) = match &l.change {
        Change::Add(by) => (BinaryOp::ADD, by),
        Change::Sub(by) => (BinaryOp::SUB, by),
        Change::Mul(by) => (BinaryOp::MUL, by),
        Change::Div(by) => (BinaryOp::DIV, by),
    };
    Expr::Binary(op, Box::new(Expr::Var(l.var)), Box::new(by.clone()))
}
