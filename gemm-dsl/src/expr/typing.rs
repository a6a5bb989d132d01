//! The types of what an expression stands among, where its key alone does not say them.

use crate::ir::Elem;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// An IEEE binary32 number.
    F32,
    /// An IEEE binary64 number.
    F64,
    /// A whole number of 64 bits.
    Int,
    /// A truth value.
    Bool,
}

impl Type {
    /// The type with its article.
    pub fn name(self) -> &'static str {
        match self {
            Type::F32 => "an f32",
            Type::F64 => "an f64",
            Type::Int => "an integer",
            Type::Bool => "a truth value",
        }
    }
}

/// A floating-point type that expressions compute in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Float {
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl Float {
    /// How the conversion to it is written.
    pub fn name(self) -> &'static str {
        match self {
            Float::F32 => "f32",
            Float::F64 => "f64",
        }
    }

    /// The element of the IR.
    pub fn elem(self) -> Elem {
        match self {
            Float::F32 => Elem::F32,
            Float::F64 => Elem::F64,
        }
    }
}

impl From<Float> for Type {
    fn from(float: Float) -> Self {
        match float {
            Float::F32 => Type::F32,
            Float::F64 => Type::F64,
        }
    }
}

/// The type of a value at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// A floating-point number.
    Float(Float),
    /// A whole number that 64 bits hold.
    Int {
        /// The least that it can be.
        least: i128,
        /// The greatest.
        most: i128,
    },
    /// A truth value.
    Bool,
}

impl ValueType {
    /// The type that an element of an array is computed with in an expression: its own of `f32`, `f64`
    /// and integers, `f32` of a narrower float. None of a `u64`, which is no integer of 64 bits with a
    /// sign.
    pub fn from_elem(elem: Elem) -> Option<Self> {
        let bits = 8 * elem.size();
        match elem {
            Elem::F64 => Some(ValueType::Float(Float::F64)),
            Elem::F32 | Elem::Tf32 | Elem::F16 | Elem::Bf16 => Some(ValueType::Float(Float::F32)),
            Elem::U64 => None,
            _ if elem.is_signed() => {
                let end = 1i128 << (bits - 1);
                Some(ValueType::Int { least: -end, most: end - 1 })
            }
            _ => Some(ValueType::Int { least: 0, most: (1i128 << bits) - 1 }),
        }
    }

    /// The type, without its limits.
    pub fn ty(self) -> Type {
        match self {
            ValueType::Float(float) => float.into(),
            ValueType::Int { .. } => Type::Int,
            ValueType::Bool => Type::Bool,
        }
    }
}

/// The types that an expression meets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Typing {
    /// What a number with a point or an exponent is.
    pub float: Float,
    /// What the values at hand are, in their order. Of what is not listed, operands among it, each is a
    /// `float`; a closure may name fewer.
    pub values: Vec<ValueType>,
    /// What the expression gives.
    pub result: Type,
}

impl Typing {
    /// All numbers with a point are `f32`, all values too, and so is the result.
    pub const F32: Typing = Typing { float: Float::F32, values: Vec::new(), result: Type::F32 };
    /// The same in `f64`.
    pub const F64: Typing = Typing { float: Float::F64, values: Vec::new(), result: Type::F64 };

    /// The type of the n-th parameter.
    pub fn param(&self, n: usize) -> ValueType {
        self.values.get(n).copied().unwrap_or(ValueType::Float(self.float))
    }

    /// Whether something is an `f64` without being converted.
    pub(super) fn has_f64(&self) -> bool {
        let types = self.values.iter().map(|value| value.ty());
        types.chain([self.float.into(), self.result]).any(|ty| ty == Type::F64)
    }
}
