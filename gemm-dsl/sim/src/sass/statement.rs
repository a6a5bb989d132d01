//! Statements other than branches and loops.

use super::Compiler;
use super::cost::{self, SassClass, SassCost};
use super::operation::Operation;
use crate::lower::code::expr::Index;
use crate::lower::code::{
    AsyncCopy, Atomic, Fragment, LoadMatrix, Mbarrier, MbarrierOp, Memory, Mma, Op, Pointer, Slot,
    SlotKind, StoredValue, TensorCopy, Wgmma, WgmmaSyncOp,
};
use crate::sass::polynomial::ValueId;
use gemm_dsl::ir::Scope;

impl Compiler<'_, '_> {
    /// Value of a variable. An uninitialised variable has a separate value that costs nothing.
    pub(super) fn read(&mut self, slot: Slot) -> ValueId {
        match self.scope.slots.get(slot) {
            Some(id) => id,
            None => self.undefined(slot),
        }
    }

    pub(super) fn read_before(&self, slot: Slot) -> Option<ValueId> {
        self.scope.slots.get(slot)
    }

    fn set(&mut self, kind: SlotKind, at: u32, id: ValueId) {
        self.scope.slots.set(Slot { kind, at }, id);
    }

    fn root(&mut self, cost: SassCost, operands: impl IntoIterator<Item = ValueId>) {
        self.roots.extend(operands);
        let count = self.values.count();
        self.spend(count, cost);
    }

    fn stored_value(&mut self, value: &StoredValue) -> ValueId {
        match value {
            StoredValue::Lane(value) => self.lane(value),
            StoredValue::Wide(value) => self.wide(value),
            StoredValue::Vector(value) => self.vector(value),
        }
    }

    pub(super) fn statement(&mut self, op: &Op) {
        match op {
            Op::SetUniform(slot, value) => {
                let id = self.uniform(value);
                self.set(SlotKind::Uniform, *slot, id);
            }
            Op::SetLane(slot, value) => {
                let id = self.lane(value);
                self.set(SlotKind::Lane, *slot, id);
            }
            Op::SetWide(slot, value) => {
                let id = self.wide(value);
                self.set(SlotKind::Wide, *slot, id);
            }
            Op::SetPred(slot, value) => {
                let id = self.pred(value);
                self.set(SlotKind::Pred, *slot, id);
            }
            Op::SetVector(slot, value) => {
                let id = self.vector(value);
                for (at, word) in (*slot..).zip(self.words(id)) {
                    self.set(SlotKind::Lane, at, word);
                }
            }
            Op::SetElement(slot, value) => {
                let id = self.wide(value);
                self.set(SlotKind::Lane, *slot, id);
                self.set(SlotKind::Lane, *slot + 1, id);
            }
            Op::Fma { target, operands } => {
                let operands = operands.map(|at| self.read(Slot { kind: SlotKind::Lane, at }));
                let id = self.values.op(Operation::Fma, &operands, SassCost::one(SassClass::Ffma));
                self.set(SlotKind::Lane, *target, id);
            }
            Op::Zero { first, count } => {
                let zero = self.constant(0);
                (*first..first + count).for_each(|at| self.set(SlotKind::Lane, at, zero));
                // `CS2R` clears two registers.
                self.root(SassCost::others(count.div_ceil(2)), []);
            }
            Op::Forget { .. } | Op::Unset { .. } | Op::UseAccumulators { .. } => {}
            // Loads the pointer of the chosen array from the list.
            Op::Choose(chosen) => {
                let nth = self.index(&chosen.1);
                self.root(SassCost::one(SassClass::GlobalLoad).beside(2), [nth]);
            }
            Op::Point(point) => {
                let (pointer, memory) = &**point;
                let id = self.element(memory);
                self.point(pointer.first, pointer.index.as_ref(), id);
            }
            Op::Advance(advance) => self.advance(&advance.0, &advance.1),
            Op::StoreRegister(store) => self.store_register(&store.0, &store.1),
            Op::Store(store) => {
                let (memory, value) = &**store;
                let value = self.stored_value(value);
                self.store(memory, value);
            }
            Op::StoreRemote(store) => {
                let value = self.stored_value(&store.value);
                let (block, place) = (self.index(&store.block), self.place(&store.target));
                self.accesses.written(store.target.region);
                // A generic address takes `MAPA` and a move. An asynchronous store takes a `MAPA`
                // for the mbarrier.
                self.root(SassCost::one(SassClass::SharedStore).beside(2), [value, block, place]);
            }
            Op::AsyncCopy(copy) => self.async_copy(copy),
            Op::LoadMatrix(load) => self.load_matrix(load),
            Op::Mma(mma) => self.multiply(mma),
            Op::Atomic(atomic) => self.atomic(atomic),
            Op::Barrier(_)
            | Op::Named { .. }
            | Op::Fence(_)
            | Op::Commit
            | Op::Wait(_)
            | Op::ProxyFence(_)
            | Op::WgmmaSync(_) => {
                self.root(synchronisation(op), []);
            }
            Op::Mbarrier(barrier) => self.mbarrier(barrier),
            Op::TensorCopy(copy) => self.tensor_copy(copy),
            Op::Wgmma(wgmma) => self.wgmma(wgmma),
            Op::If(..)
            | Op::Else(_)
            | Op::End
            | Op::Loop
            | Op::Test(..)
            | Op::Unless(..)
            | Op::Jump(_) => {}
        }
    }

