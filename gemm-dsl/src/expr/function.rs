//! The functions of the language: one row each. How each is lowered is in [`library`](super::library).

use super::typing::Float;

/// Declares the functions: what each gives, how it is written, what its operands are called, and
/// their types; of one that no machine has also its worst error, and its method.
macro_rules! functions {
    ($(
        #[doc = $meaning:literal]
        $function:ident = $name:literal, [$($operand:literal),*], $signature:ident
            $(, within $ulp:literal $method:literal)?;
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
            pub const fn info(self) -> FunctionInfo {
                match self {
                    $(Self::$function => FunctionInfo {
                        name: $name,
                        operands: &[$($operand),*],
                        signature: Signature::$signature,
                        meaning: $meaning,
                        bound: functions!(@bound $($ulp $method)?),
                    },)*
                }
            }
        }
    };
    (@bound) => { None };
    (@bound $ulp:literal $method:literal) => { Some(Bound { ulp: $ulp, method: $method }) };
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
    Rsqrt = "rsqrt", ["x"], Float, within 1.50 "the quotient and the root of the machine";
    /// `a * b + c`, rounded once.
    Fma = "fma", ["a", "b", "c"], Float;
    /// `min(max(x, low), high)`.
    Clamp = "clamp", ["x", "low", "high"], Number;
    /// Rounded down to a whole number.
    Floor = "floor", ["x"], Float;
    /// Rounded to the nearest whole number, halves to the even one.
    Round = "round", ["x"], Float;
    /// e to the power of x.
    Exp = "exp", ["x"], Single, within 0.90 "2^n · e^r, polynomial of degree 6";
    /// 2 to the power of x.
    Exp2 = "exp2", ["x"], Single, within 0.88 "2^n · 2^f, polynomial of degree 6";
    /// Natural logarithm.
    Log = "log", ["x"], Single, within 0.94 "n · ln 2 + log(m), polynomial of degree 10";
    /// Logarithm to base 2.
    Log2 = "log2", ["x"], Single, within 1.05 "n + log2(m), polynomial of degree 10, the sum of two parts";
    /// Hyperbolic tangent.
    Tanh = "tanh", ["x"], Single, within 1.37 "odd polynomial, 1 − 2 / (e^2x + 1) from 0.63 on";
    /// Error function.
    Erf = "erf", ["x"], Single, within 1.08 "odd polynomial, 1 − e^−p(x) from 0.93 on";
    /// `1 / (1 + exp(-x))`.
    Sigmoid = "sigmoid", ["x"], Single, within 1.01 "1 / (1 + e^−x), the quotient corrected";
    /// `max(x, 0)`.
    Relu = "relu", ["x"], Float;
    /// `x * sigmoid(x)`.
    Silu = "silu", ["x"], Single, within 1.10 "the same with x for 1";
    /// `x * (1 + erf(x / sqrt(2))) / 2`.
    Gelu = "gelu", ["x"], Single, within 1.73 "x · Φ(x) through the ratio of Φ to its density";
    /// `x * (1 + tanh(sqrt(2 / π) * (x + 0.044715 * x³))) / 2`.
    GeluTanh = "gelu_tanh", ["x"], Single, within 1.14 "as `silu`, of a cubic in two parts";
    /// The integer, or the `f64`, as an `f32`, rounded to the nearest.
    ToF32 = "f32", ["integer"], Conversion;
    /// The integer as an `f64`, rounded to the nearest, or the `f32` as it is.
    ToF64 = "f64", ["integer"], Conversion;
}

/// What a function takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// `f32` in, `f32` out.
    Single,
    /// Floats of one type in, one of that type out.
    Float,
    /// Numbers of one type in, one of that type out.
    Number,
    /// An integer or a float of the other type in, a float out.
    Conversion,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct FunctionInfo {
    /// How it is written.
    pub name: &'static str,
    /// What its operands are called.
    pub operands: &'static [&'static str],
    /// Their types and that of its value.
    pub signature: Signature,
    /// What it gives.
    pub meaning: &'static str,
    /// How far it may be off; none where IEEE 754 says what it gives.
    pub bound: Option<Bound>,
}

/// What is known of a function of an `f32` that no machine has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The worst error over all 2^32 inputs, in units in the last place of the exact result.
    pub ulp: f64,
    /// How it is computed.
    pub method: &'static str,
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} ulp", self.ulp)
    }
}

impl Function {
    /// How it is written.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The function of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|function| function.name() == name)
    }

    /// Whether it is of an `f32` alone.
    pub(super) fn is_single(self) -> bool {
        self.info().signature == Signature::Single
    }

    /// What a conversion gives.
    pub(super) fn converts_to(self) -> Option<Float> {
        match self {
            Function::ToF32 => Some(Float::F32),
            Function::ToF64 => Some(Float::F64),
            _ => None,
        }
    }
}
