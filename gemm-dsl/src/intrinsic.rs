//! The intrinsics: one row each with the CUDA spelling, the meaning and the architecture it needs.

use crate::ir::Ty;

/// An operation of the machine that is no C operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Intrinsic {
    /// `a * b + c`, rounded once.
    Fma,
    /// IEEE 754-2019 maximum: a NaN operand gives NaN, and −0 is below +0.
    Maximum,
    /// IEEE 754-2019 minimum: a NaN operand gives NaN, and −0 is below +0.
    Minimum,
    /// The value of the lane `delta` (an `I32`) above; of the lane itself past the warp's end.
    /// All 32 lanes take part.
    ShuffleDown,
    /// Asynchronous copy of 4 bytes from global to shared memory.
    CopyAsync4,
    /// Asynchronous copy of 16 bytes from global to shared memory.
    CopyAsync16,
    /// As [`Intrinsic::CopyAsync4`], writing zero where a predicate does not hold.
    CopyAsync4Guarded,
    /// As [`Intrinsic::CopyAsync16`], writing zeros where a predicate does not hold.
    CopyAsync16Guarded,
    /// As [`Intrinsic::CopyAsync4`], doing nothing where a predicate does not hold.
    CopyAsync4If,
    /// As [`Intrinsic::CopyAsync16`], doing nothing where a predicate does not hold.
    CopyAsync16If,
    /// Closes this thread's group of asynchronous copies.
    CopyCommit,
    /// Waits for this thread's groups of asynchronous copies.
    CopyWait,
}

/// What an intrinsic does, for the simulator.
#[derive(Clone, Copy, Debug)]
pub enum Semantics {
    /// A function of each lane's own operands (unused ones are 0).
    Lanewise(fn([f32; 3]) -> f32),
    /// An exchange between the lanes of a warp.
    ShuffleDown,
    /// Part of an asynchronous copy: see the statements of the IR.
    Copy,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name of the function in the text.
    pub cuda: &'static str,
    /// Its definition where CUDA C has no such function; emitted once into a text that uses it.
    pub definition: &'static str,
    /// The types of its operands.
    pub operands: &'static [Ty],
    /// The type of its value.
    pub result: Ty,
    /// The oldest architecture that has it, as in `sm_80`.
    pub min_arch: u32,
    /// Whether all lanes of a warp must call it together.
    pub warp_wide: bool,
    /// What it does.
    pub semantics: Semantics,
}

/// The NaN that arithmetic produces on a GPU.
pub const CANONICAL_NAN: u32 = 0x7fff_ffff;

/// The value itself, or the canonical NaN for any NaN.
#[inline(always)]
pub fn canonical(value: f32) -> f32 {
    if value.is_nan() { f32::from_bits(CANONICAL_NAN) } else { value }
}

fn fma([a, b, c]: [f32; 3]) -> f32 {
    canonical(a.mul_add(b, c))
}

fn maximum([a, b, _]: [f32; 3]) -> f32 {
    if a.is_nan() || b.is_nan() {
        f32::from_bits(CANONICAL_NAN)
    } else if a == b {
        // Equal values differ at most in the sign of a zero: +0 is the greater.
        f32::from_bits(a.to_bits() & b.to_bits())
    } else if a > b {
        a
    } else {
        b
    }
}

fn minimum([a, b, _]: [f32; 3]) -> f32 {
    if a.is_nan() || b.is_nan() {
        f32::from_bits(CANONICAL_NAN)
    } else if a == b {
        f32::from_bits(a.to_bits() | b.to_bits())
    } else if a < b {
        a
    } else {
        b
    }
}

/// The oldest architecture that NVRTC 13 compiles for.
const OLDEST: u32 = 75;
/// The first architecture with asynchronous copies.
const AMPERE: u32 = 80;

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

const COPY_ASYNC_4: &str = "\
// Asynchronous copy of 4 bytes, global to shared, around the registers.
__device__ __forceinline__ void copy_async_4(float* shared, const float* global)
{
    const unsigned dst = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4;\" :: \"r\"(dst), \"l\"(global) : \"memory\");
}
";

const COPY_ASYNC_16: &str = "\
// Asynchronous copy of 16 bytes, global to shared, around the registers and L1.
__device__ __forceinline__ void copy_async_16(float* shared, const float* global)
{
    const unsigned dst = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\" :: \"r\"(dst), \"l\"(global) : \"memory\");
}
";

