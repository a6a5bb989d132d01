//! Statements that are neither branch nor loop.

use super::super::code::{MbarrierOp, Memory, Op, SumsOp, Value};
use super::Compiler;
use super::cost::{self, Class, Cost};
use super::form::Id;
use super::slots::{Kind, Slot};
use crate::ir::Scope;

impl Compiler<'_, '_> {
    /// What a variable holds; before it was given anything, something that costs nothing.
    pub(super) fn read(&mut self, slot: Slot) -> Id {
        match self.slots.get(slot) {
            Some(id) => id,
            None => self.constant(0),
        }
    }

    pub(super) fn read_before(&self, slot: Slot) -> Option<Id> {
        self.slots.get(slot)
    }

    fn set(&mut self, kind: Kind, at: u32, id: Id) {
        self.slots.set(Slot { kind, at }, id);
    }

    fn root(&mut self, cost: Cost, operands: impl IntoIterator<Item = Id>) {
        self.roots.extend(operands);
        let count = self.values.count();
        self.spend(count, cost);
    }

    fn stored_value(&mut self, value: &Value) -> Id {
        match value {
            Value::Lane(value) => self.lane(value),
            Value::Wide(value) => self.wide(value),
            Value::Vector(value) => self.vector(value),
        }
    }

    pub(super) fn statement(&mut self, op: &Op) {
        match op {
            Op::SetUniform(slot, value) => {
                let id = self.index_of(value);
                self.set(Kind::Uniform, *slot, id);
            }
            Op::SetLane(slot, value) => {
                let id = self.lane(value);
                self.set(Kind::Lane, *slot, id);
            }
            Op::SetWide(slot, value) => {
                let id = self.wide(value);
                self.set(Kind::Wide, *slot, id);
            }
            Op::SetPred(slot, value) => {
                let id = self.pred(value);
                self.set(Kind::Pred, *slot, id);
            }
            Op::SetVector(slot, value) => {
                let id = self.vector(value);
                for (at, word) in (*slot..).zip(self.words(id)) {
                    self.set(Kind::Lane, at, word);
                }
            }
            Op::SetElement(slot, value) => {
                let id = self.wide(value);
                self.set(Kind::Lane, *slot, id);
                self.set(Kind::Lane, *slot + 1, id);
            }
            Op::Fma { target, operands } => {
                let operands = operands.map(|at| self.read(Slot { kind: Kind::Lane, at }));
                let id = self.values.op("fma", &operands, 32, Cost::one(Class::Ffma));
                self.set(Kind::Lane, *target, id);
            }
            Op::Zero { first, count } => {
                let zero = self.constant(0);
                (*first..first + count).for_each(|at| self.set(Kind::Lane, at, zero));
                // `CS2R` clears two registers.
                self.root(Cost::others(count.div_ceil(2)), []);
            }
            Op::Forget { .. } | Op::Unset { .. } | Op::Touch { .. } | Op::Assume(_) => {}
            // The pointer of an array of the list is loaded.
            Op::Choose(chosen) => {
                let nth = self.index(&chosen.1);
                self.root(Cost::one(Class::GlobalLoad).beside(2), [nth]);
            }
            Op::Point(point) => {
                let (pointer, memory) = &**point;
                let id = self.element(memory);
                self.point(pointer.first, pointer.index.as_ref(), id);
            }
            Op::Advance(advance) => {
                let (pointer, by) = &**advance;
                let by = self.index(by);
                let at = self.pointer(pointer.first, pointer.index.as_ref());
                let before = self.read(Slot { kind: Kind::Wide, at });
                let form = self.values.form(before).add(&self.values.form(by), 1);
                let id = self.values.sum(form, true);
                self.set(Kind::Wide, at, id);
            }
            Op::StoreRegister(store) => {
                let value = self.stored_value(&store.1);
                if let Some(slots) = self.slots_of(&store.0) {
                    if let [slot] = slots[..] {
                        self.slots.set(slot, value);
                        return;
                    }
                    for (at, slot) in slots.into_iter().enumerate() {
                        let part = self.values.op("part", &[value], at as i64, Cost::FREE);
                        self.slots.set(slot, part);
                    }
                    return;
                }
                self.is_whole = false;
                self.root(Cost::others(1), [value]);
            }
            Op::Store(store) => {
                let (memory, value) = &**store;
                let value = self.stored_value(value);
                self.store(memory, value);
            }
            Op::Copy(copy) => {
                let places = [self.place(&copy.target), self.place(&copy.source)];
                let mut cost = Cost::one(Class::Copy);
                if let Some((guard, or_zero)) = &copy.guard {
                    let guard = self.pred(guard);
                    self.roots.push(guard);
                    // How many bytes are read is chosen.
                    cost = cost.beside(u32::from(*or_zero));
                }
                self.root(cost, places);
                if !std::mem::replace(&mut self.copied, true) {
                    let loads =
                        Cost { class: Class::SharedLoad, count: cost::BEFORE_COPIES, others: 0 };
                    self.root(loads, []);
                }
                self.written(copy.target.region);
            }
            Op::LoadMatrix(load) => {
                let place = self.place(&load.from);
                self.copied = false;
                let id = self.values.fresh(vec![place], Cost::one(Class::MatrixLoad));
                self.roots.push(id);
                if let Some(slot) = load.to.slot {
                    for at in slot..slot + u32::from(load.count) {
                        let part = self.values.op("part", &[id], at.into(), Cost::FREE);
                        self.set(Kind::Lane, at, part);
                    }
                }
            }
            Op::Mma(mma) => self.multiply(mma),
            Op::Atomic(atomic) => {
                let value = self.stored_value(&atomic.value);
                let place = self.place(&atomic.target);
                let id = self.values.fresh(vec![value, place], Cost::one(Class::Atomic));
                self.roots.push(id);
                if let Some(slot) = atomic.old {
                    self.set(Kind::Lane, slot, id);
                }
                self.written(atomic.target.region);
            }
            Op::Barrier(scope) => {
                let cost = match scope {
                    Scope::Block => Cost::one(Class::Barrier),
                    // `WARPSYNC`
                    Scope::Warp => Cost::others(1),
                    // `UCGABAR_ARV`, `UCGABAR_WAIT`
                    Scope::Cluster | Scope::Device => Cost::others(2),
                };
                self.root(cost, []);
                self.met();
            }
            Op::Named { .. } => {
                self.root(Cost::one(Class::Barrier), []);
                self.met();
            }
            Op::Fence(scope) => {
                // `MEMBAR`, `ERRBAR`, `CGAERRBAR`, and `CCTL` of the device's.
                self.root(Cost::others(if *scope == Scope::Block { 1 } else { 4 }), []);
                self.met();
            }
            // `LDGDEPBAR`
            Op::Commit => self.root(Cost::others(1), []),
            // `DEPBAR`
            Op::Wait(_) => {
                self.root(Cost::others(1), []);
                self.met();
            }
            Op::Mbarrier(barrier) => {
                let at = self.index(&barrier.at.index);
                let cost = match &barrier.op {
                    MbarrierOp::Init(_) => 2,
                    MbarrierOp::Arrive(bytes) => {
                        let bytes = bytes.as_ref().map(|bytes| self.index(bytes));
                        self.roots.extend(bytes);
                        2
                    }
                    MbarrierOp::ArriveRemote(block, _) => {
                        let block = self.index(block);
                        self.roots.push(block);
                        4
                    }
                    MbarrierOp::Wait(parity) => {
                        let parity = self.index(parity);
                        self.roots.push(parity);
                        4
                    }
                };
                self.root(Cost::others(cost), [at]);
                self.met();
            }
            // `MEMBAR` and `FENCE`.
            Op::ProxyFence(_) => self.root(Cost::others(2), []),
            Op::TensorCopy(copy) => {
                let mut operands: Vec<Id> = copy.at.iter().map(|at| self.index(at)).collect();
                operands.push(self.place(&copy.to));
                operands.push(self.index(&copy.barrier.index));
                self.root(Cost::one(Class::BoxCopy).beside(9), operands);
            }
            Op::Wgmma(wgmma) => {
                let operands = [self.place(&wgmma.a.first), self.place(&wgmma.b.first)];
                let accumulate = self.pred(&wgmma.accumulate);
                self.roots.push(accumulate);
                self.root(Cost::one(Class::Hgmma).beside(6), operands);
            }
            Op::Sums(op) => {
                let cost = match **op {
                    SumsOp::Fence(_) => 2,
                    SumsOp::Commit => 0,
                    SumsOp::Wait { .. } | SumsOp::Limit(_) => 1,
                };
                self.root(Cost::others(cost), []);
            }
            Op::If(..)
            | Op::Else(_)
            | Op::End
            | Op::Loop
            | Op::Test(..)
            | Op::Unless(..)
            | Op::Jump(_) => {}
        }
    }

