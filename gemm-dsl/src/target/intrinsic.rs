//! Intrinsic functions, with the CUDA spelling and the semantics of each in one table.

use crate::target::arch;
use crate::target::types::{Elem, Ty};

/// Hardware function for which C has no operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Intrinsic {
    /// `a * b + c`, rounded once.
    Fma,
    /// IEEE 754-2019 maximum: a NaN operand gives NaN, and −0 is below +0.
    Maximum,
    /// IEEE 754-2019 minimum: a NaN operand gives NaN, and −0 is below +0.
    Minimum,
    Abs,
    /// Square root, rounded to nearest.
    Sqrt,
    Floor,
    Ceil,
    /// Nearest integer that is not farther from 0.
    Trunc,
    /// Nearest integer, ties to even.
    RoundEven,
    /// Value of the lane that is `delta` (an `I32`) higher, or of the lane itself if that is past
    /// the end of the warp. All 32 lanes must participate.
    ShuffleDown,
    /// Value of the lane that is `delta` (an `I32`) lower, or of the lane itself if there is none.
    /// All 32 lanes must participate.
    ShuffleUp,
    /// Value of the lane whose index is this lane's index XOR an `I32` from 0 to 31. All 32 lanes
    /// must participate.
    ShuffleXor,
    /// Value of the lane whose index is an `I32` from 0 to 31. All 32 lanes must participate.
    ShuffleFrom,
    /// Bitwise OR of the words of all lanes. All 32 lanes must participate.
    OrOfLanes,
    /// Word whose bit n is 1 if the boolean of lane n is true. All 32 lanes must participate.
    Ballot,
    /// Number of ones in a word, an `I32`.
    CountOnes,
    /// Two numbers rounded to `bf16` and packed into one word, the first in its lower half.
    PackBf16,
    /// Two numbers rounded to `f16` and packed into one word, the first in its lower half.
    PackF16,
}

/// Semantics of an intrinsic, which the simulator executes.
#[derive(Clone, Copy, Debug)]
pub enum Semantics {
    /// Function of each lane's own operands, which have one floating-point type; unused ones are 0.
    Float { f32: fn([f32; 3]) -> f32, f64: fn([f64; 3]) -> f64 },
    /// Exchange between the lanes of a warp.
    Shuffle(Shuffle),
    /// Bitwise OR of the words of a warp's lanes.
    OrOfLanes,
    /// Booleans of a warp's lanes, as the bits of a word.
    Ballot,
    /// Number of ones in each lane's word.
    CountOnes,
    /// Converts two binary32 numbers to another type, and packs them as the halves of a word.
    Pack(Elem),
}

/// Lane from which each lane of a shuffle reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    /// Lane that is `delta` higher; the lane itself past the end of the warp.
    Down,
    /// Lane that is `delta` lower; the lane itself if there is none.
    Up,
    /// Lane whose index differs in exactly the given bits.
    Xor,
    /// Lane with the given index.
    From,
}

/// CUDA spelling of a function for one floating-point type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spelling {
    pub name: &'static str,
    /// Definition, if CUDA C++ has no such function. It is printed once in a source that uses the
    /// function.
    pub definition: &'static str,
}

/// Description of an intrinsic, from its row in the table.
#[derive(Clone, Copy, Debug)]
pub struct IntrinsicInfo {
    pub arity: usize,
    /// Spelling for binary32 and for all types of at most 4 bytes.
    pub single: Spelling,
    /// Spelling for binary64 and for all types of 8 bytes.
    pub double: Spelling,
    /// True if all lanes of a warp must call it together.
    pub warp_wide: bool,
    /// Oldest architecture that supports it.
    pub arch: u32,
    pub semantics: Semantics,
}

/// NaN that binary32 arithmetic produces on a GPU.
pub const CANONICAL_NAN: u32 = 0x7fff_ffff;
/// NaN that binary64 arithmetic produces in the simulator. The IR does not specify it. A GPU
/// propagates the payload of an operand, and the compiler chooses the operand.
pub const CANONICAL_NAN_F64: u64 = 0xfff8_0000_0000_0000;

