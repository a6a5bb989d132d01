//! Types of a reduction: elements, accumulators, results and indices.

use crate::ir::Elem;
use crate::spec::table::words;

words! {
    /// Element type of an array in memory.
    DataType {
        /// IEEE binary32.
        F32 = "f32",
        /// IEEE binary64.
        F64 = "f64",
        /// IEEE binary16; computed in `f32`.
        F16 = "f16",
        /// bfloat16, the upper half of a binary32; computed in `f32`.
        Bf16 = "bf16",
        /// A signed byte; computed in a wider type.
        I8 = "i8",
        /// An unsigned byte; computed in a wider type.
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
    /// Returns the element type of the IR.
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

    /// Returns the accumulator type of specs without the key `acc`.
    pub(crate) fn acc(self) -> Elem {
        match self {
            DataType::F16 | DataType::Bf16 => Elem::F32,
            DataType::I8 => Elem::I32,
            DataType::U8 => Elem::U32,
            own => own.elem(),
        }
    }
}

words! {
    /// Accumulator type of a reduction.
    AccType {
        /// IEEE binary32. It rounds integers above 2^24.
        F32 = "f32",
        /// IEEE binary64. It rounds integers above 2^53.
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
    /// Returns the element type of the IR.
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
    /// Type of a result: the accumulator type, or a type to which the result is rounded.
    ResultType {
        /// IEEE binary32, from accumulators in `f32` or `f64`. From integers, a reduction needs a
        /// `finish`.
        F32 = "f32",
        /// IEEE binary64, from accumulators in `f64`; from integers, a reduction needs a `finish`.
        F64 = "f64",
        /// IEEE binary16, from accumulators in `f32`.
        F16 = "f16",
        /// bfloat16, from accumulators in `f32`.
        Bf16 = "bf16",
        /// A signed 32-bit integer, from accumulators in `i32`.
        I32 = "i32",
        /// An unsigned 32-bit integer, from accumulators in `u32`.
        U32 = "u32",
        /// A signed 64-bit integer, from accumulators in `i64`.
        I64 = "i64",
        /// An unsigned 64-bit integer, from accumulators in `u64`.
        U64 = "u64",
    }
}

impl ResultType {
    /// Returns the element type of the IR.
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
    /// Type of indices and lengths.
    IndexType {
        /// 32-bit indices, counts and offsets. Under `argmax`, `argmin` and `mean_var`,
        /// accumulators hold an index or a count, and the index 2^32 − 1 stands for no element.
        /// These operators therefore fold at most 2^32 − 2 elements into one result. With
        /// `over: segments`, the limit applies to the whole array.
        U32 = "u32",
        /// 64-bit indices, counts and offsets: any number of elements.
        U64 = "u64",
    }
}

impl IndexType {
    /// Returns the element type of the IR.
    pub fn elem(self) -> Elem {
        match self {
            IndexType::U32 => Elem::U32,
            IndexType::U64 => Elem::U64,
        }
    }
}
