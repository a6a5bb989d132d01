//! GEMM of matrices of any element type.

use super::GemmCall;
use super::tables::{Tables, typed};
use crate::compile::Arch;
use crate::device::Device;
use crate::kernel::GemmTable;
use crate::view::{AsMatrix, AsMatrixMut, AsMatrixOf};
#[cfg(doc)]
use crate::{SgemmCall, error::Error, sgemm};
use gemm_dsl::spec::{Accuracy, Factor};
use gemm_dsl::target::element::Element;
use half::{bf16, f16};
use std::sync::LazyLock;

/// C = alpha·A·B + beta·C for matrices on a device whose elements are `f32`, `bf16`, `f16` or
/// `f64`.
///
/// A and B have the same type. [`GemmElement`] lists the types of C. Each matrix may be row-major
/// or column-major, packed or padded, single or a batch. One of the [`gemm_tables`] chooses the
/// kernel by extents and layouts. On an `sm_90` GPU, matrices of `bf16` and `f16` are multiplied on
/// tensor cores.
///
/// ```
/// use gemm_runtime::half::bf16;
/// use gemm_runtime::{Device, Epilogue, N, epilogue, gemm};
///
/// const LAYER: Epilogue<(N,)> = epilogue!(|acc, bias[n]| relu(acc + bias));
///
/// let device = Device::simulator();
/// let of = |values: &[f32]| values.iter().map(|v| bf16::from_f32(*v)).collect::<Vec<_>>();
/// let x = device.upload_matrix_of(&of(&[1.0, 2.0]), 1, 2)?;
/// let w = device.upload_matrix_of(&of(&[3.0, -4.0, 5.0, 6.0]), 2, 2)?;
/// let bias = device.upload(&[0.5, -10.0])?;
/// let mut y = device.alloc_matrix_of::<bf16>(1, 2)?;
/// // y = x·Wᵀ: each row of `w` has the weights of one output.
/// gemm(&x, &w.t(), &mut y).epilogue(LAYER).operands(&bias).run(&device)?;
/// assert_eq!(device.download(&y)?, of(&[0.0, 7.0]));
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// Sums, alpha, beta and the operands of an epilogue are `f32`, and are rounded to the type of C at
/// the end. Sums of `f64` matrices are `f64`; such calls have neither alpha and beta nor an
/// epilogue. For matrices of `f32` the call is the same as [`sgemm`].
///
/// # Rounding
///
/// Products of 16-bit elements are exact in `f32`. Tensor cores add them in another order than CUDA
/// cores, and round sums in another way; see [typed](crate::guide::typed). Matrices whose address
/// or row stride is not a multiple of 16 bytes are multiplied on CUDA cores, so a view at another
/// offset may have other bits. Otherwise a GEMM of the same matrices in the same layouts has the
/// same bits on every run, as for [`sgemm`].
pub fn gemm<'a, A, B, C>(a: &'a A, b: &'a B, c: &'a mut C) -> GemmCall<'a, A::Element, C::Element>
where
    A: AsMatrix + ?Sized,
    B: AsMatrixOf<A::Element> + ?Sized,
    C: AsMatrixMut + ?Sized,
    A::Element: GemmElement<C::Element>,
{
    GemmCall {
        splits: [a.splits(Factor::A), b.splits(Factor::B)],
        a: a.as_matrix(),
        b: b.as_matrix(),
        c: c.as_matrix_mut(),
        alpha: 1.0,
        beta: 0.0,
        accuracy: Accuracy::Ieee,
        epilogue: None,
        operands: (),
        groups: None,
        tuned: None,
    }
}

/// Element type of A and B for which [`gemm`] has tables, with elements of type `C` in the result:
///
/// | A and B | C |
/// | --- | --- |
/// | `f32` | `f32` |
/// | `bf16`, `f16` | `f32`, `bf16`, `f16` |
/// | `f64` | `f64`, `f32` |
///
/// Kernels for further combinations are built by [`gemm_kernel!`](crate::gemm_kernel).
///
/// ```
/// use gemm_runtime::bounds::GemmElement;
/// use gemm_runtime::{Device, Error, Matrix, gemm};
///
/// fn square<T: GemmElement<T>>(device: &Device, x: &Matrix<T>) -> Result<Matrix<T>, Error> {
///     let mut y = device.alloc_matrix_of(x.rows(), x.cols())?;
///     gemm(x, x, &mut y).run(device)?;
///     Ok(y)
/// }
///
/// let device = Device::simulator();
/// let x = device.upload_matrix_of(&[1.0_f64, 1.0, 0.0, 1.0], 2, 2)?;
/// assert_eq!(device.download(&square(&device, &x)?)?, [1.0, 2.0, 0.0, 1.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`gemm` has no tables for A and B of `{Self}` and C of `{C}`",
    label = "no tables for these element types",
    note = "A and B of `bf16` or `f16` have a C of `f32`, `bf16` or `f16`; A and B of `f64` have a \
            C of `f64` or `f32`; A and B of `f32` have a C of `f32`"
)]
pub trait GemmElement<C: Element>: Element + sealed::Shipped<C> {}

