//! Loops: unrolling by the compiler, and values that change in a loop.

use super::Compiler;
use super::cost::SassCost;
use super::counts::{CountId, MARKED, Rounds, UNROLLED};
use crate::lower::code::{Assigned, Op, Slot, SlotKind};
use gemm_dsl::ir::{Stmt, Unroll};
use std::collections::BTreeSet;
use std::ops::Range;

/// Maximum number of lowered instructions in the body of a loop that the compiler unrolls without a
/// pragma.
const SMALL: usize = 12;
/// Maximum number of lowered instructions in all iterations of a loop that the compiler unrolls
/// completely without a pragma.
const FEW: usize = 200;

impl Compiler<'_, '_> {
    /// Analyses a loop from its test to its end.
    pub(super) fn repeat(&mut self, top: usize, end: usize) {
        let code = self.code;
        let body = top + 1..end - 1;
        let outer = self.values.count();
        let stmt = self.values.stmt;
        self.scope.piece += 1;
        let site = code.instrs.get(body.start).map_or(code.instrs[top].site, |i| i.site);
        if let Some(trips) = self.trips(top, &body) {
            let copies = self.counts.copies(outer) * trips.len().max(1) as u64;
            let count = self.counts.add(site, self.counts.rounds(outer), copies);
            self.values.enter(count, false);
            let slot = self.assigned(&(top - 1..top));
            for trip in trips {
                let trip = self.constant(trip);
                slot.iter().for_each(|slot| self.scope.slots.set(*slot, trip));
                self.walk(body.clone());
            }
            self.values.leave();
            self.scope.piece += 1;
            return;
        }
        // Later iterations start in the state at the end of the body, after which there may have
        // been loads.
        self.scope.copied = false;
        let groups = self.groups(top, &body);
        for (nth, &(together, left_by)) in groups.iter().enumerate() {
            let rounds = (groups.len() > 1).then(|| Rounds::new(site, outer, together, left_by));
            let rounds = rounds.or(self.counts.rounds(outer));
            let count = self.counts.add(site, rounds, self.counts.copies(outer));
            let since = self.scope.slots.mark();
            self.round(top, &body, count, together);
            let last = self.scope.slots.changed(since);
            self.scope.slots.restore(since);
            for (slot, id) in last {
                let operands = self.read_before(slot).into_iter().chain([id]).collect();
                let merged = self.values.fresh(operands, SassCost::FREE);
                self.scope.slots.set(slot, merged);
            }
            if nth > 0 {
                // A test for remaining iterations, and the pointers at this point.
                self.spend(outer, SassCost::others(4));
            }
        }
        self.branches.of_loops.push(outer);
        self.values.stmt = stmt;
        self.scope.piece += 1;
        // A test before the first iteration.
        self.spend(outer, SassCost::others(2));
    }

    /// Analyses a loop that executes `together` iterations at a time.
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
            let phi = self.values.fresh(before.into_iter().collect(), SassCost::FREE);
            let multiple = before.map_or(1, |id| self.values.multiple(&self.values.form(id)));
            let positive = before.is_some_and(|id| self.values.is_positive(&self.values.form(id)));
            let value = &mut self.values.all[phi as usize];
            (value.multiple, value.positive, value.is_variable) = (multiple, positive, true);
            self.scope.slots.set(slot, phi);
            phis.push((slot, phi));
        }
        // In later iterations, memory no longer has its content from before the loop.
        for region in self.stored_in(body) {
            self.accesses.written(region);
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
        self.spend(count, SassCost::others(1));
        self.roots.push(test);
        for _ in 0..together {
            self.walk(body.clone());
        }
        for (slot, phi) in phis {
            let id = self.read(slot);
            self.values.all[phi as usize].operands.push(id);
            // A value remains a multiple of its initial factor if all steps are multiples of this
            // factor.
            let step = self.values.form(id).add(&self.values.form(phi), -1);
            let multiple = self.values.multiple(&step);
            let value = &mut self.values.all[phi as usize];
            value.multiple = value.multiple.min(multiple);
        }
        self.values.leave();
    }

    /// Values of the loop variable, if the compiler unrolls the loop completely. They must be known
    /// at build time, and not be too many.
    fn trips(&mut self, top: usize, body: &Range<usize>) -> Option<Vec<i64>> {
        let code = self.code;
        let stmt = code.stmts[code.instrs[top].stmt as usize];
        if matches!(stmt, Stmt::For(of) if matches!(of.unroll, Unroll::By(_))) {
            return None;
        }
        let slots = self.assigned(&(top.checked_sub(1)?..top));
        let slot = *slots.first().filter(|_| slots.len() == 1)?;
        let mut value = self.values.form(self.read_before(slot)?).known()?;
        let mark = self.scope.slots.mark();
        let mut trips = Vec::new();
        let found = loop {
            let id = self.constant(value);
            self.scope.slots.set(slot, id);
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
        self.scope.slots.restore(mark);
        found
    }

    /// Copies a variable that the loop changes to a separate register before the loop. Register
    /// arrays are initialised in place instead.
    fn copy(&mut self, slot: Slot) {
        let arrays = &self.code.arrays;
        let (words, is_array) = match slot.kind {
            SlotKind::Lane => (1, slot.at < arrays.lanes),
            SlotKind::Wide => (2, slot.at < arrays.wides),
            SlotKind::Uniform => (1, false),
            SlotKind::Pred => return,
        };
        if let Some(before) = self.read_before(slot).filter(|_| !is_array) {
            let copied = self.values.fresh(vec![before], SassCost::others(words));
            let form = self.values.form(before);
            let value = &mut self.values.all[copied as usize];
            value.form = Some(form);
            self.scope.slots.set(slot, copied);
        }
    }

    /// Unrolling of a loop: the number of iterations that are executed together, and the group size
    /// of the loop before it whose remaining iterations it executes.
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
            ) && !instr.op.is_traced()
        });
        match of.unroll {
            Unroll::By(by) if is_simple && MARKED.contains(&by) => {
                vec![(by * UNROLLED, 0), (by, by * UNROLLED), (1, by)]
            }
            Unroll::Auto | Unroll::Full if is_simple && instrs.len() <= SMALL => {
                let all = UNROLLED * UNROLLED;
                vec![(all, 0), (UNROLLED, all), (1, UNROLLED)]
            }
            _ => vec![(1, 0)],
        }
    }

    fn assigned(&self, range: &Range<usize>) -> BTreeSet<Slot> {
        let instrs = self.code.instrs[range.clone()].iter();
        instrs.flat_map(|instr| self.slots_assigned(&instr.op)).collect()
    }

    /// Variables that an instruction assigns. With a dynamic index, these are all elements of the
    /// array.
    pub(super) fn slots_assigned(&self, op: &Op) -> impl Iterator<Item = Slot> + use<> {
        let (kind, slots) = match op.assigns() {
            Assigned::Nothing => (SlotKind::Lane, 0..0),
            Assigned::Slots(kind, slots) => (kind, slots),
            Assigned::Elements(memory) => (SlotKind::Lane, self.array_of(memory)),
        };
        slots.map(move |at| Slot { kind, at })
    }

    fn stored_in(&self, range: &Range<usize>) -> BTreeSet<u32> {
        let instrs = self.code.instrs[range.clone()].iter();
        instrs.filter_map(|instr| instr.op.stores_to()).collect()
    }

    fn meets_in(&self, range: &Range<usize>) -> bool {
        self.code.instrs[range.clone()].iter().any(|instr| instr.op.meets())
    }
}
