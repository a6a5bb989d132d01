//! The types of a reduction: of elements, of what they are folded in, of results and of indices.

use crate::ir::Elem;
use crate::spec::table::words;

words! {
    /// What the elements of an array are.
    DataType {
        /// IEEE binary32.
        F32 = "f32",
        /// IEEE binary64.
        F64 = "f64",
        /// IEEE binary16; folded in another type.
        F16 = "f16",
        /// The upper half of a binary32; folded in another type.
        Bf16 = "bf16",
        /// A signed byte; folded in another type.
        I8 = "i8",
        /// An unsigned byte; folded in another type.
        U8 = "u8",
        /// A signed 32-bit integer.
        I32 = "i32",
        /// An unsigned 32-bit integer.
        U32 = "u32",
        /// A signed 64-bit integer.
        I64 = "i64",
        /// An unsigned 64-bit integer.
        U64 = "u64",
    }
}

impl DataType {
    /// The element type of the IR.
    pub fn elem(self) -> Elem {
        match self {
            DataType::F32 => Elem::F32,
            DataType::F64 => Elem::F64,
            DataType::F16 => Elem::F16,
            DataType::Bf16 => Elem::Bf16,
            DataType::I8 => Elem::I8,
            DataType::U8 => Elem::U8,
            DataType::I32 => Elem::I32,
            DataType::U32 => Elem::U32,
            DataType::I64 => Elem::I64,
            DataType::U64 => Elem::U64,
        }
    }
}

words! {
    /// What elements are folded in: a type that is computed with.
    AccType {
        /// IEEE binary32.
        F32 = "f32",
        /// IEEE binary64.
        F64 = "f64",
        /// A signed 32-bit integer.
        I32 = "i32",
        /// An unsigned 32-bit integer.
        U32 = "u32",
        /// A signed 64-bit integer.
        I64 = "i64",
        /// An unsigned 64-bit integer.
        U64 = "u64",
    }
}

impl AccType {
    /// The element type of the IR.
    pub fn elem(self) -> Elem {
        match self {
            AccType::F32 => Elem::F32,
            AccType::F64 => Elem::F64,
            AccType::I32 => Elem::I32,
            AccType::U32 => Elem::U32,
            AccType::I64 => Elem::I64,
            AccType::U64 => Elem::U64,
        }
    }
}

words! {
    /// What a result is: the type that was folded in, or one that a number of it is rounded to.
    ResultType {
        /// IEEE binary32: of what is folded in `f32` or `f64`, and of integers with a `finish`.
        F32 = "f32",
        /// IEEE binary64: of what is folded in `f64`, and of integers with a `finish`.
        F64 = "f64",
        /// IEEE binary16: of what is folded in `f32`.
        F16 = "f16",
        /// The upper half of a binary32: of what is folded in `f32`.
        Bf16 = "bf16",
        /// A signed 32-bit integer: of what is folded in `i32`.
        I32 = "i32",
        /// An unsigned 32-bit integer: of what is folded in `u32`.
        U32 = "u32",
        /// A signed 64-bit integer: of what is folded in `i64`.
        I64 = "i64",
        /// An unsigned 64-bit integer: of what is folded in `u64`.
        U64 = "u64",
    }
}

impl ResultType {
    /// The element type of the IR.
    pub fn elem(self) -> Elem {
        match self {
            ResultType::F32 => Elem::F32,
            ResultType::F64 => Elem::F64,
            ResultType::F16 => Elem::F16,
            ResultType::Bf16 => Elem::Bf16,
            ResultType::I32 => Elem::I32,
            ResultType::U32 => Elem::U32,
            ResultType::I64 => Elem::I64,
            ResultType::U64 => Elem::U64,
        }
    }
}

words! {
    /// The type of indices and lengths.
    IndexType {
        /// Where indices or counts are kept, up to 2^32 − 2 elements for one result, or in the array that segments are of; offsets up to 2^32 − 1.
        U32 = "u32",
        /// As many as there may be.
        U64 = "u64",
    }
}

impl IndexType {
    /// The element type of the IR.
    pub fn elem(self) -> Elem {
        match self {
            IndexType::U32 => Elem::U32,
            IndexType::U64 => Elem::U64,
        }
    }
}