/// Floating-point type with arithmetic.
pub trait CanonicalFloat: Copy + PartialOrd {
    const NAN: Self;
    /// Returns the bits, zero-extended.
    fn bits(self) -> u64;
    fn of_bits(bits: u64) -> Self;
    /// `self * b + c`, rounded once.
    fn fused(self, b: Self, c: Self) -> Self;
    /// Replaces any NaN by the canonical NaN.
    fn canonical(self) -> Self;
}

impl CanonicalFloat for f32 {
    const NAN: Self = f32::from_bits(CANONICAL_NAN);
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
    fn of_bits(bits: u64) -> Self {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn fused(self, b: Self, c: Self) -> Self {
        self.mul_add(b, c)
    }
    #[inline(always)]
    fn canonical(self) -> Self {
        canonical(self)
    }
}

impl CanonicalFloat for f64 {
    const NAN: Self = f64::from_bits(CANONICAL_NAN_F64);
    fn bits(self) -> u64 {
        self.to_bits()
    }
    fn of_bits(bits: u64) -> Self {
        f64::from_bits(bits)
    }
    #[inline(always)]
    fn fused(self, b: Self, c: Self) -> Self {
        self.mul_add(b, c)
    }
    #[inline(always)]
    fn canonical(self) -> Self {
        // Tests the bits for the same reason as [`canonical`].
        let infinity = f64::INFINITY.to_bits();
        let is_nan = self.to_bits() & i64::MAX as u64 > infinity;
        f64::from_bits(if is_nan { CANONICAL_NAN_F64 } else { self.to_bits() })
    }
}

/// Replaces any NaN by the canonical NaN.
///
/// The test uses the bits. The compiler may choose the NaN that arithmetic returns. It could
/// therefore simplify `if x is NaN { one } else { x }` to `x`, and does so after a square root.
#[inline(always)]
pub fn canonical(value: f32) -> f32 {
    let bits = value.to_bits();
    let is_nan = bits & i32::MAX as u32 > f32::INFINITY.to_bits();
    f32::from_bits(if is_nan { CANONICAL_NAN } else { bits })
}

fn fma<T: CanonicalFloat>([a, b, c]: [T; 3]) -> T {
    a.fused(b, c).canonical()
}

fn maximum<T: CanonicalFloat>([a, b, _]: [T; 3]) -> T {
    greater(a, b)
}

fn minimum<T: CanonicalFloat>([a, b, _]: [T; 3]) -> T {
    smaller(a, b)
}

/// IEEE 754-2019 maximum: NaN propagates, −0 is below +0.
pub(crate) fn greater<T: CanonicalFloat>(a: T, b: T) -> T {
    match a.partial_cmp(&b) {
        None => T::NAN,
        // Equal values differ at most in the sign of a zero, and +0 is the greater one.
        Some(std::cmp::Ordering::Equal) => T::of_bits(a.bits() & b.bits()),
        Some(std::cmp::Ordering::Greater) => a,
        Some(std::cmp::Ordering::Less) => b,
    }
}

/// IEEE 754-2019 minimum: NaN propagates, −0 is below +0.
pub(crate) fn smaller<T: CanonicalFloat>(a: T, b: T) -> T {
    match a.partial_cmp(&b) {
        None => T::NAN,
        Some(std::cmp::Ordering::Equal) => T::of_bits(a.bits() | b.bits()),
        Some(std::cmp::Ordering::Greater) => b,
        Some(std::cmp::Ordering::Less) => a,
    }
}

const MAXIMUM: &str = "\
// IEEE 754-2019 maximum: NaN propagates, -0 < +0.
__device__ __forceinline__ float maximum(float a, float b)
{
#if __CUDA_ARCH__ >= 800
    float r;
    asm(\"max.NaN.f32 %0, %1, %2;\" : \"=f\"(r) : \"f\"(a), \"f\"(b));
    return r;
#else
    return (a != a || b != b) ? __int_as_float(0x7fffffff) : fmaxf(a, b);
#endif
}
";

const MINIMUM: &str = "\
// IEEE 754-2019 minimum: NaN propagates, -0 < +0.
__device__ __forceinline__ float minimum(float a, float b)
{
#if __CUDA_ARCH__ >= 800
    float r;
    asm(\"min.NaN.f32 %0, %1, %2;\" : \"=f\"(r) : \"f\"(a), \"f\"(b));
    return r;
#else
    return (a != a || b != b) ? __int_as_float(0x7fffffff) : fminf(a, b);
#endif
}
";

const MAXIMUM_F64: &str = "\
// IEEE 754-2019 maximum: NaN propagates, -0 < +0.
__device__ __forceinline__ double maximum(double a, double b)
{
    if (a != a || b != b) return __longlong_as_double(0xfff8000000000000);
    if (a == b) return __longlong_as_double(__double_as_longlong(a) & __double_as_longlong(b));
    return a > b ? a : b;
}
";

const MINIMUM_F64: &str = "\
// IEEE 754-2019 minimum: NaN propagates, -0 < +0.
__device__ __forceinline__ double minimum(double a, double b)
{
    if (a != a || b != b) return __longlong_as_double(0xfff8000000000000);
    if (a == b) return __longlong_as_double(__double_as_longlong(a) | __double_as_longlong(b));
    return a < b ? a : b;
}
";

const PACK_BF16: &str = "\
// Rounds two values to bf16 and packs them into one word, the first in the lower half.
__device__ __forceinline__ unsigned int pack_bf16(float low, float high)
{
    unsigned int word;
    asm(\"cvt.rn.bf16x2.f32 %0, %1, %2;\" : \"=r\"(word) : \"f\"(high), \"f\"(low));
    return word;
}
";

const PACK_F16: &str = "\
// Rounds two values to f16 and packs them into one word, the first in the lower half.
__device__ __forceinline__ unsigned int pack_f16(float low, float high)
{
    unsigned int word;
    asm(\"cvt.rn.f16x2.f32 %0, %1, %2;\" : \"=r\"(word) : \"f\"(high), \"f\"(low));
    return word;
}
";

impl Intrinsic {
    pub const ALL: [Intrinsic; 18] = [
        Intrinsic::Fma,
        Intrinsic::Maximum,
        Intrinsic::Minimum,
        Intrinsic::Abs,
        Intrinsic::Sqrt,
        Intrinsic::Floor,
        Intrinsic::Ceil,
        Intrinsic::Trunc,
        Intrinsic::RoundEven,
        Intrinsic::ShuffleDown,
        Intrinsic::ShuffleUp,
        Intrinsic::ShuffleXor,
        Intrinsic::ShuffleFrom,
        Intrinsic::OrOfLanes,
        Intrinsic::Ballot,
        Intrinsic::CountOnes,
        Intrinsic::PackBf16,
        Intrinsic::PackF16,
    ];

    /// Returns the intrinsic's row in the table.
    pub const fn info(self) -> IntrinsicInfo {
        match self {
            Intrinsic::Fma => float(3, spelled("fmaf", ""), spelled("fma", ""), fma, fma),
            Intrinsic::Maximum => float(
                2,
                spelled("maximum", MAXIMUM),
                spelled("maximum", MAXIMUM_F64),
                maximum,
                maximum,
            ),
            Intrinsic::Minimum => float(
                2,
                spelled("minimum", MINIMUM),
                spelled("minimum", MINIMUM_F64),
                minimum,
                minimum,
            ),
            Intrinsic::Abs => float(
                1,
                spelled("fabsf", ""),
                spelled("fabs", ""),
                |[x, ..]| x.abs().canonical(),
                |[x, ..]| x.abs().canonical(),
            ),
            Intrinsic::Sqrt => float(
                1,
                spelled("__fsqrt_rn", ""),
                spelled("__dsqrt_rn", ""),
                |[x, ..]| x.sqrt().canonical(),
                |[x, ..]| x.sqrt().canonical(),
            ),
            Intrinsic::Floor => float(
                1,
                spelled("floorf", ""),
                spelled("floor", ""),
                |[x, ..]| x.floor().canonical(),
                |[x, ..]| x.floor().canonical(),
            ),
            Intrinsic::Ceil => float(
                1,
                spelled("ceilf", ""),
                spelled("ceil", ""),
                |[x, ..]| x.ceil().canonical(),
                |[x, ..]| x.ceil().canonical(),
            ),
            Intrinsic::Trunc => float(
                1,
                spelled("truncf", ""),
                spelled("trunc", ""),
                |[x, ..]| x.trunc().canonical(),
                |[x, ..]| x.trunc().canonical(),
            ),
            Intrinsic::RoundEven => float(
                1,
                spelled("rintf", ""),
                spelled("rint", ""),
                |[x, ..]| x.round_ties_even().canonical(),
                |[x, ..]| x.round_ties_even().canonical(),
            ),
            Intrinsic::ShuffleDown => IntrinsicInfo {
                warp_wide: true,
                ..word(
                    2,
                    spelled("__shfl_down_sync", ""),
                    Semantics::Shuffle(Shuffle::Down),
                    arch::OLDEST,
                )
            },
            Intrinsic::ShuffleUp => IntrinsicInfo {
                warp_wide: true,
                ..word(
                    2,
                    spelled("__shfl_up_sync", ""),
                    Semantics::Shuffle(Shuffle::Up),
                    arch::OLDEST,
                )
            },
            Intrinsic::ShuffleXor => IntrinsicInfo {
                warp_wide: true,
                ..word(
                    2,
                    spelled("__shfl_xor_sync", ""),
                    Semantics::Shuffle(Shuffle::Xor),
                    arch::OLDEST,
                )
            },
            Intrinsic::ShuffleFrom => IntrinsicInfo {
                warp_wide: true,
                ..word(
                    2,
                    spelled("__shfl_sync", ""),
                    Semantics::Shuffle(Shuffle::From),
                    arch::OLDEST,
                )
            },
            Intrinsic::OrOfLanes => {
                let spelling = spelled("__reduce_or_sync", "");
                IntrinsicInfo {
                    warp_wide: true,
                    ..word(1, spelling, Semantics::OrOfLanes, arch::REDUCTIONS)
                }
            }
            Intrinsic::Ballot => IntrinsicInfo {
                warp_wide: true,
                ..word(1, spelled("__ballot_sync", ""), Semantics::Ballot, arch::OLDEST)
            },
            Intrinsic::CountOnes => {
                word(1, spelled("__popc", ""), Semantics::CountOnes, arch::OLDEST)
            }
            Intrinsic::PackBf16 => {
                word(2, spelled("pack_bf16", PACK_BF16), Semantics::Pack(Elem::Bf16), arch::PACKS)
            }
            Intrinsic::PackF16 => {
                word(2, spelled("pack_f16", PACK_F16), Semantics::Pack(Elem::F16), arch::PACKS)
            }
        }
    }

    /// Spelling of a call whose first operand has this type.
    pub fn spelling(self, elem: Elem) -> Spelling {
        if elem.size() == 8 { self.info().double } else { self.info().single }
    }

    /// Returns the result type of a call with these operand types; `None` if the types are wrong.
    pub fn result(self, operands: &[Ty]) -> Option<Ty> {
        let first = *operands.first()?;
        let (fits, result) = match self.info().semantics {
            Semantics::Float { .. } => {
                (first.is_float() && operands.iter().all(|ty| *ty == first), first)
            }
            Semantics::Shuffle(_) => {
                let moved = first.is_float() || first.is_integer();
                (moved && operands.get(1) == Some(&Ty::I32), first)
            }
            Semantics::OrOfLanes => (first == Ty::U32, Ty::U32),
            Semantics::Ballot => (first == Ty::Bool, Ty::U32),
            Semantics::CountOnes => (first == Ty::U32, Ty::I32),
            Semantics::Pack(_) => (operands.iter().all(|ty| *ty == Ty::F32), Ty::U32),
        };
        (fits && operands.len() == self.info().arity).then_some(result)
    }
}

const fn spelled(name: &'static str, definition: &'static str) -> Spelling {
    Spelling { name, definition }
}

/// Describes a function of words, which has the same spelling for all types.
const fn word(arity: usize, spelling: Spelling, semantics: Semantics, arch: u32) -> IntrinsicInfo {
    IntrinsicInfo { arity, single: spelling, double: spelling, warp_wide: false, arch, semantics }
}

const fn float(
    arity: usize,
    single: Spelling,
    double: Spelling,
    f32: fn([f32; 3]) -> f32,
    f64: fn([f64; 3]) -> f64,
) -> IntrinsicInfo {
    IntrinsicInfo {
        arity,
        single,
        double,
        warp_wide: false,
        arch: arch::OLDEST,
        semantics: Semantics::Float { f32, f64 },
    }
}
