//! Rectangles of a matrix.

use std::fmt;
use std::ops::Range;

/// Some consecutive rows and columns of a matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Its rows.
    pub rows: Range<usize>,
    /// Its columns.
    pub cols: Range<usize>,
}

impl Block {
    /// The block of these rows and columns.
    pub fn new(rows: Range<usize>, cols: Range<usize>) -> Self {
        Self { rows, cols }
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.rows.len() * self.cols.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.cols.is_empty()
    }

    /// What two blocks have in common, which may be nothing.
    pub fn and(&self, other: &Self) -> Self {
        let and = |a: &Range<usize>, b: &Range<usize>| {
            let start = a.start.max(b.start);
            start..a.end.min(b.end).max(start)
        };
        Self { rows: and(&self.rows, &other.rows), cols: and(&self.cols, &other.cols) }
    }

    /// Whether all of another block is in this one.
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

/// Two blocks that have elements in common, if there are such.
pub(super) fn overlap<'b>(blocks: &[&'b Block]) -> Option<(&'b Block, &'b Block)> {
    let mut sorted: Vec<&Block> = blocks.iter().copied().filter(|block| !block.is_empty()).collect();
    sorted.sort_by_key(|block| (block.rows.start, block.cols.start));
    // Those that reach down to the rows that are looked at.
    let mut open: Vec<&Block> = Vec::new();
    for block in sorted {
        open.retain(|other| other.rows.end > block.rows.start);
        if let Some(other) = open.iter().find(|other| !other.and(block).is_empty()) {
            return Some((other, block));
        }
        open.push(block);
    }
    None
}
