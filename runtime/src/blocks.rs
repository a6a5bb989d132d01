//! Copies between two layouts, as blocks of rows that a driver call can copy.

use crate::shape::{AXES, PerAxis};
use smallvec::SmallVec;

/// Strides of consecutive elements, matrix by matrix and row by row.
pub(crate) fn packed_strides(extents: PerAxis) -> PerAxis {
    let (mut packed, mut next) = ([0; AXES], 1_usize);
    for axis in (0..AXES).rev() {
        packed[axis] = next;
        next = next.saturating_mul(extents[axis]);
    }
    packed
}

/// Strides of consecutive elements in the order in which they are in memory.
pub(crate) fn strides_in_memory_order(extents: PerAxis, strides: PerAxis) -> PerAxis {
    let mut order: [usize; AXES] = std::array::from_fn(|axis| axis);
    order.sort_by_key(|&axis| strides[axis]);
    let (mut packed, mut next) = ([0; AXES], 1_usize);
    for axis in order {
        packed[axis] = next;
        next = next.saturating_mul(extents[axis]);
    }
    packed
}

/// Offsets of all elements, matrix by matrix and row by row.
pub(crate) fn offsets(extents: PerAxis, strides: PerAxis) -> impl Iterator<Item = usize> {
    let along = move |axis: usize| {
        move |first: usize| (0..extents[axis]).map(move |n| first + n * strides[axis])
    };
    let batches = along(0)(0).flat_map(along(1)).flat_map(along(2));
    batches.flat_map(along(3)).flat_map(along(4))
}

/// Nested loop of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loop {
    extent: usize,
    /// Distance between two iterations on the target, in elements.
    to: usize,
    /// Distance between two iterations on the source, in elements.
    from: usize,
}

/// Copy of elements between two layouts: equal blocks of rows, whose elements are consecutive on
/// both sides. All numbers are in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Number of rows of a block.
    pub rows: usize,
    /// Number of elements of a row.
    pub cols: usize,
    /// Distance between two rows on the target, at least `cols` if there are several rows.
    pub to_pitch: usize,
    /// Distance between two rows on the source, at least `cols` if there are several rows.
    pub from_pitch: usize,
    /// Loops over the blocks, from the outermost on.
    loops: SmallVec<[Loop; AXES]>,
}

impl Blocks {
    /// Copy of elements with these extents, from one set of strides to another.
    pub(crate) fn new(extents: PerAxis, to: PerAxis, from: PerAxis) -> Self {
        if extents.contains(&0) {
            return Self::rows(0, 0, 0, 0);
        }
        let mut loops: SmallVec<[Loop; AXES]> = SmallVec::new();
        let mut all: [Loop; AXES] = std::array::from_fn(|axis| Loop {
            extent: extents[axis],
            to: to[axis],
            from: from[axis],
        });
        all.sort_by_key(|each| std::cmp::Reverse((each.to, each.from)));
        for inner in all.into_iter().filter(|each| each.extent > 1) {
            match loops.last_mut() {
                Some(outer)
                    if (outer.to, outer.from)
                        == (
                            inner.to.saturating_mul(inner.extent),
                            inner.from.saturating_mul(inner.extent),
                        ) =>
                {
                    *outer = Loop { extent: outer.extent * inner.extent, ..inner };
                }
                _ => loops.push(inner),
            }
        }
        let is_row = |inner: &Loop| (inner.to, inner.from) == (1, 1);
        let row = if loops.last().is_some_and(is_row) { loops.pop() } else { None };
        let cols = row.map_or(1, |row| row.extent);
        // A driver call copies rows that do not overlap.
        let of_rows = (0..loops.len()).filter(|&n| loops[n].to >= cols && loops[n].from >= cols);
        let rows = of_rows.max_by_key(|&n| loops[n].extent).map(|n| loops.remove(n));
        let Loop { extent: rows, to, from } =
            rows.unwrap_or(Loop { extent: 1, to: cols, from: cols });
        Self { rows, cols, to_pitch: to, from_pitch: from, loops }
    }

    /// One block of rows.
    pub(crate) fn rows(rows: usize, cols: usize, to_pitch: usize, from_pitch: usize) -> Self {
        Self { rows, cols, to_pitch, from_pitch, loops: SmallVec::new() }
    }

