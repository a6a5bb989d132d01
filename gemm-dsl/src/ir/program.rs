//! A program: the kernel of one computation, its scratch memory and its launches.

use super::{Expr, VerifiedKernel};

/// Everything a launch needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The preferred kernel: the one whose text `source()` shows.
    pub kernel: VerifiedKernel,
    /// The same computation with 4-byte accesses, for arguments that do not meet the requirements
    /// of a kernel with 16-byte accesses. Both compute the same bits.
    pub fallback: Option<VerifiedKernel>,
    /// Scratch buffers of `F32`.
    pub scratch: Vec<Scratch>,
    /// The launches.
    pub passes: Passes,
}

/// A buffer that lives from the first launch of a program to its last.
#[derive(Clone, Debug, PartialEq)]
pub struct Scratch {
    /// Its length in elements, of type `U64`, over the scalar parameters of the first launch.
    pub len: Expr,
    /// What it holds before the first launch.
    pub fill: Fill,
}

/// The initial content of a scratch buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Nothing: the program writes each element before it reads it.
    Uninitialised,
    /// Zeros.
    Zero,
}

/// The launches of a program, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Passes {
    /// One launch.
    Once,
    /// The kernel turns `Length` elements of input 0 into one value of output 0 for each
    /// `per_block` elements, at least one. It is launched again on those until one is left.
    /// Intermediate values alternate between scratch buffers 0 and 1; the last pass writes the
    /// caller's output 0.
    Fold {
        /// Elements that one block takes in, at least 2.
        per_block: u64,
    },
}

impl Program {
    /// The kernels in order of preference: a launch takes the first whose requirements are met.
    pub fn variants(&self) -> impl Iterator<Item = &VerifiedKernel> {
        std::iter::once(&self.kernel).chain(&self.fallback)
    }
}

impl Passes {
    /// The lengths that the passes of a fold over `length` elements read, first to last.
    pub fn fold_lengths(per_block: u64, length: u64) -> Vec<u64> {
        let mut lengths = vec![length];
        let mut left = length.div_ceil(per_block.max(2));
        while left > 1 {
            lengths.push(left);
            left = left.div_ceil(per_block.max(2));
        }
        lengths
    }
}
