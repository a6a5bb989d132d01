//! Shared-memory sizes of a block, used by the plan, the checks and the messages.

use super::operand::{Axis, shared_axes};
use super::pipeline::Pipeline;
use crate::ir::{Elem, Mbarrier, VECTOR_BYTES, Variant};
use crate::spec::{Copies, Factor, Lanes, SgemmSpec, Sharing, Tile};
use crate::target::arch::LARGEST;

#[derive(Clone, Copy)]
pub(crate) struct SharedBytes {
    /// Bytes of an element of A and of an element of B, including all of its splits.
    pub bytes: [u32; 2],
    /// Alignment of tiles in bytes.
    pub alignment: u128,
    /// Number of GEMMs of a batch that a block computes, each with its own buffers.
    pub products: u32,
    pub buffers: u32,
    /// Number of rows of a tile of A, and the padded length of a row.
    pub a: (u128, u128),
    pub b: (u128, u128),
    pub beside: SharedExtras,
}

/// Bytes of shared memory that threads and blocks use for communication, in addition to the tiles.
#[derive(Clone, Copy)]
pub(crate) struct SharedExtras {
    /// Flag for the last ticket; 0 bytes if blocks do not share K.
    word: u128,
    /// Accumulators of all split-K partitions, if blocks share K and only some threads hold
    /// accumulators.
    all: u128,
    /// Flag for values that the splits cannot represent, if several slices share the flag.
    unrepresentable: u128,
    /// Partial accumulators of all slices except the first.
    slices: u128,
    /// "Full" mbarriers of the pipeline stages (tile loaded), and "empty" mbarriers (tile
    /// consumed).
    barriers: [u128; 2],
}

impl SharedExtras {
    /// Bytes that a spec needs if its block has `sums` accumulators.
    pub fn of_spec(spec: &SgemmSpec, sums: u128) -> Self {
        let bytes = u128::from(spec.types().acc.size()) * sums;
        let is_split = spec.sharing() != Sharing::Whole;
        let some_hold = spec.slices > 1 || (spec.tile.is_none() && spec.lanes == Lanes::K);
        Self {
            word: if is_split { size_of::<u32>() as u128 } else { 0 },
            all: if is_split && some_hold { bytes } else { 0 },
            unrepresentable: match spec.arith.is_emulation() && !spec.converts_matrices() {
                true if spec.slices > 1 => size_of::<u32>() as u128,
                _ => 0,
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

    /// Bytes of each non-empty array, with the purpose of the array.
    pub fn arrays(&self) -> impl Iterator<Item = (u128, &'static str)> + use<> {
        let arrays = [
            (self.word, "the ticket of the block"),
            (self.all, "the partial sums"),
            (self.unrepresentable, "the flag for unrepresentable values"),
            (self.slices, "the accumulators of the slices"),
            (self.barriers[0], "mbarriers of full stages"),
            (self.barriers[1], "mbarriers of empty stages"),
        ];
        arrays.into_iter().filter(|(bytes, _)| *bytes > 0)
    }

    /// Total bytes if all arrays follow the first `bytes`, each aligned to 16 bytes.
    pub fn behind(&self, bytes: u128) -> u128 {
        self.arrays().fold(bytes, |sum, (array, _)| sum.next_multiple_of(16) + array)
    }
}

impl SharedBytes {
    /// Shared memory of a spec that may exceed the limits of a block.
    pub fn of_spec(spec: &SgemmSpec, tile: Tile) -> Self {
        let [m, n, k] = [tile.m, tile.n, tile.k].map(u128::from);
        let (pad_a, pad_b) = (u128::from(spec.pad_a), u128::from(spec.pad_b));
        let [a, b] = shared_axes(spec);
        let n_of_b = n / u128::from(spec.parts_of_b());
        let alignment = match spec.formats().filter(|_| spec.is_wgmma()) {
            None => VECTOR_BYTES.into(),
            // Rows of an MN-major operand have at most 128 bytes.
            Some(_) if spec.reads_matrices() && !spec.layout.transposes_b() => 1024,
            Some([format, _]) => u128::from(8 * Elem::from_format(format).size()) * k,
        };
        Self {
            bytes: Factor::BOTH.map(|factor| spec.staged_bytes(factor)),
            alignment,
            products: spec.products,
            buffers: Pipeline::from_spec(spec, Variant::Vector).buffers(),
            a: if a == Axis::M { (k, m + pad_a) } else { (m, k + pad_a) },
            b: if b == Axis::N { (k, n_of_b + pad_b) } else { (n_of_b, k + pad_b) },
            beside: SharedExtras::of_spec(spec, u128::from(spec.products) * m * n),
        }
    }

    /// Bytes of all buffers of A, and bytes of all buffers of B.
    pub fn parts(&self) -> (u128, u128) {
        let tiles = u128::from(self.products) * u128::from(self.buffers);
        let bytes = |of: u32, (rows, row): (u128, u128)| u128::from(of) * tiles * rows * row;
        let [of_a, of_b] = self.bytes;
        (bytes(of_a, self.a), bytes(of_b, self.b))
    }

    /// Total bytes. Each array is aligned to 16 bytes, except that B's tiles are aligned to
    /// `alignment`.
    pub fn total(&self) -> u128 {
        let (a, b) = self.parts();
        self.beside.behind(a.next_multiple_of(self.alignment.max(1)) + b)
    }

    /// Returns true if the total is within the limit of a block.
    pub fn fits(&self) -> bool {
        self.total() <= LARGEST.shared_per_block.into()
    }
}

/// Maximum number of resident blocks per SM with `bytes` of shared memory each.
pub(crate) fn blocks_by_shared(bytes: u128) -> u128 {
    u128::from(LARGEST.shared_bytes) / (bytes + u128::from(LARGEST.shared_reserved))
}

#[cfg(test)]
mod tests {
    use super::{SharedBytes, SharedExtras};
    use crate::spec::SgemmSpec;
    use crate::target::arch::LARGEST;

    /// A block may use exactly the limit, but not one element more.
    #[test]
    fn shared_memory_may_be_full() {
        let fits = |bytes: u128| {
            let beside = SharedExtras::of_spec(&SgemmSpec::default(), 0);
            let (a, b) = ((1, 4), (1, bytes / 4 - 4));
            SharedBytes { bytes: [4; 2], alignment: 16, products: 1, buffers: 1, a, b, beside }
                .fits()
        };
        let most = LARGEST.shared_per_block.into();
        assert!(fits(most) && !fits(most + 4));
    }
}