    /// The same copy with one row in each block.
    pub(crate) fn row_by_row(&self) -> Self {
        let Self { rows, cols, to_pitch, from_pitch, .. } = *self;
        let mut loops = self.loops.clone();
        loops.push(Loop { extent: rows, to: to_pitch, from: from_pitch });
        Self { loops, ..Self::rows(1, cols, cols, cols) }
    }

    /// The same elements as pairs of halves.
    pub(crate) fn in_halves(&self) -> Self {
        let Self { rows, cols, to_pitch, from_pitch, loops } = self;
        let double = |each: &Loop| Loop { to: 2 * each.to, from: 2 * each.from, ..*each };
        let loops = loops.iter().map(double).collect();
        Self { loops, ..Self::rows(*rows, 2 * cols, 2 * to_pitch, 2 * from_pitch) }
    }

    /// The first half of each element, in halves.
    pub(crate) fn first_halves(&self) -> Self {
        let Self { rows, cols, to_pitch, from_pitch, ref loops } = *self;
        let of_rows = Loop { extent: rows, to: to_pitch, from: from_pitch };
        let all = loops.iter().copied().chain([of_rows, Loop { extent: cols, to: 1, from: 1 }]);
        let mut axes = [Loop { extent: 1, to: 0, from: 0 }; AXES];
        // There are at most as many loops of more than one iteration as axes.
        for (axis, each) in axes.iter_mut().zip(all.filter(|each| each.extent != 1)) {
            *axis = each;
        }
        Self::new(
            axes.map(|each| each.extent),
            axes.map(|each| 2 * each.to),
            axes.map(|each| 2 * each.from),
        )
    }

    /// Returns true if there are no elements to copy.
    pub fn is_empty(&self) -> bool {
        self.rows == 0 || self.cols == 0
    }

    /// Returns true if rows are as long as the two layouts allow: no order of the elements on one
    /// side would need fewer blocks of single elements.
    pub(crate) fn is_by_rows(&self) -> bool {
        self.cols > 1 || self.loops.is_empty()
    }

    /// Elements from the first to the last of a block's rows.
    pub(crate) fn span(&self, pitch: usize) -> usize {
        if self.is_empty() { 0 } else { (self.rows - 1) * pitch + self.cols }
    }

    /// Offsets of the first elements of all blocks, on the target and on the source.
    pub fn starts(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let mut loops = [Loop { extent: 1, to: 0, from: 0 }; AXES];
        loops[..self.loops.len()].copy_from_slice(&self.loops);
        let extents = if self.is_empty() { [0; AXES] } else { loops.map(|each| each.extent) };
        let to = offsets(extents, loops.map(|each| each.to));
        to.zip(offsets(extents, loops.map(|each| each.from)))
    }

    /// Elements from the start of the target's memory to the end of the last row.
    pub(crate) fn target_reach(&self) -> usize {
        self.starts().map(|(to, _)| to + self.span(self.to_pitch)).max().unwrap_or(0)
    }

    /// Elements from the start of the source's memory to the end of the last row.
    pub(crate) fn source_reach(&self) -> usize {
        self.starts().map(|(_, from)| from + self.span(self.from_pitch)).max().unwrap_or(0)
    }

