//! CUDA GEMM and reduction kernels from one line of Rust.
//!
//! This line, a *spec*, is checked while your crate compiles. The crate generates readable CUDA C
//! from it. NVRTC compiles the CUDA C at the first launch, or `gemm-build` ahead of time. The
//! kernel returns the same bits on an NVIDIA GPU and on a simulator.
//!
//! ```no_run
//! use gemm_runtime::{Device, ReduceKernel, SgemmKernel, reduce_kernel, sgemm_kernel};
//!
//! const SUM: ReduceKernel = reduce_kernel!(op: sum, block: 256, items: 4, shuffle);
//! const GEMM: SgemmKernel = sgemm_kernel!(tile: 128x128x8, thread: 8x8, double_buffer);
//!
//! fn main() -> Result<(), gemm_runtime::Error> {
//!     let device = Device::auto()?; // the first CUDA GPU, else the simulator
//!     let total = SUM.run(&device, &[1.0, 2.0, 3.0])?;
//!     let c = GEMM.run(&device, &[1.0; 6], &[1.0; 6], (2, 2, 3))?;
//!     println!("{total} {c:?}\n{}", GEMM.source());
//!     Ok(())
//! }
//! ```
//!
//! # Where to start
//!
//! | task | item | guide |
//! | --- | --- | --- |
//! | declare a GEMM kernel | [`sgemm_kernel!`], [`SgemmKernel`] | [start](guide::start) |
//! | multiply other types than `f32` | [`gemm()`], [`gemm_kernel!`] | [typed](guide::typed) |
//! | declare a reduction | [`reduce_kernel!`], [`ReduceKernel`] | [reductions](guide::reductions) |
//! | compute running sums of arrays or rows | [`scan_kernel!`], [`Scan`] | [scans](guide::scans) |
//! | compute element by element | [`map_kernel!`], [`Map`] | [elementwise](guide::elementwise) |
//! | compute softmax or a norm of rows | [`row_kernel!`], [`Map`] | [rows](guide::rows) |
//! | multiply without choosing a kernel | [`sgemm`] | [in place of cuBLAS](guide::cublas) |
//! | fuse bias, activation or residual | [`Epilogue`], [`Sgemm`] | [epilogues](guide::epilogues) |
//! | choose a kernel by shape | [`sgemm_table!`], [`reduce_table!`] | [tables](guide::tables) |
//! | measure which kernel is best | [`SgemmTable::autotune`] | [tables](guide::tables) |
//! | open a GPU or the simulator | [`Device`] | [start](guide::start) |
//! | hold arrays on a device | [`Buffer`], [`Matrix`] | [views](guide::views) |
//! | write, copy or read an array | [`Device::write`], [`Pinned`], [`Event`] |
//! [memory](guide::memory) |
//! | use part of an array | [`MatrixRef`], [`MatrixMut`], [`BufferView`] | [views](guide::views) |
//! | use tensor cores | the key `arith`, [`SplitMatrix`] | [tensor cores](guide::tensor_cores) |
//! | get batch-invariant bits | `invariant` tables | [determinism](guide::determinism) |
//! | test without a GPU | [`Device::simulator`], [`sim`] | [testing](guide::testing) |
//! | run without NVRTC | [`Archive`], [`include_archive!`] | [archives](guide::archives) |
//! | use arrays of cudarc | [`Device::from_cudarc`] | [interoperation](guide::interop) |
//!
//! Every launch is checked against the contract of its kernel, so no kernel accesses memory outside
//! the arrays behind its arguments. Every failure is an [`Error`]; no function panics on bad
//! arguments.
//!
//! # Debug builds
//!
//! The simulator interprets kernels. Debug builds of your crate, such as `cargo test`, run it
//! unoptimised, which is 16 to 50 times slower. These lines in your `Cargo.toml` optimise it:
//!
//! ```toml
//! [profile.dev.package.gemm-sim]
//! opt-level = 3
//! ```
//!
//! # Features
//!
//! * `sim`, on by default, adds [`Device::simulator`] and the module [`sim`]. Without this feature,
//!   neither gemm-sim nor rayon is built, and [`SgemmTable::autotune`] predicts no times.
//! * `serde` serialises specs, kernels, tables and epilogues as their text.
//! * `tracing` adds spans for compilations, choices of a rule and launches.
//! * `ndarray` and `faer` add copies between the device and arrays of these crates.
//! * `cuda-version-from-build-system` and `fallback-latest`, on by default, select the version of
//!   CUDA whose driver interface `cudarc` declares: that of the installed `nvcc`, or the newest if
//!   there is none. The feature of a version, such as `cuda-12080`, takes precedence.
//!
//! # Environment
//!
//! * `GEMM_NVRTC_PATH`: the NVRTC library, or its directory. If the variable is not set, NVRTC is
//!   looked up on the loader's path, in `CUDA_PATH`, `CUDA_HOME`, `CONDA_PREFIX` and
//!   `/usr/local/cuda`, and in Python wheels, those of `VIRTUAL_ENV` first. A library that is too
//!   old for the GPU or for a kernel's instructions is skipped.
//! * `GEMM_PYTHON`: Python interpreter that is started to find wheels if no other place has NVRTC;
//!   `python3` by default. With an empty value, no interpreter is started.
//! * `GEMM_CACHE_DIR`: directory of compiled kernels, and of answers of [`SgemmTable::autotune`].
//!   An empty value disables the cache.
//! * `GEMM_CACHE_MAXSIZE`: maximum size of that directory in bytes, 1 GiB by default. The entries
//!   that were not used for the longest time are removed first.

