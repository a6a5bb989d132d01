//! The values that a kernel computes, each once where the compiler computes it once: where two expressions are the same, as long
//! as the first is still known, and outside of the loops in which none of their operands changes.

use super::charge::Charge;
use super::cost::SassCost;
use super::counts::CountId;
use super::operation::{Key, Operation};
use crate::sass::polynomial::{Polynomial, Term, ValueId};
use std::collections::HashMap;

#[derive(Debug)]
pub(super) struct Value {
    pub(super) cost: SassCost,
    /// The values that it is computed from.
    pub(super) operands: Vec<ValueId>,
    /// With which it is computed.
    pub(super) count: CountId,
    /// The statement that needs it first.
    pub(super) stmt: Option<u32>,
    /// In how many loops it changes.
    pub(super) depth: usize,
    /// What it is as a sum, if it is one.
    pub(super) form: Option<Polynomial>,
    /// A power of two of which it is a multiple.
    pub(super) multiple: u64,
    /// Whether the compiler knows that it is not negative.
    pub(super) positive: bool,
    /// Whether it is a variable that a loop changes.
    pub(super) is_variable: bool,
    pub(super) needed: bool,
}

/// A piece of code: the kernel, the body of a loop, a branch.
struct CodePiece {
    count: CountId,
    is_loop: bool,
    known: Vec<Key>,
}

pub(super) struct Values {
    pub(super) all: Vec<Value>,
    known: HashMap<Key, ValueId>,
    frames: Vec<CodePiece>,
    /// The statement that is compiled.
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

    /// What was computed in a piece of code is not known behind it.
    pub(super) fn leave(&mut self) {
        for key in self.frames.pop().map_or_else(Vec::new, |frame| frame.known) {
            self.known.remove(&key);
        }
    }

    /// The count of the piece of code being compiled.
    pub(super) fn count(&self) -> CountId {
        self.frames.last().map_or(0, |frame| frame.count)
    }

    /// How many loops it is in.
    pub(super) fn depth(&self) -> usize {
        self.frames.iter().filter(|frame| frame.is_loop).count()
    }

    /// Where a value is computed that changes in so many loops: inside of these, and before all others.
    fn place(&self, depth: usize) -> usize {
        let mut loops = self.frames.iter().enumerate().filter(|(_, frame)| frame.is_loop);
        loops.nth(depth).map_or(self.frames.len(), |(at, _)| at) - 1
    }

    /// A value that is no other one.
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

    /// The value of an operation, known or new.
    pub(super) fn op(
        &mut self,
        operation: Operation,
        operands: &[ValueId],
        cost: SassCost,
    ) -> ValueId {
        let depth = operands.iter().map(|&id| self.all[id as usize].depth).max().unwrap_or(0);
        self.keyed(Key::Op(operation, operands.to_vec()), operands.to_vec(), cost, depth)
    }

    /// A value by its key.
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

    /// A value that has this key from here on.
    pub(super) fn known(&self, key: &Key) -> Option<ValueId> {
        self.known.get(key).copied()
    }

    pub(super) fn forget(&mut self, key: &Key) {
        self.known.remove(key);
    }

    /// Remembers a value of this piece of code.
    pub(super) fn remember(&mut self, key: Key, id: ValueId) {
        self.note(self.frames.len() - 1, key, id);
    }

    /// What a value is as a sum.
    pub(super) fn form(&self, id: ValueId) -> Polynomial {
        self.all[id as usize].form.clone().unwrap_or_else(|| Polynomial::value(id))
    }

    pub(super) fn depth_of(&self, term: &[ValueId]) -> usize {
        term.iter().map(|&id| self.all[id as usize].depth).max().unwrap_or(0)
    }

    /// In how many loops a sum changes.
    pub(super) fn depth_of_form(&self, form: &Polynomial) -> usize {
        form.terms.iter().map(|(of, _)| self.depth_of(of)).max().unwrap_or(0)
    }

    /// The largest power of two, up to 16, of which a sum is known to be a multiple.
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

    /// A sum as a value: what changes in the innermost loop is added to what does not, which is computed outside.
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

    /// Marks values that are needed, and those that they are computed from.
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

/// All values of a kernel, of which it is known whether anybody needs them.
pub(super) struct NeededValues(pub(super) Values);

/// Those of which loads that others bring too cost nothing.
pub(super) struct MergedValues(pub(super) Values);

impl MergedValues {
    /// What is executed of them.
    pub(super) fn charges(&self) -> impl Iterator<Item = Charge> {
        let values = self.0.all.iter().filter(|v| v.needed && v.cost != SassCost::FREE);
        values.map(|value| Charge { count: value.count, stmt: value.stmt, cost: value.cost })
    }
}

/// What it takes to add products to a rest: `IADD3` adds two, `IMAD` and `LEA` one that is multiplied; a product of values that
/// are not constant is multiplied before.
pub(super) fn sum_cost(terms: &[Term], has_rest: bool, has_constant: bool) -> u32 {
    let (single, products): (Vec<&Term>, Vec<&Term>) =
        terms.iter().partition(|(of, _)| of.len() == 1);
    let (plain, scaled): (Vec<&Term>, Vec<&Term>) =
        single.into_iter().partition(|(_, by)| by.abs() == 1);
    let multiplied = scaled.len() + products.iter().map(|(of, _)| of.len() - 1).sum::<usize>();
    let summands = plain.len() + usize::from(has_rest || has_constant);
    // The first summand is not added to anything.
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
        // `IADD3`, one and two.
        assert_eq!((cost(&[&a, &b], false), cost(&[&a, &b, &c], false)), (1, 1));
        assert_eq!(cost(&[&a, &b, &c], true), 2);
        // `LEA` and `IMAD` add as they multiply.
        assert_eq!((cost(&[&scaled], false), cost(&[&scaled, &a], false)), (1, 1));
        assert_eq!((cost(&[&product], true), cost(&[&product, &a], true)), (1, 2));
    }
}
