//! Values of the variables of the lowered code, at the current position of the analysis.

use crate::lower::code::Slot;
use crate::sass::polynomial::ValueId;
use std::collections::{BTreeMap, HashMap};

/// Current values, with a log of changes.
#[derive(Default)]
pub(super) struct SlotValues {
    held: HashMap<Slot, ValueId>,
    /// For each change, the variable and its previous value.
    before: Vec<(Slot, Option<ValueId>)>,
}

impl SlotValues {
    pub(super) fn get(&self, slot: Slot) -> Option<ValueId> {
        self.held.get(&slot).copied()
    }

    pub(super) fn set(&mut self, slot: Slot, id: ValueId) {
        let before = self.held.insert(slot, id);
        self.before.push((slot, before));
    }

    /// Returns the current position in the log of changes.
    pub(super) fn mark(&self) -> usize {
        self.before.len()
    }

    /// Variables that were assigned since a mark, with their current values.
    pub(super) fn changed(&self, since: usize) -> BTreeMap<Slot, ValueId> {
        let slots = self.before[since..].iter().map(|(slot, _)| *slot);
        slots.filter_map(|slot| Some((slot, self.get(slot)?))).collect()
    }

    /// Returns true if all variables that were assigned since a mark are in `known`.
    pub(super) fn changed_are<I: Iterator<Item = Slot>>(
        &self,
        since: usize,
        known: impl Fn() -> I,
    ) -> bool {
        self.before[since..].iter().all(|(slot, _)| known().any(|known| known == *slot))
    }

    /// Reverts the assignments since a mark.
    pub(super) fn restore(&mut self, since: usize) {
        for (slot, before) in self.before.drain(since..).rev() {
            match before {
                Some(id) => self.held.insert(slot, id),
                None => self.held.remove(&slot),
            };
        }
    }
}
