//! Typed expressions: uniform values, and values with one number per lane.

use super::{Memory, Slots};
use gemm_dsl::ir::{Arith, BinaryOp, Cmp, Elem};
use gemm_dsl::target::intrinsic::Shuffle;

/// Integer or boolean that is the same in all threads of a block, as the bits of an `i64`. An `I32`
/// is sign-extended, a `U64` is unchanged, and a boolean is 0 or 1.
#[derive(Clone, Debug)]
pub(crate) enum Uniform {
    /// Value that is known when the kernel is built.
    Static(i64),
    /// Value that is known at launch. Its computation still counts in the kernel's cost.
    Known(i64),
    Slot(u32),
    BlockX,
    BlockY,
    BlockZ,
    ClusterRank,
    Neg(Box<Uniform>),
    Not(Box<Uniform>),
    I32(BinaryOp, Box<[Uniform; 2]>),
    U64(BinaryOp, Box<[Uniform; 2]>),
    And(Box<(Uniform, Lazy<Uniform>)>),
    Or(Box<(Uniform, Lazy<Uniform>)>),
    Select(Box<(Uniform, Lazy<Uniform>, Lazy<Uniform>)>),
    /// Conversion of `U64` to `I32`.
    Narrow(Box<Uniform>),
    /// Conversion of `I32` to `U64`.
    Widen(Box<Uniform>),
}

/// Operand that is evaluated only if it is needed, and is counted as a separate site.
#[derive(Clone, Debug)]
pub(crate) struct Lazy<T> {
    pub(crate) site: u32,
    pub(crate) value: T,
}

#[derive(Clone, Debug)]
pub(crate) struct Choice<T> {
    pub(crate) cond: Pred,
    pub(crate) yes: Lazy<T>,
    pub(crate) no: Lazy<T>,
}

/// Value of at most 32 bits per lane: the bits of a float, or a sign-extended or zero-extended
/// integer.
#[derive(Clone, Debug)]
pub(crate) enum Lane {
    Uniform(Uniform),
    /// Bits of a value that is known at launch.
    Bits(u32),
    Slot(u32),
    /// Element of a register array with a static index.
    Element(u32),
    /// Element of a register array with a dynamic index.
    Register(Box<Memory>),
    Load(Box<Memory>),
    Neg(Box<Lane>),
    NegFloat(Box<Lane>),
    I32(BinaryOp, Box<[Lane; 2]>),
    U32(BinaryOp, Box<[Lane; 2]>),
    F32(Arith, Box<[Lane; 2]>),
    Select(Box<Choice<Lane>>),
    /// Conversion of `U64` to `I32`.
    Narrow(Box<Wide>),
    Convert(Box<Convert>),
    Fma(Box<[Lane; 3]>),
    Function(fn([f32; 3]) -> f32, Vec<Lane>),
    Apply(Box<Apply>),
    /// Variable of the device function that is being evaluated.
    Local(u32),
    Shuffle(&'static str, Shuffle, Box<[Lane; 2]>),
    OrOfLanes(&'static str, Box<Lane>),
    Ballot(&'static str, Box<Pred>),
    CountOnes(Box<Lane>),
    /// Two binary32 numbers, each converted to one half of a word.
    Pack(Elem, Box<[Lane; 2]>),
    Part(Box<Vector>, Elem, u8),
}

#[derive(Clone, Debug)]
pub(crate) enum Wide {
    Uniform(Uniform),
    /// Bits of a value that is known at launch.
    Bits(u64),
    Slot(u32),
    /// Element of a register array with a static index: two slots, the low word first.
    Element(u32),
    Register(Box<Memory>),
    Load(Box<Memory>),
    Neg(Box<Wide>),
    NegFloat(Box<Wide>),
    U64(BinaryOp, Box<[Wide; 2]>),
    I64(BinaryOp, Box<[Wide; 2]>),
    F64(Arith, Box<[Wide; 2]>),
    Select(Box<Choice<Wide>>),
    /// Conversion of `I32` to `U64`.
    Widen(Box<Lane>),
    Convert(Box<Convert>),
    Function(fn([f64; 3]) -> f64, Vec<Wide>),
    Apply(Box<Apply>),
    /// Variable of the device function that is being evaluated.
    Local(u32),
    Shuffle(&'static str, Shuffle, Box<(Wide, Lane)>),
    Part(Box<Vector>, u8),
}

/// Value per lane, of any type except a vector.
#[derive(Clone, Debug)]
pub(crate) enum Datum {
    Lane(Lane),
    Wide(Wide),
    Pred(Pred),
}

#[derive(Clone, Debug)]
pub(crate) struct Apply {
    pub(crate) function: u32,
    pub(crate) args: Vec<Datum>,
}

#[derive(Clone, Debug)]
pub(crate) struct Function {
    /// Variables, including parameters. The parameters are the first variables of each kind, in
    /// order.
    pub(crate) slots: Slots,
    /// Assignments to variables, in execution order.
    pub(crate) body: Vec<(u32, Datum)>,
    pub(crate) value: Datum,
    /// Cost site of everything in the function that is always evaluated.
    pub(crate) site: u32,
}

/// Number per lane, of any size.
#[derive(Clone, Debug)]
pub(crate) enum Number {
    Lane(Lane),
    Wide(Wide),
}

#[derive(Clone, Debug)]
pub(crate) struct Convert {
    pub(crate) from: Elem,
    pub(crate) to: Elem,
    pub(crate) value: Number,
}

#[derive(Clone, Debug)]
pub(crate) enum Pred {
    Uniform(Uniform),
    Slot(u32),
    I32(Cmp, Box<[Lane; 2]>),
    U32(Cmp, Box<[Lane; 2]>),
    F32(Cmp, Box<[Lane; 2]>),
    U64(Cmp, Box<[Wide; 2]>),
    I64(Cmp, Box<[Wide; 2]>),
    F64(Cmp, Box<[Wide; 2]>),
    Not(Box<Pred>),
    Apply(Box<Apply>),
    /// Variable of the device function that is being evaluated.
    Local(u32),
    And(Box<(Pred, Lazy<Pred>)>),
    Or(Box<(Pred, Lazy<Pred>)>),
    Select(Box<Choice<Pred>>),
}

/// 16 bytes per lane, as four words.
#[derive(Clone, Debug)]
pub(crate) enum Vector {
    /// Variable: four lane slots, starting at this one.
    Slot(u32),
    Register(Box<Memory>),
    Load(Box<Memory>),
    /// Adjacent elements; the first is in the lowest bits.
    Pack(Elem, Vec<Number>),
    Select(Box<Choice<Vector>>),
}

#[derive(Clone, Debug)]
pub(crate) enum Index {
    /// Index that is the same in all lanes: unsigned with 64 bits if `wide`, else signed with 32
    /// bits.
    Uniform {
        value: Uniform,
        wide: bool,
    },
    I32(Lane),
    U64(Wide),
}
