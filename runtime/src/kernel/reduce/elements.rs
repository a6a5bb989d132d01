//! Element types in the type of a reduction kernel.

use super::input::HostInput;
use super::number::{FoldNumber, Number};
use crate::buffer::Buffer;
use crate::device::Device;
use crate::dyn_array::Writable;
use crate::error::Result;
use gemm_dsl::ir::Elem;
use gemm_dsl::target::element::Element;
use half::{bf16, f16};

/// Element types of a reduction's inputs or results, as [`ReduceKernel`](crate::ReduceKernel) lists
/// them.
///
/// A list is the type of one array, or a tuple of types. A type is `f32`, `f64`, `f16`, `bf16`, or
/// an integer of 8, 32 or 64 bits. After the types of the inputs, [`Number<f32>`](Number) lists a
/// number that a launch passes.
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
    note = "a list is the element of one array, such as `f32` or `u8`, or a tuple of two to eight, \
        such as `(f32, f32)`, or `(f32, Number<f32>)` for an array and a number"
)]
pub trait Elements: Sealed {
    /// Host arrays to read: `&[f32]` for `f32`, `f32` for `Number<f32>`, a tuple for a tuple.
    type Slices<'a>;

    /// Owned host arrays: `Vec<f32>` for `f32`, a tuple of vectors for a tuple.
    type Vecs;

    /// Host inputs in order.
    #[doc(hidden)]
    fn given(slices: Self::Slices<'_>) -> Vec<HostInput<'_>>;

    /// Downloads the results.
    #[doc(hidden)]
    fn download(device: &Device, results: &Self::Buffers) -> Result<Self::Vecs>;

    /// First element of each array.
    #[doc(hidden)]
    fn first(vecs: &Self::Vecs) -> Option<Self>;
}

pub trait Sealed: Copy + 'static {
    /// Arrays on a device, for results.
    type Buffers;

    /// Types in order.
    const LISTED: &'static [Listed];

    /// Allocates arrays for results.
    fn alloc(device: &Device, len: usize) -> Result<Self::Buffers>;

    /// Arrays for results, in order.
    fn outputs(results: &mut Self::Buffers) -> Vec<Box<dyn Writable + '_>>;
}

/// Type in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    Array(Elem),
    Number(Elem),
}

/// Type in a list: that of an array, or of a number.
pub trait Item: Copy + 'static {
    type Slice<'a>;
    type Vec;
    type Buffer;

    const LISTED: Listed;

    fn given(slice: Self::Slice<'_>) -> HostInput<'_>;

    fn alloc(device: &Device, len: usize) -> Result<Self::Buffer>;

    fn output(results: &mut Self::Buffer) -> Option<Box<dyn Writable + '_>>;

    fn download(device: &Device, results: &Self::Buffer) -> Result<Self::Vec>;

    fn first(vec: &Self::Vec) -> Option<Self>;
}

impl<T: Element> Item for T {
    type Slice<'a> = &'a [T];
    type Vec = Vec<T>;
    type Buffer = Buffer<T>;

    const LISTED: Listed = Listed::Array(T::ELEM);

    fn given(slice: Self::Slice<'_>) -> HostInput<'_> {
        HostInput::array(slice)
    }

    fn alloc(device: &Device, len: usize) -> Result<Buffer<T>> {
        device.alloc_of(len)
    }

    fn output(results: &mut Buffer<T>) -> Option<Box<dyn Writable + '_>> {
        Some(Box::new(results))
    }

    fn download(device: &Device, results: &Buffer<T>) -> Result<Vec<T>> {
        device.download(results)
    }

    fn first(vec: &Vec<T>) -> Option<T> {
        vec.first().copied()
    }
}

/// No reduction has a number as a result: a kernel's constructor rejects such a list.
impl<T: FoldNumber> Item for Number<T> {
    type Slice<'a> = T;
    type Vec = ();
    type Buffer = ();

    const LISTED: Listed = Listed::Number(T::ELEM);

    fn given(number: Self::Slice<'_>) -> HostInput<'_> {
        HostInput::Number(T::ELEM, number.into_bits())
    }

    fn alloc(_: &Device, _: usize) -> Result<()> {
        Ok(())
    }

    fn output((): &mut ()) -> Option<Box<dyn Writable + '_>> {
        None
    }

    fn download(_: &Device, (): &()) -> Result<()> {
        Ok(())
    }

    fn first((): &()) -> Option<Self> {
        Some(Self::LISTED_ONLY)
    }
}

macro_rules! elements {
    ($($element:ty),*) => {
        $(
            impl Sealed for $element {
                type Buffers = Buffer<Self>;

                const LISTED: &'static [Listed] = &[<Self as Item>::LISTED];

                fn alloc(device: &Device, len: usize) -> Result<Self::Buffers> {
                    <Self as Item>::alloc(device, len)
                }

                fn outputs(results: &mut Self::Buffers) -> Vec<Box<dyn Writable + '_>> {
                    <Self as Item>::output(results).into_iter().collect()
                }
            }

            impl Elements for $element {
                type Slices<'a> = &'a [Self];
                type Vecs = Vec<Self>;

                fn given(slices: Self::Slices<'_>) -> Vec<HostInput<'_>> {
                    vec![<Self as Item>::given(slices)]
                }

                fn download(device: &Device, results: &Self::Buffers) -> Result<Vec<Self>> {
                    <Self as Item>::download(device, results)
                }

                fn first(vecs: &Vec<Self>) -> Option<Self> {
                    <Self as Item>::first(vecs)
                }
            }
        )*
    };
}
elements!(f32, f64, f16, bf16, i8, u8, i32, u32, i64, u64);

macro_rules! tuples {
    ($($($name:ident $at:tt)*;)*) => {
        $(
            impl<$($name: Item),*> Sealed for ($($name,)*) {
                type Buffers = ($($name::Buffer,)*);

                const LISTED: &'static [Listed] = &[$($name::LISTED),*];

                fn alloc(device: &Device, len: usize) -> Result<Self::Buffers> {
                    Ok(($($name::alloc(device, len)?,)*))
                }

                fn outputs(results: &mut Self::Buffers) -> Vec<Box<dyn Writable + '_>> {
                    let mut all = Vec::new();
                    $(all.extend($name::output(&mut results.$at));)*
                    all
                }
            }

            impl<$($name: Item),*> Elements for ($($name,)*) {
                type Slices<'a> = ($($name::Slice<'a>,)*);
                type Vecs = ($($name::Vec,)*);

                fn given(slices: Self::Slices<'_>) -> Vec<HostInput<'_>> {
                    vec![$($name::given(slices.$at)),*]
                }

                fn download(device: &Device, results: &Self::Buffers) -> Result<Self::Vecs> {
                    Ok(($($name::download(device, &results.$at)?,)*))
                }

                fn first(vecs: &Self::Vecs) -> Option<Self> {
                    Some(($($name::first(&vecs.$at)?,)*))
                }
            }
        )*
    };
}
tuples! {
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
    A 0 B 1 C 2 D 3 E 4;
    A 0 B 1 C 2 D 3 E 4 F 5;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
}
