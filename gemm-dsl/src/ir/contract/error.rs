//! Violations of a contract, as data and as messages.

use crate::error::counted;
use crate::ir::{Elem, Extent, HostError, KernelFamily, Operand};
use std::fmt;

/// Violation of a rule or requirement of a kernel by a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractError {
    pub kernel: Box<str>,
    /// Family of the kernel, which determines the remedy.
    pub family: KernelFamily,
    /// Part of the launch that violates the requirement.
    pub subject: Subject,
    pub need: Need,
    /// Value that the launch has; 0 if it has none.
    pub value: i128,
}

/// Part of a launch to which a requirement applies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    Array {
        /// Operand of the kernel to which the array is bound.
        operand: Operand,
        /// Name that the caller gives the array.
        name: String,
    },
    OfList {
        /// Operand of the kernel to which the list is bound.
        operand: Operand,
        /// Name that the caller gives the list.
        name: String,
        /// Index of the array in the list, from 0.
        nth: usize,
    },
    /// Stride of an array, or of each array of a list, along one dimension.
    Stride {
        /// Operand of the kernel to which the array is bound.
        operand: Operand,
        /// Name that the caller gives the array.
        name: String,
        /// Dimension, counted from the outermost.
        dim: usize,
        /// Kind of neighbours that the stride separates.
        between: Between,
    },
    /// Extent of an array along one dimension.
    Dimension {
        /// Operand of the kernel to which the array is bound.
        operand: Operand,
        /// Name that the caller gives the array.
        name: String,
        /// Dimension, counted from the outermost.
        dim: usize,
    },
    Extent(Extent),
    /// The n-th number that the caller passes.
    Argument(usize),
    /// Number of blocks along an axis of the grid.
    Blocks {
        /// 0 for x, 1 for y and 2 for z.
        axis: usize,
    },
}

/// Kind of neighbours that a stride separates, in the kernel's layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Between {
    /// Elements of a one-dimensional array.
    Elements,
    /// Elements of a row that the kernel expects to be contiguous.
    InRow,
    /// Elements of a column that the kernel expects to be contiguous.
    InColumn,
    /// Rows that are contiguous.
    Rows,
    /// Columns that are contiguous.
    Columns,
    Matrices,
    /// Neighbours along any other dimension.
    Others,
}

