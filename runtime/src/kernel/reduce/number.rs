//! Numbers in the type of a reduction kernel.

use gemm_dsl::target::element::Element;
use std::marker::PhantomData;

/// Type of a [`Number`]: `f32`, `f64`, `i32`, `u32` or `i64`.
pub trait FoldNumber: Element {}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl FoldNumber for $number {}
    )*};
}
numbers!(f32, f64, i32, u32, i64);

/// Number in the type of a [`ReduceKernel`](crate::ReduceKernel), after the element types of the
/// arrays: a parameter with a type, such as `mu` in `map: |x, mu: f32| x - mu`. A launch passes it
/// by value.
///
/// ```
/// use gemm_runtime::{Device, Number, ReduceKernel, reduce_kernel};
///
/// const DEVIATION: ReduceKernel<(f32, Number<f32>), f32> =
///     reduce_kernel!(map: |x, mu: f32| (x - mu) * (x - mu), finish: |s, len| sqrt(s / len));
///
/// let device = Device::simulator();
/// let x = device.upload(&[1.0, 5.0])?;
/// let mut deviation = device.alloc(1)?;
/// DEVIATION.launch(&device, (&x, 3.0), &mut deviation)?;
/// assert_eq!(device.download(&deviation)?, [2.0]);
/// assert_eq!(DEVIATION.run(&device, (&[1.0, 5.0], 3.0))?, 2.0);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Number<T>(PhantomData<fn() -> T>);

impl<T> Number<T> {
    /// Value for lists of types, which contain no number.
    pub(super) const LISTED_ONLY: Self = Self(PhantomData);
}
