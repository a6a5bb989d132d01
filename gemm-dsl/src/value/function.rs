//! The functions of the language: one row each.

use super::tree::Type;

/// Declares the functions: what each gives, how it is written, what its operands are called, and
/// their types.
macro_rules! functions {
    ($(
        #[doc = $meaning:literal]
        $function:ident = $name:literal, [$($operand:literal),*], $signature:ident;
    )*) => {
        /// A function of the language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Function {
            $(#[doc = $meaning] $function,)*
        }

        impl Function {
            /// Every function, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$function),*];

            /// The row of this function.
            pub const fn row(self) -> Row {
                match self {
                    $(Self::$function => Row {
                        name: $name,
                        operands: &[$($operand),*],
                        signature: Signature::$signature,
                        meaning: $meaning,
                    },)*
                }
            }
        }
    };
}

functions! {
    /// The smaller one: IEEE 754-2019 minimum, NaN wins, −0 below +0.
    Min = "min", ["a", "b"], Number;
    /// The greater one: IEEE 754-2019 maximum, NaN wins, −0 below +0.
    Max = "max", ["a", "b"], Number;
    /// Absolute value.
    Abs = "abs", ["x"], Number;
    /// Square root, correctly rounded.
    Sqrt = "sqrt", ["x"], Float;
    /// `1 / sqrt(x)`.
    Rsqrt = "rsqrt", ["x"], Float;
    /// `a * b + c`, rounded once.
    Fma = "fma", ["a", "b", "c"], Float;
    /// `min(max(x, low), high)`.
    Clamp = "clamp", ["x", "low", "high"], Number;
    /// Rounded down to a whole number.
    Floor = "floor", ["x"], Float;
    /// Rounded to the nearest whole number, halves to the even one.
    Round = "round", ["x"], Float;
    /// e to the power of x.
    Exp = "exp", ["x"], Float;
    /// 2 to the power of x.
    Exp2 = "exp2", ["x"], Float;
    /// Natural logarithm.
    Log = "log", ["x"], Float;
    /// Logarithm to base 2.
    Log2 = "log2", ["x"], Float;
    /// Hyperbolic tangent.
    Tanh = "tanh", ["x"], Float;
    /// Error function.
    Erf = "erf", ["x"], Float;
    /// `1 / (1 + exp(-x))`.
    Sigmoid = "sigmoid", ["x"], Float;
    /// `max(x, 0)`.
    Relu = "relu", ["x"], Float;
    /// `x * sigmoid(x)`.
    Silu = "silu", ["x"], Float;
    /// `x * (1 + erf(x / sqrt(2))) / 2`.
    Gelu = "gelu", ["x"], Float;
    /// `x * (1 + tanh(sqrt(2 / π) * (x + 0.044715 * x³))) / 2`.
    GeluTanh = "gelu_tanh", ["x"], Float;
    /// The integer as an `f32`, rounded to the nearest.
    ToF32 = "f32", ["integer"], Conversion;
}

/// What a function takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// `f32` in, `f32` out.
    Float,
    /// Numbers of one type in, one of that type out.
    Number,
    /// An integer in, an `f32` out.
    Conversion,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// How it is written.
    pub name: &'static str,
    /// What its operands are called.
    pub operands: &'static [&'static str],
    /// Their types and that of its value.
    pub signature: Signature,
    /// What it gives.
    pub meaning: &'static str,
}

impl Function {
    /// How it is written.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The function of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|function| function.name() == name)
    }

    /// The type of an operand; `None` where any number will do.
    pub(super) fn operand(self) -> Option<Type> {
        match self.row().signature {
            Signature::Float => Some(Type::F32),
            Signature::Number => None,
            Signature::Conversion => Some(Type::Int),
        }
    }
}
