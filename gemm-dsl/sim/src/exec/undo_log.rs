//! Undo log of a block's writes to global memory, to run the block again.

use crate::region::{ElementId, Region};
use std::collections::BTreeMap;

/// Bits of global elements before their first write.
#[derive(Clone, Debug, Default)]
pub(crate) struct UndoLog(BTreeMap<ElementId, u64>);

fn bits(regions: &[Region], at: ElementId) -> u64 {
    let memory = regions.get(at.buffer).and_then(|r| r.memory.as_ref());
    memory.map_or(0, |memory| memory.read(at.element as usize))
}

impl UndoLog {
    /// Stores the old bits of an element before a write.
    pub(crate) fn note(&mut self, at: ElementId, bits: u64) {
        self.0.entry(at).or_insert(bits);
    }

    /// Current content of the elements in the log.
    pub(crate) fn contents(&self, regions: &[Region]) -> Self {
        Self(self.0.keys().map(|&at| (at, bits(regions, at))).collect())
    }

    pub(crate) fn restore(&self, regions: &[Region]) {
        for (&ElementId { buffer, element }, &bits) in &self.0 {
            let memory = regions.get(buffer).and_then(|r| r.memory.as_ref());
            memory.into_iter().for_each(|memory| memory.write(element as usize, bits));
        }
    }

    /// Returns the first element of a result buffer that differs from `contents`, with the expected
    /// and the actual bits. If `contents` does not have an element, its expected bits are those
    /// before the first write.
    pub(crate) fn differing(
        &self,
        regions: &[Region],
        contents: &Self,
        is_result: impl Fn(usize) -> bool,
    ) -> Option<(ElementId, [u64; 2])> {
        let pair = |(&at, &before): (&ElementId, &u64)| {
            (at, [contents.0.get(&at).copied().unwrap_or(before), bits(regions, at)])
        };
        self.0
            .iter()
            .filter(|(at, _)| is_result(at.buffer))
            .map(pair)
            .find(|(_, [expected, found])| expected != found)
    }
}
