//! Operands and results of elementwise kernels: the kinds that a kernel's type lists, and the
//! values that a call passes.

use super::super::operands::{M, MN, N};
use super::super::reduce::sealed::Writes;
use crate::dyn_array::AnyInput;
use crate::operand::{Input, InputOf, OutputOf, VectorMut, VectorOf};
use gemm_dsl::ir::Elem;
use gemm_dsl::spec::Along;
use gemm_dsl::target::element::Element;

/// Value for an `[m, n]` operand of a [`Map`](crate::Map) that is the same array as a result: each
/// element is read before it is overwritten.
///
/// `InPlace::first()` is the first or only result, and `InPlace::of_result(1)` the second.
///
/// ```
/// use gemm_runtime::{Device, InPlace, MN, Map, map_kernel};
///
/// const ADD: Map<(MN, MN)> = map_kernel!(|x[m, n], y[m, n]| x + y);
///
/// let device = Device::simulator();
/// let (mut x, y) = (device.upload(&[1.0, 2.0])?, device.upload(&[10.0, 20.0])?);
/// ADD.launch(&device, (InPlace::first(), &y), &mut x)?;
/// assert_eq!(device.download(&x)?, [11.0, 22.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct InPlace(usize);

impl InPlace {
    /// The first result, or the only one.
    pub const fn first() -> Self {
        Self(0)
    }

    /// The result of this number, from 0 on.
    pub const fn of_result(number: usize) -> Self {
        Self(number)
    }
}

/// Kind of an operand in the type of a [`Map`](crate::Map): [`MN<T>`](MN), [`N<T>`](N) or
/// [`M<T>`](M) for an array with elements of type `T`, or the type of a number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kind of operand",
    label = "not a kind of operand",
    note = "the kinds are `MN<T>` for `x[m, n]`, `N<T>` for `v[n]`, `M<T>` for `v[m]`, and `f32`, \
            `f64`, `i32`, `u32` or `i64` for a number"
)]
pub trait MapKind: sealed::Kind {}

/// Operands of a [`Map`](crate::Map), as its type lists them: a tuple of at most 12 kinds, such as
/// `(MN, N<bf16>, f32)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of operand kinds",
    label = "not a list of operands",
    note = "a list is a tuple of at most 12 kinds, such as `(MN,)` or `(MN, N, f32)`"
)]
pub trait MapOperands: sealed::Kinds {}

/// Kind of a result in the type of a [`Map`](crate::Map): [`MN<T>`](MN), or [`M<T>`](M) for one
/// value for each row.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kind of result",
    label = "not a kind of result",
    note = "the kinds are `MN<T>`, and `M<T>` for one value for each row"
)]
pub trait MapResult: sealed::Kind {}

/// Results of a [`Map`](crate::Map), as its type lists them: [`MN<T>`](MN) or [`M<T>`](M), or a
/// tuple of two to four of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of results",
    label = "not a list of results",
    note = "a result is `MN<T>`, or `M<T>` for one value for each row; several are a tuple, such \
            as `(MN, MN<bf16>)`"
)]
pub trait MapResults: sealed::Results {}

/// Value for an operand of kind `K` of a [`Map`](crate::Map): a reference to a matrix or vector for
/// [`MN`], or [`InPlace`]; a reference to a vector for [`N`] and [`M`]; a number for its type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an operand of kind `{K}`",
    label = "not accepted for an operand of kind `{K}`",
    note = "`MN<T>` takes a reference to a matrix or vector of `T`, or `InPlace`; `N<T>` and \
            `M<T>` take a reference to a vector of `T`; a number is passed by value"
)]
pub trait MapInput<K>: Pass {}

/// Values for all operands `E` of a [`Map`](crate::Map): a tuple with one value for each, in order.
/// A single value needs no tuple.
#[diagnostic::on_unimplemented(
    message = "the kernel takes the operands `{E}`, but is given `{Self}`",
    label = "not the operands `{E}`",
    note = "pass them in the order of the expression, as in `(&x, &bias, 0.5)`; a single one as \
            `&x`"
)]
pub trait MapInputs<E>: PassAll {}

/// Arrays for the results `R` of a [`Map`](crate::Map): a mutable reference to a matrix or vector,
/// or a tuple of them. A result [`M`] takes a vector.
#[diagnostic::on_unimplemented(
    message = "the kernel has the results `{R}`, but is given `{Self}` for them",
    label = "not accepted for the results `{R}`",
    note = "pass a mutable reference to an array on a device for each result: `&mut y`, or \
            `(&mut y, &mut z)`"
)]
pub trait MapOutputs<R>: Writes {}

/// Value of an operand. Nothing has checked yet that it belongs to the device of the call.
#[derive(Clone, Copy)]
pub enum Passed<'a> {
    /// Number, passed to the kernel by value.
    Number {
        elem: Elem,
        bits: u64,
    },
    Array(AnyInput<'a>),
    /// The array of this result.
    Result(usize),
}

#[doc(hidden)]
pub mod sealed {
    use super::{Along, Elem, Passed};
    use smallvec::SmallVec;

    pub type AllPassed<'a> = SmallVec<[Passed<'a>; 6]>;

    pub trait Kind {
        const KIND: (Along, Elem);
    }

    pub trait Kinds {
        const KINDS: &'static [(Along, Elem)];
    }

    pub trait Results {
        const KINDS: &'static [(Along, Elem)];
    }

    pub trait Pass {
        fn pass(&self) -> Passed<'_>;
    }

    pub trait PassAll {
        fn all(&self) -> AllPassed<'_>;
    }
}