#![deny(missing_docs)]

// The tables of this crate use the path `gemm_runtime`, because `tune --table` writes tables for
// any crate.
extern crate self as gemm_runtime;

mod archive;
mod backend;
mod blas;
mod blocks;
mod buffer;
mod cache;
pub mod compile;
mod device;
mod dyn_array;
pub mod error;
pub mod guide;
mod kernel;
mod kernel_arg;
mod launch;
mod library;
mod list;
mod matrix;
mod operand;
mod program;
mod report;
mod segments;
#[cfg(feature = "serde")]
mod serialise;
mod shape;
#[cfg(feature = "sim")]
mod simulated;
mod slot;
mod split_matrix;
mod splits;
mod trace;
mod transfer;
mod tune;
mod view;
mod warm_up;

pub use archive::Archive;
pub use backend::event::Event;
pub use backend::pinned::Pinned;
pub use backend::transfer::Transfer;
pub use blas::{Epilogue, GemmCall, SgemmCall, gemm, gemm_tables, sgemm, sgemm_tables, warm};
pub use buffer::{Buffer, BufferView, BufferViewMut};
pub use cudarc;
pub use device::Device;
pub use error::Error;
pub use gemm_dsl::ir::Variant;
pub use gemm_dsl::spec::{self, MapSpec, ReduceSpec, ScanSpec, SgemmSpec};
pub use gemm_dsl::tables::{KernelTable, SgemmShape};
pub use gemm_dsl::target::element::Element;
/// Floating-point numbers of 8 bits, as elements of matrices.
pub use gemm_dsl::target::fp8;
pub use half;
pub use kernel::operands::{BatchItem, BatchM, BatchN, ByName, M, MN, N, Out, OutM};
pub use kernel::{
    Gemm, GemmTable, InPlace, Map, Number, ReduceKernel, ReduceTable, Scan, Sgemm, SgemmKernel,
    SgemmTable,
};
pub use list::{MatrixList, MatrixListMut};
pub use matrix::Matrix;
pub use report::{LaunchReport, StepReport};
pub use segments::Segments;
pub use split_matrix::SplitMatrix;
pub use view::{MatrixMut, MatrixRef};

/// Generic types behind [`SgemmKernel`], [`ReduceKernel`] and the tables.
pub mod generic {
    pub use crate::kernel::{
        Call, Choice, Folds, Kernel, MapCall, Maps, NamedArrays, Scans, Table, Typed,
    };
}

