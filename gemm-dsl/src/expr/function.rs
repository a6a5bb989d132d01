//! Functions of the language, declared with one row each. The module [`library`](super::library)
//! lowers them.

use super::typing::Float;

/// Declares the functions. A row gives the documentation, the spelling, the names of the operands,
/// and the signature. A function without a hardware instruction also has a bound of its error and
/// its method.
macro_rules! functions {
    ($(
        #[doc = $meaning:literal]
        $function:ident = $name:literal, [$($operand:literal),*], $signature:ident
            $(, within $ulp:literal $method:literal)?;
    )*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Function {
            $(#[doc = $meaning] $function,)*
        }

        impl Function {
            /// Every function, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$function),*];

            /// Returns the function's row.
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
    /// Minimum of IEEE 754-2019: NaN wins, −0 is below +0.
    Min = "min", ["a", "b"], Number;
    /// Maximum of IEEE 754-2019: NaN wins, −0 is below +0.
    Max = "max", ["a", "b"], Number;
    /// Absolute value.
    Abs = "abs", ["x"], Number;
    /// Square root, correctly rounded.
    Sqrt = "sqrt", ["x"], Float;
    /// `1 / sqrt(x)`.
    Rsqrt = "rsqrt", ["x"], Float, within 1.50 "hardware square root and division";
    /// `a * b + c`, rounded once.
    Fma = "fma", ["a", "b", "c"], Float;
    /// `min(max(x, low), high)`.
    Clamp = "clamp", ["x", "low", "high"], Number;
    /// Largest integer not above x.
    Floor = "floor", ["x"], Float;
    /// Smallest integer not below x.
    Ceil = "ceil", ["x"], Float;
    /// Nearest integer, ties to even.
    Round = "round", ["x"], Float;
    /// Nearest integer that is not farther from 0 than x.
    Trunc = "trunc", ["x"], Float;
    /// 1 for positive x and −1 for negative x, else x itself: ±0 or NaN.
    Sign = "sign", ["x"], Number;
    /// True if x is NaN.
    IsNan = "isnan", ["x"], Predicate;
    /// x to the power of y: NaN if x < 0 and y is no integer, 1 if y = 0 or x = 1.
    Pow = "pow", ["x", "y"], Single, within 1.30 "2^(y · log2 x), log2 x as the sum of two floats";
    /// e to the power of x.
    Exp = "exp", ["x"], Single, within 0.90 "2^n · e^r, polynomial of degree 6";
    /// `exp(x) - 1`, accurate near 0.
    Expm1 = "expm1", ["x"], Single, within 1.44 "2^n · (e^r − 1) + (2^n − 1), polynomial of \
        degree 7";
    /// 2 to the power of x.
    Exp2 = "exp2", ["x"], Single, within 0.88 "2^n · 2^f, polynomial of degree 6";
    /// Natural logarithm.
    Log = "log", ["x"], Single, within 0.94 "n · ln 2 + log(m), polynomial of degree 10";
    /// `log(1 + x)`, accurate near 0.
    Log1p = "log1p", ["x"], Single, within 1.01 "as `log`, with the rounding error of 1 + x";
    /// Logarithm to base 2.
    Log2 = "log2", ["x"], Single, within 1.05 "n + log2(m), polynomial of degree 10; the \
        leading terms are the sum of two floats";
    /// Sine of an angle in radians.
    Sin = "sin", ["x"], Single, within 0.83 "exact multiple of π/2, two polynomials";
    /// Cosine of an angle in radians.
    Cos = "cos", ["x"], Single, within 0.84 "as `sin`";
    /// Hyperbolic tangent.
    Tanh = "tanh", ["x"], Single, within 1.37 "odd polynomial, 1 − 2 / (e^2x + 1) from 0.63 on";
    /// Error function.
    Erf = "erf", ["x"], Single, within 1.08 "odd polynomial, 1 − e^−p(x) from 0.93 on";
    /// `1 - erf(x)`, accurate for large x.
    Erfc = "erfc", ["x"], Single, within 1.90 "e^−x² through the ratio of erfc to it";
    /// `1 / (1 + exp(-x))`.
    Sigmoid = "sigmoid", ["x"], Single, within 1.01 "1 / (1 + e^−x), the quotient corrected";
    /// `max(x, 0)`.
    Relu = "relu", ["x"], Float;
    /// `log(1 + exp(x))`, finite for every finite x.
    Softplus = "softplus", ["x"], Single, within 1.72 "max(x, 0) + log1p(e^−a), a = abs(x)";
    /// `x * tanh(softplus(x))`.
    Mish = "mish", ["x"], Single, within 1.10 "a quotient in e^x, corrected";
    /// `x * sigmoid(x)`.
    Silu = "silu", ["x"], Single, within 1.10 "as `sigmoid`, with x in place of 1";
    /// `x * (1 + erf(x / sqrt(2))) / 2`.
    Gelu = "gelu", ["x"], Single, within 1.73 "x · Φ(x) through the ratio of Φ to its density";
    /// `x * (1 + tanh(sqrt(2 / π) * (x + 0.044715 * x³))) / 2`.
    GeluTanh = "gelu_tanh", ["x"], Single, within 1.14 "as `silu`, with a cubic in x as \
        the sum of two floats";
    /// The integer, or the `f64`, rounded to the nearest `f32`.
    ToF32 = "f32", ["integer"], Conversion;
    /// The integer rounded to the nearest `f64`, or the `f32` unchanged.
    ToF64 = "f64", ["integer"], Conversion;
}

/// Types of a function's operands and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// Takes and returns `f32`.
    Single,
    /// Takes floats of one type and returns a float of this type.
    Float,
    /// Takes numbers of one type and returns a number of this type.
    Number,
    /// Takes floats of one type and returns a boolean.
    Predicate,
    /// Takes an integer, or a float of the other type, and returns a float.
    Conversion,
}

/// Description of a function, from its row in the table.
#[derive(Clone, Copy, Debug)]
pub struct FunctionInfo {
    pub name: &'static str,
    pub operands: &'static [&'static str],
    /// Types of the operands and of the value.
    pub signature: Signature,
    pub meaning: &'static str,
    /// Error bound; `None` if IEEE 754 defines the value.
    pub bound: Option<Bound>,
}

/// Accuracy and method of an `f32` function that has no hardware instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Greatest error over all 2^32 inputs, in units in the last place of the exact result.
    pub ulp: f64,
    pub method: &'static str,
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} ulp", self.ulp)
    }
}

impl Function {
    /// Returns the spelling in the language.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Returns the function with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|function| function.name() == name)
    }

    /// Returns true if the function takes `f32` only.
    pub(super) fn is_single(self) -> bool {
        self.info().signature == Signature::Single
    }

    /// Returns the type to which the function converts; `None` if it is not a conversion.
    pub(super) fn converts_to(self) -> Option<Float> {
        match self {
            Function::ToF32 => Some(Float::F32),
            Function::ToF64 => Some(Float::F64),
            _ => None,
        }
    }
}
