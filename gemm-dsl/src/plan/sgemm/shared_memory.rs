//! The shared memory of a block. The plan, the checks and the messages read this sum.

use super::operand::{Axis, shared_axes};
use super::pipeline::Pipeline;
use crate::ir::{Elem, Mbarrier, VECTOR_BYTES};
use crate::spec::{Copies, Factor, Lanes, SgemmSpec, Sharing, Tile};
use crate::target::arch::LARGEST;

/// The shared memory of a block.
#[derive(Clone, Copy)]
pub(crate) struct SharedSum {
    /// Bytes of an element of A, and of B, in all its planes.
    pub bytes: [u32; 2],
    /// What addresses tiles start at.
    pub alignment: u128,
    /// Products of a block, each with buffers of its own.
    pub products: u32,
    pub buffers: u32,
    /// Rows and row length of A, then of B, padding included.
    pub a: (u128, u128),
    pub b: (u128, u128),
    pub beside: SharedExtras,
}

/// Bytes of what threads and blocks tell one another by in shared memory, beside tiles.
#[derive(Clone, Copy)]
pub(crate) struct SharedExtras {
    /// The word that says who has the last ticket; 0 where nobody asks.
    word: u128,
    /// The sums of all parts, where blocks share them and only some threads hold sums.
    all: u128,
    /// Whether a slice has seen a number that the arithmetic does not hold.
    unrepresentable: u128,
    /// The sums that all slices but one hand over.
    slices: u128,
    /// The barriers of tiles that have come, and as many of tiles that have been read.
    barriers: [u128; 2],
}

impl SharedExtras {
    /// Of a spec whose block has so many sums.
    pub fn of_spec(spec: &SgemmSpec, sums: u128) -> Self {
        let bytes = u128::from(spec.types().acc.size()) * sums;
        let is_split = spec.sharing() != Sharing::Whole;
        let some_hold = spec.slices > 1 || (spec.tile.is_none() && spec.lanes == Lanes::K);
        Self {
            word: if is_split { size_of::<u32>() as u128 } else { 0 },
            all: if is_split && some_hold { bytes } else { 0 },
            unrepresentable: if spec.arith.is_emulation() && spec.slices > 1 {
                size_of::<u32>() as u128
            } else {
                0
            },
            slices: bytes * u128::from(spec.slices.max(1) - 1),
            barriers: {
                let boxes = spec.is_wgmma() && spec.copy == Copies::Tma;
                let of = |there: bool| {
                    let stages = if there { spec.stages.unwrap_or(1) } else { 0 };
                    u128::from(Mbarrier::BYTES) * u128::from(stages)
                };
                [of(boxes), of(boxes && spec.producer)]
            },
        }
    }

    /// The arrays that there are, each with what it is for.
    pub fn arrays(&self) -> impl Iterator<Item = (u128, &'static str)> + use<> {
        let arrays = [
            (self.word, "who has the last ticket"),
            (self.all, "the sums of all parts"),
            (self.unrepresentable, "whether a slice has lost a number"),
            (self.slices, "the sums that slices hand over"),
            (self.barriers[0], "tiles that have come"),
            (self.barriers[1], "tiles that have been read"),
        ];
        arrays.into_iter().filter(|(bytes, _)| *bytes > 0)
    }

    /// All of them behind so many bytes, each array on 16 of its own.
    pub fn behind(&self, bytes: u128) -> u128 {
        self.arrays().fold(bytes, |sum, (array, _)| sum.next_multiple_of(16) + array)
    }
}

impl SharedSum {
    /// Of a spec that may be too large for a plan.
    pub fn of_spec(spec: &SgemmSpec, tile: Tile) -> Self {
        let [m, n, k] = [tile.m, tile.n, tile.k].map(u128::from);
        let (pad_a, pad_b) = (u128::from(spec.pad_a), u128::from(spec.pad_b));
        let [a, b] = if spec.is_wgmma() { [Axis::K; 2] } else { shared_axes(spec) };
        let alignment = match spec.arith.format().filter(|_| spec.is_wgmma()) {
            None => VECTOR_BYTES.into(),
            Some(format) => u128::from(8 * Elem::from_format(format).size()) * k,
        };
        Self {
            bytes: Factor::BOTH.map(|factor| spec.staged_bytes(factor)),
            alignment,
            products: spec.products,
            buffers: Pipeline::from_spec(spec).buffers(),
            a: if a == Axis::M { (k, m + pad_a) } else { (m, k + pad_a) },
            b: if b == Axis::N { (k, n + pad_b) } else { (n, k + pad_b) },
            beside: SharedExtras::of_spec(spec, u128::from(spec.products) * m * n),
        }
    }

    /// Bytes of the whole of A and of B.
    pub fn parts(&self) -> (u128, u128) {
        let tiles = u128::from(self.products) * u128::from(self.buffers);
        let bytes = |of: u32, (rows, row): (u128, u128)| u128::from(of) * tiles * rows * row;
        let [of_a, of_b] = self.bytes;
        (bytes(of_a, self.a), bytes(of_b, self.b))
    }

    /// Bytes of all; each array starts on 16 bytes, or where tiles do.
    pub fn total(&self) -> u128 {
        let (a, b) = self.parts();
        self.beside.behind(a.next_multiple_of(self.alignment.max(1)) + b)
    }

    /// Whether a block may have as much.
    pub fn fits(&self) -> bool {
        self.total() <= LARGEST.shared_per_block.into()
    }
}

/// The most blocks of so much shared memory that a multiprocessor holds.
pub(crate) fn blocks_by_shared(bytes: u128) -> u128 {
    u128::from(LARGEST.shared_bytes) / (bytes + u128::from(LARGEST.shared_reserved))
}

#[cfg(test)]
mod tests {
    use super::{SharedExtras, SharedSum};
    use crate::spec::SgemmSpec;
    use crate::target::arch::LARGEST;

    /// A block may have all of it, and not one element more.
    #[test]
    fn shared_memory_may_be_full() {
        let fits = |bytes: u128| {
            let beside = SharedExtras::of_spec(&SgemmSpec::default(), 0);
            let (a, b) = ((1, 4), (1, bytes / 4 - 4));
            SharedSum { bytes: [4; 2], alignment: 16, products: 1, buffers: 1, a, b, beside }.fits()
        };
        let most = LARGEST.shared_per_block.into();
        assert!(fits(most) && !fits(most + 4));
    }
}
