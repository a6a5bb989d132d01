//! Addresses of arrays, and arguments of a kernel.

use gemm_dsl::ir::contract::MappedArray;
use gemm_dsl::ir::{Elem, TensorMap, Ty};
use std::ops::Range;

/// Address of an element in the memory of a back end.
pub trait Address: Clone {
    /// Element type of the array.
    fn elem(&self) -> Elem;

    /// Address in bytes: absolute, or relative to the start of an allocation, which is aligned to
    /// 256 bytes.
    fn bytes(&self) -> u64;

    /// Address `start` elements after this one, with access to `len` elements, or `None` if these
    /// are not inside the array.
    fn part(&self, start: u64, len: u64) -> Option<Self>;

    /// The same address of elements of another type, or `None` if that type has another size.
    fn reinterpreted(&self, elem: Elem) -> Option<Self>;

    /// Byte range of the next `len` elements, in one address space for all allocations.
    fn range(&self, len: u64) -> Range<u64>;
}

/// Argument of a kernel: `A` is an address, `P` the back end's form of a list of addresses.
pub enum KernelArg<'a, A, P> {
    /// Bits of a scalar of at most 4 bytes.
    Word(u32),
    /// Bits of a scalar of 8 bytes.
    Double(u64),
    /// Address of an array in device memory.
    Array(A),
    /// Array that the kernel accesses through a tensor map.
    TensorMap {
        /// Address of the array in device memory.
        address: A,
        /// Element type in the kernel.
        elem: Elem,
        /// Tensor map that the kernel declares.
        map: &'a TensorMap,
        /// Extents and strides of the array in this launch.
        mapped: &'a MappedArray,
    },
    /// List of arrays, which the kernel finds through pointers.
    List {
        /// Addresses of the arrays, in the order of the list.
        arrays: &'a [A],
        /// Pointers in the form that the kernel reads.
        pointers: &'a P,
    },
}

impl<A, P> KernelArg<'_, A, P> {
    /// Scalar argument of type `ty`, as wide as the kernel's parameter.
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

    /// An argument is as wide as its parameter. A GPU reads the bytes of the parameter, so the
    /// simulator cannot check the width of the argument.
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
