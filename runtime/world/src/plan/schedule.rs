//! What ranks do for a product, as data.
//!
//! Whoever carries out a schedule may take it that it is a [`VerifiedSchedule`](super::VerifiedSchedule), and keeps to this:
//!
//! * The steps of a rank are begun in their order. None but [`Step::Wait`] waits for anything: products run one after the
//!   other, and exchanges beside them.
//! * A block goes from one rank to another when both have begun the exchange. Exchanges of a rank may run one after the other,
//!   in which case they do so in the order of their numbers on all ranks, or side by side.
//! * What an exchange brings into a slot of a rank is not written before the products are done that this rank has begun before
//!   it began the exchange. A sender has to know that: it waits for the receiver.
//! * What a product behind a wait reads is there. Nothing is known of what an exchange brings before that.
//!
//! Shards of A and B are never written, a place where things are gathered is written once, and so is C: nothing else has to be
//! waited for.

use super::{Block, Distribution, Factor, FactorExt};
use std::fmt;

/// The extents of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Terms of each sum: columns of A, rows of B.
    pub k: usize,
}

/// How the matrices of a product are dealt out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Distributions {
    /// A.
    pub a: Distribution,
    /// B.
    pub b: Distribution,
    /// C.
    pub c: Distribution,
}

/// Where a rank finds what it multiplies. Each is of one matrix: slot 0 of A is not slot 0 of B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// In its own shard.
    Shard,
    /// In memory for all that it needs of the matrix, [`Size::needed`]: the rows of A, or the columns of B, that its shard of C
    /// is made of.
    Gathered,
    /// In memory for what one exchange brings, [`Exchange::held`], which others follow.
    Slot(usize),
}

/// Memory that a rank has for a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagingBuffer {
    /// Of which matrix.
    pub factor: Factor,
    /// Which place.
    pub place: Place,
    /// For how many elements.
    pub len: usize,
}

/// A block that goes from the shard of a rank to another rank, or to another place of the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Whose shard has it.
    pub from: usize,
    /// Who gets it.
    pub to: usize,
    /// Which elements of the matrix these are.
    pub block: Block,
    /// Where they go; never to a shard.
    pub into: Place,
}

/// Blocks that travel at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Of which matrix.
    pub factor: Factor,
    /// All of them.
    pub moves: Vec<Move>,
}

/// What a rank does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It takes part in an exchange from now on, as one that sends, that receives, or both.
    Begin(usize),
    /// The products behind this one wait until all that an exchange brings to this rank is there.
    Wait(usize),
    /// It computes a block of C, with all terms; where there are none, it is all zeros.
    Multiply {
        /// The block.
        block: Block,
        /// Where the rows of A are.
        a: Place,
        /// Where the columns of B are.
        b: Place,
    },
}

/// What ranks do for a product C = A·B. It prints as text.
///
/// ```
/// use gemm_world::plan::{Distribution, Distributions, Schedule, Strategy};
///
/// // Two ranks: the one has the upper rows of A, the other one the lower. Both have a half of the columns of B and of C.
/// let distributions = Distributions { a: Distribution::rows(4, 8), b: Distribution::cols(8, 6), c: Distribution::cols(4, 6) };
/// let schedule = Schedule::new(distributions, 2, Strategy::Gather { parts: 1 })?;
/// let text = schedule.to_string();
/// assert!(text.starts_with("4x6x8 on 2 ranks: A 4x8 rows, B 8x6 cols, C 4x6 cols"), "{text}");
/// assert!(text.ends_with(
///     "rank 1:
///   begin 0
///   multiply C[2..4, 3..6]: A of shard, B of shard
///   wait 0
///   multiply C[0..2, 3..6]: A of gathered, B of shard
/// "
/// ));
/// # Ok::<(), gemm_world::plan::ScheduleFault>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Its extents.
    pub size: Size,
    /// Who has what.
    pub distributions: Distributions,
    /// What travels, in this order for everybody.
    pub exchanges: Vec<Exchange>,
    /// What each rank does, in this order.
    pub steps: Vec<Vec<Step>>,
}

impl Exchange {
    /// What a slot of a rank holds after this exchange: the smallest block that has all that is brought there, row by row.
    pub fn held(&self, rank: usize, into: Place) -> Block {
        let brought = self.moves.iter().filter(|of| of.to == rank && of.into == into);
        brought.fold(Block::new(0..0, 0..0), |all, of| all.with(&of.block))
    }
}

impl Distributions {
    /// That of a matrix that is multiplied.
    pub fn of_factor(&self, factor: Factor) -> &Distribution {
        match factor {
            Factor::A => &self.a,
            Factor::B => &self.b,
        }
    }
}

impl Size {
    /// What is needed of a matrix for a block of C.
    pub fn needed(&self, factor: Factor, block: &Block) -> Block {
        match block.is_empty() {
            true => Block::new(0..0, 0..0),
            false => factor.block(factor.outer(block).clone(), 0..self.k),
        }
    }
}

impl Schedule {
    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.steps.len()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shard => f.write_str("shard"),
            Self::Gathered => f.write_str("gathered"),
            Self::Slot(slot) => write!(f, "slot {slot}"),
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size: Size { m, n, k }, distributions, exchanges, steps } = self;
        let Distributions { a, b, c } = distributions;
        writeln!(f, "{m}x{n}x{k} on {} ranks: A {a}, B {b}, C {c}", self.ranks())?;
        for (number, Exchange { factor, moves }) in exchanges.iter().enumerate() {
            writeln!(f, "exchange {number}, of {factor}:")?;
            for Move { from, to, block, into } in moves {
                writeln!(f, "  {from} -> {to} {block} into {into}")?;
            }
        }
        for (rank, steps) in steps.iter().enumerate() {
            writeln!(f, "rank {rank}:")?;
            for step in steps {
                writeln!(f, "  {step}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin(exchange) => write!(f, "begin {exchange}"),
            Self::Wait(exchange) => write!(f, "wait {exchange}"),
            Self::Multiply { block, a, b } => write!(f, "multiply C{block}: A of {a}, B of {b}"),
        }
    }
}
