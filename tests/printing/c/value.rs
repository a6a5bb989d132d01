//! Typed values of C, and the semantics of its operators.

use gemm_dsl::ir::Ty;
use gemm_dsl::target::intrinsic::canonical;

/// Value with its C type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// `bool`
    Bool(bool),
    /// CUDA coordinate, an `unsigned`. It must be converted before use, because it would make a
    /// whole expression unsigned.
    Coordinate(u32),
    /// `int`
    I32(i32),
    /// `unsigned int`
    U32(u32),
    /// `unsigned int` of a variable that contains a coordinate, or of an expression with such a
    /// variable. An `int` that is the other operand is converted.
    Unsigned(u32),
    /// `long long`
    I64(i64),
    /// `size_t`
    U64(u64),
    /// Bits of a `float`, which distinguish NaNs and zeros.
    F32(u32),
}

use Value::{Bool, Coordinate, F32, I32, I64, U32, U64, Unsigned};

pub type Result<T> = std::result::Result<T, String>;

/// Result of `float` arithmetic, with any NaN made canonical.
impl From<f32> for Value {
    fn from(value: f32) -> Self {
        F32(canonical(value).to_bits())
    }
}

impl Value {
    /// Type in the IR. A coordinate has none.
    pub fn ty(self) -> Option<Ty> {
        Some(match self {
            Bool(_) => Ty::Bool,
            Coordinate(_) | Unsigned(_) => return None,
            I32(_) => Ty::I32,
            U32(_) => Ty::U32,
            I64(_) => Ty::I64,
            U64(_) => Ty::U64,
            F32(_) => Ty::F32,
        })
    }

    /// Cast, or initialisation of a variable. If a wide integer does not fit, the source is wrong.
    /// Conversions between `unsigned int` and `int` keep the bits.
    pub fn converted(self, ty: Ty) -> Result<Value> {
        let whole = || self.whole().ok_or(format!("{self:?} as {ty}"));
        let misfit = |_| format!("{self:?} does not fit in {ty}");
        match (ty, self) {
            _ if self.ty() == Some(ty) => Ok(self),
            (Ty::I32, U32(v) | Unsigned(v)) => Ok(I32(v as i32)),
            (Ty::U32, Unsigned(v)) => Ok(U32(v)),
            (Ty::U32, I32(v)) => Ok(U32(v as u32)),
            (Ty::U32, _) => whole()?.try_into().map(U32).map_err(misfit),
            (Ty::I32, _) => whole()?.try_into().map(I32).map_err(misfit),
            (Ty::I64, _) => whole()?.try_into().map(I64).map_err(misfit),
            (Ty::U64, _) => Ok(U64(whole()? as u64)),
            (Ty::F32, _) => Ok((whole()? as f32).into()),
            _ => Err(format!("{self:?} as {ty}")),
        }
    }

    fn whole(self) -> Option<i128> {
        match self {
            Coordinate(v) | U32(v) | Unsigned(v) => Some(v.into()),
            I32(v) => Some(v.into()),
            I64(v) => Some(v.into()),
            U64(v) => Some(v.into()),
            Bool(_) | F32(_) => None,
        }
    }

    pub fn truth(self) -> Result<bool> {
        match self {
            Bool(v) => Ok(v),
            other => Err(format!("{other:?} as a condition")),
        }
    }

    pub fn float(self) -> Result<f32> {
        match self {
            F32(bits) => Ok(f32::from_bits(bits)),
            other => Err(format!("{other:?} as a float")),
        }
    }

    pub fn negated(self) -> Result<Value> {
        match self {
            I32(v) => v.checked_neg().map(I32).ok_or("overflow".into()),
            I64(v) => v.checked_neg().map(I64).ok_or("overflow".into()),
            Unsigned(v) => Ok(Unsigned(v.wrapping_neg())),
            F32(bits) => Ok((-f32::from_bits(bits)).into()),
            other => Err(format!("-{other:?}")),
        }
    }
}

/// Operator after the usual arithmetic conversions. Only an `int` is converted implicitly, if the
/// other operand is a wider integer or a coordinate. The source must make all other conversions
/// explicitly.
pub fn binary(op: &str, a: Value, b: Value) -> Result<Value> {
    if let (F32(a), F32(b)) = (a, b) {
        return floats(op, f32::from_bits(a), f32::from_bits(b));
    }
    let (Some(x), Some(y)) = (a.whole(), b.whole()) else {
        return Err(format!("{a:?} {op} {b:?}"));
    };
    match (op, a, b) {
        (_, Coordinate(_), _) | (_, _, Coordinate(_)) => {
            Err(format!("{a:?} {op} {b:?} is unsigned"))
        }
        // The left operand of a shift keeps its type.
        ("<<" | ">>", ..) => fitting(a, op, shifted(op, x, y, if size(a) { 64 } else { 32 })?),
        (_, I32(_), U64(_)) => integers(op, b, i128::from(x as u64), y),
        (_, U64(_), I32(_)) => integers(op, a, x, i128::from(y as u64)),
        (_, I32(x), Unsigned(_)) => integers(op, b, (x as u32).into(), y),
        (_, Unsigned(_), I32(y)) => integers(op, a, x, (y as u32).into()),
        (_, Unsigned(_), Unsigned(_) | U64(_)) => integers(op, b, x, y),
        (_, U64(_), Unsigned(_)) => integers(op, a, x, y),
        (_, I32(_), I64(_)) => integers(op, b, x, y),
        _ if a.ty() == b.ty() || matches!((a, b), (I64(_), I32(_))) => integers(op, a, x, y),
        _ => Err(format!("{a:?} {op} {b:?} converts one of them")),
    }
}

