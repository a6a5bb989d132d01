//! Errors. A message names the argument, its value, the requirement and a remedy.

mod compile;
mod convert;
mod hardware;
mod layout;
mod owner;
#[cfg(test)]
mod tests;
mod text;

pub use gemm_dsl::error::{Excerpt, SpecError, SpecErrors};
pub use gemm_dsl::ir::contract::{Between, ContractError, Need, Subject};
pub use gemm_dsl::ir::{Extent, Operand};
pub use owner::Owner;
use owner::remedy;
use text::{WITHOUT_GPU, kernel_type, listed, more, out_of_range, size};

use gemm_dsl::error::counted;
use gemm_dsl::spec::Over;
use thiserror::Error;

/// Result of this crate's functions, with [`Error`](enum@Error) as the default error type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of any function of this crate. No function panics on bad arguments.
///
/// `Display` prints the message with the remedy, `Debug` the variant with its data. A `main` that
/// returns an error prints its `Debug`.
///
/// ```
/// use gemm_runtime::{Device, Error};
///
/// let device = Device::simulator();
/// let error = device.alloc(4)?.slice(2..6).map(drop).unwrap_err();
/// assert!(matches!(error, Error::OutOfRange { start: 2, end: 6, len: 4, .. }));
/// assert_eq!(
///     error.to_string(),
///     "the range 2..6 is not within 0..4, the elements of the buffer: use a range within it"
/// );
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The library of the NVIDIA driver cannot be loaded or is too old.
    #[error(
        "no usable NVIDIA driver: {reason}. Install a driver of release 525 or later, or {}",
        WITHOUT_GPU
    )]
    DriverMissing {
        /// Reason for the failure.
        reason: String,
    },
    /// The driver is loaded but reports no GPU.
    #[error(
        "the NVIDIA driver reports no GPU. Check `nvidia-smi` and CUDA_VISIBLE_DEVICES, or {}",
        WITHOUT_GPU
    )]
    NoGpu,
    /// The ordinal is not below the number of GPUs.
    #[error("GPU {ordinal} does not exist: the driver reports {count} in total, numbered from 0")]
    BadOrdinal {
        /// Ordinal that the call passed.
        ordinal: usize,
        /// Number of GPUs that the driver reports.
        count: usize,
    },
    /// The CUDA compiler library was not found.
    #[error(fmt = compile::nvrtc_missing)]
    NvrtcMissing {
        /// Places searched, in order, each with the result of the search.
        searched: Vec<String>,
    },
    /// NVRTC was found, but no version that knows the architecture and the instructions.
    #[error(fmt = compile::nvrtc_unsuitable)]
    NvrtcUnsuitable {
        /// Architecture, and the CUDA release whose instructions the kernel uses.
        need: String,
        /// Places searched, in order, each with the version found there.
        searched: Vec<String>,
    },
    /// NVRTC rejected the CUDA source of a translation unit.
    #[error("NVRTC could not compile `{name}` for {arch}: {reason}\n{listing}")]
    Compile {
        /// Name of the translation unit, without `.cu`.
        name: String,
        /// Target architecture, such as `sm_90`.
        arch: String,
        /// Name that NVRTC gives the failure.
        reason: String,
        /// NVRTC's log, followed by the source lines that the log names.
        listing: String,
    },
    /// The bytes of an [`Archive`](crate::Archive) cannot be used.
    #[error("the archive `{archive}` cannot be used: {reason}")]
    Archive {
        /// Name of the archive.
        archive: String,
        /// Reason, with a remedy.
        reason: String,
    },
    /// No archive of the device has the kernel, nor has the disk cache, and NVRTC is not found.
    #[error(fmt = compile::not_archived)]
    NotArchived {
        /// Name of the kernel in the generated CUDA text.
        kernel: String,
        /// Spec of the kernel, as a line of the DSL.
        line: String,
        /// Architecture of the machine code, such as `sm_90a`.
        arch: String,
        /// Archives of the device, each with its name, number of kernels and architectures.
        archives: Vec<String>,
        /// Error of the search for NVRTC.
        #[source]
        error: Box<Error>,
    },
    /// A kernel could not be compiled before its launch.
    #[error("`{line}` could not be compiled ahead of its launch{}: {error}", more(*others))]
    Ahead {
        /// Spec of the kernel, as a line of the DSL.
        line: String,
        /// Error of the first kernel that failed.
        #[source]
        error: Box<Error>,
        /// Number of further kernels that failed.
        others: usize,
    },
    /// Device memory is exhausted, or host memory does not suffice for a copy.
    #[error(
        "out of memory on {device}: {} requested. Free buffers or use smaller ones",
        size(*bytes)
    )]
    OutOfMemory {
        /// Bytes of the allocation that failed, or `u64::MAX` if there are at least as many.
        bytes: u64,
        /// Name of the device, or `the host`.
        device: String,
    },
    /// An argument has the wrong number of elements.
    #[error("`{argument}` has {}, but {need}", counted(*has, "element"))]
    WrongExtent {
        /// Name of the argument in the call, such as `a` or `x`.
        argument: String,
        /// Number of elements that the argument has.
        has: u64,
        /// Elements required, with the arithmetic.
        need: String,
    },
    /// A matrix has another shape than the matrix that it is copied to, or a batch has other axes
    /// than the other matrices or the kernel.
    #[error("`{argument}` is {has}, but {need}. {remedy}")]
    WrongShape {
        /// Name of the argument in the call.
        argument: String,
        /// Shape of the argument.
        has: String,
        /// Shape required.
        need: String,
        /// Remedy, as a sentence without a full stop.
        remedy: &'static str,
    },
    /// Two arrays of a call disagree in an extent.
    #[error("{extent} is {} in `{}` but {} in `{}`: the shapes do not \
        match", first.1, first.0, other.1, other.0)]
    Extents {
        /// Extent that both arrays have.
        extent: Extent,
        /// Name of one array, with its value of the extent.
        first: (String, usize),
        /// Name of the other array, with its value of the extent.
        other: (String, usize),
    },
    /// An operand that a launch writes shares memory with another operand.
    #[error("`{written}`, which the call writes, shares memory with `{other}`: use separate views")]
    Overlap {
        /// Name of the operand that is written.
        written: String,
        /// Name of the other operand.
        other: String,
    },
    /// The parts of a matrix in a `cudarc` slice are interleaved in memory.
    #[error(fmt = layout::interleaved)]
    Interleaved,
    /// Foreign device memory cannot be an array of the device.
    #[error("no buffer can be built at {address:#x}: {reason}")]
    Foreign {
        /// Address that the call passed.
        address: u64,
        /// Reason, with a remedy.
        reason: String,
    },
    /// A view of a `cudarc` slice does not know the device of a call.
    #[error("a matrix in a `cudarc` slice has no device of its own: call `device.{call}` instead")]
    NoDevice {
        /// Call of the device that does the same.
        call: &'static str,
    },
    /// A list of matrices was passed for a single array.
    #[error(fmt = layout::list)]
    List {
        /// Name of the argument in the call, such as `a` or `x`.
        argument: String,
    },
    /// A single matrix was passed beside a list. A list has one matrix for each GEMM.
    #[error(fmt = layout::unlisted)]
    Unlisted {
        /// Name of the argument that is a list.
        list: &'static str,
        /// Name of the argument that is not a list.
        other: &'static str,
    },
    /// Matrices of a list differ in shape or strides.
    #[error(fmt = layout::unlike)]
    Unlike {
        /// Index of the matrix, from 0 on.
        nth: usize,
        /// Property that differs, such as `the number of rows`.
        what: &'static str,
        /// Value of the property in this matrix.
        found: usize,
        /// Value of the property in matrix 0.
        expected: usize,
    },
    /// A matrix of a list is a batch or a list itself.
    #[error("matrix {nth} of the list is a batch: list the matrices of the batch one by one")]
    BatchInList {
        /// Index of the matrix, from 0 on.
        nth: usize,
    },
    /// A part of a list was requested.
    #[error("a list of matrices has no parts: list the parts of the matrices instead")]
    PartOfList,
    /// A matrix has gaps between matrices, rows or elements, but must have consecutive elements.
    #[error("`{argument}` must have consecutive elements, but {layout}. {remedy}")]
    Padded {
        /// Name of the argument in the call, such as `a` or `x`.
        argument: String,
        /// Number of elements of a row.
        cols: u64,
        /// Distance between two rows, in elements.
        row_stride: u64,
        /// Distance between neighbours in a row, in elements.
        col_stride: u64,
        /// Description of the layout, for the message.
        layout: String,
        /// Remedy, as a sentence without a full stop.
        remedy: &'static str,
    },
    /// A matrix is neither row-major nor column-major.
    #[error(fmt = layout::scattered)]
    Scattered {
        /// Name of the argument in the call, such as `a` or `x`.
        argument: &'static str,
        /// Distance between neighbours in a column, in elements.
        row_stride: usize,
        /// Distance between neighbours in a row, in elements.
        col_stride: usize,
    },
    /// C is column-major, but the epilogue folds its rows.
    #[error(fmt = layout::folds_of_columns)]
    FoldsOfColumns {
        /// Epilogue of the call.
        epilogue: String,
    },
    /// The epilogue computes pairs of columns, but the number of columns is odd.
    #[error(fmt = layout::odd_columns)]
    OddColumns {
        /// Matrix of the call.
        argument: String,
        /// Number of its columns.
        columns: usize,
    },
    /// C is column-major, but the epilogue computes pairs of its columns.
    #[error(fmt = layout::pairs_of_rows)]
    PairsOfRows {
        /// Epilogue of the call.
        epilogue: String,
    },
    /// C is column-major, but a matrix operand of the epilogue is not.
    #[error(fmt = layout::operand_layout)]
    OperandLayout {
        /// Name of the operand in the epilogue.
        operand: String,
        /// Distance between neighbours in a column, in elements.
        row_stride: usize,
    },
    /// The row stride is shorter than a row, so rows would overlap.
    #[error(fmt = layout::short_pitch)]
    ShortPitch {
        /// Row stride that the call passed, in elements.
        pitch: usize,
        /// Number of elements of a row.
        cols: usize,
    },
    /// A matrix whose rows are to be one row of memory has another number of rows.
    #[error(fmt = layout::several_rows)]
    SeveralRows {
        /// Number of rows of the matrix.
        rows: usize,
    },
    /// An extent or a product of extents exceeds the addressable range.
    #[error("{what}: the limit is {limit}. {remedy}")]
    TooLarge {
        /// Quantity that is too large, with its value.
        what: String,
        /// Greatest value that is allowed.
        limit: u64,
        /// Remedy, as a sentence without a full stop.
        remedy: &'static str,
    },
    /// A range is not inside a buffer, or inside the rows or columns of a matrix.
    #[error("{}", out_of_range(*start, *end, *len, of))]
    OutOfRange {
        /// First element, row or column of the range.
        start: usize,
        /// End of the range, exclusive.
        end: usize,
        /// Number of elements, rows or columns.
        len: usize,
        /// Kind of range: "the elements of the buffer", "the rows of the matrix" or "the columns of
        /// the matrix".
        of: &'static str,
    },
    /// An operand belongs to another device.
    #[error(
        "`{argument}` belongs to {belongs}, but the call runs on {device}. {}",
        remedy(belongs, device)
    )]
    WrongDevice {
        /// Name of the argument in the call, such as `a` or `x`.
        argument: String,
        /// Name of the call's device.
        device: String,
        /// Owner of the operand's memory.
        belongs: Owner,
    },
    /// The arguments violate the kernel's contract.
    #[error(transparent)]
    Unmet(Box<ContractError>),
    /// The type of a kernel does not list the operands of its spec.
    #[error("{}", kernel_type(line, operands, needed, found, by_name))]
    KernelType {
        /// Spec of the kernel, as a line of the DSL.
        line: String,
        /// Operands that the type must list. For a GEMM: the operands of its epilogue. For a
        /// reduction: its inputs and results, with their types.
        operands: Vec<String>,
        /// Kernel type that lists these operands.
        needed: String,
        /// Kernel type that the caller requested.
        found: String,
        /// Kernel type that takes operands by name.
        by_name: &'static str,
    },
    /// A call by name lacks an operand of the kernel.
    #[error("the call gives no `{operand}`, {needed}: add it with `.{method}(name, …)`")]
    MissingOperand {
        /// Name of the operand in the epilogue or `map`, or name of the result.
        operand: String,
        /// Kind of operand that the kernel takes.
        needed: &'static str,
        /// Method that passes such an operand.
        method: &'static str,
    },
    /// A call by name passes an operand that the kernel does not have.
    #[error("`{operand}` is not an operand of the kernel, which takes {}", listed(takes))]
    UnknownOperand {
        /// Name that the call passes.
        operand: String,
        /// Names of the kernel's operands or results.
        takes: Vec<String>,
    },
    /// A call by name passes an operand twice.
    #[error("the call gives `{operand}` twice: pass it only once")]
    RepeatedOperand {
        /// Name that the call passes.
        operand: String,
    },
    /// A call passes a scalar for an array, an array for a scalar, or an array of the wrong rank.
    #[error("`{operand}` is {needed}, but the call gives {found}. {remedy}")]
    WrongOperand {
        /// Name of the operand in the epilogue or `map`.
        operand: String,
        /// Kind of operand that the kernel takes.
        needed: &'static str,
        /// Description of the operand that the call passes, for the message.
        found: String,
        /// Remedy, as a sentence without a full stop.
        remedy: &'static str,
    },
    /// The arguments of a call do not fit the `over` key of a reduction.
    #[error("the kernel folds `over: {over}`, but the call gives {found}. {remedy}")]
    WrongOver {
        /// Value of the kernel's `over` key.
        over: Over,
        /// Description of the arguments that the call passes, for the message.
        found: String,
        /// Remedy, as a sentence without a full stop.
        remedy: &'static str,
    },
    /// A reduction folds the rows of a batch, but the rows of the whole batch are not equally
    /// spaced.
    #[error(fmt = layout::uneven_rows)]
    UnevenRows {
        /// Name of the argument in the call, such as `a` or `x`.
        argument: String,
        /// Distance between two rows of a matrix, in elements.
        row_stride: usize,
        /// Distance from the last row of a matrix to the first row of the next, in elements.
        step: i128,
    },
    /// An offset of segments is less than its predecessor.
    #[error(fmt = layout::backwards)]
    Backwards {
        /// Index of the offset, from 0 on.
        index: usize,
        /// Value of the offset, in elements.
        offset: u64,
        /// Value of its predecessor, in elements.
        before: u64,
    },
    /// The kernel needs more shared memory than the device allows a block.
    #[error(fmt = hardware::shared_memory)]
    SharedMemory {
        /// Name of the kernel in the generated CUDA text.
        kernel: String,
        /// Bytes that a block needs.
        needed: u64,
        /// Bytes that the device allows a block.
        limit: u64,
        /// Name of the device, as returned by [`Device::name`](crate::Device::name).
        device: String,
    },
    /// The kernel uses instructions that the device lacks.
    #[error(fmt = hardware::architecture)]
    Architecture {
        /// Name of the kernel in the generated CUDA text.
        kernel: String,
        /// Oldest architecture that can run it: 80 for `sm_80`.
        needed: u32,
        /// Architecture of the device, such as `sm_80`.
        has: String,
        /// Name of the device, as returned by [`Device::name`](crate::Device::name).
        device: String,
    },
    /// The kernel uses instructions that exist only on one other architecture.
    #[error(fmt = hardware::other_architecture)]
    OtherArchitecture {
        /// Name of the kernel in the generated CUDA text.
        kernel: String,
        /// Architecture that can run it: 90 for `sm_90`.
        needed: u32,
        /// Architecture of the device, such as `sm_80`.
        has: String,
        /// Name of the device, as returned by [`Device::name`](crate::Device::name).
        device: String,
    },
    /// The call would have to allocate memory, load code or access host memory while the stream is
    /// captured into a graph.
    #[error(
        "{doing} is not possible while the stream is captured into a graph. Do it before the \
         capture begins; a kernel does it in its first launch with the same extents"
    )]
    Capturing {
        /// Action that is not possible during the capture.
        doing: &'static str,
    },
    /// The runtime cannot order its work on this stream.
    #[error("the stream cannot be used: {reason}")]
    Stream {
        /// Reason, and the stream to use instead.
        reason: &'static str,
    },
    /// A CUDA driver call failed.
    #[error("the CUDA driver failed while {doing}: {text} ({code}, status {status})")]
    Driver {
        /// Action of the runtime during the call.
        doing: String,
        /// Name of the error in the driver.
        code: String,
        /// Number of the error in the driver: the value of its `CUresult`.
        status: i32,
        /// Description of the error from the driver.
        text: String,
    },
    /// The simulator found a fault of the kernel or of its arguments, or stopped a launch at the
    /// limit of instructions.
    #[cfg(feature = "sim")]
    #[error(transparent)]
    Simulator(#[from] Box<gemm_sim::SimError>),
    /// The spec is faulty; all of its faults are listed.
    #[error(transparent)]
    Spec(#[from] SpecErrors),
    /// The generator violated an invariant of its own.
    #[error("{0}. This is a bug in the generator: please report it")]
    Internal(String),
}
