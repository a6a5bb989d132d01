//! Arguments for the inputs and the results in the type of a reduction kernel.

use super::number::Number;
use crate::dyn_array::{AnyInput, AnyOutput};
use crate::operand::{Input, InputOf, Output, OutputOf};
use gemm_dsl::target::element::Element;
use smallvec::smallvec;

/// Arguments for the inputs `T` of a reduction: a reference to an array of `T`, or, for a tuple of
/// types, a tuple of references. The argument for a [`Number`] is the number itself.
///
/// ```
/// use gemm_runtime::bounds::InputsFor;
/// use gemm_runtime::{Device, Error, ReduceKernel, reduce_kernel};
///
/// const DOT: ReduceKernel<(f32, f32), f32> = reduce_kernel!(map: |x, y| x * y);
///
/// fn dot(device: &Device, inputs: impl InputsFor<(f32, f32)>) -> Result<Vec<f32>, Error> {
///     let mut result = device.alloc(1)?;
///     DOT.launch(device, inputs, &mut result)?;
///     device.download(&result)
/// }
///
/// let device = Device::simulator();
/// let (x, y) = (device.upload(&[1.0, 2.0])?, device.upload(&[3.0, 4.0])?);
/// assert_eq!(dot(&device, (&x, &y))?, [11.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the kernel folds `{T}`, but is given `{Self}`",
    label = "not accepted for the inputs `{T}`",
    note = "pass one input as a reference to an array on a device, `&x`, and several as a tuple \
            in the order of `map`, `(&x, &y)`; pass a number by value, `(&x, 0.5)`"
)]
pub trait InputsFor<T>: sealed::Reads {}

/// Arguments for the results `R` of a reduction: a mutable reference to an array of `R`, or, for a
/// tuple of types, a tuple of mutable references.
///
/// ```
/// use gemm_runtime::bounds::ResultsFor;
/// use gemm_runtime::{Device, Error, ReduceKernel, reduce_kernel};
///
/// const MEAN: ReduceKernel<f32, (f32, f32)> = reduce_kernel!(op: mean_var);
///
/// fn mean(device: &Device, results: impl ResultsFor<(f32, f32)>) -> Result<(), Error> {
///     MEAN.launch(device, &device.upload(&[1.0, 3.0])?, results)?;
///     Ok(())
/// }
///
/// let device = Device::simulator();
/// let (mut mean_of, mut var) = (device.alloc(1)?, device.alloc(1)?);
/// mean(&device, (&mut mean_of, &mut var))?;
/// assert_eq!(device.download(&mean_of)?, [2.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the kernel has the results `{R}`, but is given `{Self}` for them",
    label = "not accepted for the results `{R}`",
    note = "pass a mutable reference to an array on a device for the result, `&mut out`, and two \
            for `mean_var`, `(&mut mean, &mut var)`, or for `with_value`, `(&mut value, \
            &mut index)`"
)]
pub trait ResultsFor<R>: sealed::Writes {}

#[doc(hidden)]
pub mod sealed {
    use super::{AnyInput, AnyOutput};
    use gemm_dsl::ir::Elem;
    use smallvec::SmallVec;

    /// Inputs of a call. As many as a type can list need no allocation.
    pub type AnyInputs<'a> = SmallVec<[AnyInput<'a>; 4]>;

    /// Types and bits of the numbers of a call.
    pub type GivenNumbers = SmallVec<[(Elem, u64); 4]>;

    /// Arrays for the results of a call.
    pub type AnyOutputs<'a> = SmallVec<[AnyOutput<'a>; 2]>;

    pub trait Reads {
        fn arrays(&self) -> AnyInputs<'_>;

        fn numbers(&self) -> GivenNumbers {
            GivenNumbers::new()
        }
    }

    pub trait Writes {
        fn arrays(&mut self) -> AnyOutputs<'_>;
    }
}

impl<T, V: InputOf<T> + ?Sized> InputsFor<T> for &V {}

impl<V: Input + ?Sized> sealed::Reads for &V {
    fn arrays(&self) -> sealed::AnyInputs<'_> {
        smallvec![AnyInput(self)]
    }
}

impl<T, O: OutputOf<T> + ?Sized> ResultsFor<T> for &mut O {}

impl<O: Output + ?Sized> sealed::Writes for &mut O {
    fn arrays(&mut self) -> sealed::AnyOutputs<'_> {
        smallvec![AnyOutput(self)]
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl InputsFor<Number<$number>> for $number {}

        impl sealed::Reads for $number {
            fn arrays(&self) -> sealed::AnyInputs<'_> {
                sealed::AnyInputs::new()
            }

            fn numbers(&self) -> sealed::GivenNumbers {
                smallvec![(<$number as Element>::ELEM, self.into_bits())]
            }
        }
    )*};
}
numbers!(f32, f64, i32, u32, i64);

macro_rules! inputs {
    ($($($of:ident $input:ident $at:tt)*;)*) => {
        $(
            impl<$($of, $input: InputsFor<$of>),*> InputsFor<($($of,)*)> for ($($input,)*) {}

            impl<$($input: sealed::Reads),*> sealed::Reads for ($($input,)*) {
                fn arrays(&self) -> sealed::AnyInputs<'_> {
                    let mut all = sealed::AnyInputs::new();
                    $(all.extend(self.$at.arrays());)*
                    all
                }

                fn numbers(&self) -> sealed::GivenNumbers {
                    let mut all = sealed::GivenNumbers::new();
                    $(all.extend(self.$at.numbers());)*
                    all
                }
            }
        )*
    };
}
inputs! {
    S A 0 T B 1;
    S A 0 T B 1 U C 2;
    S A 0 T B 1 U C 2 V D 3;
    S A 0 T B 1 U C 2 V D 3 W E 4;
    S A 0 T B 1 U C 2 V D 3 W E 4 X F 5;
    S A 0 T B 1 U C 2 V D 3 W E 4 X F 5 Y G 6;
    S A 0 T B 1 U C 2 V D 3 W E 4 X F 5 Y G 6 Z H 7;
}

impl<S, T, A: ResultsFor<S>, B: ResultsFor<T>> ResultsFor<(S, T)> for (A, B) {}

macro_rules! outputs {
    ($($($output:ident $at:tt)*;)*) => {$(
        impl<$($output: sealed::Writes),*> sealed::Writes for ($($output,)*) {
            fn arrays(&mut self) -> sealed::AnyOutputs<'_> {
                let mut all = sealed::AnyOutputs::new();
                $(all.extend(self.$at.arrays());)*
                all
            }
        }
    )*};
}
outputs! {
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
}