/// True if the type has 64 bits.
fn size(value: Value) -> bool {
    matches!(value, I64(_) | U64(_))
}

fn floats(op: &str, a: f32, b: f32) -> Result<Value> {
    Ok(match op {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        _ => return compare(op, &a, &b),
    }
    .into())
}

/// Operator on integers with the type of `like`.
fn integers(op: &str, like: Value, a: i128, b: i128) -> Result<Value> {
    let result = match op {
        "+" => a + b,
        "-" => a - b,
        "*" => a.wrapping_mul(b),
        "/" => a.checked_div(b).ok_or("a division by zero")?,
        "%" => a.checked_rem(b).ok_or("a division by zero")?,
        "^" => a ^ b,
        "|" => a | b,
        "&" => a & b,
        _ => return compare(op, &a, &b),
    };
    fitting(like, op, result)
}

/// Value with the type of `like`. Unsigned values wrap, and signed values must not overflow.
fn fitting(like: Value, op: &str, result: i128) -> Result<Value> {
    let overflow = |_| format!("{op} overflows");
    match like {
        I32(_) => result.try_into().map(I32).map_err(overflow),
        I64(_) => result.try_into().map(I64).map_err(overflow),
        U32(_) => Ok(U32(result as u32)),
        Unsigned(_) => Ok(Unsigned(result as u32)),
        U64(_) => Ok(U64(result as u64)),
        other => Err(format!("{other:?} {op}")),
    }
}

fn shifted(op: &str, a: i128, by: i128, bits: i128) -> Result<i128> {
    if a < 0 || !(0..bits).contains(&by) {
        return Err(format!("{a} {op} {by}"));
    }
    Ok(if op == "<<" { ((a as u128) << by) as i128 } else { a >> by })
}

fn compare<T: PartialOrd>(op: &str, a: &T, b: &T) -> Result<Value> {
    Ok(Bool(match op {
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        ">=" => a >= b,
        "==" => a == b,
        "!=" => a != b,
        _ => return Err(format!("operator {op}")),
    }))
}

/// Built-in function of CUDA C, or a function that the source defines with machine intrinsics. None
/// if the name is unknown.
pub fn builtin(name: &str, args: &[Value]) -> Option<Result<Value>> {
    let float =
        |i: usize| args.get(i).copied().ok_or("too few operands".into()).and_then(Value::float);
    let on_one = |f: fn(f32) -> f32| float(0).map(|x| f(x).into());
    let of_two = |f: fn(f32, f32) -> f32| Ok(f(float(0)?, float(1)?).into());
    Some(match (name, args) {
        ("min" | "max", &[a, b]) if a.whole().is_some() => binary("<", a, b).and_then(|less| {
            let is_first = less.truth()? == (name == "min");
            Ok(if is_first { a } else { b })
        }),
        ("fmaf", [_, _, _]) => {
            let parts = float(0).and_then(|a| Ok((a, float(1)?, float(2)?)));
            parts.map(|(a, b, c)| a.mul_add(b, c).into())
        }
        ("maximum", [_, _]) => of_two(|a, b| {
            if a.is_nan() || b.is_nan() {
                f32::NAN
            } else if a > b || (a == b && b.is_sign_negative()) {
                a
            } else {
                b
            }
        }),
        ("minimum", [_, _]) => of_two(|a, b| {
            if a.is_nan() || b.is_nan() {
                f32::NAN
            } else if a < b || (a == b && a.is_sign_negative()) {
                a
            } else {
                b
            }
        }),
        ("fabsf", [_]) => on_one(f32::abs),
        ("__fsqrt_rn", [_]) => on_one(f32::sqrt),
        ("floorf", [_]) => on_one(f32::floor),
        ("ceilf", [_]) => on_one(f32::ceil),
        ("truncf", [_]) => on_one(f32::trunc),
        ("rintf", [_]) => on_one(f32::round_ties_even),
        ("__float_as_uint", &[F32(bits)]) => Ok(U32(bits)),
        ("__float_as_int", &[F32(bits)]) => Ok(I32(bits as i32)),
        ("__uint_as_float", &[U32(bits)]) => Ok(F32(bits)),
        // The operand is converted to `int`, because a literal bit pattern with the highest bit set
        // is an `unsigned int`.
        ("__int_as_float", [bits]) => bits.converted(Ty::I32).and_then(|bits| match bits {
            I32(bits) => Ok(F32(bits as u32)),
            other => Err(format!("{other:?} as an int")),
        }),
        _ => return None,
    })
}