    fn store_register(&mut self, memory: &Memory, value: &StoredValue) {
        let value = self.stored_value(value);
        if let Some(slots) = self.slots_of(memory) {
            if let [slot] = slots[..] {
                self.scope.slots.set(slot, value);
                return;
            }
            for (at, slot) in slots.into_iter().enumerate() {
                let part = self.part(value, at as u32, SassCost::FREE);
                self.scope.slots.set(slot, part);
            }
            return;
        }
        self.lost(memory);
        self.root(SassCost::others(1), [value]);
    }

    fn async_copy(&mut self, copy: &AsyncCopy) {
        let places = [self.place(&copy.target), self.place(&copy.source)];
        let mut cost = SassCost::one(SassClass::Copy);
        if let Some((guard, or_zero)) = &copy.guard {
            let guard = self.pred(guard);
            self.roots.push(guard);
            // A select computes the number of bytes to read.
            cost = cost.beside(u32::from(*or_zero));
        }
        self.root(cost, places);
        if !std::mem::replace(&mut self.scope.copied, true) {
            let loads =
                SassCost { class: SassClass::SharedLoad, count: cost::BEFORE_COPIES, others: 0 };
            self.root(loads, []);
        }
        self.accesses.written(copy.target.region);
    }

    fn atomic(&mut self, atomic: &Atomic) {
        let value = self.stored_value(&atomic.value);
        let place = self.place(&atomic.target);
        let id = self.values.fresh(vec![value, place], SassCost::one(SassClass::Atomic));
        self.roots.push(id);
        if let Some(slot) = atomic.old {
            self.set(SlotKind::Lane, slot, id);
        }
        self.accesses.written(atomic.target.region);
    }

    fn mbarrier(&mut self, barrier: &Mbarrier) {
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
        self.root(SassCost::others(cost), [at]);
    }

    fn tensor_copy(&mut self, copy: &TensorCopy) {
        let mut operands: Vec<ValueId> = copy.at.iter().map(|at| self.index(at)).collect();
        operands.push(self.place(&copy.to));
        operands.push(self.index(&copy.barrier.index));
        self.root(SassCost::one(SassClass::BoxCopy).beside(9), operands);
        self.accesses.written(copy.to.region);
    }

    fn wgmma(&mut self, wgmma: &Wgmma) {
        let operands = [self.place(&wgmma.a.first), self.place(&wgmma.b.first)];
        let accumulate = self.pred(&wgmma.accumulate);
        self.roots.push(accumulate);
        self.root(SassCost::one(SassClass::Hgmma).beside(6), operands);
        let sums = self.values.fresh(operands.into(), SassCost::FREE);
        self.fill(&wgmma.d, wgmma.columns / 2, sums);
    }

    fn advance(&mut self, pointer: &Pointer, by: &Index) {
        let by = self.index(by);
        let at = self.pointer(pointer.first, pointer.index.as_ref());
        let before = self.read(Slot { kind: SlotKind::Wide, at });
        let form = self.values.form(before).add(&self.values.form(by), 1);
        let id = self.values.sum(form, true);
        self.set(SlotKind::Wide, at, id);
    }

