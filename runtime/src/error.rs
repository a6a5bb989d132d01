//! Everything that can go wrong, each with the argument, its value, what was needed and a remedy.

mod owner;

pub use owner::Owner;
use owner::remedy;

use gemm_dsl::error::SpecErrors;
use gemm_dsl::ir::contract::ContractError;
use gemm_dsl::ir::program::BindError;
use gemm_dsl::ir::{Extent, HostError, IrError};
use gemm_dsl::spec::Over;
use std::fmt;
use thiserror::Error;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What to do where there is no GPU.
const WITHOUT_GPU: &str = if cfg!(feature = "sim") {
    "use Device::simulator()"
} else {
    "turn on the feature `sim` of gemm-runtime, without which the simulator was left out, and use Device::simulator()"
};

/// What a call of this crate can fail with. No call panics.
///
/// `Debug` is the message, as `Display` is: a `main` that returns an error shows the remedy.
#[derive(Error)]
#[non_exhaustive]
pub enum Error {
    /// The NVIDIA driver's library could not be loaded, or is too old to be used.
    #[error(
        "no usable NVIDIA driver: {reason}. Install a driver of release 525 or later, or {}",
        WITHOUT_GPU
    )]
    DriverMissing {
        /// What was tried.
        reason: String,
    },
    /// The driver is there but reports no GPU.
    #[error(
        "the NVIDIA driver reports no GPU. Check `nvidia-smi` and CUDA_VISIBLE_DEVICES, or {}",
        WITHOUT_GPU
    )]
    NoGpu,
    /// The ordinal names no GPU.
    #[error("GPU {ordinal} does not exist: there are {count}, numbered from 0")]
    BadOrdinal {
        /// The ordinal asked for.
        ordinal: usize,
        /// The number of GPUs that the driver reports.
        count: usize,
    },
    /// The CUDA compiler library was found nowhere.
    #[error(
        "NVRTC, the CUDA compiler library, was not found. Install it with `pip install \
         nvidia-cuda-nvrtc` or with the CUDA toolkit, or set GEMM_NVRTC_PATH to the library or \
         its directory. Looked in:\n{}",
        indented(searched)
    )]
    NvrtcMissing {
        /// The places tried, in order, each with what was found there.
        searched: Vec<String>,
    },
    /// NVRTC refused a source.
    #[error("NVRTC could not compile `{name}` for {arch}: {reason}\n{listing}")]
    Compile {
        /// The name of the translation unit.
        name: String,
        /// The architecture compiled for.
        arch: String,
        /// NVRTC's own name of the failure.
        reason: String,
        /// NVRTC's log, followed by the lines of the source it names.
        listing: String,
    },
    /// A kernel could not be made ahead of its launch.
    #[error("`{line}` could not be made ahead{}: {error}", more(*others))]
    Ahead {
        /// The line of the kernel.
        line: String,
        /// Why not.
        error: Box<Error>,
        /// How many more failed, whose errors are not told.
        others: usize,
    },
    /// Device memory is exhausted, or what is copied from there has no room on the host.
    #[error(
        "out of memory on {device}: {bytes} bytes were asked for. Free buffers or use smaller ones"
    )]
    OutOfMemory {
        /// The bytes of the one allocation that failed.
        bytes: u64,
        /// The device, or `the host`.
        device: String,
    },
    /// An argument has the wrong number of elements.
    #[error("`{argument}` has {has} elements, but {need}")]
    WrongExtent {
        /// The argument.
        argument: String,
        /// Its number of elements.
        has: u64,
        /// What was needed, with the arithmetic.
        need: String,
    },
    /// Two arrays of a call do not agree.
    #[error("{extent} is {} in `{}` but {} in `{}`: the shapes do not fit", first.1, first.0, other.1, other.0)]
    Extents {
        /// The extent that both have.
        extent: Extent,
        /// One of the two, with its value.
        first: (String, usize),
        /// The other one.
        other: (String, usize),
    },
    /// What a launch writes shares memory with another of its operands.
    #[error(
        "`{written}`, which the kernel writes, shares memory with `{other}`: use separate views"
    )]
    Overlap {
        /// The operand that is written.
        written: String,
        /// The other operand.
        other: String,
    },
    /// A list of matrices where one array is meant.
    #[error(
        "`{argument}` is a list of matrices where one array is meant: pass one view, which may be a batch"
    )]
    List {
        /// The argument.
        argument: String,
    },
    /// One matrix beside a list, of which a call has as many products as matrices.
    #[error(
        "`{list}` is a list of matrices and `{other}` is none: make a list of it too, with the same view for \
         each product where all share it"
    )]
    Unlisted {
        /// The argument that is a list.
        list: &'static str,
        /// The one that is not.
        other: &'static str,
    },
    /// The matrices of a list are not alike.
    #[error(
        "{what} of matrix {nth} of the list is {found}, but {expected} of matrix 0: list matrices of one shape \
         that lie alike"
    )]
    Unlike {
        /// Which matrix it is, from 0 on.
        nth: usize,
        /// What of it differs.
        what: &'static str,
        /// Its value.
        found: usize,
        /// The value of the first matrix.
        expected: usize,
    },
    /// A matrix of a list is a batch or a list itself.
    #[error("matrix {nth} of the list is a batch of matrices: list them one by one")]
    BatchInList {
        /// Which matrix it is, from 0 on.
        nth: usize,
    },
    /// A part of a list.
    #[error("the matrices of a list have no parts: make a list of the parts")]
    PartOfList,
    /// A matrix is to be of consecutive elements, but its matrices, its rows or their elements lie apart.
    #[error("`{argument}` is to be of consecutive elements, but {layout}. {remedy}")]
    Padded {
        /// The argument.
        argument: String,
        /// The elements of a row.
        cols: u64,
        /// The distance between two rows, in elements.
        row_stride: u64,
        /// The distance between two neighbours in a row, in elements.
        col_stride: u64,
        /// How it lies, in words.
        layout: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A matrix lies neither in rows nor in columns.
    #[error(
        "`{argument}` lies neither in rows nor in columns: neighbours in a column are {row_stride} elements \
         apart, those in a row {col_stride}. Copy it first"
    )]
    Scattered {
        /// The argument.
        argument: &'static str,
        /// The distance between neighbours in a column, in elements.
        row_stride: usize,
        /// The distance between neighbours in a row, in elements.
        col_stride: usize,
    },
    /// The rows of a matrix would overlap.
    #[error("a pitch of {pitch} is shorter than a row of {cols}: use one of at least {cols}")]
    ShortPitch {
        /// The distance between two rows, in elements.
        pitch: usize,
        /// The elements of a row.
        cols: usize,
    },
    /// A product of extents, or one extent, is beyond what can be addressed.
    #[error("{what}: the limit is {limit}. {remedy}")]
    TooLarge {
        /// The quantity with its value.
        what: String,
        /// The largest value allowed.
        limit: u64,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A range does not lie inside a buffer, or inside the rows or columns of a matrix.
    #[error("{}", out_of_range(*start, *end, *len, of))]
    OutOfRange {
        /// The first element, row or column of the range.
        start: usize,
        /// One past its last.
        end: usize,
        /// How many there are.
        len: usize,
        /// What they are: "the elements of the buffer", "the rows of the matrix".
        of: &'static str,
    },
    /// An operand belongs to another device.
    #[error(
        "`{argument}` belongs to {belongs}, but the call runs on {device}. {}",
        remedy(belongs, device)
    )]
    WrongDevice {
        /// The argument.
        argument: String,
        /// The device the call was given.
        device: String,
        /// Where the operand lives.
        belongs: Owner,
    },
    /// The arguments do not meet the kernel's contract.
    #[error(transparent)]
    Unmet(Box<ContractError>),
    /// The type of a kernel does not list the operands of its spec.
    #[error("{}", kernel_type(line, operands, needed, found, by_name))]
    KernelType {
        /// The spec.
        line: String,
        /// What the type lists: the operands of a product, as an epilogue names them, and the inputs and results of
        /// a reduction, each with its type.
        operands: Vec<String>,
        /// The type of a kernel that takes them.
        needed: String,
        /// The type that was asked for.
        found: String,
        /// The type of kernels that take theirs by name.
        by_name: &'static str,
    },
    /// A call by name lacks an operand of the kernel.
    #[error("the call gives no `{operand}`, {needed}: add it with `.{method}(name, …)`")]
    MissingOperand {
        /// The operand, as an epilogue or a `map` names it, or the result.
        operand: String,
        /// What the kernel takes for it.
        needed: &'static str,
        /// The method of the call that takes it.
        method: &'static str,
    },
    /// A call by name gives what is no operand of the kernel.
    #[error("`{operand}` is no operand of the kernel, which takes {}", listed(takes))]
    UnknownOperand {
        /// The name.
        operand: String,
        /// The kernel's operands, as an epilogue or a `map` names them, or its results.
        takes: Vec<String>,
    },
    /// A call by name gives an operand twice.
    #[error("the call gives `{operand}` twice: leave one of them out")]
    RepeatedOperand {
        /// The name.
        operand: String,
    },
    /// A call gives a number for an array, an array for a number, or one without the dimensions of the operand.
    #[error("`{operand}` is {needed}, but the call gives {found}. {remedy}")]
    WrongOperand {
        /// The operand, as an epilogue or a `map` names it.
        operand: String,
        /// What the kernel takes for it.
        needed: &'static str,
        /// What the call gives.
        found: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A call that is none for what a reduction folds into one result.
    #[error("the kernel folds `over: {over}`, but the call gives {found}. {remedy}")]
    WrongOver {
        /// What the kernel folds.
        over: Over,
        /// What the call gives.
        found: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The rows of several matrices, which are to be folded alike, do not lie one distance apart.
    #[error(
        "the rows of `{argument}` are not one distance apart: those of a matrix start every {row_stride} elements, \
         but the first one of a matrix {step} elements after the last one of the matrix before. Launch matrix by \
         matrix, or copy them one behind the other"
    )]
    UnevenRows {
        /// The argument.
        argument: String,
        /// The distance between two rows of a matrix, in elements.
        row_stride: usize,
        /// The distance from the last row of a matrix to the first row of the next, in elements.
        step: i128,
    },
    /// An offset is smaller than the one before it, so that segments overlap or run backwards.
    #[error(
        "the segments run backwards: offset {index} is {offset}, but the one before it is {before}. Offsets ascend: \
         segment i goes from offset i up to offset i + 1"
    )]
    Backwards {
        /// Which offset it is, from 0 on.
        index: usize,
        /// Its value.
        offset: u64,
        /// The value of the one before it.
        before: u64,
    },
    /// The kernel needs more shared memory than a block may have on this device.
    #[error(
        "kernel `{kernel}` needs {needed} bytes of shared memory, but {device} allows a block \
         {limit}. Use a smaller tile or fewer stages"
    )]
    SharedMemory {
        /// The kernel.
        kernel: String,
        /// Bytes that a block of it needs.
        needed: u64,
        /// Bytes that the device allows.
        limit: u64,
        /// The device.
        device: String,
    },
    /// The kernel uses instructions that the device does not have.
    #[error(
        "kernel `{kernel}` needs sm_{needed} or later (cp.async and the like), but {device} is \
         {has}. Leave out the key that asks for it (`stages`), or use a newer GPU"
    )]
    Architecture {
        /// The kernel.
        kernel: String,
        /// The oldest architecture that can run it.
        needed: u32,
        /// The device's architecture.
        has: String,
        /// The device.
        device: String,
    },
    /// The kernel uses instructions of another architecture that no other has.
    #[error(
        "kernel `{kernel}` is made of instructions of sm_{needed} alone (wgmma and the like), but {device} is \
         {has}. Use a kernel without them"
    )]
    OtherArchitecture {
        /// The kernel.
        kernel: String,
        /// The architecture that can run it.
        needed: u32,
        /// The device's architecture.
        has: String,
        /// The device.
        device: String,
    },
    /// The stream is being captured into a graph and the call would have to allocate or load.
    #[error(
        "{doing} is not possible while the stream is captured into a graph. Launch the kernel \
         once with these extents before the capture begins"
    )]
    Capturing {
        /// What would have to be done.
        doing: &'static str,
    },
    /// A stream that the runtime cannot order work on.
    #[error("the stream cannot be used: {reason}")]
    Stream {
        /// Why not, and what to use instead.
        reason: &'static str,
    },
    /// A CUDA driver call failed.
    #[error("the CUDA driver failed while {doing}: {code}: {text}")]
    Driver {
        /// What the runtime was doing.
        doing: String,
        /// The driver's name of the error.
        code: String,
        /// The driver's explanation.
        text: String,
    },
    /// The simulator found a fault, the kernel's or that of its arguments, or stopped a launch at its limit.
    #[cfg(feature = "sim")]
    #[error(transparent)]
    Simulator(#[from] Box<gemm_sim::SimError>),
    /// The spec is faulty.
    #[error(transparent)]
    Spec(#[from] SpecErrors),
    /// The generator contradicted itself.
    #[error("{0}. This is a fault of the generator: please report it")]
    Internal(String),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<ContractError> for Error {
    fn from(error: ContractError) -> Self {
        Error::Unmet(Box::new(error))
    }
}

impl From<BindError> for Error {
    fn from(error: BindError) -> Self {
        match error {
            BindError::Value(error) => error.into(),
            error => Error::Internal(error.to_string()),
        }
    }
}

impl From<IrError> for Error {
    fn from(error: IrError) -> Self {
        Error::Internal(format!("kernel `{}`: {}", error.kernel, error.rule))
    }
}

impl From<HostError> for Error {
    fn from(error: HostError) -> Self {
        Error::TooLarge {
            what: format!("the launches for these extents cannot be computed: {error}"),
            limit: u64::MAX,
            remedy: "Use smaller extents",
        }
    }
}

fn more(others: usize) -> String {
    if others == 0 { String::new() } else { format!(", nor could {others} more") }
}

fn out_of_range(start: usize, end: usize, len: usize, of: &str) -> String {
    if start > end {
        return format!(
            "the range {start}..{end} of {of} ends before it starts: write the smaller number first"
        );
    }
    format!("the range {start}..{end} does not lie in 0..{len}, {of}: use a part of that")
}

fn kernel_type(
    line: &str,
    operands: &[String],
    needed: &str,
    found: &str,
    by_name: &str,
) -> String {
    let takes = listed(operands);
    let kernel = match line {
        "" => "the kernel without keys".to_owned(),
        line => format!("a kernel of `{line}`"),
    };
    format!(
        "{kernel} takes {takes}: its type is `{needed}`, not `{found}`. Use that type, or `{by_name}`, whatever \
         the operands are"
    )
}

/// The operands of a kernel.
fn listed(operands: &[String]) -> String {
    let operands: Vec<String> = operands.iter().map(|operand| format!("`{operand}`")).collect();
    if operands.is_empty() { "no operands".to_owned() } else { operands.join(", ") }
}

fn indented(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|l| format!("  {l}")).collect();
    lines.join("\n")
}
