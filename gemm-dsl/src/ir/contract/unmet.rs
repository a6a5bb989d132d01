//! What a launch is lacking, as data and in words.

use super::{Extent, Operand};
use crate::ir::{Elem, HostError};
use std::fmt;

/// A rule or a requirement of a kernel that a launch does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// The kernel.
    pub kernel: String,
    /// What does not meet it.
    pub subject: Subject,
    /// What is demanded.
    pub need: Need,
    /// What was found; 0 where there is nothing to be found.
    pub value: i128,
}

/// The part of a launch that a kernel demands something of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// An array.
    Array {
        /// The operand of the kernel that it is bound to.
        operand: Operand,
        /// What the caller calls it.
        name: String,
    },
    /// The distance between neighbours of an array along one dimension.
    Stride {
        /// The operand of the kernel that the array is bound to.
        operand: Operand,
        /// What the caller calls the array.
        name: String,
        /// The dimension, outermost first.
        dim: usize,
        /// The number of dimensions.
        rank: usize,
    },
    /// An extent of the problem.
    Extent(Extent),
    /// The n-th number that the caller passes.
    Argument(usize),
    /// The number of blocks along an axis of the grid.
    Blocks {
        /// 0 for x, 1 for y and 2 for z.
        axis: usize,
    },
}

/// What a kernel demands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Need {
    /// That there is one.
    Given,
    /// An address that is a multiple of `bytes`; the value found is the remainder.
    Aligned {
        /// The alignment.
        bytes: u32,
        /// What the elements of the array are.
        elem: Elem,
    },
    /// Elements of one type; there are others.
    Element {
        /// What the kernel reads or writes.
        expected: Elem,
        /// What the array holds.
        found: Elem,
    },
    /// At least so many elements.
    Elements(u64),
    /// So many dimensions.
    Rank(usize),
    /// A multiple.
    Multiple {
        /// The divisor.
        of: u64,
    },
    /// This value and no other.
    Exactly(u64),
    /// No smaller value.
    AtLeast(u64),
    /// No smaller distance: elements that are written would be one.
    Distinct(u64),
    /// No greater value.
    AtMost(u64),
    /// A value that can be computed.
    Defined(HostError),
}

impl std::error::Error for Unmet {}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, subject, need, value } = self;
        write!(f, "kernel `{kernel}` needs ")?;
        match (subject, need) {
            (_, Need::Given) => write!(f, "{subject}, which the launch does not give"),
            (_, Need::Defined(reason)) => {
                write!(f, "{subject}, but {reason}. Use smaller extents")
            }
            (_, Need::Aligned { bytes, elem }) => write!(
                f,
                "{subject} aligned to {bytes} bytes, but it starts {value} bytes after such an \
                 address. Start the view at a multiple of {} elements",
                bytes.div_ceil(elem.size())
            ),
            (_, Need::Element { expected, found }) => write!(
                f,
                "elements of type {expected} in {subject}, but they are of type {found}. Convert \
                 them to {expected}"
            ),
            (_, Need::Elements(needed)) => {
                write!(f, "{needed} elements of {subject}, but it has {value}. Pass a longer one")
            }
            (_, Need::Rank(rank)) => {
                write!(f, "{rank} dimensions of {subject}, but it has {value}. Pass another view")
            }
            (
                Subject::Stride { name, dim: 0, rank: 2, .. }
                | Subject::Stride { name, dim: 1, rank: 3, .. },
                Need::Exactly(stride),
            ) => write!(
                f,
                "packed rows of `{name}`, {stride} elements apart, but they are {value} elements \
                 apart. Add `pitched` to the kernel, or use a matrix without padding"
            ),
            (_, Need::Exactly(stride)) => {
                write!(
                    f,
                    "{subject} to be {stride}, but it is {value}. Copy the elements so that they \
                     lie as the kernel reads them"
                )
            }
            (_, Need::Multiple { of }) => {
                let (divisor, remedy) = (
                    i128::from(*of),
                    match subject {
                        Subject::Stride { .. } => "Pad the rows, or start from a packed matrix",
                        _ => "Pad the operands, or use a kernel with `bounds: guarded`",
                    },
                );
                write!(
                    f,
                    "{subject} to be a multiple of {of}, but it is {value} = {}·{of} + {}. {remedy}",
                    value / divisor,
                    value % divisor
                )
            }
            (_, Need::Distinct(min)) => write!(
                f,
                "{subject} to be at least {min}, so that no element is written twice, but it is \
                 {value}. Place them further apart"
            ),
            (_, Need::AtLeast(min)) => {
                write!(f, "{subject} to be at least {min}, but it is {value}. Pad the operands")
            }
            (Subject::Blocks { .. }, Need::AtMost(max)) => write!(
                f,
                "{subject} to be at most {max}, but these extents take {value}. Use larger tiles, \
                 or more items per thread, or split the problem"
            ),
            (Subject::Stride { .. }, Need::AtMost(max)) => write!(
                f,
                "{subject} to be at most {max}, but it is {value}. Copy the elements closer together"
            ),
            (_, Need::AtMost(max)) => write!(
                f,
                "{subject} to be at most {max}, but it is {value}. Split the problem along it"
            ),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Array { name, .. } => write!(f, "`{name}`"),
            Subject::Stride { name, dim: 0, rank: 3, .. } => {
                write!(f, "the distance between matrices of `{name}`")
            }
            Subject::Stride { name, dim: 0, rank: 2, .. }
            | Subject::Stride { name, dim: 1, rank: 3, .. } => {
                write!(f, "the distance between rows of `{name}`")
            }
            Subject::Stride { name, dim: 1, rank: 2, .. }
            | Subject::Stride { name, dim: 2, rank: 3, .. } => {
                write!(f, "the distance between neighbours in a row of `{name}`")
            }
            Subject::Stride { name, rank: 1, .. } => {
                write!(f, "the distance between elements of `{name}`")
            }
            Subject::Stride { name, dim, .. } => {
                write!(f, "the distance between neighbours of `{name}` along dimension {dim}")
            }
            Subject::Extent(extent) => extent.fmt(f),
            Subject::Argument(n) => write!(f, "number {n}"),
            Subject::Blocks { axis } => {
                write!(f, "the number of blocks along {}", ["x", "y", "z"][*axis % 3])
            }
        }
    }
}