    /// Offsets of all rows, on the target and on the source.
    #[cfg(any(feature = "sim", test))]
    pub(crate) fn starts_of_rows(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (rows, to, from) = (self.rows, self.to_pitch, self.from_pitch);
        self.starts().flat_map(move |start| {
            (0..rows).map(move |row| (start.0 + row * to, start.1 + row * from))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Blocks, PerAxis, offsets, packed_strides, strides_in_memory_order};

    /// All pairs of offsets that the blocks copy, sorted.
    fn pairs(blocks: &Blocks) -> Vec<(usize, usize)> {
        let rows = blocks.starts_of_rows();
        let mut all: Vec<_> =
            rows.flat_map(|(to, from)| (0..blocks.cols).map(move |i| (to + i, from + i))).collect();
        all.sort_unstable();
        all
    }

    /// The blocks copy every element exactly once. Rows of a block never overlap.
    #[test]
    fn blocks_copy_every_element_once() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..5000 {
            let outer = [rng.usize(1..3), rng.usize(0..3)];
            let extents = [outer[0], outer[1], rng.usize(0..4), rng.usize(0..5), rng.usize(0..5)];
            let mut strides = || -> PerAxis {
                let cols = rng.usize(1..3);
                let rows = cols * extents[4].max(1) + rng.usize(0..3);
                let mut distance = |inner: usize| match rng.u8(0..4) {
                    0 => 0,
                    1 => cols * extents[4],
                    _ => inner + rng.usize(0..3),
                };
                let third = distance(rows * extents[3]);
                let second = distance(third * extents[2]);
                let first = distance(second * extents[1]);
                let drawn = [first, second, third, rows, cols];
                if rng.bool() { drawn } else { packed_strides(extents) }
            };
            let (mut to, mut from) = (packed_strides(extents), strides());
            if rng.bool() {
                // A transposed side.
                (to[3], to[4]) = (1, extents[3].max(1));
            }
            if rng.bool() {
                (to, from) = (from, to);
            }
            let blocks = Blocks::new(extents, to, from);
            let mut expected: Vec<_> = offsets(extents, to).zip(offsets(extents, from)).collect();
            expected.sort_unstable();
            assert_eq!(pairs(&blocks), expected, "{extents:?} {to:?} {from:?}");
            let is_apart =
                blocks.rows <= 1 || blocks.to_pitch.min(blocks.from_pitch) >= blocks.cols;
            assert!(is_apart, "{blocks:?}");
        }
    }

    /// Rows apart, and halves of elements, are the same elements.
    #[test]
    fn blocks_are_taken_apart_without_loss() {
        let mut rng = fastrand::Rng::with_seed(8);
        for _ in 0..2000 {
            let [count, rows, cols] = [0; 3].map(|_: usize| rng.usize(0..4));
            let extents = [1, 1, count, rows, cols];
            let (col, gap) = (rng.usize(1..3), rng.usize(0..2));
            let row = cols * col + gap;
            let [row, col] = if rng.bool() { [row, col] } else { [col, rows * col] };
            let strides = [0, 0, rows * rows.max(cols) * 3, row, col];
            let blocks = Blocks::new(extents, strides, strides);
            assert_eq!(pairs(&blocks.row_by_row()), pairs(&blocks), "{extents:?} {strides:?}");
            let halves = |half: usize| {
                pairs(&blocks).into_iter().map(move |(to, from)| (2 * to + half, 2 * from + half))
            };
            assert!(pairs(&blocks.first_halves()).into_iter().eq(halves(0)), "{blocks:?}");
            let both: Vec<_> = pairs(&blocks)
                .into_iter()
                .flat_map(|(to, from)| [0, 1].map(|half| (2 * to + half, 2 * from + half)))
                .collect();
            assert_eq!(pairs(&blocks.in_halves()), both, "{blocks:?} {count}");
        }
    }

    /// Merged axes need few blocks.
    #[test]
    fn a_copy_takes_as_few_blocks_as_its_strides_allow() {
        let all = |unused, [batch, rows, cols]: [usize; 3]| [unused, unused, batch, rows, cols];
        let count = |extents, to, from| {
            let blocks = Blocks::new(all(1, extents), all(0, to), all(0, from));
            (blocks.starts().count(), blocks.rows, blocks.cols)
        };
        let packed = [12, 4, 1];
        assert_eq!(count([2, 3, 4], packed, packed), (1, 1, 24));
        assert_eq!(count([2, 3, 4], packed, [15, 5, 1]), (1, 6, 4));
        assert_eq!(count([2, 3, 4], packed, [16, 5, 1]), (2, 3, 4));
        // The interleaved heads of a tensor.
        assert_eq!(count([2, 3, 4], packed, [4, 8, 1]), (2, 3, 4));
        // A repeated matrix, and a transpose.
        assert_eq!(count([2, 3, 4], packed, [0, 4, 1]), (2, 1, 12));
        assert_eq!(count([1, 3, 4], packed, [0, 1, 3]), (3, 4, 1));
        assert_eq!(count([1, 3, 1], packed, [0, 7, 1]), (1, 3, 1));
        let in_memory = strides_in_memory_order(all(1, [2, 3, 4]), all(0, [40, 1, 5]));
        assert_eq!(in_memory[2..], [12, 1, 3]);
        // Heads that are stored side by side, as heads one after the other.
        let heads = Blocks::new([2, 3, 1, 5, 4], [60, 20, 0, 4, 1], [60, 4, 0, 12, 1]);
        assert_eq!((heads.starts().count(), heads.rows, heads.cols), (6, 5, 4));
    }
}