impl Between {
    /// Returns the kind of neighbours along dimension `dim` of `rank` dimensions. `contiguous` is
    /// true if the kernel expects stride 1 along it.
    pub(super) fn new(dim: usize, rank: usize, contiguous: bool) -> Self {
        match (rank, rank.saturating_sub(dim), contiguous) {
            (1, ..) => Between::Elements,
            (2.., 1, true) => Between::InRow,
            (2.., 1, false) => Between::Columns,
            (2.., 2, true) => Between::InColumn,
            (2.., 2, false) => Between::Rows,
            (3.., 3.., false) => Between::Matrices,
            _ => Between::Others,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Need {
    /// The argument must be given.
    Given,
    /// The address must be a multiple of `bytes`. The value found is the remainder.
    Aligned {
        bytes: u32,
        elem: Elem,
    },
    /// The elements must have another type.
    Element {
        /// Type that the kernel expects.
        expected: Elem,
        /// Type of the array's elements.
        found: Elem,
    },
    /// A list of arrays is required, but a single array was given.
    List,
    /// A single array is required, but a list was given. The value found is the list's length.
    One,
    /// The list must have this length.
    Count(u64),
    /// The array must have at least this many elements.
    Elements(u64),
    Rank(usize),
    Multiple {
        of: u64,
    },
    /// The extent must be a multiple of the length at which a whole array is cut into pieces. Only
    /// the last piece may end elsewhere.
    Cut {
        of: u64,
    },
    /// The value must be exactly this one.
    Exactly(u64),
    /// Smallest valid value.
    AtLeast(u64),
    /// Smallest valid stride. With a smaller one, elements that the kernel writes would overlap.
    Distinct(u64),
    /// Greatest valid value.
    AtMost(u64),
    /// The value must be computable.
    Defined(HostError),
}

impl std::error::Error for ContractError {}

impl fmt::Display for ContractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, family, subject, need, value } = self;
        write!(f, "kernel `{kernel}` needs ")?;
        match (subject, need) {
            (_, Need::Given) => write!(f, "{subject}, which the launch does not give"),
            (_, Need::Defined(reason)) => {
                write!(f, "{subject}, but {reason}. Use smaller extents")
            }
            (_, Need::Aligned { bytes, elem }) => write!(
                f,
                "{subject} aligned to {}, but it starts {} after such an address. Start the view \
                 at a multiple of {}",
                counted(*bytes, "byte"),
                counted(*value, "byte"),
                counted(bytes.div_ceil(elem.size()), "element")
            ),
            (_, Need::Element { expected, found }) => {
                let remedy = match subject {
                    Subject::Array { operand: Operand::Output(_), .. }
                    | Subject::OfList { operand: Operand::Output(_), .. } => {
                        "Allocate it with elements of type"
                    }
                    _ => "Convert them to",
                };
                write!(
                    f,
                    "elements of type {expected} in {subject}, but they are of type {found}. \
                     {remedy} {expected}"
                )
            }
            (_, Need::List) => write!(
                f,
                "a list of matrices as {subject}, but it is one view. Make a list of views, or use \
                 a kernel with `batch: strided`"
            ),
            (Subject::Array { operand: Operand::Input(2..), .. }, Need::One) => write!(
                f,
                "one view as {subject}, but it is a list of {value}. Pass a view: an operand of a \
                 batch has a fixed stride between GEMMs"
            ),
            (_, Need::One) => write!(
                f,
                "one view as {subject}, but it is a list of {value}. Pass a view, or use a kernel \
                 with `batch: pointers`"
            ),
            (_, Need::Count(count)) => {
                let matrices = if *count == 1 { "matrix" } else { "matrices" };
                write!(
                    f,
                    "{count} {matrices} in the list {subject}, but it has {value}. Make all \
                     lists equally long"
                )
            }
            (_, Need::Elements(needed)) => {
                let needed = counted(*needed, "element");
                write!(f, "{needed} of {subject}, but it has {value}. Pass a longer array")
            }
            (_, Need::Rank(2)) if *family == KernelFamily::Gemm && *value > 2 => write!(
                f,
                "one matrix as {subject}, but it is a batch. Use a kernel with `batch: strided`, \
                 or pass one matrix"
            ),
            (_, Need::Rank(rank)) => {
                let rank = counted(*rank as u64, "dimension");
                write!(f, "{rank} of {subject}, but it has {value}. Pass another view")
            }
            (_, Need::Exactly(stride)) => exactly(f, subject, *stride, *value, *family),
            (_, Need::Multiple { of }) => multiple(f, subject, *of, *value),
            (_, Need::Cut { of }) => cut(f, subject, *of, *value),
            (_, Need::Distinct(min)) => write!(
                f,
                "{subject} to be at least {min}, so that no element is written twice, but it is \
                 {value}. Use a larger stride"
            ),
            (Subject::Extent(Extent::TOTAL), Need::AtLeast(end)) => write!(
                f,
                "{subject} to be at least {end}, where the piece ends, but it is {value}. Pass \
                 the length of the whole array that the piece is cut from"
            ),
            (Subject::Stride { .. }, Need::AtLeast(min)) => write!(
                f,
                "{subject} to be at least {min}, but it is {value}. Copy the elements to an array \
                 in which each has its own place"
            ),
            (_, Need::AtLeast(min)) => {
                write!(f, "{subject} to be at least {min}, but it is {value}. Pad the operands")
            }
            (Subject::Blocks { .. }, Need::AtMost(max)) => write!(
                f,
                "{subject} to be at most {max}, but these extents need {value}. Use larger tiles, \
                 longer runs, or more items or rows per block, or split the problem"
            ),
            (Subject::Stride { .. }, Need::AtMost(max)) => write!(
                f,
                "{subject} to be at most {max}, but it is {value}. Copy the elements to a smaller \
                 stride"
            ),
            (_, Need::AtMost(max)) => write!(
                f,
                "{subject} to be at most {max}, but it is {value}. Split the problem along it"
            ),
        }
    }
}

/// Writes the message for a number that is not a multiple of `of`.
fn multiple(f: &mut fmt::Formatter<'_>, subject: &Subject, of: u64, value: i128) -> fmt::Result {
    let divisor = i128::from(of);
    let remedy = match subject {
        Subject::Stride { between: Between::Rows, .. } => {
            "Pad the rows, or start from a packed matrix".to_owned()
        }
        Subject::Stride { between: Between::Columns, .. } => {
            "Pad the columns, or start from a packed matrix".to_owned()
        }
        Subject::Blocks { .. } => "Choose extents whose tiles make whole clusters".to_owned(),
        Subject::Stride { .. } => {
            format!("Use a stride that is a multiple of {}", counted(of, "element"))
        }
        _ => "Pad the operands, or use a kernel with `bounds: guarded`".to_owned(),
    };
    write!(
        f,
        "{subject} to be a multiple of {of}, but it is {value} = {}·{of} + {}. {remedy}",
        value / divisor,
        value % divisor
    )
}

