//! Accesses to memory: their addresses, and which of them the compiler makes one of.

use super::super::code::Memory;
use super::super::region::slots_of;
use super::Compiler;
use super::cost::{self, Class, Cost};
use super::form::{Form, Id, Term};
use super::slots::{Kind, Slot};
use super::values::{Key, sum_cost};
use crate::ir::Space;
use std::collections::BTreeMap;

/// A load that may be merged with its neighbours.
pub(super) struct Load {
    pub(super) value: Id,
    /// The number of the access.
    pub(super) access: u32,
    /// Which piece of straight code it is in.
    piece: u32,
    /// How often its memory has changed before.
    epoch: u32,
    region: u32,
    /// Its address but for a constant, and the constant, in elements.
    form: Form,
    at: i64,
    /// Whether nothing else may be loaded instead.
    alone: bool,
}

/// Which loads may be merged: their piece of straight code, buffer, epoch and address but for a constant.
type Near = (u32, u32, u32, Vec<Term>);

/// A store that nobody has looked at yet.
pub(super) struct Stored {
    piece: u32,
    /// Where it is among the instructions.
    spent: usize,
}

/// What the profiler is told of an access of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Role {
    /// It is as it stands there.
    Own,
    /// It is the first of several, that are made one of so many bytes.
    First(u32),
    /// It is not there: another access brings it too, or nobody needs it.
    Gone,
}