    fn load_matrix(&mut self, load: &LoadMatrix) {
        let place = self.place(&load.from);
        self.scope.copied = false;
        let id = self.values.fresh(vec![place], SassCost::one(SassClass::MatrixLoad));
        self.roots.push(id);
        self.fill(&load.to, load.count.into(), id);
    }

    fn multiply(&mut self, mma: &Mma) {
        let mut operands = self.fragment(&mma.d, 4);
        operands.extend(self.fragment(&mma.a, 4));
        operands.extend(self.fragment(&mma.b, 2));
        let id = self.values.fresh(operands, SassCost::one(SassClass::Hmma));
        self.roots.push(id);
        self.fill(&mma.d, 4, id);
    }

    /// First slot of a fragment, if its index is static.
    fn first_of(&mut self, fragment: &Fragment) -> Option<u32> {
        let known = fragment.slot;
        known.or_else(|| self.slots_of(&fragment.first)?.first().map(|slot| slot.at))
    }

    /// Values of `words` words of a fragment.
    fn fragment(&mut self, of: &Fragment, words: u32) -> Vec<ValueId> {
        let slots = match self.first_of(of) {
            Some(first) => first..first + words,
            None => {
                self.is_whole = false;
                self.array_of(&of.first)
            }
        };
        slots.map(|at| self.read(Slot { kind: SlotKind::Lane, at })).collect()
    }

    /// Assigns the parts of a value to a fragment.
    fn fill(&mut self, to: &Fragment, words: u32, value: ValueId) {
        let Some(first) = self.first_of(to) else { return self.lost(&to.first) };
        for at in first..first + words {
            let part = self.part(value, at - first, SassCost::FREE);
            self.set(SlotKind::Lane, at, part);
        }
    }

    /// Records a write to an unknown element of a register array, which is therefore in local
    /// memory.
    fn lost(&mut self, memory: &Memory) {
        self.is_whole = false;
        for at in self.array_of(memory) {
            let element = self.values.fresh(Vec::new(), SassCost::FREE);
            self.set(SlotKind::Lane, at, element);
        }
    }

    fn pointer(&mut self, first: u32, index: Option<&Index>) -> u32 {
        let at = index.map(|index| self.index(index));
        first + at.and_then(|id| self.values.form(id).known()).unwrap_or(0) as u32
    }

    fn point(&mut self, first: u32, index: Option<&Index>, id: ValueId) {
        let at = self.pointer(first, index);
        self.set(SlotKind::Wide, at, id);
    }

    /// Position of an access in its buffer, as a sum.
    fn element(&mut self, memory: &Memory) -> ValueId {
        let form = self.form_of(memory);
        self.values.sum(form, true)
    }
}

/// Cost of a synchronising statement.
fn synchronisation(op: &Op) -> SassCost {
    match op {
        Op::Barrier(Scope::Block) | Op::Named { .. } => SassCost::one(SassClass::Barrier),
        // `WARPSYNC`
        Op::Barrier(Scope::Warp) => SassCost::others(1),
        // `UCGABAR_ARV`, `UCGABAR_WAIT`
        Op::Barrier(Scope::Cluster | Scope::Device) => SassCost::others(2),
        // `MEMBAR`, `ERRBAR`, `CGAERRBAR`, and for the device `CCTL`.
        Op::Fence(scope) => SassCost::others(if *scope == Scope::Block { 1 } else { 4 }),
        // `LDGDEPBAR`, `DEPBAR`
        Op::Commit | Op::Wait(_) => SassCost::others(1),
        // `MEMBAR` and `FENCE`.
        Op::ProxyFence(_) => SassCost::others(2),
        Op::WgmmaSync(op) => SassCost::others(match **op {
            WgmmaSyncOp::Fence(_) => 2,
            WgmmaSyncOp::Commit => 0,
            WgmmaSyncOp::Wait { .. } | WgmmaSyncOp::Limit(_) => 1,
        }),
        _ => unreachable!("{op:?} does not synchronise"),
    }
}
