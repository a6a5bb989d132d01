//! What the variables of the lowered code hold, along the text: a value each, which changes with assignments.

use crate::lower::code::Slot;
use crate::sass::polynomial::ValueId;
use std::collections::{BTreeMap, HashMap};

/// What they hold, and what has changed since a mark.
#[derive(Default)]
pub(super) struct SlotValues {
    held: HashMap<Slot, ValueId>,
    /// What each held before it was changed.
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

    /// Where the changes begin that come from here on.
    pub(super) fn mark(&self) -> usize {
        self.before.len()
    }

    /// What was assigned since a mark, in order of the variables, with what it is now.
    pub(super) fn changed(&self, since: usize) -> BTreeMap<Slot, ValueId> {
        let slots = self.before[since..].iter().map(|(slot, _)| *slot);
        slots.filter_map(|slot| Some((slot, self.get(slot)?))).collect()
    }

    /// Whether all that was assigned since a mark is among these.
    pub(super) fn changed_are<I: Iterator<Item = Slot>>(
        &self,
        since: usize,
        known: impl Fn() -> I,
    ) -> bool {
        self.before[since..].iter().all(|(slot, _)| known().any(|known| known == *slot))
    }

    /// Takes back what was assigned since a mark.
    pub(super) fn restore(&mut self, since: usize) {
        for (slot, before) in self.before.drain(since..).rev() {
            match before {
                Some(id) => self.held.insert(slot, id),
                None => self.held.remove(&slot),
            };
        }
    }
}