/// Element type whose sums are `f32`: `f32`, `bf16` or `f16`. Calls of [`gemm`] on such matrices
/// take alpha, beta and an epilogue.
#[diagnostic::on_unimplemented(
    message = "a GEMM of `{Self}` has no alpha, beta or epilogue",
    label = "sums of `{Self}` are not `f32`",
    note = "alpha, beta and epilogues are computed in `f32`"
)]
pub trait F32Sums: Element {}

impl F32Sums for f32 {}
impl F32Sums for bf16 {}
impl F32Sums for f16 {}

/// Returns the two tables by which [`gemm`] chooses a kernel. The first is for single GEMMs. The
/// second is for batches and lists; its specs have `batch: strided`.
///
/// For matrices of `f32` these are the [`sgemm_tables`](crate::sgemm_tables). For matrices of
/// `bf16` and `f16`, the table for single GEMMs on `sm_90` is measured on an H200; all other tables
/// have rules for CUDA cores that every GPU can run, and are not measured.
///
/// ```
/// use gemm_runtime::{compile::Arch, gemm_tables, half::bf16};
///
/// let [single, batch] = gemm_tables::<bf16, bf16>(Some(Arch::sm(90)));
/// println!("{single}\n\n{batch}");
/// assert!(single.text().starts_with("a: bf16, b: bf16, c: bf16;"));
/// ```
pub fn gemm_tables<T: GemmElement<C>, C: Element>(
    arch: Option<Arch>,
) -> [&'static GemmTable<T, T, C>; 2] {
    let Tables { one, batch } = T::tables(arch.map(Arch::number), Accuracy::Ieee);
    [&one.table, &batch.table]
}

impl<T: GemmElement<C>, C: Element> Tables<T, C> {
    /// Tables for a device and an accuracy class.
    pub(super) fn on(device: &Device, accuracy: Accuracy) -> &'static Self {
        T::tables(device.arch().map(Arch::number), accuracy)
    }
}

#[doc(hidden)]
pub mod sealed {
    use super::{Accuracy, Element, Tables};

    pub trait Shipped<C: Element>: Element {
        /// Tables for an architecture and an accuracy class. The simulator has no architecture.
        fn tables(arch: Option<u32>, accuracy: Accuracy) -> &'static Tables<Self, C>;
    }
}

impl GemmElement<f32> for f32 {}
impl sealed::Shipped<f32> for f32 {
    fn tables(arch: Option<u32>, accuracy: Accuracy) -> &'static Tables<f32, f32> {
        Tables::for_arch(arch, accuracy)
    }
}

/// Implements the traits for pairs of element types. `$sm_90` and `$other` are the rules for an
/// H200 and for other GPUs, each for single GEMMs and for batches.
macro_rules! shipped {
    ($($t:ty => $($c:ty),+; $sm_90:expr, $other:expr;)+) => {
        $($(
            impl GemmElement<$c> for $t {}
            impl sealed::Shipped<$c> for $t {
                fn tables(arch: Option<u32>, _: Accuracy) -> &'static Tables<$t, $c> {
                    static SM_90: LazyLock<Tables<$t, $c>> =
                        LazyLock::new(|| Tables::of_rules($sm_90, 90));
                    static OTHER: LazyLock<Tables<$t, $c>> =
                        LazyLock::new(|| Tables::of_rules($other, 75));
                    if arch == Some(90) { &SM_90 } else { &OTHER }
                }
            }
        )+)+
    };
}

shipped! {
    bf16 => f32, bf16, f16; typed::halves_sm_90(), typed::HALVES;
    f16 => f32, f16, bf16; typed::halves_sm_90(), typed::HALVES;
    f64 => f64, f32; typed::DOUBLES, typed::DOUBLES;
}
