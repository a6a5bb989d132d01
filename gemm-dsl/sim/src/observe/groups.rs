//! Lanes of a warp, grouped by the first element that they access.

use crate::mask::{ALL, WARP, lanes_of, mask_where};

#[derive(Clone)]
pub(crate) struct LaneGroups {
    len: usize,
    groups: [(u32, u32); WARP],
}

impl LaneGroups {
    pub(crate) fn new(words: &[u32; WARP], mask: u32) -> Self {
        let mut found = Self { len: 0, groups: [(0, 0); WARP] };
        // If words are strictly ascending, all are different, so no search is needed.
        let rising = (1..WARP).fold(true, |rising, l| rising & (words[l - 1] < words[l]));
        if rising {
            for lane in lanes_of(mask) {
                found.push(words[lane], 1 << lane);
            }
            return found;
        }
        let mut left = mask;
        while left != 0 {
            let word = words[left.trailing_zeros() as usize];
            let same = mask_where(|l| words[l] == word) & left;
            found.push(word, same);
            left &= !same;
        }
        found
    }

    fn push(&mut self, word: u32, lanes: u32) {
        if let Some(group) = self.groups.get_mut(self.len) {
            *group = (word, lanes);
            self.len += 1;
        }
    }

    /// Returns the same groups with a constant added to every word.
    fn moved(&self, by: u32) -> Self {
        let groups = self.groups.map(|(word, lanes)| (word.wrapping_add(by), lanes));
        Self { len: self.len, groups }
    }

    /// Each accessed word, with the mask of its lanes.
    pub(crate) fn as_slice(&self) -> &[(u32, u32)] {
        &self.groups[..self.len]
    }
}

/// Latest lane groups of each access of a kernel. In a loop, all lanes of an access usually move by
/// the same distance, which does not change the groups. Most accesses therefore need no search.
pub(crate) struct GroupCache(Vec<Option<CachedGroups>>);

struct CachedGroups {
    mask: u32,
    words: [u32; WARP],
    groups: LaneGroups,
}

impl GroupCache {
    pub(crate) fn new(accesses: u32) -> Self {
        Self((0..accesses).map(|_| None).collect())
    }

    /// Groups the lanes of an access by the first words that they access.
    #[inline]
    pub(crate) fn groups(&mut self, access: u32, words: &[u32; WARP], mask: u32) -> LaneGroups {
        let known = &mut self.0[access as usize];
        let first = mask.trailing_zeros() as usize % WARP;
        if let Some(pattern) = known
            && pattern.mask == mask
        {
            let by = words[first].wrapping_sub(pattern.words[first]);
            let moved = |l: usize| words[l].wrapping_sub(by) == pattern.words[l];
            let same = match mask {
                ALL => (0..WARP).fold(true, |same, l| same & moved(l)),
                _ => mask & !mask_where(moved) == 0,
            };
            if same {
                return pattern.groups.moved(by);
            }
        }
        let groups = LaneGroups::new(words, mask);
        *known = Some(CachedGroups { mask, words: *words, groups: groups.clone() });
        groups
    }
}
