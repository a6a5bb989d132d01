//! Names of types.

use crate::ir::{Elem, Ty};

/// The type of a barrier in shared memory.
pub(super) const MBARRIER: &str = "unsigned long long";
/// The type of a tensor map, which the text defines.
pub(super) const TENSOR_MAP: &str = "TensorMap";

/// The name of a type.
pub(super) fn ty(ty: Ty) -> &'static str {
    match ty {
        Ty::Bool => "bool",
        Ty::Scalar(elem) => element_type(elem),
        Ty::Vector(elem) => vector_type(elem),
    }
}

/// The name of the type of an element. A binary16 or bfloat16 is its bits: no header is needed.
pub(super) fn element_type(elem: Elem) -> &'static str {
    match elem {
        Elem::F64 => "double",
        Elem::F32 | Elem::Tf32 => "float",
        Elem::F16 | Elem::Bf16 | Elem::U16 => "unsigned short",
        Elem::I64 => "long long",
        Elem::U64 => "size_t",
        Elem::I32 => "int",
        Elem::U32 => "unsigned int",
        Elem::I16 => "short",
        Elem::I8 => "signed char",
        Elem::U8 => "unsigned char",
    }
}

/// The type that 16 bytes of elements are moved in.
pub(super) fn vector_type(elem: Elem) -> &'static str {
    match elem {
        Elem::F32 | Elem::Tf32 => "float4",
        Elem::F64 => "double2",
        Elem::I64 => "longlong2",
        Elem::U64 => "ulonglong2",
        Elem::I32 => "int4",
        // Eight halves or sixteen bytes: CUDA C has no vector of them.
        Elem::U32 | Elem::F16 | Elem::Bf16 | Elem::I16 | Elem::U16 | Elem::I8 | Elem::U8 => "uint4",
    }
}
