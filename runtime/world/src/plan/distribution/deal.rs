//! The blocks of a layout, and who has them.

use crate::plan::{Block, Factor};
use std::ops::Range;

/// The blocks of a layout, as rows and columns of them.
pub(in crate::plan) struct Deal {
    pub(super) rows: Vec<Range<usize>>,
    pub(super) cols: Vec<Range<usize>>,
    /// In which order ranks have them; none where every rank has the only one.
    pub(super) patch: Option<[usize; 2]>,
    /// Whether that order is column after column.
    pub(super) down: bool,
}

impl Deal {
    /// What a rank has.
    pub(in crate::plan) fn shard(&self, rank: usize) -> Block {
        let [row, col] = self.place(rank);
        Block::new(self.rows[row].clone(), self.cols[col].clone())
    }

    /// In which row and column of blocks a rank has its own.
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

    /// Who has the block in a row and a column: whoever asks, where everybody has it.
    fn owner(&self, place: [usize; 2], asks: usize) -> usize {
        let Some(patch) = self.patch else { return asks };
        let ([high, wide], [row, col]) = (self.turned(patch), self.turned(place));
        let patch = row / high * (self.across() / wide) + col / wide;
        patch * high * wide + row % high * wide + col % wide
    }

    /// How many blocks follow one another before the next row of them, or column.
    fn across(&self) -> usize {
        if self.down { self.rows.len() } else { self.cols.len() }
    }

    /// Of rows and columns first those along which ranks do not follow one another.
    fn turned(&self, [rows, cols]: [usize; 2]) -> [usize; 2] {
        if self.down { [cols, rows] } else { [rows, cols] }
    }

    /// Where shards begin and end along what becomes rows of C, of A, or columns, of B: in order.
    pub(in crate::plan) fn cuts(&self, factor: Factor) -> Vec<usize> {
        let parts = match factor {
            Factor::A => &self.rows,
            Factor::B => &self.cols,
        };
        let mut cuts: Vec<usize> = parts.iter().flat_map(|part| [part.start, part.end]).collect();
        cuts.dedup();
        cuts
    }

    /// Who has what of a block, for a rank that asks: itself where everybody has it. Nobody has nothing.
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

/// Which of the parts of an extent have something of a range; those of length 0 between them are there too.
fn touched(parts: &[Range<usize>], range: &Range<usize>) -> Range<usize> {
    let first = parts.partition_point(|part| part.end <= range.start);
    let end = parts.partition_point(|part| part.start < range.end);
    first..end.max(first)
}