/// Choice of a spec by its time on the user's shape: answers of [`SgemmTable::autotune`] and
/// [`SgemmCall::autotune`].
pub mod tuning {
    pub use crate::blas::TunedCall;
    pub use crate::tune::{Answer, Basis, Candidate, Tuned};
}

/// Traits in the bounds of kernels and views. Only generic code needs to name them.
pub mod bounds {
    pub use crate::blas::{F32Sums, GemmElement};
    pub use crate::kernel::operands::{
        AnyOperand, Named, OperandFor, OperandKind, Operands, OperandsFor,
    };
    pub use crate::kernel::{
        Elements, FoldNumber, GroupOffset, InputsFor, MapInput, MapInputs, MapKind, MapOperands,
        MapOutputs, MapResult, MapResults, ResultsFor,
    };
    pub use crate::operand::{
        Input, InputOf, Output, OutputOf, Vector, VectorMut, VectorMutOf, VectorOf,
    };
    pub use crate::segments::Offset;
    pub use crate::view::{
        AsMatrix, AsMatrixMut, AsMatrixMutOf, AsMatrixOf, MatrixMutOf, MatrixOf,
    };
}

/// The simulator: its counters, faults and observers. Needs the feature `sim`.
#[cfg(feature = "sim")]
pub mod sim {
    pub use crate::backend::simulator::{
        Counters, Quantity, SassCounters, SimError, Simulation, fault, watch,
    };
}

/// Items for the other crates of the workspace, which may change in any version. In `gemm-world`,
/// transports copy between addresses of a back end, and collective calls launch parts of a user's
/// call. `gemm-build` compiles kernels into archives. `gemm-bench` replaces the CUDA source of
/// kernels, to time two sources in turns. A public API for these uses would have to expose the back
/// ends.
#[doc(hidden)]
pub mod internal {
    pub use crate::archive::{ArchiveEntry, EntryInfo, entries, write as write_archive};
    pub use crate::backend::driver::{elapsed_ms, failed, gpus};
    pub use crate::backend::gpu::{Gpu, Replacement};
    #[cfg(feature = "sim")]
    pub use crate::backend::simulator::Simulator;
    pub use crate::backend::tensor_map;
    pub use crate::backend::{Area, Areas, Backend};
    pub use crate::blas::SgemmCalls;
    pub use crate::compile::unit::{Unit, for_archive};
    pub use crate::device::{DeviceBackend, On};
    pub use crate::dyn_array::{AnyInput, AnyOutput, Readable, Writable};
    pub use crate::kernel::operands::{GivenOperands, OperandForms, arrays, sealed as operands};
    pub use crate::kernel::reduce::{
        ReduceArrays, fold, fold_partials, fold_shard, sealed as reduce,
    };
    pub use crate::kernel::{call_program, with_splits};
    pub use crate::kernel_arg::Address;
    pub use crate::library::{
        Candidate, LibrarySpec, NVRTC, Places, SearchPlace, find_at, open, symbol,
    };
    pub use crate::operand::{Exclusive, LocatedOperand, Shared, read, sealed as operand, write};
    pub use crate::program::CachedProgram;
    pub use crate::shape::{Batch, Shape};
    pub use crate::split_matrix::PendingSplit;
    pub use crate::splits::SplitBuffers;
    #[cfg(feature = "sim")]
    pub use crate::tune::{
        CountedLaunch, compiled_work, estimated_registers, gemm_loads, samples_along,
    };
    pub use crate::warm_up::{in_parallel, load};
}

#[doc(hidden)]
pub mod __private;

/// Embeds an archive that the build script wrote with `gemm_build::embed`, as an [`Archive`].
///
/// ```ignore
/// use gemm_runtime::{Archive, Device, include_archive};
///
/// const KERNELS: Archive = include_archive!("kernels");
///
/// let device = Device::cuda(0)?;
/// device.add_archive(KERNELS)?;
/// ```
///
/// The page [archives](crate::guide::archives) has the build script.
#[macro_export]
macro_rules! include_archive {
    ($name:literal) => {
        $crate::Archive::new($name, include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".gemm")))
    };
}

