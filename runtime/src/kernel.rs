//! Kernel values, as the macros build them.

mod map;
pub(crate) mod operands;
pub(crate) mod reduce;
mod scan;
mod sgemm;
mod table;

pub use map::{
    InPlace, MapCall, MapInput, MapInputs, MapKind, MapOperands, MapOutputs, MapResult, MapResults,
    Maps,
};
pub use operands::Typed;
pub use reduce::{
    Elements, FoldNumber, Folds, InputsFor, NamedArrays, Number, ReduceTable, ResultsFor,
};
pub use scan::Scans;
pub(crate) use sgemm::{
    Chooses, GemmMatrices, NamedMatrix, extents, launch_chosen, problem, shape_on,
};
pub use sgemm::{GroupOffset, GroupOffsets, call_program, with_splits};
pub use table::{Choice, GemmTable, ReduceSlot, SgemmSlot, SgemmTable, Table};

use crate::device::Device;
use crate::error::Result;
use crate::program::CachedProgram;
use crate::slot::KernelSlot;
use crate::warm_up::make;
use gemm_dsl::artifact::Artifact;
use gemm_dsl::spec::{MapSpec, Pairs, ReduceSpec, ScanSpec, SgemmSpec};
use gemm_dsl::tables::TableFamily;
use gemm_dsl::{Family, Plan as _};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use table::ParsedTable;

/// Kernel: a valid spec, with its CUDA C and all that a launch needs except machine code. Devices
/// cache the machine code.
///
/// A macro call is a constant of this type: its CUDA C is in the binary, and launches on a GPU
/// neither parse the spec nor generate anything. [`ReduceKernel::new`] and [`Sgemm::new`] generate
/// the same data at run time.
///
/// `S` is the type of the spec. `E` lists the arguments of a launch: the [element types and
/// operands](Typed) of a GEMM, the [inputs and results](Folds) of a reduction, or the [operands and
/// results](Maps) of an elementwise kernel. If `E` is [`ByName`](crate::ByName), a call passes them
/// by name.
///
/// ```
/// use gemm_runtime::{SgemmKernel, sgemm_kernel};
///
/// const GEMM: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 4x4);
/// let same = SgemmKernel::new("thread: 4x4, tile: 16x16x8".parse()?)?;
/// assert_eq!(GEMM, same);
/// assert_eq!(GEMM.spec_line(), "tile: 16x16x8, thread: 4x4");
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
pub struct Kernel<S, E = ()> {
    source: KernelSource,
    of: PhantomData<fn() -> (S, E)>,
}

impl Device {
    /// Drops the kernels of a spec. Their machine code is unloaded as soon as nothing uses it.
    ///
    /// Returns false if the device does not keep them, or if a macro call with this spec has been
    /// launched or a captured CUDA graph refers to them. These kernels stay.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceKernel};
    ///
    /// let device = Device::simulator();
    /// let kernel: ReduceKernel = ReduceKernel::new("op: max".parse()?)?;
    /// kernel.run(&device, &[1.0, 2.0])?;
    /// assert!(device.forget(&kernel) && !device.forget(&kernel));
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    pub fn forget<S: Family, E>(&self, kernel: &Kernel<S, E>) -> bool {
        self.programs().forget::<S>(kernel.spec_line())
    }
}

/// Origin of a kernel, with its artifact.
#[derive(Clone)]
enum KernelSource {
    Macro { artifact: &'static Artifact, slot: fn() -> &'static KernelSlot },
    Spec(Box<Artifact>),
}

impl KernelSource {
    const fn artifact(&self) -> &Artifact {
        match self {
            Self::Macro { artifact, .. } => artifact,
            Self::Spec(artifact) => artifact,
        }
    }

