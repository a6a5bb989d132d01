//! What may be given for the inputs and the results that the type of a reduction lists.

use crate::dyn_array::{AnyInput, AnyOutput};
use crate::operand::{Input, InputOf, Output, OutputOf};
use gemm_dsl::target::element::Element;

/// What may be given for the inputs `T` of a reduction: a reference to an array of `T`, or a tuple of two to four of
/// them for a tuple.
#[diagnostic::on_unimplemented(
    message = "the kernel folds `{T}`, but is given `{Self}`",
    label = "no inputs `{T}`",
    note = "one input is given as a reference to an array on a device, `&x`, several as a tuple in the order of \
            `map`, `(&x, &y)`"
)]
pub trait InputsFor<T>: sealed::Reads {}

/// What may be given for the results `R` of a reduction: a mutable reference to an array of `R`, or a tuple of them for
/// a tuple.
#[diagnostic::on_unimplemented(
    message = "the kernel has the results `{R}`, but is given `{Self}` for them",
    label = "not for the results `{R}`",
    note = "a result goes to a mutable reference to an array on a device, `&mut out`, those of `mean_var` to two, \
            `(&mut mean, &mut var)`"
)]
pub trait ResultsFor<R>: sealed::Writes {}

#[doc(hidden)]
pub mod sealed {
    use super::{AnyInput, AnyOutput};

    pub trait Reads {
        fn arrays(&self) -> Vec<AnyInput<'_>>;
    }

    pub trait Writes {
        fn arrays(&mut self) -> Vec<AnyOutput<'_>>;
    }
}

impl<T, V: InputOf<T> + ?Sized> InputsFor<T> for &V {}

impl<V: Input + ?Sized> sealed::Reads for &V {
    fn arrays(&self) -> Vec<AnyInput<'_>> {
        vec![AnyInput(self)]
    }
}

impl<T, O: OutputOf<T> + ?Sized> ResultsFor<T> for &mut O {}

impl<O: Output + ?Sized> sealed::Writes for &mut O {
    fn arrays(&mut self) -> Vec<AnyOutput<'_>> {
        vec![AnyOutput(self)]
    }
}

/// The type, whatever the name.
macro_rules! each {
    ($name:ident, $ty:ty) => {
        $ty
    };
}

macro_rules! inputs {
    ($($($input:ident $at:tt)*;)*) => {
        $(
            impl<T: Element, $($input: InputsFor<T>),*> InputsFor<($(each!($input, T),)*)> for ($($input,)*) {}

            impl<$($input: sealed::Reads),*> sealed::Reads for ($($input,)*) {
                fn arrays(&self) -> Vec<AnyInput<'_>> {
                    let mut all = Vec::new();
                    $(all.extend(self.$at.arrays());)*
                    all
                }
            }
        )*
    };
}
inputs! {
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
}

impl<T: Element, A: ResultsFor<T>, B: ResultsFor<T>> ResultsFor<(T, T)> for (A, B) {}

impl<A: sealed::Writes, B: sealed::Writes> sealed::Writes for (A, B) {
    fn arrays(&mut self) -> Vec<AnyOutput<'_>> {
        let mut all = self.0.arrays();
        all.extend(self.1.arrays());
        all
    }
}
