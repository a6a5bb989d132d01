//! The functions of the language: one row each.

use super::tree::Type;

/// A function of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Function {
    /// The smaller one: IEEE 754-2019 minimum, NaN wins, −0 below +0.
    Min,
    /// The greater one: IEEE 754-2019 maximum, NaN wins, −0 below +0.
    Max,
    /// Absolute value.
    Abs,
    /// Square root, correctly rounded.
    Sqrt,
    /// `1 / sqrt(x)`.
    Rsqrt,
    /// `a * b + c`, rounded once.
    Fma,
    /// `min(max(x, low), high)`.
    Clamp,
    /// Rounded down to a whole number.
    Floor,
    /// Rounded to the nearest whole number, halves to the even one.
    Round,
    /// e to the power of x.
    Exp,
    /// 2 to the power of x.
    Exp2,
    /// Natural logarithm.
    Log,
    /// Logarithm to base 2.
    Log2,
    /// Hyperbolic tangent.
    Tanh,
    /// Error function.
    Erf,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `max(x, 0)`.
    Relu,
    /// `x * sigmoid(x)`.
    Silu,
    /// `x * (1 + erf(x / sqrt(2))) / 2`.
    Gelu,
    /// `x * (1 + tanh(sqrt(2 / π) * (x + 0.044715 * x³))) / 2`.
    GeluTanh,
    /// The integer as an `f32`, rounded to the nearest.
    ToF32,
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
}

impl Function {
    /// Every function, in the order of the documentation.
    pub const ALL: &[Function] = {
        use Function::{
            Abs, Clamp, Erf, Exp, Exp2, Floor, Fma, Gelu, GeluTanh, Log, Log2, Max, Min, Relu,
            Round, Rsqrt, Sigmoid, Silu, Sqrt, Tanh, ToF32,
        };
        &[
            Min, Max, Abs, Sqrt, Rsqrt, Fma, Clamp, Floor, Round, Exp, Exp2, Log, Log2, Tanh, Erf,
            Sigmoid, Relu, Silu, Gelu, GeluTanh, ToF32,
        ]
    };

    /// The row of this function.
    pub const fn row(self) -> Row {
        const fn row(
            name: &'static str,
            operands: &'static [&'static str],
            signature: Signature,
        ) -> Row {
            Row { name, operands, signature }
        }
        use Signature::{Conversion, Float, Number};
        match self {
            Function::Min => row("min", &["a", "b"], Number),
            Function::Max => row("max", &["a", "b"], Number),
            Function::Abs => row("abs", &["x"], Number),
            Function::Sqrt => row("sqrt", &["x"], Float),
            Function::Rsqrt => row("rsqrt", &["x"], Float),
            Function::Fma => row("fma", &["a", "b", "c"], Float),
            Function::Clamp => row("clamp", &["x", "low", "high"], Number),
            Function::Floor => row("floor", &["x"], Float),
            Function::Round => row("round", &["x"], Float),
            Function::Exp => row("exp", &["x"], Float),
            Function::Exp2 => row("exp2", &["x"], Float),
            Function::Log => row("log", &["x"], Float),
            Function::Log2 => row("log2", &["x"], Float),
            Function::Tanh => row("tanh", &["x"], Float),
            Function::Erf => row("erf", &["x"], Float),
            Function::Sigmoid => row("sigmoid", &["x"], Float),
            Function::Relu => row("relu", &["x"], Float),
            Function::Silu => row("silu", &["x"], Float),
            Function::Gelu => row("gelu", &["x"], Float),
            Function::GeluTanh => row("gelu_tanh", &["x"], Float),
            Function::ToF32 => row("f32", &["integer"], Conversion),
        }
    }

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