#[doc = include_str!("../docs/reduce_kernel.md")]
#[macro_export]
macro_rules! reduce_kernel {
    ($($spec:tt)*) => { $crate::__private::reduce_kernel! { [$crate] $($spec)* } };
}

#[doc = include_str!("../docs/map_kernel.md")]
#[macro_export]
macro_rules! map_kernel {
    ($($spec:tt)*) => { $crate::__private::map_kernel! { [$crate] $($spec)* } };
}

#[doc = include_str!("../docs/scan_kernel.md")]
#[macro_export]
macro_rules! scan_kernel {
    ($($spec:tt)*) => { $crate::__private::scan_kernel! { [$crate] $($spec)* } };
}

#[doc = include_str!("../docs/row_kernel.md")]
#[macro_export]
macro_rules! row_kernel {
    ($($spec:tt)*) => { $crate::__private::row_kernel! { [$crate] $($spec)* } };
}

/// Builds a [`ReduceTable`] from rules, each a condition and a spec, which are checked at compile
/// time.
///
/// ```
/// use gemm_runtime::{Device, MatrixRef, ReduceTable, reduce_table};
///
/// const SUMS: ReduceTable = reduce_table! {
///     len <= 64 && outer >= 1024 => over: rows, group: 4;
///     len % 4 == 0 => over: rows, float4, items: 4;
///     else => over: rows, items: 4
/// };
/// assert_eq!(SUMS.choice((8, 4097, 1))?.spec, "over: rows, items: 4");
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// A condition is an expression of integers and booleans over `outer`, `len` and `inner`. It may
/// use `+ - * / %`, comparisons, `&& || !`, `if`, `let`, `min`, `max`, `abs` and `clamp`. The first
/// rule whose condition is true is chosen; the last rule is `else`.
///
/// All rules must specify the same reduction; only their kernels differ. In every spec, `op`,
/// `fold`, `identity`, `map`, `finish`, `type`, `acc`, `result`, `index`, `compensated`, `over` and
/// `pitched` must have the same effect as in the first rule.
#[macro_export]
macro_rules! reduce_table {
    ($($rows:tt)*) => { $crate::__private::reduce_table! { [$crate] $($rows)* } };
}

#[doc = include_str!("../docs/sgemm_kernel.md")]
#[macro_export]
macro_rules! sgemm_kernel {
    ($($spec:tt)*) => { $crate::__private::sgemm_kernel! { [$crate] $($spec)* } };
}

/// Builds a [`Gemm`] from a spec, which is checked at compile time.
///
/// The spec is that of [`sgemm_kernel!`] with the element types of the matrices: `a`, `b` and `c`
/// are `f32`, `f64`, `f16`, `bf16`, or the 8-bit types `e4m3`, `e5m2`, `i8` and `u8`, by default
/// `f32`. A and B have the same type; two 8-bit floats may be mixed, and so may `i8` and `u8`.
///
/// * On CUDA cores, elements of `f16`, `bf16`, `e4m3` and `e5m2` are converted to `f32`. Tensor
///   cores read them as they are. Both sum in `f32`. Sums are rounded to the type of C, to nearest
///   with ties to even.
/// * Matrices of `i8` and `u8` are summed in `i32`, and C is `i32` or a float.
/// * Matrices of `f64` are multiplied and summed in `f64`, and C is `f64` or `f32`.
#[macro_export]
macro_rules! gemm_kernel {
    ($($spec:tt)*) => { $crate::__private::gemm_kernel! { [$crate] $($spec)* } };
}

