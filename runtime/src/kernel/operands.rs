//! What a product takes beside its matrices: the kinds that its type lists, and what may be given for each.
//!
//! A list of kinds is a tuple such as `(N, f32)`; what is given for it is a tuple of as many values, `(&bias, 0.5)`,
//! each fit for its kind. So a missing, surplus or misplaced operand does not compile. Of a kernel
//! whose spec is known only when the program runs the operands go by name, and are checked then.

mod named;
mod tuples;

pub use named::{AnyOperand, ByName, Named};

use crate::error::{Error, Result};
use crate::operand::{Input, Shared, VectorOf};
use crate::shape::Shape;
use crate::view::MatrixOf;
use gemm_dsl::ir::Operand;
use gemm_dsl::spec::{Along, ArgSlot, EpilogueArg, SgemmSpec};

/// The kind of an operand with an element for each column of C, `bias[n]`: given as a reference to a
/// [`Vector`](crate::Vector) of at least so many.
#[derive(Clone, Copy, Debug)]
pub enum N {}

/// The kind of an operand with an element for each row of C, `scale[m]`: given as a reference to a
/// [`Vector`](crate::Vector) of at least so many.
#[derive(Clone, Copy, Debug)]
pub enum M {}

/// The kind of an operand with an element for each element of C, `residual[m, n]`: given as a reference to a
/// matrix of just that shape, [`AsMatrix`](crate::AsMatrix). It lies row by row; one with padding needs a `pitched`
/// kernel.
#[derive(Clone, Copy, Debug)]
pub enum MN {}

/// A kind of operand, as the type of an [`Sgemm`](crate::Sgemm) lists it: [`N`], [`M`], [`MN`], or `f32` for a number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no kind of operand",
    label = "no kind of operand",
    note = "there are `N` for `bias[n]`, `M` for `scale[m]`, `MN` for `residual[m, n]` and `f32` for a number"
)]
pub trait OperandKind: sealed::Kind {}

/// The operands of an [`Sgemm`](crate::Sgemm), as its type says it: a tuple of at most 12 kinds, such as `()`, `(N,)` or
/// `(f32, f32, MN)`; or [`ByName`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` lists no operands",
    label = "no list of operands",
    note = "a list is a tuple of at most 12 kinds, such as `()`, `(N,)` or `(f32, N, MN)`; or `ByName`"
)]
pub trait Operands: sealed::Operands {
    /// What a call has been given before it is given anything.
    type Unset<'a>: Default;
}

/// What may be given for an operand of kind `K`: a reference to a vector of `f32` for [`N`] and [`M`], a reference
/// to a matrix of `f32` for [`MN`], and a number for `f32`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what an operand of kind `{K}` takes",
    label = "not for `{K}`",
    note = "`N` and `M` take a reference to a vector of `f32`, `MN` a reference to a matrix of `f32`, and `f32` a \
            number"
)]
pub trait OperandFor<K>: sealed::Give {}

/// What may be given for all operands `E` of a kernel: a tuple of what may be given for each, in their order.
#[diagnostic::on_unimplemented(
    message = "the kernel takes the operands `{E}`, but is given `{Self}`",
    label = "not the operands `{E}`",
    note = "a call is given them in the kernel's order, before the launch: `kernel.call(&device).operands((&bias, \
            0.5))`; a single one as `(&bias,)`"
)]
pub trait OperandsFor<E>: sealed::GiveAll {}

#[doc(hidden)]
pub mod sealed {
    use super::{Along, EpilogueArg, GivenOperands, OperandValue, Result};

    pub trait Kind {
        /// What its operands lie along.
        const ALONG: Along;
    }

    pub trait Operands {
        /// The kinds, where the type lists them.
        const KINDS: Option<&'static [Along]>;
    }

    pub trait Give {
        fn give(&self) -> OperandValue<'_>;
    }

    pub trait GiveAll {
        /// What is given for the operands of a kernel.
        fn give_all(&self, operands: &[EpilogueArg]) -> Result<GivenOperands<'_>>;
    }
}

