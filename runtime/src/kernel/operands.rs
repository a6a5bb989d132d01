//! Operands of a GEMM besides its matrices: the kinds that a kernel's type lists, and the values
//! that a call passes.
//!
//! A list of kinds is a tuple such as `(N, f32)`; its values are a tuple such as `(&bias, 0.5)`,
//! each matching its kind, or a single value for a list of one. A call does not compile if the
//! number of operands is wrong, or if it confuses vectors, matrices and scalars. Two vectors, or
//! two scalars, in the wrong order do compile. A kernel whose spec is known only at run time takes
//! operands by name, which the launch checks.

mod forms;
mod listing;
mod named;
mod tuples;
mod typed;

pub use forms::{GivenOperands, OperandForm, OperandForms, OperandValue, arrays};
pub(crate) use forms::{batches, has_padding, numbers, outputs};
pub(crate) use listing::ListingType;

pub use named::{AnyOperand, ByName, Named};
pub use typed::Typed;

use crate::error::Result;
use crate::operand::{Input, VectorMutOf, VectorOf, Written};
use crate::view::{MatrixMutOf, MatrixOf};
use gemm_dsl::spec::EpilogueArg;
use gemm_dsl::target::element::Element;
use std::marker::PhantomData;

/// Kind of an operand with one element for each column of C, such as `bias[n]`. A call passes a
/// reference to a [`Vector`](crate::bounds::Vector) of at least n elements.
///
/// `T` is the element type of an operand of a [`Map`](crate::Map); operands of GEMMs are `f32`.
#[derive(Clone, Copy, Debug)]
pub struct N<T = f32>(PhantomData<fn() -> T>);

/// Kind of an operand with one element for each row of C, such as `scale[m]`. A call passes a
/// reference to a [`Vector`](crate::bounds::Vector) of at least m elements.
///
/// ```
/// use gemm_runtime::{Device, M, MN, MatrixMut, MatrixRef, Sgemm, sgemm_kernel};
///
/// const SCALED: Sgemm<(M, MN)> =
///     sgemm_kernel!(epilogue: |acc, scale[m], residual[m, n]| scale * acc + residual);
///
/// let device = Device::simulator();
/// let (a, b) = (device.upload(&[1.0, 2.0])?, device.upload(&[3.0])?);
/// let (scale, residual) = (device.upload(&[10.0, 100.0])?, device.upload(&[0.5, 0.25])?);
/// let mut c = device.alloc(2)?;
/// let (a, b) = (MatrixRef::new(&a, 2, 1)?, MatrixRef::new(&b, 1, 1)?);
/// let residual = MatrixRef::new(&residual, 2, 1)?;
/// let to = &mut MatrixMut::new(&mut c, 2, 1)?;
/// SCALED.call(&device).operands((&scale, &residual)).launch(&a, &b, to)?;
/// assert_eq!(device.download(&c)?, [30.5, 600.25]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct M<T = f32>(PhantomData<fn() -> T>);

/// Kind of an operand with one element for each element of C, such as `residual[m, n]`. A call
/// passes a reference to a row-major m×n matrix, [`AsMatrix`](crate::bounds::AsMatrix). Padded
/// matrices need a `pitched` kernel.
#[derive(Clone, Copy, Debug)]
pub struct MN<T = f32>(PhantomData<fn() -> T>);

/// Kind of an operand with one element for each GEMM of a batch, such as `factor[batch]`. A call
/// passes a reference to a [`Vector`](crate::bounds::Vector) of at least as many elements as C has
/// matrices. Only kernels with the key `batch` have such operands.
///
/// ```
/// use gemm_runtime::{BatchItem, BatchN, Device, MatrixMut, MatrixRef, Sgemm, sgemm_kernel};
///
/// const LAYERS: Sgemm<(BatchItem, BatchN)> = sgemm_kernel!(
///     batch: strided, epilogue: |acc, factor[batch], bias[batch, n]| factor * acc + bias
/// );
///
/// let device = Device::simulator();
/// let (a, b) = (device.upload(&[1.0, 2.0])?, device.upload(&[3.0, 4.0, 5.0, 6.0])?);
/// let factor = device.upload(&[1.0, 10.0])?;
/// let bias = device.upload_matrix(&[0.5, 0.25, 0.125, 0.0625], 2, 2)?; // a row for each GEMM
/// let mut c = device.alloc(4)?;
/// let (a, b) = (MatrixRef::batch(&a, 2, 1, 1)?, MatrixRef::batch(&b, 2, 1, 2)?);
/// let mut to = MatrixMut::batch(&mut c, 2, 1, 2)?;
/// LAYERS.call(&device).operands((&factor, &bias)).launch(&a, &b, &mut to)?;
/// assert_eq!(device.download(&c)?, [3.5, 4.25, 100.125, 120.0625]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum BatchItem {}