/// Builds an [`Epilogue`] from an expression, which is checked at compile time.
///
/// ```
/// use gemm_runtime::{Epilogue, MN, N, epilogue};
///
/// const RELU: Epilogue = epilogue!(|acc| relu(acc));
/// const LAYER: Epilogue<(N, MN, f32)> = epilogue!(|acc, bias[n], residual[m, n], slope| {
///     let t = acc + bias;
///     residual + if t < 0.0 { slope * t } else { t }
/// });
/// assert_eq!(RELU.text(), "|acc| relu(acc)");
/// ```
///
/// The expression is a value of the key `epilogue` of [`sgemm_kernel!`], with the same grammar and
/// messages. [`sgemm`] takes the value: see [`SgemmCall::epilogue`]. The type lists the kinds of
/// the operands after `acc`, as the type of an [`Sgemm`] does: [`N`] for `bias[n]`, [`M`] for
/// `scale[m]`, [`MN`] for `residual[m, n]`, and `f32` for a scalar. `c[m, n]` stands for C before
/// the launch and is no operand.
#[macro_export]
macro_rules! epilogue {
    ($($expression:tt)*) => { $crate::__private::epilogue! { [$crate] $($expression)* } };
}

/// Builds an [`SgemmTable`] from rules, each a condition and a spec, which are checked at compile
/// time.
///
/// ```
/// use gemm_runtime::{Device, MatrixMut, MatrixRef, N, SgemmShape, SgemmTable, sgemm_table};
///
/// const LAYER: SgemmTable<(N,)> = sgemm_table! {
///     m <= 8 || n <= 8 => tile: 8x8x8, thread: 1x1, epilogue: |acc, bias[n]| relu(acc + bias);
///     waves(128x128) >= 2.0 && sms >= 100 =>
///         tile: 128x128x8, thread: 8x8, double_buffer, epilogue: |acc, bias[n]| relu(acc + bias);
///     else => tile: 32x32x8, thread: 4x4, epilogue: |acc, bias[n]| relu(acc + bias);
/// };
///
/// let device = Device::simulator();
/// let (a, b) = (device.upload(&[1.0, 2.0])?, device.upload(&[1.0; 6])?);
/// let (bias, mut c) = (device.upload(&[0.0, 10.0, -10.0])?, device.alloc(3)?);
/// let (a, b) = (MatrixRef::new(&a, 1, 2)?, MatrixRef::new(&b, 2, 3)?);
/// LAYER.call(&device).operands(&bias).launch(&a, &b, &mut MatrixMut::new(&mut c, 1, 3)?)?;
/// assert_eq!(device.download(&c)?, [3.0, 13.0, 0.0]);
///
/// let large = SgemmShape::from((4096, 4096, 512)).batch(3);
/// let choice = LAYER.choice(large, &device)?;
/// assert_eq!(choice.condition.as_deref(), Some("waves(128x128) >= 2.0 && sms >= 100"));
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// The first rule whose condition is true is chosen; the last rule is `else`. All rules must
/// specify the same GEMM: in every spec, `batch`, `scaled` and `epilogue` must be the same as in
/// the first rule. Only the kernels differ.
///
/// A spec in a table must not have the keys `layout` and `pitched`. Each call sets both to fit its
/// matrices, and applies `transpose` and its padding to the K-major matrices
/// ([`SgemmSpec::for_matrices`]). The macro checks each spec for all layouts that its condition
/// admits.
///
/// # Conditions
///
/// A condition is an expression of integers, booleans and floats over these names:
///
/// | name | meaning |
/// | --- | --- |
/// | `m`, `n`, `k` | extents of the GEMM |
/// | `batch` | number of GEMMs of a batch or a list, else 1 |
/// | `nn`, `nt`, `tn`, `tt` | true for the layouts of A and B; exactly one of them is true |
/// | `padded` | true if the rows, or columns, of A, B or C are not packed |
/// | `aligned` | true if every row, or column, of A, B and C starts on a 16-byte boundary |
/// | `arch` | architecture of the GPU: 90 for `sm_90` |
/// | `sms` | number of SMs of the GPU |
/// | `waves(128x256)` | `f64`: number of tiles of 128x256 that cover C of all GEMMs, over `sms` |
///
/// A packed matrix of one row counts as row-major, and a packed matrix of one column as
/// column-major. `aligned` tests every matrix of a batch or a list. It is false for a packed C of
/// one column and several rows.
///
/// On the simulator `arch` is 90 and `sms` is 132, as on an H200.
///
/// A condition may use `+ - * / %`, comparisons, `&& || !`, `if`, `let`, `min`, `max`, `abs` and
/// `clamp`. Floats are `f64`, and may also use `floor`, `round`, `sqrt`, `rsqrt`, `fma` and `relu`.
/// A float literal has a point, as in `waves(64x64) >= 2.0`. Integers are converted explicitly, as
/// in `f64(m)`.
///
/// # Bits
///
/// Specs without `partials`, `slices`, `split_k`, `stream_k` and `lanes: k` sum each element in
/// ascending K with one accumulator. All such specs return the same bits, including the sign of a
/// zero. `invariant;` before the rules admits only such specs. The bits of a row of C then depend
/// neither on the other rows of the batch nor on the chosen rule.
///
/// ```
/// use gemm_runtime::{SgemmTable, sgemm_table};
///
/// const GEMM: SgemmTable = sgemm_table! {
///     invariant;
///     m <= 8 => tile: 8x32x8, thread: 1x4;
///     else => tile: 64x64x8, thread: 8x8;
/// };
/// assert!(GEMM.text().starts_with("invariant;"));
/// ```
///
/// # Accuracy
///
/// Specs that round differently return different results. Before its rules, a table therefore
/// declares the accuracy class that its specs may have:
///
/// * `accuracy: ieee;`, the default, admits `f32` specs only.
/// * `accuracy: bound;` also admits FP32 emulation within
///   [`Arith::error_bound`](crate::spec::Arith::error_bound): `bf16x6`, `bf16x9` and `tf32x3`.
/// * `accuracy: norm;` also admits `f16x3`, whose error bound is relative to the greatest magnitude
///   of a row of A or column of B.
///
/// No table admits `bf16`, `f16` or `tf32`, because they round A and B. To use them, build an
/// [`SgemmKernel`].
///
/// ```
/// use gemm_runtime::{SgemmTable, sgemm_table};
///
/// const GEMM: SgemmTable = sgemm_table! {
///     accuracy: bound;
///     arch == 90 && waves(128x128) >= 1.0 =>
///         tile: 128x128x64, float4, stages: 2, arith: bf16x6, mma: wgmma, copy: tma, producer,
///         persistent;
///     else => tile: 64x64x8, thread: 8x8;
/// };
/// assert!(GEMM.text().starts_with("accuracy: bound;"));
/// ```
#[macro_export]
macro_rules! sgemm_table {
    ($($rows:tt)*) => { $crate::__private::sgemm_table! { [$crate] $($rows)* } };
}

