//! Types of an expression's parameters and result.

use crate::ir::Elem;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    F32,
    F64,
    /// A 64-bit integer.
    Int,
    Bool,
}

impl Type {
    /// Returns the name of the type with its article, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Type::F32 => "an f32",
            Type::F64 => "an f64",
            Type::Int => "an integer",
            Type::Bool => "a boolean",
        }
    }
}

/// Floating-point type in which expressions compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Float {
    F32,
    F64,
}

impl Float {
    /// Returns the name of the conversion to this type.
    pub fn name(self) -> &'static str {
        match self {
            Float::F32 => "f32",
            Float::F64 => "f64",
        }
    }

    /// Returns the element type of the IR.
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

/// Type of a parameter of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    Float(Float),
    /// Integer in a range that 64-bit integers can represent.
    Int {
        least: i128,
        most: i128,
    },
    Bool,
}

impl ValueType {
    /// Returns the type that an array's element has in an expression: `f32` for narrower floats,
    /// otherwise the element's own type. `None` for `u64`, because signed 64-bit integers cannot
    /// represent every `u64`.
    pub fn from_elem(elem: Elem) -> Option<Self> {
        let bits = 8 * elem.size();
        match elem {
            Elem::F64 => Some(ValueType::Float(Float::F64)),
            elem if elem.is_float() => Some(ValueType::Float(Float::F32)),
            Elem::U64 => None,
            _ if elem.is_signed() => {
                let end = 1i128 << (bits - 1);
                Some(ValueType::Int { least: -end, most: end - 1 })
            }
            _ => Some(ValueType::Int { least: 0, most: (1i128 << bits) - 1 }),
        }
    }

    /// Returns the type without its range.
    pub fn ty(self) -> Type {
        match self {
            ValueType::Float(float) => float.into(),
            ValueType::Int { .. } => Type::Int,
            ValueType::Bool => Type::Bool,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Typing {
    /// Type of literals with a point or an exponent.
    pub float: Float,
    /// Types of the first parameters, in order. All later parameters, including operands, have the
    /// type `float`. A closure may have fewer parameters than listed.
    pub values: Vec<ValueType>,
    pub result: Type,
    /// Types of the results after the first.
    pub more: Vec<Type>,
}

impl Typing {
    /// All numbers, values and the result are `f32`.
    pub const F32: Typing =
        Typing { float: Float::F32, values: Vec::new(), result: Type::F32, more: Vec::new() };
    /// All numbers, values and the result are `f64`.
    pub const F64: Typing =
        Typing { float: Float::F64, values: Vec::new(), result: Type::F64, more: Vec::new() };

    /// A truth about integers and `f32` numbers.
    pub(super) const F32_CONDITION: Typing =
        Typing { float: Float::F32, values: Vec::new(), result: Type::Bool, more: Vec::new() };
    /// A truth about integers and `f64` numbers.
    pub(super) const F64_CONDITION: Typing =
        Typing { float: Float::F64, values: Vec::new(), result: Type::Bool, more: Vec::new() };

    /// Returns the type of the n-th parameter.
    pub fn param(&self, n: usize) -> ValueType {
        self.values.get(n).copied().unwrap_or(ValueType::Float(self.float))
    }

    /// Returns true if a value, a literal or the result is an `f64`.
    pub(super) fn has_f64(&self) -> bool {
        let types = self.values.iter().map(|value| value.ty()).chain(self.more.iter().copied());
        types.chain([self.float.into(), self.result]).any(|ty| ty == Type::F64)
    }
}