/// Writes the message for a length that is not a multiple of a run.
fn cut(f: &mut fmt::Formatter<'_>, subject: &Subject, of: u64, value: i128) -> fmt::Result {
    let divisor = i128::from(of);
    write!(
        f,
        "{subject} to be a multiple of {of}, because a piece has whole runs of {of} \
         elements, but it is {value} = {}·{of} + {}. Cut between runs: only the last piece may \
         end elsewhere",
        value / divisor,
        value % divisor
    )
}

/// Writes the message for a stride with a wrong value.
fn exactly(
    f: &mut fmt::Formatter<'_>,
    subject: &Subject,
    stride: u64,
    value: i128,
    family: KernelFamily,
) -> fmt::Result {
    let Subject::Stride { operand, name, between, .. } = subject else {
        return write!(f, "{subject} to be {stride}, but it is {value}");
    };
    let turned = |f: &mut fmt::Formatter<'_>, line, layouts: Option<(&str, [&str; 2])>| {
        let remedy = other_layout(line, layouts, family);
        write!(
            f,
            "contiguous {line}s of `{name}`, but neighbours in a {line} are {} apart. {remedy}",
            counted(value, "element")
        )
    };
    let padded = |f: &mut fmt::Formatter<'_>, lines| {
        write!(
            f,
            "packed {lines} of `{name}` with a stride of {stride}, but the stride is {value}. \
             Add `pitched` to the kernel, or use a matrix without padding"
        )
    };
    match (between, operand) {
        (Between::InRow, Operand::Input(0)) => turned(f, "row", Some(("column", ["tn", "tt"]))),
        (Between::InRow, Operand::Input(1)) => turned(f, "row", Some(("column", ["nt", "tt"]))),
        (Between::InColumn, Operand::Input(0)) => turned(f, "column", Some(("row", ["nn", "nt"]))),
        (Between::InColumn, Operand::Input(1)) => turned(f, "column", Some(("row", ["nn", "tn"]))),
        // All operands of a GEMM except A and B are row-major in every layout.
        (Between::InRow, _) => turned(f, "row", None),
        (Between::InColumn, _) => turned(f, "column", None),
        (Between::Rows, _) => padded(f, "rows"),
        (Between::Columns, _) => padded(f, "columns"),
        (Between::Elements | Between::Matrices | Between::Others, _) => write!(
            f,
            "{subject} to be {stride}, but it is {value}. Copy the elements to the layout that \
             the kernel reads"
        ),
    }
}

/// Returns the remedy for a matrix whose rows (or columns) are not contiguous. Its columns (or
/// rows) may be contiguous, and kernels with the named layouts read such a matrix.
fn other_layout(line: &str, layouts: Option<(&str, [&str; 2])>, family: KernelFamily) -> String {
    match layouts.filter(|_| family == KernelFamily::Gemm) {
        None if family == KernelFamily::Reduction => format!(
            "If it is a transpose, fold the matrix itself: `over: rows` of a matrix is \
             `over: columns` of its transpose; otherwise copy the elements to a {line}-major matrix"
        ),
        None => format!("Copy the elements to a {line}-major matrix"),
        Some((other, [one, two])) => format!(
            "If it is {other}-major, use a kernel with `layout: {one}` or `layout: {two}`; \
             otherwise copy the elements"
        ),
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Array { name, .. } => write!(f, "`{name}`"),
            Subject::OfList { name, nth, .. } => write!(f, "matrix {nth} of `{name}`"),
            Subject::Stride { name, dim, between, .. } => {
                let what = match between {
                    Between::Elements => "elements",
                    Between::InRow => "neighbours in a row",
                    Between::InColumn => "neighbours in a column",
                    Between::Rows => "rows",
                    Between::Columns => "columns",
                    Between::Matrices => "matrices",
                    Between::Others => {
                        return write!(
                            f,
                            "the stride between neighbours of `{name}` along dimension {dim}"
                        );
                    }
                };
                write!(f, "the stride between {what} of `{name}`")
            }
            Subject::Dimension { name, dim, .. } => {
                write!(f, "the extent of `{name}` along dimension {dim}")
            }
            Subject::Extent(extent) => extent.fmt(f),
            Subject::Argument(n) => write!(f, "number {n}"),
            Subject::Blocks { axis } => {
                write!(f, "the number of blocks along {}", ["x", "y", "z"][*axis % 3])
            }
        }
    }
}
