//! CUDA C++ names of the IR's types.

use crate::ir::{Buffer, Elem, Expr, Ty};

/// Type of an mbarrier in shared memory.
pub(super) const MBARRIER: &str = "unsigned long long";
/// Type of a tensor map. The source defines it.
pub(super) const TENSOR_MAP: &str = "TensorMap";

pub(super) fn ty(ty: Ty) -> &'static str {
    match ty {
        Ty::Bool => "bool",
        Ty::Scalar(elem) => element_type(elem),
        Ty::Vector(elem) => vector_type(elem),
    }
}

/// Name of an element type. Values of storage-only floats are represented by their bits, so the
/// source needs no header.
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
        Elem::U8 | Elem::E4m3 | Elem::E5m2 => "unsigned char",
    }
}

/// Type that moves 16 bytes of elements.
pub(super) fn vector_type(elem: Elem) -> &'static str {
    match elem {
        Elem::F32 | Elem::Tf32 => "float4",
        Elem::F64 => "double2",
        Elem::I64 => "longlong2",
        Elem::U64 => "ulonglong2",
        Elem::I32 => "int4",
        // CUDA C++ has no vector type with eight halves or sixteen bytes.
        Elem::U32 | Elem::F16 | Elem::Bf16 | Elem::I16 | Elem::U16 => "uint4",
        Elem::E4m3 | Elem::E5m2 | Elem::I8 | Elem::U8 => "uint4",
    }
}

/// Physical extents of a C array.
pub(super) fn dims_of(buffer: &Buffer) -> Vec<Expr> {
    buffer.physical_dims().unwrap_or_else(|| unreachable!("verify: `{}` is an array", buffer.name))
}
