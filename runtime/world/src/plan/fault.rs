//! What can be wrong with a schedule.

use crate::plan::{Block, DistributionError, Factor, Place, Size, Strategy};
use thiserror::Error;

/// What is wrong with a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScheduleFault {
    /// A layout that is not for these ranks.
    #[error("{matrix}: {error}")]
    Distribution {
        /// `A`, `B` or `C`.
        matrix: &'static str,
        /// Why not.
        error: DistributionError,
    },
    /// Layouts of other extents than those of the product.
    #[error("{matrix} is {}x{}, but that of a product of {}x{}x{} is {}x{}", has[0], has[1], size.m, size.n, size.k, needed[0], needed[1])]
    Extents {
        /// `A`, `B` or `C`.
        matrix: &'static str,
        /// Rows and columns of the layout.
        has: [usize; 2],
        /// Those of the product's matrix.
        needed: [usize; 2],
        /// The product.
        size: Size,
    },
    /// A matrix that no memory holds.
    #[error("{matrix} is {}x{}: that is more than an address space has room for", has[0], has[1])]
    TooLarge {
        /// `A`, `B` or `C`.
        matrix: &'static str,
        /// Its rows and columns.
        has: [usize; 2],
    },
    /// A way that leaves nothing to come in.
    #[error("`{strategy}`: what ranks lack comes in at least 1 part")]
    NoParts {
        /// The way.
        strategy: Strategy,
    },
    /// An exchange or a rank that is not there.
    #[error("rank {rank}: there is no {what} {number}")]
    Unknown {
        /// Whose step or move it is.
        rank: usize,
        /// `exchange` or `rank`.
        what: &'static str,
        /// Its number.
        number: usize,
    },
    /// A move of what the sender does not have, or to where it cannot go.
    #[error("exchange {exchange}: {from} -> {to} {block} into {into}: {why}")]
    Move {
        /// The exchange.
        exchange: usize,
        /// Who sends.
        from: usize,
        /// Who receives.
        to: usize,
        /// What.
        block: Block,
        /// Where to.
        into: Place,
        /// What is wrong.
        why: &'static str,
    },
    /// A rank that does not take part where others wait for it, or more than once, or in another order than others.
    #[error("rank {rank}, exchange {exchange}: {why}")]
    Begin {
        /// The rank.
        rank: usize,
        /// The exchange.
        exchange: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// A slot that is written while something else is on its way there, which nobody has waited for.
    #[error(
        "rank {rank}: exchange {exchange} brings something into slot {slot} of {factor}, which it has not waited for exchange {before} to fill"
    )]
    Unawaited {
        /// The rank.
        rank: usize,
        /// The exchange that comes too early.
        exchange: usize,
        /// The exchange before it.
        before: usize,
        /// The matrix.
        factor: Factor,
        /// The slot.
        slot: usize,
    },
    /// A product that reads what is not there.
    #[error(
        "rank {rank} multiplies with {block} of {factor}, but not all of it is in its {place}{why}"
    )]
    Read {
        /// The rank.
        rank: usize,
        /// The matrix.
        factor: Factor,
        /// What it reads.
        block: Block,
        /// Where.
        place: Place,
        /// Since when it should be.
        why: &'static str,
    },
    /// A block that is written twice.
    #[error("rank {rank}: {first} and {second} of {matrix} have elements in common")]
    Twice {
        /// The rank.
        rank: usize,
        /// `A`, `B` or `C`.
        matrix: String,
        /// One of the two.
        first: Block,
        /// The other one.
        second: Block,
    },
    /// A product of nothing, or of elements that are another rank's.
    #[error("rank {rank} computes {block} of C, which is not a part of what it keeps, {shard}")]
    Foreign {
        /// The rank.
        rank: usize,
        /// What it computes.
        block: Block,
        /// What it has of C.
        shard: Block,
    },
    /// Elements of C that nobody computes.
    #[error("rank {rank} computes {computed} of the {len} elements of C that it keeps")]
    Uncomputed {
        /// The rank.
        rank: usize,
        /// How many elements it computes.
        computed: usize,
        /// How many it has.
        len: usize,
    },
    /// No way to go about a product that needs so little memory.
    #[error(
        "no schedule needs at most {limit} bytes beside the shards of a rank: the least is {least}, by `{strategy}`"
    )]
    Memory {
        /// How many bytes each rank has.
        limit: u64,
        /// How many the rank needs that needs most, by the way that needs least.
        least: u64,
        /// Which way that is.
        strategy: Strategy,
    },
}