/// Kind of an operand with one element for each column of C in each GEMM of a batch, such as
/// `bias[batch, n]`. A call passes a reference to a row-major matrix,
/// [`AsMatrix`](crate::bounds::AsMatrix), with a row of n elements for each GEMM. Its rows may have
/// any stride. [`BatchItem`] has an example.
#[derive(Clone, Copy, Debug)]
pub enum BatchN {}

/// Kind of an operand with one element for each row of C in each GEMM of a batch, such as
/// `scale[batch, m]`. A call passes a reference to a row-major matrix,
/// [`AsMatrix`](crate::bounds::AsMatrix), with a row of m elements for each GEMM. Its rows may have
/// any stride. [`BatchItem`] has an example.
#[derive(Clone, Copy, Debug)]
pub enum BatchM {}

/// Kind of the matrix for a further value of an epilogue that returns a tuple. The first value is
/// stored in C. A call passes a mutable reference to a row-major m×n matrix, a
/// [`Matrix`](crate::Matrix) or a [`MatrixMut`](crate::MatrixMut), after all other operands. Padded
/// matrices need a `pitched` kernel. In a batch it has a matrix for each GEMM.
///
/// ```
/// use gemm_runtime::{Device, N, Out, Sgemm, sgemm_kernel};
///
/// const LAYER: Sgemm<(N, Out)> = sgemm_kernel!(epilogue: |acc, bias[n]| {
///     let t = acc + bias;
///     (relu(t), t)
/// });
///
/// let device = Device::simulator();
/// let x = device.upload_matrix(&[1.0, 2.0], 2, 1)?;
/// let w = device.upload_matrix(&[3.0, -4.0], 1, 2)?;
/// let bias = device.upload(&[0.5, 0.25])?;
/// let (mut y, mut t) = (device.alloc_matrix(2, 2)?, device.alloc_matrix(2, 2)?);
/// LAYER.call(&device).operands((&bias, &mut t)).launch(&x, &w, &mut y)?;
/// assert_eq!(device.download(&y)?, [3.5, 0.0, 6.5, 0.0]);
/// assert_eq!(device.download(&t)?, [3.5, -3.75, 6.5, -7.75]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Out {}

/// Kind of the vector for the result of the rows of C, such as `sum(acc * acc)`, among the further
/// values of an epilogue. A call passes a mutable reference to a vector, such as a
/// [`Buffer`](crate::Buffer), of at least m elements, after all operands that are read. In a batch
/// it has m elements for each GEMM, one GEMM after the other.
///
/// ```
/// use gemm_runtime::{Device, OutM, Sgemm, sgemm_kernel};
///
/// const NORMS: Sgemm<(OutM,)> = sgemm_kernel!(
///     tile: 32x32x8, thread: 4x4, epilogue: |acc| (acc, sqrt(sum(acc * acc)))
/// );
///
/// let device = Device::simulator();
/// let x = device.upload_matrix(&[1.0, 2.0], 2, 1)?;
/// let w = device.upload_matrix(&[3.0, -4.0], 1, 2)?;
/// let (mut y, mut norms) = (device.alloc_matrix(2, 2)?, device.alloc(2)?);
/// NORMS.call(&device).operands(&mut norms).launch(&x, &w, &mut y)?;
/// assert_eq!(device.download(&y)?, [3.0, -4.0, 6.0, -8.0]);
/// assert_eq!(device.download(&norms)?, [5.0, 10.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum OutM {}

