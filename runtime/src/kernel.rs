//! Kernel values, as the macros build them.

pub(crate) mod operands;
pub(crate) mod reduce;
mod sgemm;
mod table;

pub use reduce::{Elements, Folds, InputsFor, NamedArrays, ReduceTable, ResultsFor};
pub use sgemm::with_splits;
pub(crate) use sgemm::{
    Chooses, GemmMatrices, NamedMatrix, extents, launch_chosen, problem, shape_on,
};
pub use table::{Choice, ReduceSlot, SgemmSlot, SgemmTable, Table};

use crate::device::Device;
use crate::error::Result;
use crate::program::CachedProgram;
use crate::warm_up::warm_up;
use gemm_dsl::cuda;
use gemm_dsl::ir::VerifiedProgram;
use gemm_dsl::spec::{ReduceSpec, SgemmSpec};
use gemm_dsl::tables::TableFamily;
use gemm_dsl::{Family, Plan};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use table::ParsedTable;

/// Kernel: a spec that has been checked. Devices cache its program and machine code.
///
/// `S` is the type of the spec. `E` lists the arguments of a launch: the
/// [`Operands`](crate::bounds::Operands) of a GEMM besides its matrices, or the [inputs and
/// results](Folds) of a reduction. If `E` is [`ByName`](crate::ByName), a call passes them by name.
///
/// ```
/// use gemm_runtime::generic::Kernel;
/// use gemm_runtime::{SgemmKernel, sgemm_kernel, spec::SgemmSpec};
///
/// const GEMM: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 4x4);
/// let same: Kernel<SgemmSpec> = Kernel::<SgemmSpec>::new("thread: 4x4, tile: 16x16x8".parse()?)?;
/// assert_eq!(GEMM, same);
/// assert_eq!(GEMM.spec_line(), "tile: 16x16x8, thread: 4x4");
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
pub struct Kernel<S, E = ()> {
    /// Canonical line of the spec.
    line: Cow<'static, str>,
    of: PhantomData<fn() -> (S, E)>,
}

/// Reduction kernel: folds the elements of arrays into results. Built by
/// [`reduce_kernel!`](crate::reduce_kernel) or from a [`ReduceSpec`].
///
/// `T` is the element type of the inputs and `R` the type of the results. Each is the type of one
/// array, or for several arrays a tuple of equal types:
///
/// * `ReduceKernel<f16, u32>` finds the index of the greatest `f16`.
/// * `ReduceKernel<(f32, f32), f32>` is a dot product.
/// * `ReduceKernel<f32, (f32, f32)>` computes mean and variance.
///
/// `f16` and `bf16` are the types of [`half`].
///
/// ```
/// use gemm_runtime::half::f16;
/// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
///
/// const SUM: ReduceKernel = reduce_kernel!(op: sum);
/// const ARGMAX: ReduceKernel<f16, u64> = reduce_kernel!(op: argmax, type: f16, index: u64);
///
/// let device = Device::simulator();
/// assert_eq!(SUM.run(&device, &[1.0, 2.0, 3.0])?, 6.0);
/// let values = [1.0, 5.0, 2.0].map(f16::from_f32);
/// assert_eq!(ARGMAX.run(&device, &values)?, 1);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// The spec and the extents determine the order in which elements are combined, so a result has the
/// same bits on every run and device. Without elements, the result is the identity of the `fold` or
/// `op`, or the value documented for the `op`.
///
/// For a spec that is known only at run time, use [`Kernel<ReduceSpec, ByName>`](crate::ByName).
pub type ReduceKernel<T = f32, R = T> = Kernel<ReduceSpec, Folds<T, R>>;