impl Compiler<'_, '_> {
    /// The place of an access in its buffer, in elements.
    pub(super) fn form_of(&mut self, memory: &Memory) -> Form {
        if let Some(pointer) = &memory.pointer {
            let slot = pointer.index.as_ref().map(|index| self.index(index));
            let at = slot.and_then(|id| self.values.form(id).known()).unwrap_or(0);
            let slot = Slot { kind: Kind::Wide, at: pointer.first + at as u32 };
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
        let mut form = Form::default();
        let mut row = Form::default();
        for (d, index) in memory.index.iter().enumerate() {
            let id = self.index(index);
            let own = self.values.form(id);
            let stride = region.strides.get(d).copied().unwrap_or(0) as i64;
            if region.swizzle.is_some() && d == region.contiguous {
                row = own;
                continue;
            }
            // A stride that only the launch knows is a parameter.
            let strided = match region.space == Space::Global && stride > 1 {
                true => {
                    let stride = self.uniform(&super::super::code::Uniform::Known(stride));
                    own.product(&Form::value(stride))
                }
                false => Some(own.times(stride)),
            };
            let step = match strided {
                Some(step) => step,
                None => Form::value(self.values.sum(own, true)),
            };
            form = form.add(&step, 1);
        }
        let Some((swizzle, width)) = region.swizzle else { return form };
        // The rows that decide about the exchange come back after so many.
        let period = i64::from(width) << (swizzle.bits + swizzle.shift);
        let decides = Form { constant: form.constant.rem_euclid(period), ..form.clone() };
        let operands = [decides, row].map(|form| self.values.sum(form, false));
        let column = self.values.op("exchange", &operands, 0, Cost::others(2));
        self.values.all[column as usize].multiple = 1 << swizzle.base.min(4);
        form.add(&Form::value(column), 1)
    }

    /// The address that a form needs beside its constant, which is part of the instruction.
    fn address(&mut self, space: Space, region: u32, form: &Form) -> Id {
        let form = form.varying();
        let key = Key::Address(region, form.clone());
        if let Some(known) = self.values.known(&key) {
            return known;
        }
        let depth = self.values.depth_of_form(&form);
        let (varying, fixed) = form.split(|of| depth > 0 && self.values.depth_of(of) == depth);
        let wide = if space == Space::Global { 2 } else { 1 };
        let mut operands: Vec<Id> =
            form.terms.iter().flat_map(|(of, _)| of.iter().copied()).collect();
        let cost = if depth > 0 {
            // A pointer that moves from round to round; or, from what was loaded or chosen there, an address of its own.
            let fixed = self.address(space, region, &Form::of(fixed));
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
            let near = self.addresses.iter().rev().filter(|(of, _, id)| {
                *of == region
                    && self.values.known(&Key::Address(region, self.address_form(*id))) == Some(*id)
            });
            let near = near.map(|(_, other, id)| {
                let (plain, products) = other.distance(&form);
                (plain + products, plain, products, *id)
            });
            match near.min() {
                // Beside an address that is known: what is added to it. Where a row is multiplied by what only the launch
                // knows, as 64 bits, each one is.
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
            Space::Shared => self.values.op("window", &[], 0, Cost::others(cost::SHARED_WINDOW)),
            // The pointer, from the constant bank.
            _ => self.values.op("pointer", &[], region.into(), Cost::others(1)),
        });
        let id = self.values.keyed(key, operands, Cost::others(cost), depth);
        self.addresses.push((region, form, id));
        if self.addresses.len() > 32 {
            self.addresses.remove(0);
        }
        id
    }

    fn address_form(&self, id: Id) -> Form {
        let found = self.addresses.iter().find(|(_, _, known)| *known == id);
        found.map(|(_, form, _)| form.clone()).unwrap_or_default()
    }

    /// The address of an access that is no load: as an operand of the statement.
    pub(super) fn place(&mut self, memory: &Memory) -> Id {
        let form = self.form_of(memory);
        self.address(memory.space, memory.region, &form)
    }

    /// A value that memory holds.
    pub(super) fn load(&mut self, memory: &Memory) -> Id {
        let form = self.form_of(memory);
        let address = self.address(memory.space, memory.region, &form);
        let epoch = self.epoch(memory.region, address);
        let key = Key::Load(address, form.constant * 2 + i64::from(memory.vector), epoch);
        if let Some(known) = self.values.known(&key) {
            self.claim(memory.access, Role::Gone);
            return known;
        }
        // What was stored there is looked at.
        self.stores.retain(|(region, ..), _| *region != memory.region);
        let shared = memory.space == Space::Shared;
        self.copied &= !shared;
        let class = if shared { Class::SharedLoad } else { Class::GlobalLoad };
        let value = self.values.fresh(vec![address], Cost::one(class));
        self.values.remember(key, value);
        self.loads.push(Load {
            value,
            access: memory.access,
            piece: self.piece,
            epoch,
            region: memory.region,
            at: form.constant,
            form: form.varying(),
            alone: self.guarded || memory.vector || !shared,
        });
        value
    }

    /// The slots of elements of a register array, if their indices are static.
    pub(super) fn slots_of(&mut self, memory: &Memory) -> Option<Vec<Slot>> {
        let at = self.form_of(memory).known()?;
        let region = &self.launch.regions[memory.region as usize];
        let words = slots_of(region.elem);
        let first = region.base + at as u32 * words;
        let count = region.width(memory.vector) * words;
        Some((first..first + count).map(|at| Slot { kind: Kind::Lane, at }).collect())
    }

    /// Elements of a register array; at an index that only the thread knows, local memory.
    pub(super) fn local(&mut self, memory: &Memory) -> Id {
        if let Some(slots) = self.slots_of(memory) {
            let parts: Vec<Id> = slots.into_iter().map(|slot| self.read(slot)).collect();
            if let [value] = parts[..] {
                return value;
            }
            let narrow = self.launch.regions[memory.region as usize].elem.size() < 4;
            let words = if narrow { parts.len() as u32 / 2 } else { 0 };
            return self.values.op("vector", &parts, 0, Cost::others(words));
        }
        let address = self.form_of(memory);
        let address = self.values.sum(address, false);
        self.is_whole = false;
        self.values.fresh(vec![address], Cost::others(1))
    }

    /// A value is stored. A store that is overwritten before anybody can look is not there, and who loads what the thread
    /// itself has stored just before takes the value.
    pub(super) fn store(&mut self, memory: &Memory, value: Id) {
        let form = self.form_of(memory);
        let address = self.address(memory.space, memory.region, &form);
        let at = form.constant * 2 + i64::from(memory.vector);
        self.roots.push(address);
        self.written(memory.region);
        *self.own_writes.entry((memory.region, address)).or_default() += 1;
        let key = (memory.region, address, at);
        let shared = memory.space == Space::Shared;
        let class = if shared { Class::SharedStore } else { Class::GlobalStore };
        let stored = Stored { piece: self.piece, spent: self.spent.len() };
        if self.guarded {
            self.stores.remove(&key);
        } else if let Some(before) = self.stores.insert(key, stored)
            && before.piece == self.piece
        {
            self.spent[before.spent].2 = Cost::FREE;
            self.dead.insert(before.spent);
        }
        // Where roles have parted, uniform registers do not outlast the parting: what says how global memory is accessed is
        // moved there for each store (`R2UR`).
        let others = if self.has_roles && !shared { 2 } else { 0 };
        self.stored.push((self.spent.len(), value, key));
        self.stored_by.push((self.spent.len(), memory.access));
        let count = self.values.count();
        self.spend(count, Cost::one(class).beside(others));
        let epoch = self.epoch(memory.region, address);
        let key = Key::Load(address, at, epoch);
        if self.guarded {
            self.values.forget(&key);
        } else {
            self.values.remember(key, value);
        }
    }

    /// Of two branches that each store to the same place, one store is left: what it writes is chosen before.
    pub(super) fn sink(&mut self, since: usize) {
        if let [(first, value, one), (_, _, other)] = &self.stored[since..]
            && one == other
        {
            self.spent[*first].2 = Cost::FREE;
            // It is chosen from both.
            self.roots.push(*value);
        }
    }

    /// What becomes of an access; where copies of its loop's body differ, it stays as it is.
    pub(super) fn claim(&mut self, access: u32, role: Role) {
        let known = &mut self.claimed[access as usize];
        let role = if known.is_some_and(|known| known != role) { Role::Own } else { role };
        *known = Some(role);
    }

    /// Memory is written.
    pub(super) fn written(&mut self, region: u32) {
        *self.epochs.entry(region).or_default() += 1;
    }

    /// Threads meet: any memory that is written in the kernel may have changed.
    pub(super) fn met(&mut self) {
        self.meetings += 1;
        self.piece += 1;
    }

    /// How often what an address points to may have changed: by what is stored through other ones, and by other threads.
    fn epoch(&self, region: u32, address: Id) -> u32 {
        let written = self.code.stored[region as usize];
        let meetings = if written { self.meetings } else { 0 };
        let all = self.epochs.get(&region).copied().unwrap_or(0);
        let own = self.own_writes.get(&(region, address)).copied().unwrap_or(0);
        meetings << 16 | (all - own) & 0xffff
    }

    /// Makes one load of those in a window of so many elements, if all but one in four are there, and takes them from the run.
    fn merge_in(
        &mut self,
        run: &mut Vec<(i64, usize)>,
        elements: i64,
        bytes: u32,
        roles: &mut [Role],
    ) {
        let mut windows: BTreeMap<i64, Vec<(i64, usize)>> = BTreeMap::new();
        for load in run.drain(..) {
            windows.entry(load.0.div_euclid(elements)).or_default().push(load);
        }
        for mut window in windows.into_values() {
            window.sort_unstable();
            let mut places: Vec<i64> = window.iter().map(|(at, _)| *at).collect();
            places.dedup();
            let missing = elements - places.len() as i64;
            if elements < 2 || missing > elements / 4 {
                run.append(&mut window);
                continue;
            }
            for (nth, (_, at)) in window.into_iter().enumerate() {
                if nth == 0 {
                    roles[at] = Role::First(bytes);
                } else {
                    roles[at] = Role::Gone;
                    self.values.all[self.loads[at].value as usize].cost = Cost::FREE;
                }
            }
        }
    }

    /// Makes one load of neighbours in straight code that lie, as the compiler can tell, in 8 or 16 aligned bytes.
    pub(super) fn merge(&mut self) {
        let mut runs: BTreeMap<Near, Vec<(i64, usize)>> = BTreeMap::new();
        let mut roles = vec![Role::Gone; self.loads.len()];
        for (at, load) in self.loads.iter().enumerate() {
            if !self.values.all[load.value as usize].needed {
                continue;
            }
            roles[at] = Role::Own;
            if !load.alone {
                let key = (load.piece, load.region, load.epoch, load.form.terms.clone());
                runs.entry(key).or_default().push((load.at, at));
            }
        }
        for ((_, region, _, terms), mut run) in runs {
            let size = i64::from(self.launch.regions[region as usize].elem.size());
            let multiple = self.values.multiple(&Form::of(terms)) as i64 * size;
            for bytes in [16, 8].into_iter().filter(|bytes| multiple % bytes == 0) {
                self.merge_in(&mut run, bytes / size, bytes as u32, &mut roles);
            }
        }
        for (at, role) in roles.into_iter().enumerate() {
            self.claim(self.loads[at].access, role);
        }
    }
}
