//! How much of a matrix has come to a place of a rank.

use crate::plan::work::work;
use crate::plan::{Block, Factor, FactorExt};
use std::ops::Range;

/// How many elements have come, by the rows of A or the columns of B that they are of. No element comes twice, and none that
/// is not known before.
///
/// With a block of w terms that begins at s and ends at e, there are w·(x - s) more elements before each x from s on, and
/// w·(x - e) fewer from e on: both are sums over the ends of blocks before x, of w and of w·s, which a Fenwick tree has in
/// log n steps. They may be beyond what can be counted, but their differences are not.
#[derive(Default)]
pub(super) struct Arrived {
    /// Where blocks begin and end, in order.
    ends: Vec<usize>,
    /// Sums of w, and of w times where it is: at i, of as many of them as the lowest bit of i + 1 says.
    sums: Vec<[usize; 2]>,
}

impl Arrived {
    /// Nothing has come, and these may.
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

    /// This has come.
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

    /// How many elements have come that are of a range.
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