/// Kind of operand, as the type of an [`Sgemm`](crate::Sgemm) lists it: [`N`], [`M`], [`MN`],
/// [`BatchItem`], [`BatchN`], [`BatchM`], `f32` for a scalar, or [`Out`] or
/// [`OutM`] for a further result.
///
/// ```
/// use gemm_runtime::bounds::OperandKind;
/// use gemm_runtime::{M, MN, N};
///
/// fn is_kind<K: OperandKind>() -> bool {
///     true
/// }
///
/// assert!(is_kind::<N>() && is_kind::<M>() && is_kind::<MN>() && is_kind::<f32>());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kind of operand",
    label = "not a kind of operand",
    note = "the kinds are `N` for `bias[n]`, `M` for `scale[m]`, `MN` for `residual[m, n]` and \
            `f32` for a number",
    note = "a batch also has `BatchItem` for `factor[batch]`, `BatchN` for `bias[batch, n]` and \
            `BatchM` for `scale[batch, m]`",
    note = "`Out` is the kind of the matrix for a further value of a tuple, and `OutM` that of the \
            vector for a fold of each row"
)]
pub trait OperandKind: sealed::Kind {}

/// Operands of an [`Sgemm`](crate::Sgemm), as its type lists them: a tuple of at most 12 kinds,
/// such as `()`, `(N,)` or `(f32, f32, MN)`; or [`ByName`].
///
/// ```
/// use gemm_runtime::bounds::Operands;
/// use gemm_runtime::Sgemm;
///
/// fn parse<E: Operands>(line: &str) -> gemm_runtime::error::Result<Sgemm<E>> {
///     Sgemm::new(line.parse()?)
/// }
///
/// assert!(parse::<()>("block: 16x16").is_ok());
/// assert!(parse::<()>("scaled").is_err());
/// assert!(parse::<(f32, f32)>("scaled").is_ok());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of operand kinds",
    label = "not a list of operands",
    note = "a list is a tuple of at most 12 kinds, such as `()`, `(N,)` or `(f32, N, MN)`; or \
        `ByName`"
)]
pub trait Operands: sealed::Operands {
    /// Operands besides the matrices.
    type List: Operands;
    /// Operands of a call that has not passed any yet.
    type Unset<'a>: Default;
    /// Element type of A.
    type A: Element;
    /// Element type of B.
    type B: Element;
    /// Element type of C.
    type C: Element;
}

/// Value for an operand of kind `K`: a reference to a vector of `f32` for [`N`], [`M`] and
/// [`BatchItem`], a reference to a matrix of `f32` for [`MN`], [`BatchN`] and [`BatchM`], a mutable
/// reference to a matrix of `f32` for [`Out`] and to a vector of `f32` for [`OutM`], and an `f32`
/// for the kind `f32`.
///
/// ```
/// use gemm_runtime::bounds::OperandFor;
/// use gemm_runtime::{Device, N};
///
/// fn is_bias(_: impl OperandFor<N>) -> bool {
///     true
/// }
///
/// let device = Device::simulator();
/// assert!(is_bias(&device.alloc(4)?));
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an operand of kind `{K}`",
    label = "not accepted for an operand of kind `{K}`",
    note = "`N`, `M` and `BatchItem` take a reference to a vector of `f32`; `MN`, `BatchN` and \
        `BatchM` a reference to a matrix of `f32`; `Out` a mutable one, and `OutM` one to a \
        vector; `f32` takes a number"
)]
pub trait OperandFor<K>: sealed::Give {}

/// Values for all operands `E` of a kernel: a tuple with one value for each, in order. A single
/// value needs no tuple.
///
/// ```
/// use gemm_runtime::bounds::OperandsFor;
/// use gemm_runtime::{Device, Error, MatrixMut, MatrixRef, N, Sgemm, sgemm_kernel};
///
/// const LAYER: Sgemm<(N,)> = sgemm_kernel!(epilogue: |acc, bias[n]| acc + bias);
///
/// fn layer(device: &Device, operands: impl OperandsFor<(N,)>) -> Result<Vec<f32>, Error> {
///     let (x, mut y) = (device.upload(&[2.0])?, device.alloc(1)?);
///     let x = MatrixRef::new(&x, 1, 1)?;
///     let mut c = MatrixMut::new(&mut y, 1, 1)?;
///     LAYER.call(device).operands(operands).launch(&x, &x, &mut c)?;
///     device.download(&y)
/// }
///
/// let device = Device::simulator();
/// let bias = device.upload(&[0.5])?;
/// assert_eq!(layer(&device, &bias)?, [4.5]);
/// assert_eq!(layer(&device, (&bias,))?, [4.5]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the kernel takes the operands `{E}`, but is given `{Self}`",
    label = "not the operands `{E}`",
    note = "pass them in the kernel's order, before the launch: \
            `kernel.call(&device).operands((&bias, 0.5))`, or \
            `sgemm(&a, &b, &mut c).epilogue(EP).operands((&bias, 0.5))`; a single one as `&bias`"
)]
pub trait OperandsFor<E>: sealed::GiveAll {}

