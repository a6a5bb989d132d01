//! Typed expressions: what is the same in all threads of a block, and one value per lane.

use super::{Memory, Slots};
use gemm_dsl::ir::{Arith, BinaryOp, Cmp, Elem};
use gemm_dsl::target::intrinsic::Shuffle;

/// An integer or truth value that all threads of a block share, as the bits of an `i64`: an `I32`
/// sign-extended, a `U64` as it is, a truth value as 0 or 1.
#[derive(Clone, Debug)]
pub(crate) enum Uniform {
    /// Known when the kernel is built.
    Static(i64),
    /// Known when it is launched.
    Known(i64),
    /// A variable.
    Slot(u32),
    BlockX,
    BlockY,
    BlockZ,
    ClusterRank,
    /// Negation of an `I32`.
    Neg(Box<Uniform>),
    Not(Box<Uniform>),
    I32(BinaryOp, Box<[Uniform; 2]>),
    U64(BinaryOp, Box<[Uniform; 2]>),
    And(Box<(Uniform, Lazy<Uniform>)>),
    Or(Box<(Uniform, Lazy<Uniform>)>),
    Select(Box<(Uniform, Lazy<Uniform>, Lazy<Uniform>)>),
    /// `U64` to `I32`.
    Narrow(Box<Uniform>),
    /// `I32` to `U64`.
    Widen(Box<Uniform>),
}

/// An operand that is evaluated only where it is needed, and counted as a site of its own.
#[derive(Clone, Debug)]
pub(crate) struct Lazy<T> {
    pub(crate) site: u32,
    pub(crate) value: T,
}

/// `cond ? yes : no`
#[derive(Clone, Debug)]
pub(crate) struct Choice<T> {
    pub(crate) cond: Pred,
    pub(crate) yes: Lazy<T>,
    pub(crate) no: Lazy<T>,
}

/// A value of at most 32 bits per lane: a float by its bits, an integer extended by its sign or by
/// zeros.
#[derive(Clone, Debug)]
pub(crate) enum Lane {
    Uniform(Uniform),
    /// The bits of a value known when the kernel is launched.
    Bits(u32),
    /// A variable.
    Slot(u32),
    /// An element of a register array at a static index.
    Element(u32),
    /// An element of a register array.
    Register(Box<Memory>),
    Load(Box<Memory>),
    Neg(Box<Lane>),
    NegFloat(Box<Lane>),
    I32(BinaryOp, Box<[Lane; 2]>),
    U32(BinaryOp, Box<[Lane; 2]>),
    F32(Arith, Box<[Lane; 2]>),
    Select(Box<Choice<Lane>>),
    /// `U64` to `I32`.
    Narrow(Box<Wide>),
    Convert(Box<Convert>),
    Fma(Box<[Lane; 3]>),
    Function(fn([f32; 3]) -> f32, Vec<Lane>),
    Apply(Box<Apply>),
    /// A variable of the function being evaluated.
    Local(u32),
    Shuffle(&'static str, Shuffle, Box<[Lane; 2]>),
    OrOfLanes(&'static str, Box<Lane>),
    /// Two numbers of binary32 as the halves of a word, each converted.
    Pack(Elem, Box<[Lane; 2]>),
    /// One element of a vector.
    Part(Box<Vector>, Elem, u8),
}

/// A 64-bit value per lane.
#[derive(Clone, Debug)]
pub(crate) enum Wide {
    Uniform(Uniform),
    /// The bits of a value known when the kernel is launched.
    Bits(u64),
    Slot(u32),
    /// An element of a register array at a static index: two slots, the low word first.
    Element(u32),
    Register(Box<Memory>),
    Load(Box<Memory>),
    Neg(Box<Wide>),
    NegFloat(Box<Wide>),
    U64(BinaryOp, Box<[Wide; 2]>),
    I64(BinaryOp, Box<[Wide; 2]>),
    F64(Arith, Box<[Wide; 2]>),
    Select(Box<Choice<Wide>>),
    /// `I32` to `U64`.
    Widen(Box<Lane>),
    Convert(Box<Convert>),
    Function(fn([f64; 3]) -> f64, Vec<Wide>),
    Apply(Box<Apply>),
    /// A variable of the function being evaluated.
    Local(u32),
    Shuffle(&'static str, Shuffle, Box<(Wide, Lane)>),
    /// One element of a vector.
    Part(Box<Vector>, u8),
}

/// A value per lane, of any type but a vector.
#[derive(Clone, Debug)]
pub(crate) enum Datum {
    Lane(Lane),
    Wide(Wide),
    Pred(Pred),
}

/// The application of a function.
#[derive(Clone, Debug)]
pub(crate) struct Apply {
    /// Its number.
    pub(crate) function: u32,
    pub(crate) args: Vec<Datum>,
}

/// A function, lowered.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    /// Its variables, parameters included. The parameters of each kind come first, in their order.
    pub(crate) slots: Slots,
    /// What its variables are given, one after the other.
    pub(crate) body: Vec<(u32, Datum)>,
    pub(crate) value: Datum,
    /// What it costs, but for what is not always evaluated.
    pub(crate) site: u32,
}

/// One number per lane, of any type.
#[derive(Clone, Debug)]
pub(crate) enum Number {
    Lane(Lane),
    Wide(Wide),
}

/// A conversion between types of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Convert {
    pub(crate) from: Elem,
    pub(crate) to: Elem,
    pub(crate) value: Number,
}

/// A truth value per lane.
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
    /// A variable of the function being evaluated.
    Local(u32),
    And(Box<(Pred, Lazy<Pred>)>),
    Or(Box<(Pred, Lazy<Pred>)>),
    Select(Box<Choice<Pred>>),
}

/// 16 bytes per lane, as four words.
#[derive(Clone, Debug)]
pub(crate) enum Vector {
    /// A variable: four lane slots from here on.
    Slot(u32),
    Register(Box<Memory>),
    Load(Box<Memory>),
    /// Elements side by side, the first lowest.
    Pack(Elem, Vec<Number>),
    Select(Box<Choice<Vector>>),
}

/// An index along one dimension.
#[derive(Clone, Debug)]
pub(crate) enum Index {
    /// The same for all threads; of 64 bits without a sign, or of 32 with one.
    Uniform {
        value: Uniform,
        wide: bool,
    },
    I32(Lane),
    U64(Wide),
}
