//! Element types in the type of a reduction kernel.

use gemm_dsl::target::element::Element;
use half::{bf16, f16};

/// Element types of a reduction's inputs or results, as [`ReduceKernel`](crate::ReduceKernel) lists
/// them.
///
/// A list is the type of one array, or a tuple of two to four equal types. A type is `f32`, `f64`,
/// `f16`, `bf16`, or an integer of 8, 32 or 64 bits.
///
/// ```
/// use gemm_runtime::bounds::Elements;
/// use gemm_runtime::{Device, ReduceKernel};
///
/// fn sum<T: Elements>(values: T::Slices<'_>) -> gemm_runtime::error::Result<f32> {
///     let kernel = ReduceKernel::<T, f32>::new("op: sum".parse()?)?;
///     kernel.run(&Device::simulator(), values)
/// }
///
/// assert_eq!(sum::<f32>(&[1.0, 2.0])?, 3.0);
/// assert!(sum::<(f32, f32)>((&[1.0], &[2.0])).is_err());
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of element types",
    label = "neither an element nor a tuple of elements",
    note = "a list is the element of one array, such as `f32` or `u8`, or a tuple of two to four \
        of one type, such as `(f32, f32)`"
)]
pub trait Elements: Sealed {
    /// Host arrays to read: `&[f32]` for `f32`, a tuple of slices for a tuple.
    type Slices<'a>;

    /// Owned host arrays: `Vec<f32>` for `f32`, a tuple of vectors for a tuple.
    type Vecs;

    #[doc(hidden)]
    fn slices(slices: Self::Slices<'_>) -> Vec<&[Self::One]>;

    /// Converts a list of arrays to `Vecs`, or returns `None` if their number is wrong.
    #[doc(hidden)]
    fn vecs(arrays: Vec<Vec<Self::One>>) -> Option<Self::Vecs>;

    /// First element of each array.
    #[doc(hidden)]
    fn first(vecs: &Self::Vecs) -> Option<Self>;
}

pub trait Sealed: Copy + 'static {
    /// Element type of each array.
    type One: Element;

    /// Number of arrays in the list.
    const COUNT: usize;
}

macro_rules! elements {
    ($($element:ty),*) => {
        $(
            impl Sealed for $element {
                type One = Self;

                const COUNT: usize = 1;
            }

            impl Elements for $element {
                type Slices<'a> = &'a [Self];
                type Vecs = Vec<Self>;

                fn slices(slices: Self::Slices<'_>) -> Vec<&[Self]> {
                    vec![slices]
                }

                fn vecs(mut arrays: Vec<Vec<Self>>) -> Option<Vec<Self>> {
                    let last = arrays.pop()?;
                    arrays.is_empty().then_some(last)
                }

                fn first(vecs: &Vec<Self>) -> Option<Self> {
                    vecs.first().copied()
                }
            }
        )*
    };
}
elements!(f32, f64, f16, bf16, i8, u8, i32, u32, i64, u64);

/// Expands to the type once for each name.
macro_rules! each {
    ($name:ident, $ty:ty) => {
        $ty
    };
}

macro_rules! tuples {
    ($($count:literal: $($name:ident)*;)*) => {
        $(
            impl<T: Element> Sealed for ($(each!($name, T),)*) {
                type One = T;

                const COUNT: usize = $count;
            }

            impl<T: Element> Elements for ($(each!($name, T),)*) {
                type Slices<'a> = ($(each!($name, &'a [T]),)*);
                type Vecs = ($(each!($name, Vec<T>),)*);

                fn slices(slices: Self::Slices<'_>) -> Vec<&[T]> {
                    let ($($name,)*) = slices;
                    vec![$($name),*]
                }

                fn vecs(arrays: Vec<Vec<T>>) -> Option<Self::Vecs> {
                    let [$($name),*] = <[Vec<T>; $count]>::try_from(arrays).ok()?;
                    Some(($($name,)*))
                }

                fn first(vecs: &Self::Vecs) -> Option<Self> {
                    let ($($name,)*) = vecs;
                    Some(($($name.first().copied()?,)*))
                }
            }
        )*
    };
}
tuples! {
    2: a b;
    3: a b c;
    4: a b c d;
}
