//! Blocks of a distribution, and their owners.

use crate::plan::{Block, Factor};
use std::ops::Range;

/// Blocks of a distribution, as a grid.
pub(in crate::plan) struct BlockOwners {
    pub(super) rows: Vec<Range<usize>>,
    pub(super) cols: Vec<Range<usize>>,
    /// Rows and columns of a patch of the numbering order. `None` if every rank has the whole
    /// matrix.
    pub(super) patch: Option<[usize; 2]>,
    /// True if ranks are numbered column by column.
    pub(super) down: bool,
}

impl BlockOwners {
    /// Returns the block of a rank.
    pub(in crate::plan) fn shard(&self, rank: usize) -> Block {
        let [row, col] = self.place(rank);
        Block::new(self.rows[row].clone(), self.cols[col].clone())
    }

    /// Returns a rank's row and column in the grid of blocks.
    fn place(&self, rank: usize) -> [usize; 2] {
        let Some(patch) = self.patch else { return [0, 0] };
        let [high, wide] = self.turned(patch);
        let (patch, inside) = (rank / (high * wide), rank % (high * wide));
        let patches = self.across() / wide;
        self.turned([
            patch / patches * high + inside / wide,
            patch % patches * wide + inside % wide,
        ])
    }

    /// Returns the owner of a block, or the rank `asks` if every rank has the whole matrix.
    fn owner(&self, place: [usize; 2], asks: usize) -> usize {
        let Some(patch) = self.patch else { return asks };
        let ([high, wide], [row, col]) = (self.turned(patch), self.turned(place));
        let patch = row / high * (self.across() / wide) + col / wide;
        patch * high * wide + row % high * wide + col % wide
    }

    /// Number of blocks along the axis on which consecutive ranks are neighbours.
    fn across(&self) -> usize {
        if self.down { self.rows.len() } else { self.cols.len() }
    }

    /// Swaps rows and columns if ranks are numbered column by column.
    fn turned(&self, [rows, cols]: [usize; 2]) -> [usize; 2] {
        if self.down { [cols, rows] } else { [rows, cols] }
    }

    /// Returns the sorted bounds of the shards: along M for A, along N for B.
    pub(in crate::plan) fn cuts(&self, factor: Factor) -> Vec<usize> {
        let parts = match factor {
            Factor::A => &self.rows,
            Factor::B => &self.cols,
        };
        let mut cuts: Vec<usize> = parts.iter().flat_map(|part| [part.start, part.end]).collect();
        cuts.dedup();
        cuts
    }

    /// Returns the parts of a block, each with its owner. If every rank has the whole matrix, the
    /// owner is the rank `asks`. Empty parts are omitted.
    pub(in crate::plan) fn owners_of(
        &self,
        needed: &Block,
        asks: usize,
    ) -> impl Iterator<Item = (usize, Block)> {
        let (rows, cols) = (touched(&self.rows, &needed.rows), touched(&self.cols, &needed.cols));
        let places = rows.flat_map(move |row| cols.clone().map(move |col| (row, col)));
        let parts = places.map(move |(row, col)| {
            let block = Block::new(self.rows[row].clone(), self.cols[col].clone());
            (self.owner([row, col], asks), block.and(needed))
        });
        parts.filter(|(_, block)| !block.is_empty())
    }
}

/// Returns the indices of the parts that overlap a range, including empty parts between them.
fn touched(parts: &[Range<usize>], range: &Range<usize>) -> Range<usize> {
    let first = parts.partition_point(|part| part.end <= range.start);
    let end = parts.partition_point(|part| part.start < range.end);
    first..end.max(first)
}
