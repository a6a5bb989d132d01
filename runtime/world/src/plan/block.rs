//! Rectangular blocks of a matrix.

use super::work::work;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Range of consecutive rows and columns of a matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Range of rows, counted from 0.
    pub rows: Range<usize>,
    /// Range of columns, counted from 0.
    pub cols: Range<usize>,
}

impl Block {
    /// Creates a block from ranges of rows and columns.
    pub fn new(rows: Range<usize>, cols: Range<usize>) -> Self {
        Self { rows, cols }
    }

    /// Returns the number of elements, or `usize::MAX` if the number overflows.
    pub fn len(&self) -> usize {
        self.rows.len().saturating_mul(self.cols.len())
    }

    /// Returns true for a block without elements.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.cols.is_empty()
    }

    /// Returns the intersection of two blocks, which may be empty.
    pub fn and(&self, other: &Self) -> Self {
        let and = |a: &Range<usize>, b: &Range<usize>| {
            let start = a.start.max(b.start);
            start..a.end.min(b.end).max(start)
        };
        Self { rows: and(&self.rows, &other.rows), cols: and(&self.cols, &other.cols) }
    }

    /// Returns the smallest block that contains both blocks.
    pub fn with(&self, other: &Self) -> Self {
        match (self.is_empty(), other.is_empty()) {
            (_, true) => self.clone(),
            (true, false) => other.clone(),
            (false, false) => {
                let with =
                    |a: &Range<usize>, b: &Range<usize>| a.start.min(b.start)..a.end.max(b.end);
                Self { rows: with(&self.rows, &other.rows), cols: with(&self.cols, &other.cols) }
            }
        }
    }

    /// Returns the block of the same elements in the transposed matrix.
    ///
    /// ```
    /// use gemm_world::plan::Block;
    ///
    /// assert_eq!(Block::new(0..2, 5..9).t(), Block::new(5..9, 0..2));
    /// ```
    #[must_use]
    pub fn t(&self) -> Self {
        Self { rows: self.cols.clone(), cols: self.rows.clone() }
    }

    /// Returns true if the rows of this block are not contiguous within `of`, a row-major block
    /// that contains it.
    pub fn is_apart_in(&self, of: &Self) -> bool {
        self.rows.len() > 1 && self.cols.len() < of.cols.len()
    }

    /// Returns true if this block contains all of another block.
    pub fn contains(&self, other: &Self) -> bool {
        other.is_empty() || self.and(other) == *other
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, cols } = self;
        write!(f, "[{}..{}, {}..{}]", rows.start, rows.end, cols.start, cols.end)
    }
}

/// Returns two overlapping blocks, or `None` if no blocks overlap. Takes O(n log n) steps.
pub(super) fn overlap<'b>(blocks: &[&'b Block]) -> Option<(&'b Block, &'b Block)> {
    if blocks.len() < 2 {
        return None;
    }
    let mut sorted: Vec<&Block> =
        blocks.iter().copied().filter(|block| !block.is_empty()).collect();
    work(sorted.len());
    // Usually the blocks form a single row or a single column.
    sorted.sort_by_key(|block| block.cols.start);
    if sorted.is_sorted_by(|a, b| a.cols.end <= b.cols.start) {
        return None;
    }
    sorted.sort_by_key(|block| block.rows.start);
    if sorted.is_sorted_by(|a, b| a.rows.end <= b.rows.start) {
        return None;
    }
    let mut by_end = sorted.clone();
    by_end.sort_by_key(|block| block.rows.end);
    let mut ends = by_end.into_iter().peekable();
    // Blocks that extend to the current row, by their first column. They are disjoint.
    let mut open: BTreeMap<usize, &Block> = BTreeMap::new();
    for block in sorted {
        work(1);
        while let Some(end) = ends.next_if(|end| end.rows.end <= block.rows.start) {
            open.remove(&end.cols.start);
        }
        let before = open.range(..block.cols.end).next_back();
        if let Some((_, other)) = before.filter(|(_, other)| other.cols.end > block.cols.start) {
            return Some((other, block));
        }
        open.insert(block.cols.start, block);
    }
    None
}