const COPY_ASYNC_4_GUARDED: &str = "\
// Asynchronous copy of 4 bytes where `valid`; else it writes a zero and reads nothing.
__device__ __forceinline__ void copy_async_4_or_zero(float* shared, const float* global, bool valid)
{
    const unsigned dst = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4, %2;\" :: \"r\"(dst), \"l\"(global), \"r\"(valid ? 4 : 0) : \"memory\");
}
";

const COPY_ASYNC_16_GUARDED: &str = "\
// Asynchronous copy of 16 bytes where `valid`; else it writes zeros and reads nothing.
__device__ __forceinline__ void copy_async_16_or_zero(float* shared, const float* global, bool valid)
{
    const unsigned dst = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\" :: \"r\"(dst), \"l\"(global), \"r\"(valid ? 16 : 0) : \"memory\");
}
";

const COPY_ASYNC_4_IF: &str = "\
// Asynchronous copy of 4 bytes where `valid`, without a branch.
__device__ __forceinline__ void copy_async_4_if(float* shared, const float* global, bool valid)
{
    const unsigned dst = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile(\"{ .reg .pred p; setp.ne.b32 p, %2, 0;\"
                 \"  @p cp.async.ca.shared.global [%0], [%1], 4; }\"
                 :: \"r\"(dst), \"l\"(global), \"r\"((int)valid) : \"memory\");
}
";

const COPY_ASYNC_16_IF: &str = "\
// Asynchronous copy of 16 bytes where `valid`, without a branch.
__device__ __forceinline__ void copy_async_16_if(float* shared, const float* global, bool valid)
{
    const unsigned dst = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile(\"{ .reg .pred p; setp.ne.b32 p, %2, 0;\"
                 \"  @p cp.async.cg.shared.global [%0], [%1], 16; }\"
                 :: \"r\"(dst), \"l\"(global), \"r\"((int)valid) : \"memory\");
}
";

const COPY_COMMIT: &str = "\
// Closes a group of asynchronous copies.
__device__ __forceinline__ void copy_commit()
{
    asm volatile(\"cp.async.commit_group;\" ::: \"memory\");
}
";

const COPY_WAIT: &str = "\
// Waits until at most `pending` groups of asynchronous copies are in flight.
template <int pending>
__device__ __forceinline__ void copy_wait()
{
    asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(pending) : \"memory\");
}
";

impl Intrinsic {
    /// The row of this intrinsic.
    pub const fn row(self) -> Row {
        use Ty::{F32, I32};
        match self {
            Intrinsic::Fma => lane_row("fmaf", "", &[F32, F32, F32], fma),
            Intrinsic::Maximum => lane_row("maximum", MAXIMUM, &[F32, F32], maximum),
            Intrinsic::Minimum => lane_row("minimum", MINIMUM, &[F32, F32], minimum),
            Intrinsic::ShuffleDown => Row {
                cuda: "__shfl_down_sync",
                definition: "",
                operands: &[F32, I32],
                result: F32,
                min_arch: OLDEST,
                warp_wide: true,
                semantics: Semantics::ShuffleDown,
            },
            Intrinsic::CopyAsync4 => copy_row("copy_async_4", COPY_ASYNC_4),
            Intrinsic::CopyAsync16 => copy_row("copy_async_16", COPY_ASYNC_16),
            Intrinsic::CopyAsync4Guarded => copy_row("copy_async_4_or_zero", COPY_ASYNC_4_GUARDED),
            Intrinsic::CopyAsync16Guarded => {
                copy_row("copy_async_16_or_zero", COPY_ASYNC_16_GUARDED)
            }
            Intrinsic::CopyAsync4If => copy_row("copy_async_4_if", COPY_ASYNC_4_IF),
            Intrinsic::CopyAsync16If => copy_row("copy_async_16_if", COPY_ASYNC_16_IF),
            Intrinsic::CopyCommit => copy_row("copy_commit", COPY_COMMIT),
            Intrinsic::CopyWait => copy_row("copy_wait", COPY_WAIT),
        }
    }
}

const fn lane_row(
    cuda: &'static str,
    definition: &'static str,
    operands: &'static [Ty],
    f: fn([f32; 3]) -> f32,
) -> Row {
    Row {
        cuda,
        definition,
        operands,
        result: Ty::F32,
        min_arch: OLDEST,
        warp_wide: false,
        semantics: Semantics::Lanewise(f),
    }
}

/// The parts of an asynchronous copy are statements: they have no operands and no value of their own.
const fn copy_row(cuda: &'static str, definition: &'static str) -> Row {
    Row {
        cuda,
        definition,
        operands: &[],
        result: Ty::Bool,
        min_arch: AMPERE,
        warp_wide: false,
        semantics: Semantics::Copy,
    }
}
