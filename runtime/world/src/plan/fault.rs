use crate::plan::{Block, DistributionError, Factor, Place, Size, Strategy};
use thiserror::Error;

/// Fault of a schedule, found when it is built or verified.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScheduleFault {
    /// A distribution does not fit the ranks.
    #[error("{matrix}: {error}")]
    Distribution {
        /// Matrix: `A`, `B` or `C`.
        matrix: &'static str,
        /// Reason why the distribution does not fit.
        error: DistributionError,
    },
    /// The extents of a distribution do not fit the GEMM.
    #[error("{matrix} is {}x{}, but that of a GEMM of {}x{}x{} is \
        {}x{}", has[0], has[1], size.m, size.n, size.k, needed[0], needed[1])]
    Extents {
        /// Matrix: `A`, `B` or `C`.
        matrix: &'static str,
        /// Rows and columns of the distribution.
        has: [usize; 2],
        /// Rows and columns required by the GEMM.
        needed: [usize; 2],
        /// Extents M, N and K of the GEMM.
        size: Size,
    },
    /// A matrix exceeds the address space.
    #[error("{matrix} is {}x{}, which exceeds the address space", has[0], has[1])]
    TooLarge {
        /// Matrix: `A`, `B` or `C`.
        matrix: &'static str,
        /// Rows and columns of the matrix.
        has: [usize; 2],
    },
    /// A strategy gathers in 0 parts.
    #[error("`{strategy}`: missing blocks are gathered in at least 1 part")]
    NoParts {
        /// Strategy that gathers in 0 parts.
        strategy: Strategy,
    },
    /// An exchange or a rank does not exist.
    #[error("rank {rank}: there is no {what} {number}")]
    Unknown {
        /// Rank of the step, or sender of the move.
        rank: usize,
        /// Kind of the missing item: `exchange` or `rank`.
        what: &'static str,
        /// Number of the missing item.
        number: usize,
    },
    /// A move is invalid, for example because the sender does not have the block.
    #[error("exchange {exchange}: {from} -> {to} {block} into {into}: {why}")]
    Move {
        /// Index of the exchange in [`Schedule::exchanges`](crate::plan::Schedule::exchanges).
        exchange: usize,
        /// Number of the sending rank.
        from: usize,
        /// Number of the receiving rank.
        to: usize,
        /// Moved block of the exchange's factor.
        block: Block,
        /// Destination on the receiving rank.
        into: Place,
        /// Reason why the move is invalid.
        why: &'static str,
    },
    /// A rank does not begin an exchange for which other ranks wait, begins it twice, or begins it
    /// in the wrong order.
    #[error("rank {rank}, exchange {exchange}: {why}")]
    Begin {
        /// Number of the rank, from 0.
        rank: usize,
        /// Index of the exchange in [`Schedule::exchanges`](crate::plan::Schedule::exchanges).
        exchange: usize,
        /// Reason why the step is invalid.
        why: &'static str,
    },
    /// An exchange writes a slot before the rank has waited for an earlier exchange into the same
    /// slot.
    #[error(
        "rank {rank}: exchange {exchange} writes to slot {slot} of {factor} before the wait for \
         exchange {before}, which fills it"
    )]
    Unawaited {
        /// Number of the rank, from 0.
        rank: usize,
        /// Exchange that begins too early.
        exchange: usize,
        /// Earlier exchange into the same slot.
        before: usize,
        /// Factor to which the slot belongs.
        factor: Factor,
        /// Number of the slot, as in [`Place::Slot`].
        slot: usize,
    },
    /// A multiplication reads data that is not in its place.
    #[error(
        "rank {rank} multiplies with {block} of {factor}, but not all of it is in place \
         `{place}`{why}"
    )]
    Read {
        /// Number of the rank, from 0.
        rank: usize,
        /// Factor that the multiplication reads.
        factor: Factor,
        /// Block of the factor that it needs.
        block: Block,
        /// Place from which it reads.
        place: Place,
        /// End of the message: the time of the read.
        why: &'static str,
    },
    /// A block is written twice.
    #[error("rank {rank}: {first} and {second} of {matrix} have elements in common")]
    Twice {
        /// Number of the rank, from 0.
        rank: usize,
        /// Matrix: `A`, `B` or `C`.
        matrix: String,
        /// One of the overlapping blocks.
        first: Block,
        /// Other block, which overlaps `first`.
        second: Block,
    },
    /// A rank multiplies an empty block, or elements of C that another rank keeps.
    #[error("rank {rank} computes {block} of C, which is not a part of its shard, {shard}")]
    Foreign {
        /// Number of the rank, from 0.
        rank: usize,
        /// Block of C that it multiplies.
        block: Block,
        /// Block of C that the rank keeps.
        shard: Block,
    },
    /// A rank does not compute all elements of its share of C.
    #[error("rank {rank} computes {computed} of the {len} elements of its shard of C")]
    Uncomputed {
        /// Number of the rank, from 0.
        rank: usize,
        /// Number of elements that it computes.
        computed: usize,
        /// Number of elements that the rank keeps.
        len: usize,
    },
    /// No strategy fits in memory.
    #[error(
        "no schedule needs at most {limit} bytes beside the shards of a rank: the least is \
         {least}, by `{strategy}`"
    )]
    Memory {
        /// Limit in bytes for each rank.
        limit: u64,
        /// Bytes that the strategy with the least memory needs on its largest rank.
        least: u64,
        /// Strategy that needs the least memory.
        strategy: Strategy,
    },
}