#[doc(hidden)]
pub mod sealed {
    use super::{EpilogueArg, GivenOperands, OperandForm, OperandForms, OperandValue, Result};

    pub trait Kind {
        /// Name of the kind.
        const KIND: &'static str;
    }

    pub trait Operands {
        /// Kinds of the list, or `None` for operands by name.
        const KINDS: Option<&'static [&'static str]>;
    }

    pub trait Give {
        fn form(&self) -> OperandForm;

        fn give(&mut self) -> OperandValue<'_>;
    }

    pub trait GiveAll {
        /// Forms in the order of the kernel's operands. Operands by name are checked.
        fn forms(&self, operands: &[EpilogueArg]) -> Result<OperandForms>;

        /// Values in the order of the kernel's operands. Operands by name are checked.
        fn give_all(&mut self, operands: &[EpilogueArg]) -> Result<GivenOperands<'_>>;
    }
}

/// Operands of an epilogue, preceded by `alpha` and `beta` if the GEMM is scaled.
pub(crate) struct ScaledOperands<'o, O> {
    pub(crate) factors: Option<[f32; 2]>,
    pub(crate) operands: &'o mut O,
}

impl<O: sealed::GiveAll> sealed::GiveAll for ScaledOperands<'_, O> {
    fn forms(&self, operands: &[EpilogueArg]) -> Result<OperandForms> {
        self.operands.forms(operands)
    }

    fn give_all(&mut self, operands: &[EpilogueArg]) -> Result<GivenOperands<'_>> {
        let mut given = self.operands.give_all(operands)?;
        given.numbers.insert_many(0, self.factors.into_iter().flatten());
        Ok(given)
    }
}

macro_rules! kinds {
    ($($kind:ident),*) => {
        $(
            impl OperandKind for $kind {}
            impl sealed::Kind for $kind {
                const KIND: &'static str = stringify!($kind);
            }
        )*
    };
}
kinds!(N, M, MN, BatchItem, BatchN, BatchM, f32, Out, OutM);

impl<V: VectorOf<f32> + ?Sized> OperandFor<N> for &V {}
impl<V: VectorOf<f32> + ?Sized> OperandFor<M> for &V {}
impl<V: MatrixOf<f32> + ?Sized> OperandFor<MN> for &V {}
impl<V: VectorOf<f32> + ?Sized> OperandFor<BatchItem> for &V {}
impl<V: MatrixOf<f32> + ?Sized> OperandFor<BatchN> for &V {}
impl<V: MatrixOf<f32> + ?Sized> OperandFor<BatchM> for &V {}
impl<V: MatrixMutOf<f32> + ?Sized> OperandFor<Out> for &mut V {}
impl<V: VectorMutOf<f32> + ?Sized> OperandFor<OutM> for &mut V {}
impl OperandFor<f32> for f32 {}

impl<V: Input<Element = f32> + ?Sized> sealed::Give for &V {
    fn form(&self) -> OperandForm {
        let (elements, shape) = self.input();
        OperandForm::Array(elements.len(), shape)
    }

    fn give(&mut self) -> OperandValue<'_> {
        let (elements, shape) = self.input();
        OperandValue::Array(elements, shape)
    }
}

impl<V: Written<f32> + ?Sized> sealed::Give for &mut V {
    fn form(&self) -> OperandForm {
        let (elements, shape) = self.input();
        OperandForm::Output(elements.len(), shape)
    }

    fn give(&mut self) -> OperandValue<'_> {
        let (elements, shape) = self.output();
        OperandValue::Output(elements, shape)
    }
}

impl sealed::Give for f32 {
    fn form(&self) -> OperandForm {
        OperandForm::Number(*self)
    }

    fn give(&mut self) -> OperandValue<'_> {
        OperandValue::Number(*self)
    }
}
