//! What ranks do for a product, as data.

use super::build::{self, Way};
use super::check::{self, ScheduleFault, VerifiedSchedule};
use super::{Block, Layout, LayoutError};
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

/// A matrix that is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The left one.
    A,
    /// The right one.
    B,
}

/// How the matrices of a product are dealt out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layouts {
    /// A.
    pub a: Layout,
    /// B.
    pub b: Layout,
    /// C.
    pub c: Layout,
}

/// Where a rank finds what it multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// In its own shard.
    Shard,
    /// In memory for all that it needs of the matrix: the rows of A, or the columns of B, that its shard of C is made of.
    Gathered,
    /// In memory for one block, which others follow.
    Slot(usize),
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
    pub side: Side,
    /// All of them.
    pub moves: Vec<Move>,
}

/// What a rank does next. It waits for nothing but what it says: exchanges travel beside products, one after the other. Only
/// one that brings something into a slot begins when the products before it that read the slot are done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It takes part in an exchange from now on.
    Begin(usize),
    /// It waits until all that an exchange brings it is there.
    Wait(usize),
    /// It computes a block of C, with all terms.
    Multiply {
        /// The block.
        block: Block,
        /// Where the rows of A are.
        a: Place,
        /// Where the columns of B are.
        b: Place,
    },
}

/// What ranks do for a product C = A·B.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Its extents.
    pub size: Size,
    /// Who has what.
    pub layouts: Layouts,
    /// What travels, in this order for everybody.
    pub exchanges: Vec<Exchange>,
    /// What each rank does, in this order.
    pub steps: Vec<Vec<Step>>,
}

impl Side {
    /// Both of them, in order.
    pub const ALL: [Self; 2] = [Self::A, Self::B];
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
        })
    }
}

impl Layouts {
    /// That of a matrix that is multiplied.
    pub fn of(&self, side: Side) -> &Layout {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }
}

impl Size {
    /// What is needed of a matrix for a block of C.
    pub fn needed(&self, side: Side, block: &Block) -> Block {
        match (side, block.is_empty()) {
            (_, true) => Block::new(0..0, 0..0),
            (Side::A, false) => Block::new(block.rows.clone(), 0..self.k),
            (Side::B, false) => Block::new(0..self.k, block.cols.clone()),
        }
    }
}

impl Schedule {
    /// The schedule of a product for so many ranks.
    ///
    /// # Errors
    /// [`ScheduleFault::Layout`] and [`ScheduleFault::Extents`] where the layouts are not for these ranks and one product.
    pub fn new(layouts: Layouts, ranks: usize, way: Way) -> Result<VerifiedSchedule, ScheduleFault> {
        build::schedule(layouts, ranks, way)?.verify()
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.steps.len()
    }

    /// What each rank has of a matrix.
    ///
    /// # Errors
    /// [`LayoutError`] where the layout is not for so many.
    pub fn shards(&self, side: Side) -> Result<Vec<Block>, LayoutError> {
        self.layouts.of(side).shards(self.ranks())
    }

    /// Checks that it computes the product, whatever order things happen in.
    ///
    /// # Errors
    /// The first fault that is found.
    pub fn verify(self) -> Result<VerifiedSchedule, ScheduleFault> {
        check::verify(self)
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
        let Self { size: Size { m, n, k }, layouts, exchanges, steps } = self;
        let Layouts { a, b, c } = layouts;
        writeln!(f, "{m}x{n}x{k} on {} ranks: A {a}, B {b}, C {c}", self.ranks())?;
        for (number, Exchange { side, moves }) in exchanges.iter().enumerate() {
            writeln!(f, "exchange {number}, of {side}:")?;
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
