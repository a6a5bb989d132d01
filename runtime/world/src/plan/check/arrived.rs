//! Count of the elements that have arrived at a place of a rank.

use crate::plan::work::work;
use crate::plan::{Block, Factor, FactorExt};
use std::ops::Range;

/// Number of arrived elements, by row of A or column of B. No element arrives twice, and all blocks
/// are known in advance.
///
/// A block with extent w along K covers rows or columns s to e. The number of its elements before x
/// is 0 for x < s, w·(x - s) up to e, and w·(x - s) - w·(x - e) after e. So two sums over the block
/// bounds up to x suffice: the sum of ±w, and the sum of ±w times the bound. A Fenwick tree
/// computes both in O(log n) steps. The sums may wrap around, but their differences are exact.
#[derive(Default)]
pub(super) struct Arrived {
    /// Sorted bounds of the blocks.
    ends: Vec<usize>,
    /// Fenwick tree over the bounds, with sums of w and of w times the bound. The entry at i covers
    /// as many bounds as the lowest set bit of i + 1.
    sums: Vec<[usize; 2]>,
}

impl Arrived {
    /// Resets to no arrived elements, and announces the blocks that may arrive.
    pub(super) fn expect<'b>(&mut self, factor: Factor, blocks: impl Iterator<Item = &'b Block>) {
        self.ends.clear();
        self.ends.extend(
            blocks.map(|block| factor.outer(block)).flat_map(|range| [range.start, range.end]),
        );
        work(self.ends.len());
        self.ends.sort();
        self.ends.dedup();
        self.sums.clear();
        self.sums.resize(self.ends.len(), [0; 2]);
    }

    /// Records the arrival of a block.
    pub(super) fn come(&mut self, factor: Factor, block: &Block) {
        let (outer, terms) = (factor.outer(block), factor.terms(block).len());
        self.add(outer.start, terms);
        self.add(outer.end, terms.wrapping_neg());
    }

    fn add(&mut self, end: usize, terms: usize) {
        let mut number = self.ends.partition_point(|other| *other < end) + 1;
        while let Some(sum) = self.sums.get_mut(number - 1) {
            work(1);
            sum[0] = sum[0].wrapping_add(terms);
            sum[1] = sum[1].wrapping_add(terms.wrapping_mul(end));
            number += number & number.wrapping_neg();
        }
    }

    /// Returns the number of arrived elements within a range of rows or columns.
    pub(super) fn within(&self, outer: &Range<usize>) -> usize {
        self.before(outer.end).wrapping_sub(self.before(outer.start))
    }

    fn before(&self, end: usize) -> usize {
        let mut number = self.ends.partition_point(|other| *other <= end);
        let mut sum = [0_usize; 2];
        while number > 0 {
            work(1);
            let [terms, ends] = self.sums[number - 1];
            sum = [sum[0].wrapping_add(terms), sum[1].wrapping_add(ends)];
            number &= number - 1;
        }
        end.wrapping_mul(sum[0]).wrapping_sub(sum[1])
    }
}
