//! The code in its order: branches and loops as the compiler leaves them.

use super::super::code::{Op, Uniform};
use super::Compiler;
use super::branch::Branch;
use super::cost::{self, Cost};
use super::counts::{CountId, Rounds};
use super::form::Id;
use super::slots::{Kind, Slot};
use crate::ir::{Expr, Stmt, Unroll};
use std::ops::Range;

/// Rounds of a loop of which nothing is said that the compiler unrolls together, and how many of these groups ptxas does.
const UNROLLED: u32 = 4;
/// Instructions of the lowered code in a loop that is unrolled so.
const SMALL: usize = 12;
/// Instructions of the lowered code in all rounds of a loop that is unrolled completely without being told to.
const FEW: usize = 200;
/// Instructions of the text in a branch that is predicated from the start.
const TINY: u64 = 6;

impl Compiler<'_, '_> {
    /// The code of a range, which is entered as a whole.
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
                    self.statement(op);
                    at + 1
                }
            };
        }
    }

    fn branch(&mut self, cond: Id, then: Range<usize>, other: Range<usize>, divergent: bool) {
        // A condition that is known without the launch leaves one of the two.
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
        self.piece += 1;
        let since = self.slots.mark();
        let mut arms = [None, None];
        let mut held = [Default::default(), Default::default()];
        let stores = self.stored.len();
        let (copied, mut after_both) = (self.copied, true);
        for ((arm, held), range) in arms.iter_mut().zip(&mut held).zip([then, other]) {
            self.copied = copied;
            if is_tiny && !is_last {
                let outer = std::mem::replace(&mut self.guarded, true);
                self.walk(range);
                self.guarded = outer;
            } else if let Some(first) = code.instrs.get(range.start).filter(|_| !range.is_empty()) {
                let (rounds, copies) = (self.counts.rounds(by), self.counts.copies(by));
                let count = self.counts.add(first.site, rounds, copies);
                self.values.enter(count, false);
                self.walk(range);
                self.values.leave();
                *arm = Some(count);
            }
            *held = self.slots.changed(since);
            self.slots.restore(since);
            self.piece += 1;
            after_both &= self.copied;
        }
        self.copied = after_both;
        if is_tiny && !is_last {
            self.sink(stores);
        }
        self.values.stmt = stmt;
        let slots = held[0].keys().chain(held[1].keys()).copied();
        let slots: std::collections::BTreeSet<Slot> = slots.collect();
        for slot in slots {
            let before = self.read(slot);
            let [yes, no] = held.each_ref().map(|held| held.get(&slot).copied().unwrap_or(before));
            if yes != no {
                // Each branch writes the same register.
                let merged = self.values.fresh(vec![cond, yes, no], Cost::FREE);
                self.slots.set(slot, merged);
            } else {
                self.slots.set(slot, yes);
            }
        }
        let instrs = &code.instrs[inside];
        let speaks = instrs.iter().any(|instr| instr.op.speaks());
        let asks = instrs.iter().any(|instr| matches!(instr.op, Op::Atomic(_) | Op::Fence(_)));
        self.branches.push(Branch { cond, by, arms, divergent, speaks, asks, is_last, stmt });
    }

    /// Whether a statement applies functions, whose instructions are not among its own.
    fn applies(&self, stmt: u32) -> bool {
        let mut applies = false;
        if let Some(stmt) = self.code.stmts.get(stmt as usize) {
            stmt.visit_exprs(&mut |expr| applies |= matches!(expr, Expr::Apply(..)));
        }
        applies
    }

    /// Whether it can be executed under a predicate, and nothing is gained by a jump.
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
                | Op::Touch { .. }
                | Op::Assume(_)
        )
    }

    /// A loop, of which the test stands here, up to its end.
    fn repeat(&mut self, top: usize, end: usize) {
        let code = self.code;
        let body = top + 1..end - 1;
        let outer = self.values.count();
        let stmt = self.values.stmt;
        self.piece += 1;
        let site = code.instrs.get(body.start).map_or(code.instrs[top].site, |i| i.site);
        if let Some(trips) = self.trips(top, &body) {
            let copies = self.counts.copies(outer) * trips.len().max(1) as u64;
            let count = self.counts.add(site, self.counts.rounds(outer), copies);
            self.values.enter(count, false);
            let slot = self.assigned(&(top - 1..top));
            for trip in trips {
                let trip = self.constant(trip);
                slot.iter().for_each(|slot| self.slots.set(*slot, trip));
                self.walk(body.clone());
            }
            self.values.leave();
            self.piece += 1;
            return;
        }
        // In a later round it is as behind the body.
        self.copied = false;
        let groups = self.groups(top, &body);
        for (nth, &(together, left_by)) in groups.iter().enumerate() {
            let rounds = (groups.len() > 1).then(|| Rounds::new(site, outer, together, left_by));
            let rounds = rounds.or(self.counts.rounds(outer));
            let count = self.counts.add(site, rounds, self.counts.copies(outer));
            let since = self.slots.mark();
            self.round(top, &body, count, together);
            let last = self.slots.changed(since);
            self.slots.restore(since);
            for (slot, id) in last {
                let operands = self.read_before(slot).into_iter().chain([id]).collect();
                let merged = self.values.fresh(operands, Cost::FREE);
                self.slots.set(slot, merged);
            }
            if nth > 0 {
                // Whether rounds are left, and where the pointers are then.
                self.spend(outer, Cost::others(4));
            }
        }
        self.branches_of_loops.push(outer);
        self.values.stmt = stmt;
        self.piece += 1;
        // The test before the first round.
        self.spend(outer, Cost::others(2));
    }

    /// Some rounds of a loop together.
    fn round(&mut self, top: usize, body: &Range<usize>, count: CountId, together: u32) {
        let code = self.code;
        let assigned = self.assigned(body);
        for slot in &assigned {
            self.copy(*slot);
        }
        self.values.enter(count, true);
        let mut phis = Vec::new();
        for slot in assigned {
            let before = self.read_before(slot);
            let phi = self.values.fresh(before.into_iter().collect(), Cost::FREE);
            let multiple = before.map_or(1, |id| self.values.multiple(&self.values.form(id)));
            let positive = before.is_some_and(|id| self.values.is_positive(&self.values.form(id)));
            let value = &mut self.values.all[phi as usize];
            (value.multiple, value.positive, value.is_variable) = (multiple, positive, true);
            self.slots.set(slot, phi);
            phis.push((slot, phi));
        }
        // What memory held before the loop is not known in its later rounds.
        for region in self.stored_in(body) {
            self.written(region);
        }
        if self.meets_in(body) {
            self.met();
        }
        let stmt = code.instrs[top].stmt;
        self.values.stmt = Some(stmt);
        let test = match &code.instrs[top].op {
            Op::Unless(test, _) => self.uniform(test),
            Op::Test(test, _) => self.pred(test),
            _ => unreachable!("lowered: a loop begins with its test"),
        };
        self.spend(count, Cost::others(1));
        self.roots.push(test);
        for _ in 0..together {
            self.walk(body.clone());
        }
        for (slot, phi) in phis {
            let id = self.read(slot);
            self.values.all[phi as usize].operands.push(id);
            // A multiple of what it begins with stays one if it moves in steps that are.
            let step = self.values.form(id).add(&self.values.form(phi), -1);
            let multiple = self.values.multiple(&step);
            let value = &mut self.values.all[phi as usize];
            value.multiple = value.multiple.min(multiple);
        }
        self.values.leave();
    }

    /// The values of the variable of a loop that is unrolled completely: where they are known when the kernel is built, and not
    /// too many.
    fn trips(&mut self, top: usize, body: &Range<usize>) -> Option<Vec<i64>> {
        let code = self.code;
        if matches!(code.stmts[code.instrs[top].stmt as usize], Stmt::For(of) if matches!(of.unroll, Unroll::By(_)))
        {
            return None;
        }
        let slots = self.assigned(&(top.checked_sub(1)?..top));
        let slot = *slots.first().filter(|_| slots.len() == 1)?;
        let mut value = self.values.form(self.read_before(slot)?).known()?;
        let mark = self.slots.mark();
        let mut trips = Vec::new();
        let found = loop {
            let id = self.constant(value);
            self.slots.set(slot, id);
            let test = match &code.instrs[top].op {
                Op::Unless(test, _) => self.uniform(test),
                Op::Test(test, _) => self.pred(test),
                _ => break None,
            };
            match self.values.form(test).known() {
                Some(0) => break Some(trips),
                Some(_) if (trips.len() + 1) * body.len() <= FEW => trips.push(value),
                _ => break None,
            }
            let next = match &code.instrs[body.end - 1].op {
                Op::SetUniform(_, next) => self.uniform(next),
                Op::SetLane(_, next) => self.lane(next),
                Op::SetWide(_, next) => self.wide(next),
                _ => break None,
            };
            match self.values.form(next).known() {
                Some(next) => value = next,
                None => break None,
            }
        };
        self.slots.restore(mark);
        found
    }

    /// A variable that a loop changes gets a register of its own before it. What register arrays begin with is written there.
    fn copy(&mut self, slot: Slot) {
        let arrays = &self.code.arrays;
        let (words, is_array) = match slot.kind {
            Kind::Lane => (1, slot.at < arrays.lanes),
            Kind::Wide => (2, slot.at < arrays.wides),
            Kind::Uniform => (1, false),
            Kind::Pred => return,
        };
        if let Some(before) = self.read_before(slot).filter(|_| !is_array) {
            let copied = self.values.fresh(vec![before], Cost::others(words));
            let form = self.values.form(before);
            let value = &mut self.values.all[copied as usize];
            value.form = Some(form);
            self.slots.set(slot, copied);
        }
    }

    /// How the rounds of a loop are unrolled: so many together, of those that so many together leave.
    fn groups(&self, top: usize, body: &Range<usize>) -> Vec<(u32, u32)> {
        let code = self.code;
        let Some(Stmt::For(of)) = code.stmts.get(code.instrs[top].stmt as usize) else {
            return vec![(1, 0)];
        };
        let instrs = &code.instrs[body.clone()];
        let is_simple = instrs.iter().all(|instr| {
            !matches!(
                instr.op,
                Op::If(..) | Op::Else(_) | Op::Unless(..) | Op::Jump(_) | Op::Test(..) | Op::Loop
            ) && !instr.op.speaks()
        });
        match of.unroll {
            Unroll::By(by @ 2..=16) if is_simple => {
                vec![(by * UNROLLED, 0), (by, by * UNROLLED), (1, by)]
            }
            Unroll::Auto | Unroll::Full if is_simple && instrs.len() <= SMALL => {
                let all = UNROLLED * UNROLLED;
                vec![(all, 0), (UNROLLED, all), (1, UNROLLED)]
            }
            _ => vec![(1, 0)],
        }
    }

    /// The variables that are assigned in a range.
    fn assigned(&self, range: &Range<usize>) -> std::collections::BTreeSet<Slot> {
        let mut slots = std::collections::BTreeSet::new();
        let mut note = |kind, first: u32, count: u32| {
            slots.extend((first..first + count).map(|at| Slot { kind, at }));
        };
        for instr in &self.code.instrs[range.clone()] {
            match &instr.op {
                Op::SetUniform(slot, _) => note(Kind::Uniform, *slot, 1),
                Op::SetLane(slot, _) | Op::Fma { target: slot, .. } => note(Kind::Lane, *slot, 1),
                Op::SetWide(slot, _) => note(Kind::Wide, *slot, 1),
                Op::SetPred(slot, _) => note(Kind::Pred, *slot, 1),
                Op::SetVector(slot, _) => note(Kind::Lane, *slot, 4),
                Op::SetElement(slot, _) => note(Kind::Lane, *slot, 2),
                Op::Forget { first, count } | Op::Zero { first, count } => {
                    note(Kind::Lane, *first, *count);
                }
                Op::Unset { first, count } => note(Kind::Wide, *first, *count),
                Op::Point(point) => note(Kind::Wide, point.0.first, point.0.count),
                Op::Advance(advance) => note(Kind::Wide, advance.0.first, advance.0.count),
                Op::LoadMatrix(load) => {
                    load.to.slot.iter().for_each(|slot| note(Kind::Lane, *slot, load.count.into()));
                }
                Op::Mma(mma) => mma.d.slot.iter().for_each(|slot| note(Kind::Lane, *slot, 4)),
                Op::Atomic(atomic) => {
                    atomic.old.iter().for_each(|slot| note(Kind::Lane, *slot, 1));
                }
                _ => {}
            }
        }
        slots
    }

    /// The buffers that are written in a range.
    fn stored_in(&self, range: &Range<usize>) -> Vec<u32> {
        let instrs = self.code.instrs[range.clone()].iter();
        let stored = instrs.filter_map(|instr| match &instr.op {
            Op::Store(store) => Some(store.0.region),
            Op::Copy(copy) => Some(copy.target.region),
            Op::Atomic(atomic) => Some(atomic.target.region),
            _ => None,
        });
        let stored: std::collections::BTreeSet<u32> = stored.collect();
        stored.into_iter().collect()
    }

    fn meets_in(&self, range: &Range<usize>) -> bool {
        self.code.instrs[range.clone()].iter().any(|instr| instr.op.speaks())
    }

    /// What a uniform condition is worth where the launch alone knows it: nothing is left out for it.
    pub(super) fn index_of(&mut self, value: &Uniform) -> Id {
        self.uniform(value)
    }

    /// Instructions that are no value's.
    pub(super) fn spend(&mut self, count: CountId, cost: Cost) {
        let stmt = self.values.stmt;
        self.spent.push((count, stmt, cost));
    }

    pub(super) fn divergence(divergent: bool, is_last: bool) -> u32 {
        match (divergent, is_last) {
            // Lanes that have nothing left to do leave.
            (_, true) => 1,
            (true, false) => cost::DIVERGENT_BRANCH,
            (false, false) => 1,
        }
    }
}
