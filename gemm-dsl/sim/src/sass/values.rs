//! Values that a kernel computes. A common subexpression is computed only once while its first
//! result is available. A loop invariant is computed outside the loop.

use super::charge::Charge;
use super::cost::SassCost;
use super::counts::CountId;
use super::operation::{Key, Operation};
use crate::sass::polynomial::{Polynomial, Term, ValueId};
use std::collections::HashMap;

#[derive(Debug)]
pub(super) struct Value {
    pub(super) cost: SassCost,
    /// Values from which it is computed.
    pub(super) operands: Vec<ValueId>,
    /// Execution count of the code that computes it.
    pub(super) count: CountId,
    /// First statement that uses it.
    pub(super) stmt: Option<u32>,
    /// Number of enclosing loops in which it changes.
    pub(super) depth: usize,
    /// Polynomial form, if the value is a sum.
    pub(super) form: Option<Polynomial>,
    /// Power of two that certainly divides the value.
    pub(super) multiple: u64,
    /// True if the compiler knows that it is not negative.
    pub(super) positive: bool,
    /// True for a variable that changes in a loop.
    pub(super) is_variable: bool,
    pub(super) needed: bool,
}

/// Piece of code: the kernel, a loop body or a branch.
struct CodePiece {
    count: CountId,
    is_loop: bool,
    known: Vec<Key>,
}

pub(super) struct Values {
    pub(super) all: Vec<Value>,
    known: HashMap<Key, ValueId>,
    frames: Vec<CodePiece>,
    pub(super) stmt: Option<u32>,
}

impl Values {
    pub(super) fn new(kernel: CountId) -> Self {
        let frames = vec![CodePiece { count: kernel, is_loop: false, known: Vec::new() }];
        Self { all: Vec::new(), known: HashMap::new(), frames, stmt: None }
    }

    pub(super) fn enter(&mut self, count: CountId, is_loop: bool) {
        self.frames.push(CodePiece { count, is_loop, known: Vec::new() });
    }

    /// Leaves a piece of code. Values computed in it are then no longer available.
    pub(super) fn leave(&mut self) {
        for key in self.frames.pop().map_or_else(Vec::new, |frame| frame.known) {
            self.known.remove(&key);
        }
    }

    /// Execution count of the current piece of code.
    pub(super) fn count(&self) -> CountId {
        self.frames.last().map_or(0, |frame| frame.count)
    }

    pub(super) fn depth(&self) -> usize {
        self.frames.iter().filter(|frame| frame.is_loop).count()
    }

    /// Outermost piece of code that can compute a value which changes in `depth` loops.
    fn place(&self, depth: usize) -> usize {
        let mut loops = self.frames.iter().enumerate().filter(|(_, frame)| frame.is_loop);
        loops.nth(depth).map_or(self.frames.len(), |(at, _)| at) - 1
    }

    /// Adds a value that is never shared.
    pub(super) fn fresh(&mut self, operands: Vec<ValueId>, cost: SassCost) -> ValueId {
        let at = self.frames.len() - 1;
        self.push(at, operands, cost, self.depth(), None)
    }

    fn push(
        &mut self,
        frame: usize,
        operands: Vec<ValueId>,
        cost: SassCost,
        depth: usize,
        form: Option<Polynomial>,
    ) -> ValueId {
        let count = self.frames[frame].count;
        self.all.push(Value {
            cost,
            operands,
            count,
            stmt: self.stmt,
            depth,
            form,
            multiple: 1,
            positive: false,
            is_variable: false,
            needed: false,
        });
        self.all.len() as ValueId - 1
    }

    /// Value of an operation; an available value is shared.
    pub(super) fn op(
        &mut self,
        operation: Operation,
        operands: &[ValueId],
        cost: SassCost,
    ) -> ValueId {
        let depth = operands.iter().map(|&id| self.all[id as usize].depth).max().unwrap_or(0);
        self.keyed(Key::Op(operation, operands.to_vec()), operands.to_vec(), cost, depth)
    }

    /// Value of a key; an available value is shared.
    pub(super) fn keyed(
        &mut self,
        key: Key,
        operands: Vec<ValueId>,
        cost: SassCost,
        depth: usize,
    ) -> ValueId {
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let at = self.place(depth);
        let id = self.push(at, operands, cost, depth, None);
        self.note(at, key, id);
        id
    }

    fn note(&mut self, frame: usize, key: Key, id: ValueId) {
        self.frames[frame].known.push(key.clone());
        self.known.insert(key, id);
    }

    /// Value of a key, if it is available.
    pub(super) fn known(&self, key: &Key) -> Option<ValueId> {
        self.known.get(key).copied()
    }

    pub(super) fn forget(&mut self, key: &Key) {
        self.known.remove(key);
    }

    /// Makes a value available in the current piece of code.
    pub(super) fn remember(&mut self, key: Key, id: ValueId) {
        self.note(self.frames.len() - 1, key, id);
    }

    /// Polynomial form of a value.
    pub(super) fn form(&self, id: ValueId) -> Polynomial {
        self.all[id as usize].form.clone().unwrap_or_else(|| Polynomial::value(id))
    }

    pub(super) fn depth_of(&self, term: &[ValueId]) -> usize {
        term.iter().map(|&id| self.all[id as usize].depth).max().unwrap_or(0)
    }

