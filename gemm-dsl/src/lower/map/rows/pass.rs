//! Passes over a row: loads, folds and stores.

use super::super::arrays::{Array, Parameter};
use super::{Row, RowKernel};
use crate::expr::{Closure, NodeKind, RowPart};
use crate::ir::{Access, BufferId, Change, Expr, For, KernelBuilder, Var};
use crate::lower::conversions::stored_expression;
use crate::spec::Along;

/// Place of an element: its item and lane in registers, its column, and the elements of `[n]`
/// operands.
pub(super) struct ElementAt<'p> {
    pub(super) item: Expr,
    pub(super) lane: Expr,
    pub(super) col: Expr,
    pub(super) columns: &'p [Option<BufferId>],
}

impl RowKernel<'_> {
    pub(super) fn lanes(&self) -> i32 {
        self.plan.vector() as i32
    }

    /// Calls `f` with each item of the thread from column `begin` on, and with its first column.
    pub(super) fn each_item(
        &self,
        b: &mut KernelBuilder,
        row: &Row,
        begin: &Expr,
        f: impl FnOnce(&mut KernelBuilder, Expr, Expr),
    ) {
        b.unrolled("item", self.items, |b, item| {
            let col = Expr::from(item) * row.team.clone() + row.member.clone();
            let col = col * self.lanes();
            let col = if *begin == Expr::I32(0) { col } else { begin.clone() + col };
            let col = b.let_("col", col);
            match self.is_wide {
                true => b.if_(Expr::from(col).lt(self.arrays.n), |b| f(b, item.into(), col.into())),
                false => f(b, item.into(), col.into()),
            }
        });
    }

    /// Calls `f` with each element of an item, and with its column.
    fn each_lane(
        &self,
        b: &mut KernelBuilder,
        col: &Expr,
        f: impl FnOnce(&mut KernelBuilder, Expr, Expr),
    ) {
        b.unrolled("lane", self.lanes(), |b, lane| {
            let col = col.clone() + lane;
            match self.is_wide {
                true => f(b, lane.into(), col),
                false => b.if_(col.clone().lt(self.arrays.n), |b| f(b, lane.into(), col)),
            }
        });
    }

    /// Loads the elements of the `[m, n]` operands that have registers.
    pub(super) fn load(&self, b: &mut KernelBuilder, row: &Row, begin: &Expr) {
        let held = row.elements.iter().enumerate();
        let held = held.filter_map(|(nth, held)| Some(((*held)?, self.array(nth)?)));
        let held: Vec<(BufferId, Array)> = held.collect();
        self.each_item(b, row, begin, |b, item, col| {
            if !self.is_wide {
                return self.each_lane(b, &col, |b, lane, col| {
                    for (registers, array) in held {
                        let from = array.at(row.row.clone(), col.clone());
                        let to = Access::new(registers, [item.clone(), lane.clone()]);
                        b.store(to, from.load());
                    }
                });
            }
            for (registers, array) in held {
                for lane in self.vectors(array) {
                    let from = array.at(row.row.clone(), col.clone() + lane).vector();
                    let to = Access::new(registers, [item.clone(), Expr::I32(lane)]).vector();
                    b.store(to, from.load());
                }
            }
        });
    }

    /// First element of each 16-byte vector of an item.
    pub(super) fn vectors(&self, array: Array) -> impl Iterator<Item = i32> + use<> {
        (0..self.plan.vector() as i32).step_by(array.elem().vector_lanes().into())
    }

    /// Loads the vectors of the `[n]` operands that a pass reads.
    fn columns(
        &self,
        b: &mut KernelBuilder,
        col: &Expr,
        reads: &dyn Fn(&str) -> bool,
    ) -> Vec<Option<BufferId>> {
        let mut columns = vec![None; self.arrays.operands.len()];
        for (nth, operand) in self.arrays.operands.iter().enumerate().filter(|_| self.is_wide) {
            let (Parameter::Array(array), name) = (operand, &self.arrays.names[nth]) else {
                continue;
            };
            if array.along != Along::N || !reads(name) {
                continue;
            }
            let (lanes, meaning) = (Expr::I32(self.lanes()), format!("elements of `{name}`"));
            let held = b.registers(&format!("e{nth}"), array.elem(), [lanes], meaning);
            for lane in self.vectors(*array) {
                let from = array.at(Expr::U64(0), col.clone() + lane).vector();
                b.store(Access::new(held, [Expr::I32(lane)]).vector(), from.load());
            }
            columns[nth] = Some(held);
        }
        columns
    }

    /// Runs `f` for the elements of a row: once if they are in registers, otherwise in a loop that
    /// loads the operands that the pass reads.
    fn each_round(
        &self,
        b: &mut KernelBuilder,
        row: &mut Row,
        reads: &dyn Fn(&str) -> bool,
        f: impl FnOnce(&mut KernelBuilder, &Row, &Expr),
    ) {
        if self.class.keeps() {
            return f(b, row, &Expr::I32(0));
        }
        let round = row.team.clone() * self.items * self.lanes();
        let round = match row.team == self.team.into() {
            true => b.constant("ROUND", round, "elements of a row per iteration").into(),
            false => round,
        };
        let head = For::below(0, self.arrays.n).change(Change::Add(round));
        b.loop_("begin", head, |b, begin| {
            self.registers(b, row, reads);
            if row.elements.iter().any(Option::is_some) {
                self.load(b, row, &begin.into());
            }
            f(b, row, &begin.into());
        });
        row.elements.fill(None);
    }

    /// Computes the folds of a pass. `row_parts` is the number of parts of the row, if they are
    /// folded one after the other.
    pub(super) fn fold(
        &self,
        b: &mut KernelBuilder,
        row: &mut Row,
        pass: usize,
        row_parts: Option<Var>,
    ) {
        let parts = self.expression.parts.iter().enumerate();
        let folds: Vec<(usize, &RowPart)> =
            parts.filter(|(_, part)| part.is_fold() && part.pass == pass).collect();
        let keeps = self.class.keeps();
        for (nth, part) in &folds {
            self.comment(b, part);
            let var = b.mut_(&self.names[*nth], part.identity());
            b.named_by_user(var);
            row.parts[*nth] = Some(var);
            if part.kept().is_some() && keeps {
                let dims = [Expr::from(self.items), Expr::I32(self.lanes())];
                let meaning = format!("values that `{}` folds", self.names[*nth]);
                let kept = self.held(b, &format!("kept{nth}"), part.elem(), dims, meaning);
                row.kept[*nth] = Some(kept);
            }
        }
        match row_parts {
            Some(count) => self.fold_parts(b, row, &folds, count),
            None => self.fold_elements(b, row, &folds),
        }
    }

    /// Folds the elements of a row, and then the values of the threads of its team.
    pub(super) fn fold_elements(
        &self,
        b: &mut KernelBuilder,
        row: &mut Row,
        folds: &[(usize, &RowPart)],
    ) {
        let reads = self.reads(folds.iter().map(|(_, part)| &part.closure).collect());
        self.each_round(b, row, &reads, |b, row, begin| {
            self.each_item(b, row, begin, |b, item, col| {
                let columns = self.columns(b, &col, &reads);
                self.each_lane(b, &col, |b, lane, col| {
                    let at = ElementAt { item, lane, col, columns: &columns };
                    for (nth, part) in folds {
                        self.absorb(b, row, *nth, part, &at);
                    }
                });
            });
        });
        self.fold_team(b, row, folds);
    }

    /// Folds an element into the value of a thread.
    fn absorb(
        &self,
        b: &mut KernelBuilder,
        row: &Row,
        nth: usize,
        part: &RowPart,
        at: &ElementAt<'_>,
    ) {
        let Some(var) = row.parts[nth] else { unreachable!("fold: it has a variable") };
        let mut value = self.value(&part.closure, self.parts[nth].as_ref(), row, Some(at));
        if let Some(kept) = row.kept[nth] {
            let to = Access::new(kept, [at.item.clone(), at.lane.clone()]);
            b.store(to.clone(), value);
            value = to.load();
        } else if part.reads_twice() {
            value = b.let_(&self.numbered("term", nth), value).into();
        }
        b.assign(var, part.combined(var.into(), value));
    }

    /// Says what a fold computes.
    fn comment(&self, b: &mut KernelBuilder, part: &RowPart) {
        let Some(op) = part.op() else { return };
        let body = part.closure.body();
        let value = match (body.lets.as_slice(), &body.value.kind) {
            ([only], NodeKind::Name(name)) if *name == only.name => only.value.to_string(),
            _ => body.to_string(),
        };
        let text = format!("{} = {}({value})", part.name, op.name());
        if text.len() <= 88 {
            b.comment(text);
        }
    }

    /// Computes and stores the results at each row and column.
    pub(super) fn store(&self, b: &mut KernelBuilder, row: &mut Row) {
        let results = self.arrays.results.iter().copied().enumerate();
        let results = results.filter(|(_, array)| array.along == Along::Mn);
        let results: Vec<(usize, Array)> = results.collect();
        if results.is_empty() {
            return;
        }
        let closures = results.iter().map(|(nth, _)| &self.expression.results[*nth].closure);
        let reads = self.reads(closures.collect());
        self.each_round(b, row, &reads, |b, row, begin| {
            self.each_item(b, row, begin, |b, item, col| {
                let columns = self.columns(b, &col, &reads);
                self.store_item(b, row, &results, &columns, [item, col]);
            });
        });
    }

    fn store_item(
        &self,
        b: &mut KernelBuilder,
        row: &Row,
        results: &[(usize, Array)],
        columns: &[Option<BufferId>],
        [item, col]: [Expr; 2],
    ) {
        let mut registers = Vec::new();
        for (nth, array) in results.iter().filter(|_| self.is_wide) {
            let name = if results.len() == 1 { "r".to_owned() } else { format!("r{nth}") };
            let lanes = Expr::I32(self.lanes());
            registers.push(b.registers(&name, array.elem(), [lanes], "results of the item"));
        }
        self.each_lane(b, &col, |b, lane, col| {
            let at = ElementAt { item, lane: lane.clone(), col: col.clone(), columns };
            for (n, (nth, array)) in results.iter().enumerate() {
                let closure = &self.expression.results[*nth].closure;
                let value = self.value(closure, self.results[*nth].as_ref(), row, Some(&at));
                let to = match registers.get(n) {
                    Some(registers) => Access::new(*registers, [lane.clone()]),
                    None => array.at(row.row.clone(), col.clone()),
                };
                b.store(to, stored_expression(value, array.elem()));
            }
        });
        for ((_, array), registers) in results.iter().zip(registers) {
            for lane in self.vectors(*array) {
                let vector = Access::new(registers, [Expr::I32(lane)]).vector().load();
                b.store(array.at(row.row.clone(), col.clone() + lane).vector(), vector);
            }
        }
    }

    /// Computes and stores the results with one value for each row.
    pub(super) fn store_of_row(&self, b: &mut KernelBuilder, row: &Row) {
        let results = self.arrays.results.iter().enumerate();
        let results: Vec<(usize, &Array)> =
            results.filter(|(_, array)| array.along == Along::M).collect();
        if results.is_empty() {
            return;
        }
        b.if_(row.member.clone().equals(0), |b| {
            for (nth, array) in results {
                let closure = &self.expression.results[nth].closure;
                let value = self.value(closure, self.results[nth].as_ref(), row, None);
                let to = array.at(row.row.clone(), Expr::I32(0));
                b.store(to, stored_expression(value, array.elem()));
            }
        });
    }

    /// Returns a function that tells whether closures read an operand, also through arguments of
    /// folds that are computed again.
    fn reads<'c>(&'c self, mut closures: Vec<&'c Closure>) -> impl Fn(&str) -> bool + use<'c> {
        let mut next = 0;
        while let Some(closure) = closures.get(next).copied() {
            let parts = self.expression.parts.iter();
            let again = parts.filter(|part| part.kept().is_some_and(|kept| takes(closure, kept)));
            closures.extend(again.map(|part| &part.closure));
            next += 1;
        }
        move |name| closures.iter().any(|closure| takes(closure, name))
    }
}

/// Returns true if a closure has a parameter of this name.
fn takes(closure: &Closure, name: &str) -> bool {
    closure.params().iter().any(|param| param.name == name)
}
