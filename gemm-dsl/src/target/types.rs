//! Types of values, and element types of memory.

use crate::target::Format;
use std::fmt;

/// Element type of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Elem {
    F64,
    F32,
    /// A binary32 whose low 13 mantissa bits are 0. It is an operand of tensor cores.
    Tf32,
    /// IEEE binary16. It can only be stored and converted; there is no arithmetic on it.
    F16,
    /// Upper half of a binary32. It can only be stored and converted; there is no arithmetic on it.
    Bf16,
    /// Float with 3 bits of fraction ([`e4m3`](crate::target::fp8::e4m3)). It can only be stored
    /// and converted; there is no arithmetic on it.
    E4m3,
    /// Float with 2 bits of fraction ([`e5m2`](crate::target::fp8::e5m2)). It can only be stored
    /// and converted; there is no arithmetic on it.
    E5m2,
    I64,
    U64,
    I32,
    U32,
    /// Signed 16-bit integer. It can only be stored and converted; there is no arithmetic on it.
    I16,
    /// Unsigned 16-bit integer. It can only be stored and converted; there is no arithmetic on it.
    U16,
    /// Signed byte. It can only be stored and converted; there is no arithmetic on it.
    I8,
    /// Unsigned byte. It can only be stored and converted; there is no arithmetic on it.
    U8,
}

/// Size of a vector access, in bytes.
pub const VECTOR_BYTES: u32 = 16;

/// Properties of an element type: a row of the table in [`Elem::facts`].
struct ElemFacts {
    /// Rust's name for the type, or the usual name if Rust has no such type.
    name: &'static str,
    /// Size of an element in bytes.
    size: u32,
    kind: NumberKind,
    /// True if arithmetic is defined on the type. Other types can only be stored and converted.
    computes: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NumberKind {
    Float,
    Signed,
    Unsigned,
}

impl Elem {
    /// Table of the properties of all element types.
    const fn facts(self) -> ElemFacts {
        use NumberKind::{Float, Signed, Unsigned};
        let (name, size, kind, computes) = match self {
            Elem::F64 => ("f64", 8, Float, true),
            Elem::F32 => ("f32", 4, Float, true),
            Elem::Tf32 => ("tf32", 4, Float, false),
            Elem::F16 => ("f16", 2, Float, false),
            Elem::Bf16 => ("bf16", 2, Float, false),
            Elem::E4m3 => ("e4m3", 1, Float, false),
            Elem::E5m2 => ("e5m2", 1, Float, false),
            Elem::I64 => ("i64", 8, Signed, true),
            Elem::U64 => ("u64", 8, Unsigned, true),
            Elem::I32 => ("i32", 4, Signed, true),
            Elem::U32 => ("u32", 4, Unsigned, true),
            Elem::I16 => ("i16", 2, Signed, false),
            Elem::U16 => ("u16", 2, Unsigned, false),
            Elem::I8 => ("i8", 1, Signed, false),
            Elem::U8 => ("u8", 1, Unsigned, false),
        };
        ElemFacts { name, size, kind, computes }
    }

    /// Element types in memory that tensor cores can read in this format. The first one is the type
    /// of splits.
    pub(crate) const fn of_format(format: Format) -> &'static [Self] {
        match format {
            Format::Bf16 => &[Elem::Bf16],
            Format::F16 => &[Elem::F16],
            Format::Tf32 => &[Elem::F32, Elem::Tf32],
            Format::E4m3 => &[Elem::E4m3],
            Format::E5m2 => &[Elem::E5m2],
            Format::I8 => &[Elem::I8],
            Format::U8 => &[Elem::U8],
        }
    }

    /// Element type of the splits of a matrix in this format.
    pub const fn from_format(format: Format) -> Self {
        Self::of_format(format)[0]
    }

    pub const ALL: [Elem; 15] = [
        Elem::F64,
        Elem::F32,
        Elem::Tf32,
        Elem::F16,
        Elem::Bf16,
        Elem::E4m3,
        Elem::E5m2,
        Elem::I64,
        Elem::U64,
        Elem::I32,
        Elem::U32,
        Elem::I16,
        Elem::U16,
        Elem::I8,
        Elem::U8,
    ];

    /// Size of an element in bytes, which is also its alignment.
    #[inline]
    pub const fn size(self) -> u32 {
        self.facts().size
    }

    /// Number of elements of a 16-byte vector.
    pub const fn vector_lanes(self) -> u8 {
        (VECTOR_BYTES / self.size()) as u8
    }

    pub const fn is_float(self) -> bool {
        matches!(self.facts().kind, NumberKind::Float)
    }

    pub const fn is_integer(self) -> bool {
        !self.is_float()
    }

    /// Returns true for signed integers.
    pub const fn is_signed(self) -> bool {
        matches!(self.facts().kind, NumberKind::Signed)
    }

    /// Returns true if arithmetic is defined on the type. Elements of other types must be converted
    /// first.
    pub const fn computes(self) -> bool {
        self.facts().computes
    }

    /// Returns true if the conversion exists. Types with arithmetic convert to each other, and a
    /// storage-only type converts from and to its wide type.
    pub fn converts_to(self, to: Elem) -> bool {
        let stored_as = |stored: Elem| if stored.is_float() { Elem::F32 } else { Elem::I32 };
        match (self.computes(), to.computes()) {
            (true, true) => true,
            (true, false) => self == stored_as(to),
            (false, true) => to == stored_as(self),
            (false, false) => false,
        }
    }

    /// Rust's name for the type, or the usual name if Rust has none.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }
}

/// Type of an expression, a variable or a scalar parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    Bool,
    Scalar(Elem),
    /// 16 bytes of consecutive elements, which one access moves.
    Vector(Elem),
}

impl Ty {
    /// Type of indices inside a block, and of matrix extents.
    pub const I32: Ty = Ty::Scalar(Elem::I32);
    /// Type of bit patterns.
    pub const U32: Ty = Ty::Scalar(Elem::U32);
    pub const I64: Ty = Ty::Scalar(Elem::I64);
    /// Type of offsets and lengths that may exceed 2^31 elements.
    pub const U64: Ty = Ty::Scalar(Elem::U64);
    pub const F32: Ty = Ty::Scalar(Elem::F32);
    pub const F64: Ty = Ty::Scalar(Elem::F64);
    pub const F32X4: Ty = Ty::Vector(Elem::F32);

    /// Returns true for a scalar integer with arithmetic.
    pub fn is_integer(self) -> bool {
        matches!(self, Ty::I32 | Ty::U32 | Ty::I64 | Ty::U64)
    }

    /// Returns true for a scalar floating-point number with arithmetic.
    pub fn is_float(self) -> bool {
        matches!(self, Ty::F32 | Ty::F64)
    }

    /// Returns true if values of the type may index memory or count a loop: `I32` or `U64`.
    pub fn is_index(self) -> bool {
        matches!(self, Ty::I32 | Ty::U64)
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Prints Rust's spelling. A vector prints as `f32x4`.
impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::Bool => f.write_str("bool"),
            Ty::Scalar(elem) => write!(f, "{elem}"),
            Ty::Vector(elem) => write!(f, "{elem}x{}", elem.vector_lanes()),
        }
    }
}