    /// Number of enclosing loops in which a sum changes.
    pub(super) fn depth_of_form(&self, form: &Polynomial) -> usize {
        form.terms.iter().map(|(of, _)| self.depth_of(of)).max().unwrap_or(0)
    }

    /// Largest power of two, up to 16, that is known to divide a sum.
    pub(super) fn multiple(&self, form: &Polynomial) -> u64 {
        let of = |(of, by): &(Vec<ValueId>, i64)| {
            let factors = of.iter().map(|&id| self.all[id as usize].multiple).product::<u64>();
            (by.trailing_zeros() + factors.max(1).trailing_zeros()).min(4)
        };
        let constant = if form.constant == 0 { 4 } else { form.constant.trailing_zeros() };
        1 << form.terms.iter().map(of).chain([constant]).min().unwrap_or(4).min(4)
    }

    pub(super) fn is_positive(&self, form: &Polynomial) -> bool {
        let of = |(of, by): &(Vec<ValueId>, i64)| {
            *by > 0 && of.iter().all(|&id| self.all[id as usize].positive)
        };
        form.constant >= 0 && form.terms.iter().all(of)
    }

    /// Value of a sum. Only terms that change in the innermost loop are added in this loop. All
    /// other terms are added outside.
    pub(super) fn sum(&mut self, form: Polynomial, wide: bool) -> ValueId {
        if let Some(id) = form.single() {
            return id;
        }
        let key = Key::Sum(form.clone(), wide);
        if let Some(known) = self.known(&key) {
            return known;
        }
        let depth = self.depth_of_form(&form);
        let (varying, fixed) = form.split(|of| self.depth_of(of) == depth);
        let mut operands: Vec<ValueId> =
            varying.iter().flat_map(|(of, _)| of.iter().copied()).collect();
        let rest = Polynomial { terms: fixed, constant: form.constant };
        let has_rest = !rest.terms.is_empty();
        if has_rest {
            let rest = self.sum(rest, wide);
            operands.push(rest);
        }
        let mut cost = sum_cost(&varying, has_rest, form.constant != 0);
        if wide {
            cost *= 2;
        }
        let (multiple, positive) = (self.multiple(&form), self.is_positive(&form));
        let at = self.place(depth);
        let id = self.push(at, operands, SassCost::others(cost), depth, Some(form));
        (self.all[id as usize].multiple, self.all[id as usize].positive) = (multiple, positive);
        self.note(at, key, id);
        id
    }

    /// Marks the values on which the roots depend.
    pub(super) fn needed(mut self, roots: Vec<ValueId>) -> NeededValues {
        let mut open = roots;
        while let Some(id) = open.pop() {
            let value = &mut self.all[id as usize];
            if !std::mem::replace(&mut value.needed, true) {
                open.extend(&value.operands);
            }
        }
        NeededValues(self)
    }
}

/// All values; dead values are marked.
pub(super) struct NeededValues(pub(super) Values);

/// All values; merged loads cost nothing.
pub(super) struct MergedValues(pub(super) Values);

impl MergedValues {
    /// Instructions of the values that remain.
    pub(super) fn charges(&self) -> impl Iterator<Item = Charge> {
        let values = self.0.all.iter().filter(|v| v.needed && v.cost != SassCost::FREE);
        values.map(|value| Charge { count: value.count, stmt: value.stmt, cost: value.cost })
    }
}

/// Cost of adding terms to the rest of a sum. `IADD3` adds two terms, and `IMAD` and `LEA` add one
/// scaled term. Products of non-constant values are multiplied first.
pub(super) fn sum_cost(terms: &[Term], has_rest: bool, has_constant: bool) -> u32 {
    let (single, products): (Vec<&Term>, Vec<&Term>) =
        terms.iter().partition(|(of, _)| of.len() == 1);
    let (plain, scaled): (Vec<&Term>, Vec<&Term>) =
        single.into_iter().partition(|(_, by)| by.abs() == 1);
    let multiplied = scaled.len() + products.iter().map(|(of, _)| of.len() - 1).sum::<usize>();
    let summands = plain.len() + usize::from(has_rest || has_constant);
    // The first summand needs no addition.
    (multiplied + summands.saturating_sub(1).div_ceil(2)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_costs_what_adds_and_multiplies() {
        let (a, b, c) = ((vec![0], 1), (vec![1], -1), (vec![2], 1));
        let (scaled, product) = ((vec![3], 4), (vec![0, 1], 1));
        let cost = |terms: &[&Term], has_rest| {
            let terms: Vec<Term> = terms.iter().copied().cloned().collect();
            sum_cost(&terms, has_rest, false)
        };
        assert_eq!(cost(&[&a], false), 0);
        // `IADD3` with one and with two additions.
        assert_eq!((cost(&[&a, &b], false), cost(&[&a, &b, &c], false)), (1, 1));
        assert_eq!(cost(&[&a, &b, &c], true), 2);
        // `LEA` and `IMAD` multiply and add in one instruction.
        assert_eq!((cost(&[&scaled], false), cost(&[&scaled, &a], false)), (1, 1));
        assert_eq!((cost(&[&product], true), cost(&[&product, &a], true)), (1, 2));
    }
}