/// GEMM kernel on matrices of `f32`: computes C = A·B, or an `epilogue` of A·B. Built by
/// [`sgemm_kernel!`](crate::sgemm_kernel) or from an [`SgemmSpec`].
///
/// A is m×k, B is k×n and C is m×n. C is row-major; the key `layout` sets the layouts of A and B.
///
/// `E` lists the kinds of the operands that a call passes besides A, B and C: `alpha` and `beta` of
/// a `scaled` GEMM, then the operands of the epilogue. [`N`](crate::N) is the kind of `bias[n]`,
/// [`M`](crate::M) of `scale[m]`, [`MN`](crate::MN) of `residual[m, n]`, and `f32` of a scalar:
///
/// ```
/// use gemm_runtime::{Device, MatrixMut, MatrixRef, N, Sgemm, sgemm_kernel};
///
/// const LAYER: Sgemm<(N, f32)> = sgemm_kernel!(epilogue: |acc, bias[n], slope| {
///     let t = acc + bias;
///     if t < 0.0 { slope * t } else { t }
/// });
///
/// let device = Device::simulator();
/// let (a, b) = (device.upload(&[1.0, 2.0])?, device.upload(&[1.0; 6])?);
/// let (bias, mut c) = (device.upload(&[0.0, 10.0, -10.0])?, device.alloc(3)?);
/// let (a, b) = (MatrixRef::new(&a, 1, 2)?, MatrixRef::new(&b, 2, 3)?);
/// LAYER.call(&device).operands((&bias, 0.5)).launch(&a, &b, &mut MatrixMut::new(&mut c, 1, 3)?)?;
/// assert_eq!(device.download(&c)?, [3.0, 13.0, -3.5]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// For a spec that is known only at run time, use [`Sgemm<ByName>`](crate::ByName).
pub type Sgemm<E = ()> = Kernel<SgemmSpec, E>;

/// GEMM kernel `C = A·B` that takes only its matrices. Built by
/// [`sgemm_kernel!`](crate::sgemm_kernel) or from an [`SgemmSpec`].
///
/// * [`run`](Kernel::run) multiplies host slices and returns C.
/// * [`launch`](Kernel::launch) multiplies packed device arrays, asynchronously.
/// * [`call`](Kernel::call) launches on views: parts, transposes, batches and lists.
/// * [`source`](Kernel::source) returns the CUDA C.
/// * [`warm`](Kernel::warm) compiles the kernel ahead of the first launch.
///
/// A kernel with further operands has the type [`Sgemm`], which lists their kinds.
///
/// ```
/// use gemm_runtime::{Device, SgemmKernel, sgemm_kernel};
///
/// const GEMM: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 4x4);
/// let device = Device::simulator();
/// assert_eq!(GEMM.run(&device, &[1.0, 2.0], &[3.0, 4.0], (1, 1, 2))?, [11.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
pub type SgemmKernel = Kernel<SgemmSpec>;

/// Call of a kernel or of a [`Table`] on a device. Its launch takes views and reads the extents
/// from them.
///
/// Returned by [`Sgemm::call`], [`SgemmTable::call`] and, for a reduction by name,
/// [`Kernel::call`]. `O` is the type of the operands passed so far for `E`.
///
/// ```
/// use gemm_runtime::{Device, SgemmKernel, sgemm_kernel};
///
/// const GEMM: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 4x4, pitched);
/// let device = Device::simulator();
/// let a = device.upload_matrix(&[1.0, 2.0, 3.0, 4.0], 2, 2)?;
/// let mut c = device.alloc_matrix(2, 2)?;
/// GEMM.call(&device).launch(&a, &a, &mut c)?;
/// assert_eq!(device.download(&c)?, [7.0, 10.0, 15.0, 22.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
pub struct Call<'a, S: TableFamily, E = (), O = ()> {
    what: Callee<'a, S>,
    device: &'a Device,
    given: O,
    of: PhantomData<fn() -> E>,
}

