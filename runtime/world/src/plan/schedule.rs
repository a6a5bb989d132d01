//! Schedules: the exchanges and multiplications of all ranks, as data.
//!
//! An executor of a [`VerifiedSchedule`](super::VerifiedSchedule) must follow these rules:
//!
//! * A rank begins its steps in order. Only [`Step::Wait`] waits. Multiplications run one after
//!   another, and exchanges run concurrently with them.
//! * A block moves between two ranks once both have begun the exchange. A rank's exchanges may run
//!   concurrently. If they run one after another, all ranks must run them in the order of their
//!   numbers.
//! * An exchange into a slot does not write before the receiver has finished the multiplications
//!   that it began earlier. The sender must therefore wait for the receiver.
//! * A multiplication after the wait for an exchange may read the data of this exchange. Before the
//!   wait, the data may be incomplete.
//!
//! No other step needs a wait, because shards of A and B are never written, and gathered data and C
//! are written once.

use super::{Block, Distribution, Factor, FactorExt};
use std::fmt;

/// Extents M, N and K of a GEMM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A and rows of B.
    pub k: usize,
}

/// Distributions of the matrices of a GEMM.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Distributions {
    /// Distribution of A, M x K.
    pub a: Distribution,
    /// Distribution of B, K x N.
    pub b: Distribution,
    /// Distribution of C, M x N.
    pub c: Distribution,
}

/// Location of an operand on a rank. Places belong to one factor: slot 0 of A is not slot 0 of B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Shard of the rank itself, never written.
    Shard,
    /// Buffer for everything that the rank needs of the factor ([`Size::needed`]): the rows of A,
    /// or the columns of B, that belong to its share of C.
    Gathered,
    /// Buffer for the data of one exchange ([`Exchange::held`]). Later exchanges reuse the buffer.
    Slot(usize),
}

/// Buffer of a place on a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagingBuffer {
    /// Factor to which the place belongs.
    pub factor: Factor,
    /// Place of the data: gathered, or a slot.
    pub place: Place,
    /// Length of the buffer in elements.
    pub len: usize,
}

/// Transfer of a block from a rank's shard to another rank, or to another place of the same rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Rank whose shard has the block.
    pub from: usize,
    /// Rank that receives the block.
    pub to: usize,
    /// Block of the exchange's factor.
    pub block: Block,
    /// Destination on the receiver; never its shard.
    pub into: Place,
}

/// Set of moves of one factor that happen together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Factor of the moved blocks.
    pub factor: Factor,
    /// Moves of all ranks, in no particular order.
    pub moves: Vec<Move>,
}

/// Step in the program of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Begins the rank's part in the exchange with this number, as sender, receiver, or both.
    Begin(usize),
    /// Makes later multiplications wait until all data of the exchange with this number has arrived
    /// at this rank.
    Wait(usize),
    /// Computes a block of C over all of K. With K = 0 the block is zero.
    Multiply {
        /// Block of C to compute.
        block: Block,
        /// Place of the rows of A.
        a: Place,
        /// Place of the columns of B.
        b: Place,
    },
}

/// Exchanges and multiplications of all ranks for a GEMM C = A·B. It prints as text.
///
/// ```
/// use gemm_world::plan::{Distribution, Distributions, Schedule, Strategy};
///
/// // Two ranks: A is distributed by rows, B and C by columns.
/// let distributions = Distributions {
///     a: Distribution::rows(4, 8),
///     b: Distribution::cols(8, 6),
///     c: Distribution::cols(4, 6),
/// };
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
    /// Extents M, N and K of the GEMM.
    pub size: Size,
    /// Distributions of A, B and C.
    pub distributions: Distributions,
    /// Exchanges, in the order that all ranks follow.
    pub exchanges: Vec<Exchange>,
    /// Steps of each rank, in order.
    pub steps: Vec<Vec<Step>>,
}

impl Exchange {
    /// Returns the contents of a rank's slot after this exchange, row-major: the smallest block
    /// that contains all received blocks.
    pub fn held(&self, rank: usize, into: Place) -> Block {
        let brought = self.moves.iter().filter(|of| of.to == rank && of.into == into);
        brought.fold(Block::new(0..0, 0..0), |all, of| all.with(&of.block))
    }
}

impl Distributions {
    /// Returns the distribution of a factor.
    pub fn of_factor(&self, factor: Factor) -> &Distribution {
        match factor {
            Factor::A => &self.a,
            Factor::B => &self.b,
        }
    }
}

impl Size {
    /// Returns the block of a factor that a block of C needs.
    pub fn needed(&self, factor: Factor, block: &Block) -> Block {
        match block.is_empty() {
            true => Block::new(0..0, 0..0),
            false => factor.block(factor.outer(block).clone(), 0..self.k),
        }
    }
}

impl Schedule {
    /// Number of ranks that take part.
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
