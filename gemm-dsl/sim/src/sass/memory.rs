//! Memory accesses: addresses, common loads and stores.

use super::super::region::slots_of;
use super::Compiler;
use super::accesses::{Epoch, Load, Offset, Store, StoreFate};
use super::charge::Charge;
use super::cost::{self, SassClass, SassCost};
use super::operation::{Key, Operation};
use super::values::sum_cost;
use crate::counters::access_fate::AccessFate;
use crate::lower::code::expr::Uniform;
use crate::lower::code::{Memory, Slot, SlotKind};
use crate::sass::polynomial::{Polynomial, ValueId};
use gemm_dsl::ir::Space;
use std::ops::Range;

/// Number of recent addresses among which a near address is searched.
const ADDRESSES: usize = 32;

impl Compiler<'_, '_> {
    /// Position of an access in its buffer, in elements.
    pub(super) fn form_of(&mut self, memory: &Memory) -> Polynomial {
        if let Some(pointer) = &memory.pointer {
            let slot = pointer.index.as_ref().map(|index| self.index(index));
            let at = slot.and_then(|id| self.values.form(id).known()).unwrap_or(0);
            let slot = Slot { kind: SlotKind::Wide, at: pointer.first + at as u32 };
            let id = self.read(slot);
            let mut form = self.values.form(id);
            for index in &memory.index {
                let index = self.index(index);
                form = form.add(&self.values.form(index), 1);
            }
            return form;
        }
        let launch = self.launch;
        let region = &launch.regions[memory.region as usize];
        let mut form = Polynomial::default();
        let mut row = Polynomial::default();
        for (d, index) in memory.index.iter().enumerate() {
            let id = self.index(index);
            let own = self.values.form(id);
            let stride = region.strides.get(d).copied().unwrap_or(0) as i64;
            if region.swizzle.is_some() && d == region.contiguous {
                row = own;
                continue;
            }
            // A stride that is known only at launch is a kernel parameter.
            let strided = match region.space == Space::Global && stride > 1 {
                true => {
                    let stride = self.uniform(&Uniform::Known(stride));
                    own.product(&Polynomial::value(stride))
                }
                false => Some(own.times(stride)),
            };
            let step = match strided {
                Some(step) => step,
                None => Polynomial::value(self.values.sum(own, true)),
            };
            form = form.add(&step, 1);
        }
        let Some((swizzle, width)) = region.swizzle else { return form };
        // Number of elements after which the swizzle repeats.
        let period = i64::from(width) << (swizzle.bits + swizzle.shift);
        let decides = Polynomial { constant: form.constant.rem_euclid(period), ..form.clone() };
        let operands = [decides, row].map(|form| self.values.sum(form, false));
        let column = self.values.op(Operation::Exchange, &operands, SassCost::others(2));
        self.values.all[column as usize].multiple = 1 << swizzle.base.min(4);
        form.add(&Polynomial::value(column), 1)
    }

    /// Address for a position without its constant part, which is an immediate operand of the
    /// instruction.
    fn address(&mut self, space: Space, region: u32, form: &Polynomial) -> ValueId {
        let form = form.varying();
        let key = Key::Address(region, form.clone());
        if let Some(known) = self.values.known(&key) {
            return known;
        }
        let depth = self.values.depth_of_form(&form);
        let (varying, fixed) = form.split(|of| depth > 0 && self.values.depth_of(of) == depth);
        let wide = if space == Space::Global { 2 } else { 1 };
        let mut operands: Vec<ValueId> =
            form.terms.iter().flat_map(|(of, _)| of.iter().copied()).collect();
        let cost = if depth > 0 {
            // A pointer that is advanced in each iteration. If the address depends on values that
            // are loaded or selected in the loop, it is computed in the loop.
            let fixed = self.address(space, region, &Polynomial::from_terms(fixed));
            operands = varying.iter().flat_map(|(of, _)| of.iter().copied()).collect();
            operands.push(fixed);
            let moves = varying.iter().all(|(of, _)| {
                of.iter().all(|&id| {
                    let value = &self.values.all[id as usize];
                    value.depth < depth || value.is_variable
                })
            });
            let is_row = space == Space::Global && varying.iter().any(|(of, _)| of.len() > 1);
            let row = if is_row && !moves { cost::ROW } else { 0 };
            row + wide * sum_cost(&varying, true, false).clamp(1, 2)
        } else {
            let near = self.accesses.addresses.iter().rev().filter(|(of, _, id)| {
                *of == region
                    && self.values.known(&Key::Address(region, self.address_form(*id))) == Some(*id)
            });
            let near = near.map(|(_, other, id)| {
                let (plain, products) = other.distance(&form);
                (plain + products, plain, products, *id)
            });
            match near.min() {
                // An address that is near a known address: the terms that differ are added to the
                // known address. A product of a row and a value that is known only at launch needs
                // 64-bit multiplications.
                Some((apart, plain, products, id)) if apart < form.terms.len().max(2) => {
                    operands = vec![id];
                    let product = if products > 0 { cost::ROW } else { 0 };
                    wide * plain.max(usize::from(products == 0)) as u32 + product
                }
                _ if form.terms.is_empty() => 0,
                _ => wide + sum_cost(&form.terms, true, false) * wide,
            }
        };
        operands.push(match space {
            Space::Shared => {
                self.values.op(Operation::Window, &[], SassCost::others(cost::SHARED_WINDOW))
            }
            // Pointer from the constant bank.
            _ => self.values.op(Operation::Pointer(region), &[], SassCost::others(1)),
        });
        let id = self.values.keyed(key, operands, SassCost::others(cost), depth);
        self.accesses.addresses.push((region, form, id));
        if self.accesses.addresses.len() > ADDRESSES {
            self.accesses.addresses.remove(0);
        }
        id
    }