/// Kernel or table of a call.
enum Callee<'a, S: TableFamily> {
    /// Canonical line of the kernel.
    Kernel(&'a str),
    /// Table that chooses the kernel.
    Table(&'a ParsedTable<S>),
}

impl<S, E> Kernel<S, E> {
    #[doc(hidden)]
    pub const fn __from_macro(line: &'static str) -> Self {
        Self { line: Cow::Borrowed(line), of: PhantomData }
    }

    /// Returns the spec as a line of the DSL, in canonical order and without defaults.
    pub fn spec_line(&self) -> &str {
        &self.line
    }
}

impl<S: Family, E> Kernel<S, E> {
    /// Kernel of a spec without faults. The caller checks its operands.
    fn checked(spec: &S) -> Result<Self> {
        spec.plan()?.program()?;
        Ok(Self { line: Cow::Owned(spec.to_string()), of: PhantomData })
    }

    /// Kernel of a spec that is built repeatedly. The device caches its program.
    #[doc(hidden)]
    pub fn kept(spec: &S, device: &Device) -> Result<Self> {
        let line = spec.to_string();
        device.programs().get::<S>(&line)?;
        Ok(Self { line: Cow::Owned(line), of: PhantomData })
    }

    /// Kernel of a line for which [`kept`](Self::kept) has already returned a kernel.
    #[doc(hidden)]
    pub fn kept_before(line: &str) -> Self {
        Self { line: Cow::Owned(line.to_owned()), of: PhantomData }
    }

    /// Generates the CUDA C translation unit of the preferred access variant. If the kernel needs
    /// several launches, returns the unit of the first launch.
    pub fn source(&self) -> String {
        cuda::source(self.program().preferred())
    }

    /// Generates the translation units of the preferred access variants of all launches, in order
    /// and without repetition. A reduction in two launches has a second unit, which folds the
    /// partial results of the first launch.
    pub fn sources(&self) -> Vec<String> {
        self.program().launched().map(cuda::source).collect()
    }

    /// Compiles all kernels of this spec before the first launch, for aligned and for unaligned
    /// arrays, unless the device has already loaded them. Later launches compile nothing.
    ///
    /// On the simulator nothing is compiled: this function only generates the kernels.
    ///
    /// # Errors
    /// [`Error::Ahead`](crate::Error::Ahead) with the error of compiling or loading.
    pub fn warm(&self, device: &Device) -> Result<()> {
        warm_up::<S>(device, [self.spec_line()])
    }

    fn program(&self) -> VerifiedProgram {
        match self.line.parse::<S::Plan>().and_then(|plan| plan.program()) {
            Ok(program) => program,
            Err(faults) => unreachable!("the line was checked when the kernel was built: {faults}"),
        }
    }

    #[doc(hidden)]
    pub fn prepare(&self, device: &Device) -> Result<Arc<CachedProgram>> {
        device.programs().get::<S>(&self.line)
    }
}

impl<S, E> Clone for Kernel<S, E> {
    fn clone(&self) -> Self {
        Self { line: self.line.clone(), of: PhantomData }
    }
}

impl<S, E> PartialEq for Kernel<S, E> {
    fn eq(&self, other: &Self) -> bool {
        self.line == other.line
    }
}

impl<S, E> Eq for Kernel<S, E> {}

impl<S, E> fmt::Debug for Kernel<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("line", &self.line).finish_non_exhaustive()
    }
}

/// Writes the line of the spec.
impl<S, E> fmt::Display for Kernel<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec_line())
    }
}

impl<'a, S: TableFamily, E, O> Call<'a, S, E, O> {
    fn new(what: Callee<'a, S>, device: &'a Device, given: O) -> Self {
        Self { what, device, given, of: PhantomData }
    }
}

impl<S: TableFamily> Clone for Callee<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: TableFamily> Copy for Callee<'_, S> {}

impl<S: TableFamily, E, O: Clone> Clone for Call<'_, S, E, O> {
    fn clone(&self) -> Self {
        Self { given: self.given.clone(), ..*self }
    }
}

impl<S: TableFamily, E, O: fmt::Debug> fmt::Debug for Call<'_, S, E, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut call = f.debug_struct("Call");
        match &self.what {
            Callee::Kernel(line) => call.field("line", line),
            Callee::Table(read) => call.field("table", &read.text()),
        };
        call.field("device", self.device).field("given", &self.given).finish_non_exhaustive()
    }
}

impl<S: TableFamily, E, O: Copy> Copy for Call<'_, S, E, O> {}
