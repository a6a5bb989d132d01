//! What a block has written to global memory, so that it can be run again.

use crate::region::{ElementId, Region};
use std::collections::BTreeMap;

/// The bits of elements of global memory: those before the first write.
#[derive(Clone, Debug, Default)]
pub(crate) struct UndoLog(BTreeMap<ElementId, u64>);

fn bits(regions: &[Region], at: ElementId) -> u64 {
    let memory = regions.get(at.buffer).and_then(|r| r.memory.as_ref());
    memory.map_or(0, |memory| memory.read(at.element as usize))
}

impl UndoLog {
    /// An element that holds these bits is about to be written.
    pub(crate) fn note(&mut self, at: ElementId, bits: u64) {
        self.0.entry(at).or_insert(bits);
    }

    /// What its elements hold now.
    pub(crate) fn contents(&self, regions: &[Region]) -> Self {
        Self(self.0.keys().map(|&at| (at, bits(regions, at))).collect())
    }

    /// Writes what was noted.
    pub(crate) fn restore(&self, regions: &[Region]) {
        for (&ElementId { buffer, element }, &bits) in &self.0 {
            let memory = regions.get(buffer).and_then(|r| r.memory.as_ref());
            memory.into_iter().for_each(|memory| memory.write(element as usize, bits));
        }
    }

    /// The first element that holds something else than it did when it had these contents, with both:
    /// one that they lack held what was noted first. Only buffers that are results are looked at.
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