/// An operand as it was given, before it is known to belong to the device of a call.
pub enum OperandValue<'a> {
    /// A number.
    Number(f32),
    /// The elements of an array, and the shape of a matrix.
    Array(Shared<'a, f32>, Option<Shape>),
}

/// What is given beside the matrices, arrays and numbers each in the order of the kernel's operands.
#[derive(Default)]
pub struct GivenOperands<'a> {
    pub(super) arrays: Vec<(Shared<'a, f32>, Option<Shape>)>,
    pub(super) numbers: Vec<f32>,
}

impl<'a> GivenOperands<'a> {
    /// The numbers.
    pub fn numbers(&self) -> &[f32] {
        &self.numbers
    }

    /// The arrays, each with the shape of a matrix.
    pub fn arrays_mut(&mut self) -> impl Iterator<Item = &mut (Shared<'a, f32>, Option<Shape>)> {
        self.arrays.iter_mut()
    }

    fn push(&mut self, given: OperandValue<'a>) {
        match given {
            OperandValue::Number(number) => self.numbers.push(number),
            OperandValue::Array(elements, shape) => self.arrays.push((elements, shape)),
        }
    }
}

/// The epilogue's arguments that are arrays, each with its operand.
pub fn arrays(operands: &[EpilogueArg]) -> impl Iterator<Item = (&EpilogueArg, Operand)> {
    operands.iter().filter_map(|argument| match argument.slot {
        ArgSlot::Array(nth) => Some((argument, Operand::Input(nth))),
        ArgSlot::Number(_) => None,
    })
}

/// The epilogue's arguments that are numbers.
pub(super) fn numbers(operands: &[EpilogueArg]) -> impl Iterator<Item = &EpilogueArg> {
    operands.iter().filter(|argument| matches!(argument.slot, ArgSlot::Number(_)))
}

/// Checks that the type of a kernel lists the operands of its spec.
pub(super) fn check<E: Operands>(spec: &SgemmSpec) -> Result<()> {
    let operands = spec.operands();
    let needed: Vec<Along> = operands.iter().map(|operand| operand.along).collect();
    match E::KINDS {
        Some(kinds) if kinds != needed => Err(Error::KernelType {
            line: spec.to_string(),
            operands: operands.iter().map(ToString::to_string).collect(),
            needed: type_of(&needed),
            found: type_of(kinds),
            by_name: "Sgemm<ByName>",
        }),
        _ => Ok(()),
    }
}

/// The type of a kernel with operands of these kinds.
fn type_of(kinds: &[Along]) -> String {
    let kinds: Vec<&str> = kinds.iter().map(|along| along.kind()).collect();
    match kinds.as_slice() {
        [] => "SgemmKernel".to_owned(),
        [kind] => format!("Sgemm<({kind},)>"),
        kinds if kinds.len() > EpilogueArg::MOST_LISTED => "Sgemm<ByName>".to_owned(),
        kinds => format!("Sgemm<({})>", kinds.join(", ")),
    }
}

macro_rules! kinds {
    ($($kind:ty: $along:ident),*) => {
        $(
            impl OperandKind for $kind {}
            impl sealed::Kind for $kind {
                const ALONG: Along = Along::$along;
            }
        )*
    };
}
kinds!(N: N, M: M, MN: Mn, f32: Nothing);

impl<V: VectorOf<f32> + ?Sized> OperandFor<N> for &V {}
impl<V: VectorOf<f32> + ?Sized> OperandFor<M> for &V {}
impl<V: MatrixOf<f32> + ?Sized> OperandFor<MN> for &V {}
impl OperandFor<f32> for f32 {}

impl<V: Input<Element = f32> + ?Sized> sealed::Give for &V {
    fn give(&self) -> OperandValue<'_> {
        let (elements, shape) = self.input();
        OperandValue::Array(elements, shape)
    }
}

impl sealed::Give for f32 {
    fn give(&self) -> OperandValue<'_> {
        OperandValue::Number(*self)
    }
}
