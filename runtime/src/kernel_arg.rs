//! Addresses of arrays, and the arguments of a kernel.

use gemm_dsl::ir::contract::MappedArray;
use gemm_dsl::ir::{Elem, TensorMap, Ty};
use std::ops::Range;

/// Where the first of some elements lies in the memory of a back end.
pub trait Address: Clone {
    /// What the elements are.
    fn elem(&self) -> Elem;

    /// In bytes, from zero or from the start of an allocation, which is aligned to 256.
    fn bytes(&self) -> u64;

    /// The address `start` elements on, without those after the next `len`; none where they are not
    /// all there.
    fn part(&self, start: u64, len: u64) -> Option<Self>;

    /// Where the next `len` elements lie, in bytes of one space for all allocations.
    fn range(&self, len: u64) -> Range<u64>;
}

/// An argument of a kernel: `A` are addresses, `P` what a back end keeps for a list beside those of its arrays.
pub enum KernelArg<'a, A, P> {
    /// The bits of a number of at most 4 bytes.
    Word(u32),
    /// The bits of a number of 8 bytes.
    Double(u64),
    /// The address of an array.
    Array(A),
    /// An array that the kernel finds by its tensor map.
    TensorMap {
        /// Its address.
        address: A,
        /// The type that the kernel takes its elements for.
        elem: Elem,
        /// The map, as the kernel declares it.
        map: &'a TensorMap,
        /// The array, as the launch describes it.
        mapped: &'a MappedArray,
    },
    /// A list of arrays.
    List {
        /// Their addresses.
        arrays: &'a [A],
        /// As the kernel finds them.
        pointers: &'a P,
    },
}

impl<A, P> KernelArg<'_, A, P> {
    /// A number of this type, as wide as the kernel's parameter is.
    pub(crate) fn scalar(ty: Ty, bits: u64) -> Self {
        match ty {
            Ty::Scalar(elem) if elem.size() == 8 => Self::Double(bits),
            _ => Self::Word(bits as u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KernelArg;
    use gemm_dsl::ir::{Elem, Ty};

    /// A GPU reads as many bytes as the parameter has, and the simulator cannot tell.
    #[test]
    fn a_number_is_as_wide_as_its_parameter() {
        const BITS: u64 = 0x0123_4567_89ab_cdef;
        for (ty, wide) in [
            (Ty::I32, false),
            (Ty::U32, false),
            (Ty::F32, false),
            (Ty::Scalar(Elem::I8), false),
            (Ty::Scalar(Elem::Bf16), false),
            (Ty::I64, true),
            (Ty::U64, true),
            (Ty::F64, true),
        ] {
            match (KernelArg::<(), ()>::scalar(ty, BITS), wide) {
                (KernelArg::Double(bits), true) => assert_eq!(bits, BITS, "{ty:?}"),
                (KernelArg::Word(bits), false) => assert_eq!(bits, 0x89ab_cdef, "{ty:?}"),
                _ => panic!("{ty:?} has another width"),
            }
        }
    }
}
