use super::super::counters::IrClass;
use super::super::region::slots_of;
use super::Lowering;
use crate::lower::code::expr::{Index, Uniform};
use crate::lower::code::{Fragment, Memory, Pointer};
use gemm_dsl::ir::{Access, BufferId, Expr, Space, Ty};

impl Lowering<'_, '_> {
    /// Lowers the access of a load, and counts the load.
    pub(super) fn load(&mut self, access: &Access) -> Memory {
        let memory = self.memory(access);
        match memory.space {
            Space::Global => self.cost.add(IrClass::GlobalLoad),
            Space::Shared => self.cost.add(IrClass::SharedLoad),
            Space::Register => {}
        }
        self.code.loaded[memory.region as usize] = true;
        memory
    }

    pub(super) fn index(&mut self, e: &Expr) -> Index {
        match e.ty() {
            ty if self.is_uniform(e) => {
                Index::Uniform { value: self.uniform(e), wide: ty == Ty::U64 }
            }
            Ty::U64 => Index::U64(self.wide(e)),
            _ => Index::I32(self.lane(e)),
        }
    }

    /// Lowers a pointer. Returns it with the buffer at which it points.
    pub(super) fn pointer(&mut self, buffer: BufferId, index: &[Expr]) -> (Pointer, BufferId) {
        let Some((first, count, into)) = self.pointers[buffer.id] else {
            unreachable!("verified: the buffer contains pointers");
        };
        let index = index.first().map(|e| self.index(e));
        (Pointer { first, count, index }, into)
    }

    /// Lowers an access without counting an instruction for it.
    pub(super) fn memory(&mut self, access: &Access) -> Memory {
        if self.pointers[access.buffer.id].is_some()
            && let Some((last, index)) = access.index.split_last()
        {
            let (pointer, into) = self.pointer(access.buffer, index);
            return Memory {
                access: self.next_access(),
                index: vec![self.index(last)],
                pointer: Some(Box::new(pointer)),
                region: self.launch.kernel.memory_of(into).id as u32,
                space: Space::Global,
                vector: access.is_vector(),
            };
        }
        let chosen = self.chosen[access.buffer.id].clone();
        let index = chosen.iter().chain(&access.index).map(|e| self.index(e)).collect();
        Memory {
            access: self.next_access(),
            index,
            pointer: None,
            region: self.launch.kernel.memory_of(access.buffer).id as u32,
            space: self.launch.regions[access.buffer.id].space,
            vector: access.is_vector(),
        }
    }

    /// Lowers a matrix fragment of a lane, given its first element.
    pub(super) fn fragment(&mut self, first: &Access) -> Fragment {
        let first = self.memory(first);
        let slot = self.element(&first);
        Fragment { first, slot }
    }

    fn next_access(&mut self) -> u32 {
        self.code.accesses += 1;
        self.code.accesses - 1
    }

    /// Lane slot of an element of a register array, or of the first word of a vector. `None` unless
    /// the index is static and in bounds.
    pub(super) fn element(&self, place: &Memory) -> Option<u32> {
        let region = &self.launch.regions[place.region as usize];
        if place.space != Space::Register {
            return None;
        }
        let mut offset = 0;
        for (d, index) in place.index.iter().enumerate() {
            let Index::Uniform { value: Uniform::Static(index), .. } = index else {
                return None;
            };
            let index = u64::try_from(*index).ok()?;
            let reach = if d == region.contiguous { region.width(place.vector) - 1 } else { 0 };
            if index.checked_add(reach.into())? >= region.dims[d] {
                return None;
            }
            offset += index * region.strides[d];
        }
        // A vector consists of whole lane slots only if its elements have at least one word.
        let width = region.width(place.vector);
        let right = !place.vector
            || (region.elem.size() >= 4
                && offset.is_multiple_of(width.into())
                && !place.index.is_empty());
        right.then(|| region.base + offset as u32 * slots_of(region.elem))
    }
}