use sealed::{AllPassed, Pass, PassAll};

macro_rules! arrays {
    ($($kind:ident: $along:ident),*) => {$(
        impl<T: Element> MapKind for $kind<T> {}

        impl<T: Element> sealed::Kind for $kind<T> {
            const KIND: (Along, Elem) = (Along::$along, T::ELEM);
        }
    )*};
}
arrays!(N: N, M: M, MN: Mn);

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl MapKind for $number {}

        impl sealed::Kind for $number {
            const KIND: (Along, Elem) = (Along::Nothing, <$number as Element>::ELEM);
        }

        impl MapInput<$number> for $number {}
        impl MapInputs<($number,)> for $number {}

        impl Pass for $number {
            fn pass(&self) -> Passed<'_> {
                Passed::Number { elem: <$number as Element>::ELEM, bits: self.into_bits() }
            }
        }

        impl PassAll for $number {
            fn all(&self) -> AllPassed<'_> {
                AllPassed::from_iter([self.pass()])
            }
        }
    )*};
}
numbers!(f32, f64, i32, u32, i64);

impl<T: Element, V: InputOf<T> + ?Sized> MapInput<MN<T>> for &V {}
impl<T: Element, V: VectorOf<T> + ?Sized> MapInput<N<T>> for &V {}
impl<T: Element, V: VectorOf<T> + ?Sized> MapInput<M<T>> for &V {}
impl<T: Element> MapInput<MN<T>> for InPlace {}

impl<V: Input + ?Sized> Pass for &V {
    fn pass(&self) -> Passed<'_> {
        Passed::Array(AnyInput(self))
    }
}

impl Pass for InPlace {
    fn pass(&self) -> Passed<'_> {
        Passed::Result(self.0)
    }
}

impl<K, V: Input + ?Sized> MapInputs<(K,)> for &V where Self: MapInput<K> {}
impl<T: Element> MapInputs<(MN<T>,)> for InPlace {}

impl<V: Input + ?Sized> PassAll for &V {
    fn all(&self) -> AllPassed<'_> {
        AllPassed::from_iter([self.pass()])
    }
}

impl PassAll for InPlace {
    fn all(&self) -> AllPassed<'_> {
        AllPassed::from_iter([self.pass()])
    }
}

impl MapOperands for () {}

impl sealed::Kinds for () {
    const KINDS: &'static [(Along, Elem)] = &[];
}

impl MapInputs<()> for () {}

impl PassAll for () {
    fn all(&self) -> AllPassed<'_> {
        AllPassed::new()
    }
}

/// Implements the traits for the list in brackets, then for each longer list: every step adds one
/// of the following kinds.
macro_rules! lists {
    ([$(($kind:ident $given:ident $at:tt))*] $next:tt $($more:tt)*) => {
        lists!([$(($kind $given $at))*]);
        lists!([$(($kind $given $at))* $next] $($more)*);
    };
    ([$(($kind:ident $given:ident $at:tt))*]) => {
        impl<$($kind: MapKind,)*> MapOperands for ($($kind,)*) {}

        impl<$($kind: MapKind,)*> sealed::Kinds for ($($kind,)*) {
            const KINDS: &'static [(Along, Elem)] = &[$($kind::KIND,)*];
        }

        impl<$($kind, $given: MapInput<$kind>,)*> MapInputs<($($kind,)*)> for ($($given,)*) {}

        impl<$($given: Pass,)*> PassAll for ($($given,)*) {
            fn all(&self) -> AllPassed<'_> {
                AllPassed::from_iter([$(self.$at.pass(),)*])
            }
        }
    };
}

lists!([(K0 G0 0)] (K1 G1 1) (K2 G2 2) (K3 G3 3) (K4 G4 4) (K5 G5 5) (K6 G6 6) (K7 G7 7) (K8 G8 8)
    (K9 G9 9) (K10 G10 10) (K11 G11 11));

macro_rules! result {
    ($($kind:ident),*) => {$(
        impl<T: Element> MapResult for $kind<T> {}
        impl<T: Element> MapResults for $kind<T> {}

        impl<T: Element> sealed::Results for $kind<T> {
            const KINDS: &'static [(Along, Elem)] = &[<Self as sealed::Kind>::KIND];
        }
    )*};
}
result!(MN, M);

impl<T: Element, V: OutputOf<T> + ?Sized> MapOutputs<MN<T>> for &mut V {}
impl<T: Element, V: VectorMut<Element = T> + ?Sized> MapOutputs<M<T>> for &mut V {}

macro_rules! results {
    ($($($kind:ident $given:ident)*;)*) => {$(
        impl<$($kind: MapResult,)*> MapResults for ($($kind,)*) {}

        impl<$($kind: MapResult,)*> sealed::Results for ($($kind,)*) {
            const KINDS: &'static [(Along, Elem)] = &[$($kind::KIND,)*];
        }

        impl<$($kind: MapResult, $given: MapOutputs<$kind>,)*> MapOutputs<($($kind,)*)>
            for ($($given,)*)
        {
        }
    )*};
}
results! {
    T A U B;
    T A U B V C;
    T A U B V C W D;
}