/// Builds a [`GemmTable`] from rules, as [`sgemm_table!`] does, for matrices of other element
/// types than `f32`.
///
/// The element types of A, B and C precede the rules; a type that is left out is `f32`. They apply
/// to all rules, so a spec must not have the keys `a`, `b` and `c`. The table in
/// [typed](crate::guide::typed) lists the types.
///
/// ```
/// use gemm_runtime::half::bf16;
/// use gemm_runtime::{Device, GemmTable, gemm_table};
///
/// const GEMM: GemmTable<bf16, bf16, bf16> = gemm_table! {
///     a: bf16, b: bf16, c: bf16;
///     arch == 90 && waves(128x256) > 0.5 =>
///         tile: 128x256x64, mma: wgmma, copy: tma, stages: 4, producer, persistent, float4;
///     else => tile: 32x32x16, thread: 4x4;
/// };
///
/// let choice = GEMM.choice((4096, 4096, 4096), &Device::simulator())?;
/// assert_eq!(choice.rule, 0);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// `aligned` counts 16 bytes in elements of each matrix: rows of 8 elements of `bf16`, or of 4
/// elements of `f32`.
///
/// Tensor cores that read matrices of 16-bit elements need no `accuracy` header, because they round
/// neither A nor B. They sum in another order than kernels on CUDA cores, so an `invariant` table
/// has no rules with `mma: wgmma`.
#[macro_export]
macro_rules! gemm_table {
    ($($rows:tt)*) => { $crate::__private::gemm_table! { [$crate] $($rows)* } };
}