    /// Program of the kernel on a device.
    fn program<S: Family>(&self, device: &Device) -> Result<Arc<CachedProgram>> {
        let programs = device.programs();
        match self {
            Self::Macro { artifact, slot } => {
                programs.of_constant::<S>(artifact, slot()).map(Arc::clone)
            }
            Self::Spec(artifact) => programs.of_artifact::<S>(artifact),
        }
    }
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

/// Elementwise kernel: computes each element of the results from the operands' elements at the same
/// index. Built by [`map_kernel!`](crate::map_kernel) or from a [`MapSpec`].
///
/// `E` is a tuple with the kind of each operand: [`MN<T>`](crate::MN) of a matrix `x[m, n]`,
/// [`N<T>`](crate::N) of a vector `v[n]`, [`M<T>`](crate::M) of a vector `v[m]`, and `f32` or
/// another type of a number. `R` is the kind of the result, or a tuple for several results. The
/// element type `T` is `f32` if it is left out.
///
/// ```
/// use gemm_runtime::half::bf16;
/// use gemm_runtime::{Device, MN, Map, N, map_kernel};
///
/// const LAYER: Map<(MN, N), MN<bf16>> =
///     map_kernel!(|x[m, n], bias[n]| -> bf16 gelu(x + bias));
///
/// let device = Device::simulator();
/// let x = device.upload_matrix(&[-1.0, 0.0, 1.0, 2.0], 2, 2)?;
/// let bias = device.upload(&[1.0, 0.0])?;
/// let mut y = device.alloc_matrix_of::<bf16>(2, 2)?;
/// LAYER.launch(&device, (&x, &bias), &mut y)?;
/// assert_eq!(device.download(&y)?[0], bf16::ZERO);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// For a spec that is known only at run time, use [`Kernel<MapSpec, ByName>`](crate::ByName).
pub type Map<E, R = operands::MN> = Kernel<MapSpec, Maps<E, R>>;

/// Scan: folds each element with all elements before it, over an array or over each row of a
/// matrix. Built by [`scan_kernel!`](crate::scan_kernel) or from a
/// [`ScanSpec`](crate::spec::ScanSpec).
///
/// `T` is the type of the elements and `R` the type of the results.
///
/// ```
/// use gemm_runtime::{Device, Scan, scan_kernel};
///
/// const SUMS: Scan = scan_kernel!();
/// const OFFSETS: Scan<u8, u32> = scan_kernel!(type: u8, exclusive);
///
/// let device = Device::simulator();
/// assert_eq!(SUMS.run(&device, &[1.0, 2.0, 3.0])?, [1.0, 3.0, 6.0]);
/// assert_eq!(OFFSETS.run(&device, &[200, 100, 1])?, [0, 200, 300]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// The spec and the extents determine the order in which elements are combined, so a result has the
/// same bits on every run and device.
pub type Scan<T = f32, R = T> = Kernel<ScanSpec, Scans<T, R>>;

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
pub type Sgemm<E = ()> = Gemm<f32, f32, f32, E>;

/// GEMM kernel on matrices with elements of the types `A`, `B` and `C`. Built by
/// [`gemm_kernel!`](crate::gemm_kernel) or from an [`SgemmSpec`].
///
/// `E` lists the kinds of the operands besides the matrices, as for an [`Sgemm`]. Operands are
/// `f32`.
///
/// ```
/// use gemm_runtime::half::bf16;
/// use gemm_runtime::{Device, Gemm, gemm_kernel};
///
/// const GEMM: Gemm<bf16, bf16, f32> = gemm_kernel!(a: bf16, b: bf16, tile: 16x16x8, thread: 4x4);
/// let device = Device::simulator();
/// let [a, b] = [[1.0, 2.0], [3.0, 4.0]].map(|of| of.map(bf16::from_f32));
/// assert_eq!(GEMM.run(&device, &a, &b, (1, 1, 2))?, [11.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
pub type Gemm<A, B, C, E = ()> = Kernel<SgemmSpec, Typed<A, B, C, E>>;

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
pub type SgemmKernel = Sgemm;

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
#[must_use = "nothing is computed before `launch`"]
pub struct Call<'a, S: TableFamily, E = (), O = ()> {
    what: Callee<'a, S>,
    device: &'a Device,
    given: O,
    /// Offsets of the groups of a grouped GEMM.
    groups: Option<GroupOffsets<'a>>,
    of: PhantomData<fn() -> E>,
}