    fn address_form(&self, id: ValueId) -> Polynomial {
        let found = self.accesses.addresses.iter().find(|(_, _, known)| *known == id);
        found.map(|(_, form, _)| form.clone()).unwrap_or_default()
    }

    /// Address of an access other than a load, as an operand of the statement.
    pub(super) fn place(&mut self, memory: &Memory) -> ValueId {
        let form = self.form_of(memory);
        self.address(memory.space, memory.region, &form)
    }

    /// Value loaded from memory. If an earlier load or store already has the value, it is shared.
    pub(super) fn load(&mut self, memory: &Memory) -> ValueId {
        let form = self.form_of(memory);
        let address = self.address(memory.space, memory.region, &form);
        let epoch = self.epoch(memory.region, address);
        let at = Offset { constant: form.constant, vector: memory.vector };
        let key = Key::Load(address, at, epoch);
        if let Some(known) = self.values.known(&key) {
            self.accesses.claim(memory.access, AccessFate::Gone);
            return known;
        }
        // The load may read earlier stores to this buffer, so they must remain.
        self.accesses.open.retain(|(region, ..), _| *region != memory.region);
        let shared = memory.space == Space::Shared;
        self.scope.copied &= !shared;
        let class = if shared { SassClass::SharedLoad } else { SassClass::GlobalLoad };
        let value = self.values.fresh(vec![address], SassCost::one(class));
        self.values.remember(key, value);
        self.accesses.loads.push(Load {
            value,
            access: memory.access,
            piece: self.scope.piece,
            epoch,
            region: memory.region,
            at: form.constant,
            form: form.varying(),
            alone: self.scope.guarded || memory.vector || !shared,
        });
        value
    }

    /// Slots of the accessed elements of a register array, if their indices are static.
    pub(super) fn slots_of(&mut self, memory: &Memory) -> Option<Vec<Slot>> {
        let at = self.form_of(memory).known()?;
        let region = &self.launch.regions[memory.region as usize];
        let words = slots_of(region.elem);
        let first = region.base + at as u32 * words;
        let count = region.width(memory.vector) * words;
        Some((first..first + count).map(|at| Slot { kind: SlotKind::Lane, at }).collect())
    }

    pub(super) fn array_of(&self, memory: &Memory) -> Range<u32> {
        let region = &self.launch.regions[memory.region as usize];
        region.base..region.base + region.len as u32 * slots_of(region.elem)
    }

    /// Elements of a register array. If the index is dynamic, the array is in local memory.
    pub(super) fn local(&mut self, memory: &Memory) -> ValueId {
        if let Some(slots) = self.slots_of(memory) {
            let parts: Vec<ValueId> = slots.into_iter().map(|slot| self.read(slot)).collect();
            if let [value] = parts[..] {
                return value;
            }
            let narrow = self.launch.regions[memory.region as usize].elem.size() < 4;
            let words = if narrow { parts.len() as u32 / 2 } else { 0 };
            return self.values.op(Operation::Vector, &parts, SassCost::others(words));
        }
        let address = self.form_of(memory);
        let address = self.values.sum(address, false);
        self.is_whole = false;
        self.values.fresh(vec![address], SassCost::others(1))
    }

    /// Adds a store. A store that is overwritten before any read is removed, and a load directly
    /// after the thread's own store uses the stored value.
    pub(super) fn store(&mut self, memory: &Memory, value: ValueId) {
        let form = self.form_of(memory);
        let address = self.address(memory.space, memory.region, &form);
        let at = Offset { constant: form.constant, vector: memory.vector };
        self.roots.push(address);
        self.accesses.written(memory.region);
        *self.accesses.own_writes.entry((memory.region, address)).or_default() += 1;
        let place = (memory.region, address, at);
        let shared = memory.space == Space::Shared;
        let class = if shared { SassClass::SharedStore } else { SassClass::GlobalStore };
        // In warp-specialised code, uniform registers are not kept across the branch into roles, so
        // each store loads the global memory descriptor again (`R2UR`).
        let others = if self.has_roles && !shared { 2 } else { 0 };
        let (count, stmt) = (self.values.count(), self.values.stmt);
        let charge = Charge { count, stmt, cost: SassCost::one(class).beside(others) };
        let (access, piece) = (memory.access, self.scope.piece);
        let store = Store { place, value, access, piece, charge, fate: StoreFate::Stands };
        self.accesses.push(store, self.scope.guarded);
        let epoch = self.epoch(memory.region, address);
        let key = Key::Load(address, at, epoch);
        if self.scope.guarded {
            self.values.forget(&key);
        } else {
            self.values.remember(key, value);
        }
    }

    /// Merges two stores to the same place in opposite branches. A selection of the stored value
    /// comes before the merged store.
    pub(super) fn sink(&mut self, since: usize) {
        if let [first, second] = &mut self.accesses.stores[since..]
            && first.place == second.place
        {
            first.fate = StoreFate::Sunk;
            // The selection needs both values.
            self.roots.push(first.value);
        }
    }

    /// Records a synchronisation. After it, all memory that the kernel writes may have changed.
    pub(super) fn met(&mut self) {
        self.accesses.meetings += 1;
        self.scope.piece += 1;
    }

    /// Version of the memory at an address: the number of stores through other addresses, and of
    /// synchronisations.
    fn epoch(&self, region: u32, address: ValueId) -> Epoch {
        let written = self.code.stored[region as usize];
        let meetings = if written { self.accesses.meetings } else { 0 };
        let all = self.accesses.epochs.get(&region).copied().unwrap_or(0);
        let own = self.accesses.own_writes.get(&(region, address)).copied().unwrap_or(0);
        Epoch { meetings, writes: all - own }
    }
}
