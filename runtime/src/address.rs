//! Where arrays lie, and what a kernel is given.

use gemm_dsl::ir::Elem;

/// Where the first of some elements lies in the memory of a back end.
pub(crate) trait Address: Clone {
    /// What the elements are.
    fn elem(&self) -> Elem;

    /// In bytes, from zero or from the start of an allocation, which is aligned to 256.
    fn bytes(&self) -> u64;

    /// The address `start` elements on, without those after the next `len`; none where they are not
    /// all there.
    fn part(&self, start: u64, len: u64) -> Option<Self>;

    /// Whether `len` elements from here and `other_len` from there share memory.
    fn overlaps(&self, len: u64, other: &Self, other_len: u64) -> bool;
}

/// One argument of a launch.
pub(crate) enum Argument<A> {
    /// The bits of a number of at most 4 bytes.
    Word(u32),
    /// The bits of a number of 8 bytes.
    Double(u64),
    /// The address of an array.
    Array(A),
}