    fn multiply(&mut self, mma: &super::super::code::Mma) {
        let read = |this: &mut Self, slot: Option<u32>, words: u32| -> Vec<Id> {
            let slots = slot.map_or(0..0, |slot| slot..slot + words);
            slots.map(|at| this.read(Slot { kind: Kind::Lane, at })).collect()
        };
        let mut operands = read(self, mma.d.slot, 4);
        operands.extend(read(self, mma.a.slot, 4));
        operands.extend(read(self, mma.b.slot, 2));
        let id = self.values.fresh(operands, Cost::one(Class::Hmma));
        self.roots.push(id);
        if let Some(slot) = mma.d.slot {
            for at in slot..slot + 4 {
                let part = self.values.op("part", &[id], (at - slot).into(), Cost::FREE);
                self.set(Kind::Lane, at, part);
            }
        }
    }

    fn pointer(&mut self, first: u32, index: Option<&super::super::code::Index>) -> u32 {
        let at = index.map(|index| self.index(index));
        first + at.and_then(|id| self.values.form(id).known()).unwrap_or(0) as u32
    }

    fn point(&mut self, first: u32, index: Option<&super::super::code::Index>, id: Id) {
        let at = self.pointer(first, index);
        self.set(Kind::Wide, at, id);
    }

    /// The element of a place, as a sum.
    fn element(&mut self, memory: &Memory) -> Id {
        let form = self.form_of(memory);
        self.values.sum(form, true)
    }
}
