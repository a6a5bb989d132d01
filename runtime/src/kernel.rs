//! The kernel values that the macros make.

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

/// A kernel: a spec that has been checked. What a device makes of it belongs to the device.
///
/// `S` is the type of the spec, `E` says what a launch takes: of a product the [`Operands`](crate::Operands) beside
/// its matrices, of a reduction what it [folds](Folds) into what, or that arrays go [by name](crate::ByName).
pub struct Kernel<S, E = ()> {
    /// The canonical line of the spec.
    line: Cow<'static, str>,
    of: PhantomData<fn() -> (S, E)>,
}

/// A reduction: it folds elements of arrays into results. Made by [`reduce_kernel!`](crate::reduce_kernel) or from a
/// [`ReduceSpec`].
///
/// `T` says what the elements are, and `R` what a result is: the type of one array, or a tuple of as many as there
/// are, all of one type. So the largest index of an `f16` is found by a `ReduceKernel<f16, u32>`, two arrays of `f32` have
/// a product of type `ReduceKernel<(f32, f32), f32>`, and mean and variance are a `ReduceKernel<f32, (f32, f32)>`.
/// `f16` and `bf16` are those of [`half`].
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
/// The elements are combined in an order that the spec and the extents fix, so that a result is
/// the same bits on every run and device. Of no elements it is the operator's identity, that of the `fold`, or as `op`
/// says.
///
/// [`Kernel<ReduceSpec, ByName>`](crate::ByName) is the type of those whose spec is known when the program runs.
pub type ReduceKernel<T = f32, R = T> = Kernel<ReduceSpec, Folds<T, R>>;

/// A product C = A·B, or what an `epilogue` makes of its sums, of matrices of `f32`, A of m rows and k columns, B of k rows and n
/// columns; C is row-major, A and B lie as `layout` says. Made by [`sgemm_kernel!`](crate::sgemm_kernel) or from an [`SgemmSpec`].
///
/// `E` lists the kinds of its operands, those that the caller gives beside A, B and C: `alpha` and `beta` of a
/// `scaled` product, then what the epilogue names. [`N`](crate::N) stands for `bias[n]`, [`M`](crate::M) for
/// `scale[m]`, [`MN`](crate::MN) for `residual[m, n]` and `f32` for a number:
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
/// [`ByName`](crate::ByName) is the type of those whose spec is known when the program runs.
pub type Sgemm<E = ()> = Kernel<SgemmSpec, E>;

/// An [`Sgemm`] without operands.
pub type SgemmKernel = Sgemm;

/// A call of a kernel or of a [`Table`] on a device, made by [`Sgemm::call`], [`SgemmTable::call`] or, of a reduction
/// by name, by [`Kernel::call`]: what is launched on views, whose shapes say what the extents are. `O` is what it
/// has been given for the operands `E`.
pub struct Call<'a, S: TableFamily, E = (), O = ()> {
    what: Callee<'a, S>,
    device: &'a Device,
    given: O,
    of: PhantomData<fn() -> E>,
}

/// What is called.
enum Callee<'a, S: TableFamily> {
    /// The kernel of a line.
    Kernel(&'a str),
    /// The kernel that a table chooses.
    Table(&'a ParsedTable<S>),
}

impl<S, E> Kernel<S, E> {
    #[doc(hidden)]
    pub const fn __from_macro(line: &'static str) -> Self {
        Self { line: Cow::Borrowed(line), of: PhantomData }
    }

    /// The spec as a line of the DSL, in canonical order and without defaults.
    pub fn spec_line(&self) -> &str {
        &self.line
    }
}

impl<S: Family, E> Kernel<S, E> {
    /// The kernel of a spec without faults, whose operands are these.
    fn checked(spec: &S) -> Result<Self> {
        spec.plan()?.program()?;
        Ok(Self { line: Cow::Owned(spec.to_string()), of: PhantomData })
    }

    /// The same, of a spec that is used on a device, and so often that its program is not to be generated each time: the device
    /// keeps it.
    #[doc(hidden)]
    pub fn kept(spec: &S, device: &Device) -> Result<Self> {
        let line = spec.to_string();
        device.programs().get::<S>(&line)?;
        Ok(Self { line: Cow::Owned(line), of: PhantomData })
    }

    /// One that was [`kept`](Self::kept) before, by its line.
    #[doc(hidden)]
    pub fn kept_before(line: &str) -> Self {
        Self { line: Cow::Owned(line.to_owned()), of: PhantomData }
    }

    /// The CUDA C translation unit of the preferred access variant, generated by this call; of several launches,
    /// that of the first.
    pub fn source(&self) -> String {
        cuda::source(self.program().preferred())
    }

    /// The translation units of the preferred access variants of all launches, each once and in their order: of a
    /// reduction in two launches also the one that folds what the first leaves.
    pub fn sources(&self) -> Vec<String> {
        self.program().launched().map(cuda::source).collect()
    }

    /// Compiles all its kernels ahead, those for arrays on 16 bytes and those for others, unless the device has them:
    /// a launch then compiles nothing. In the simulator, which compiles nothing, they are generated.
    ///
    /// # Errors
    /// [`Error::Ahead`](crate::Error::Ahead) with what compiling and loading failed with.
    pub fn warm(&self, device: &Device) -> Result<()> {
        warm_up::<S>(device, [self.spec_line()])
    }

    fn program(&self) -> VerifiedProgram {
        match self.line.parse::<S::Plan>().and_then(|plan| plan.program()) {
            Ok(program) => program,
            Err(faults) => unreachable!("the line was checked when the kernel was made: {faults}"),
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

/// The spec line.
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