/// Kernel or table of a call.
enum Callee<'a, S: TableFamily> {
    Kernel(&'a KernelSource),
    /// Program that the device caches.
    Program(&'a Arc<CachedProgram>),
    /// Table that chooses the kernel.
    Table(&'a ParsedTable<S>),
}

impl<S: TableFamily> Callee<'_, S> {
    /// Pairs of columns that the epilogue computes.
    fn pairs(&self) -> Pairs {
        match self {
            Self::Kernel(source) => source.artifact().interface.pairs(),
            Self::Program(program) => program.pairs(),
            Self::Table(table) => table.pairs,
        }
    }
}

impl<S, E> Kernel<S, E> {
    #[doc(hidden)]
    pub const fn __from_macro(
        artifact: &'static Artifact,
        slot: fn() -> &'static KernelSlot,
    ) -> Self {
        Self { source: KernelSource::Macro { artifact, slot }, of: PhantomData }
    }

    /// Returns the spec as a line of the DSL, in canonical order and without defaults.
    pub fn spec_line(&self) -> &str {
        &self.artifact().line
    }

    /// Returns the CUDA C translation unit of the kernel that computes C or folds the inputs. If
    /// this kernel has several [variants](crate::Variant), returns the preferred variant, which has
    /// 16-byte accesses or no guards. [`sources`](Self::sources) returns all units.
    pub const fn source(&self) -> &str {
        match self.sources() {
            [Cow::Borrowed(first), ..] => first,
            [Cow::Owned(first), ..] => first.as_str(),
            [] => "",
        }
    }

    /// Returns the CUDA C translation units of all kernels: the unit of [`source`](Self::source),
    /// its other variants, and the kernels of other launches. A reduction in two launches
    /// has a unit that folds the partial results of the first launch.
    ///
    /// A constant can read the units of a `static` kernel:
    ///
    /// ```
    /// use gemm_runtime::{ReduceKernel, reduce_kernel};
    ///
    /// static SUM: ReduceKernel = reduce_kernel!(launch: passes, float4);
    /// const UNITS: usize = SUM.sources().len();
    ///
    /// // Vector loads, scalar loads, and the last pass.
    /// assert_eq!(UNITS, 3);
    /// assert!(SUM.sources()[2].contains("reduce_sum_256_float4_passes_of_partials("));
    /// ```
    pub const fn sources(&self) -> &[Cow<'static, str>] {
        self.artifact().sources.as_slice()
    }

    #[doc(hidden)]
    pub const fn artifact(&self) -> &Artifact {
        self.source.artifact()
    }
}

impl<S: Family, E> Kernel<S, E> {
    /// Kernel of a spec without faults. The caller checks its operands.
    fn checked(spec: &S) -> Result<Self> {
        Self::planned(&spec.plan()?)
    }

    pub(crate) fn planned(plan: &S::Plan) -> Result<Self> {
        let source = KernelSource::Spec(Box::new(plan.artifact()?));
        Ok(Self { source, of: PhantomData })
    }

    /// Compiles all kernels of this spec before the first launch, for aligned and for unaligned
    /// arrays, unless the device has already loaded them. Later launches compile nothing.
    ///
    /// On the simulator, nothing is compiled.
    ///
    /// # Errors
    /// [`Error::Ahead`](crate::Error::Ahead) with the error of compiling or loading.
    pub fn warm(&self, device: &Device) -> Result<()> {
        make(device, &[self.spec_line()], vec![self.prepare(device)])
    }

    #[doc(hidden)]
    pub fn prepare(&self, device: &Device) -> Result<Arc<CachedProgram>> {
        self.source.program::<S>(device)
    }
}

impl<S, E> Clone for Kernel<S, E> {
    fn clone(&self) -> Self {
        Self { source: self.source.clone(), of: PhantomData }
    }
}

impl<S, E> PartialEq for Kernel<S, E> {
    fn eq(&self, other: &Self) -> bool {
        self.spec_line() == other.spec_line()
    }
}

impl<S, E> Eq for Kernel<S, E> {}

impl<S, E> fmt::Debug for Kernel<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("line", &self.spec_line()).finish_non_exhaustive()
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
        Self { what, device, given, groups: None, of: PhantomData }
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
            Callee::Kernel(source) => call.field("line", &source.artifact().line),
            Callee::Program(program) => call.field("line", &program.line()),
            Callee::Table(read) => call.field("table", &read.text()),
        };
        call.field("device", self.device).field("given", &self.given).finish_non_exhaustive()
    }
}

impl<S: TableFamily, E, O: Copy> Copy for Call<'_, S, E, O> {}
