//! What the variables of the lowered code hold, along the text: a value each, which changes with assignments.

use super::form::Id;
use std::collections::{BTreeMap, HashMap};

/// The kinds of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Lane,
    Wide,
    Pred,
    Uniform,
}

/// A variable, or an element of a register array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Slot {
    pub(super) kind: Kind,
    pub(super) at: u32,
}

/// What they hold, and what has changed since a mark.
#[derive(Default)]
pub(super) struct Slots {
    held: HashMap<Slot, Id>,
    /// What each held before it was changed.
    before: Vec<(Slot, Option<Id>)>,
}

impl Slots {
    pub(super) fn get(&self, slot: Slot) -> Option<Id> {
        self.held.get(&slot).copied()
    }

    pub(super) fn set(&mut self, slot: Slot, id: Id) {
        let before = self.held.insert(slot, id);
        self.before.push((slot, before));
    }

    /// Where the changes begin that come from here on.
    pub(super) fn mark(&self) -> usize {
        self.before.len()
    }

    /// What was assigned since a mark, in order of the variables, with what it is now.
    pub(super) fn changed(&self, since: usize) -> BTreeMap<Slot, Id> {
        let slots = self.before[since..].iter().map(|(slot, _)| *slot);
        slots.filter_map(|slot| Some((slot, self.get(slot)?))).collect()
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
