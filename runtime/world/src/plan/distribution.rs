//! Distribution of a matrix over ranks.

mod deal;
mod text;

pub(super) use deal::BlockOwners;

use super::Block;
use std::ops::Range;
use thiserror::Error;

/// Distribution of a matrix over ranks: each element belongs to one rank, or every rank has all
/// elements. It is plain data that prints and parses: `4096x1024 rows/128`.
///
/// ```
/// use gemm_world::plan::Distribution;
///
/// let distribution: Distribution = "1000x64 rows/128".parse()?;
/// let rows: Vec<_> = distribution.shards(3)?.into_iter().map(|shard| shard.rows).collect();
/// assert_eq!(rows, [0..256, 256..640, 640..1000]);
/// assert_eq!(distribution.to_string(), "1000x64 rows/128");
/// # Ok::<(), gemm_world::plan::DistributionError>(())
/// ```
///
/// The text is the extents and a division:
///
/// | division | part of each rank |
/// | --- | --- |
/// | `whole` | the whole matrix |
/// | `rows`, `cols` | consecutive rows or columns, in parts of about equal length |
/// | `rows/128` | consecutive rows, cut at multiples of 128 |
/// | `rows[100,0,56]` | as many consecutive rows as the list says for this rank |
/// | `grid 2x4` | a block, in a grid of 2 rows and 4 columns of ranks |
///
/// After a grid, these may follow in this order: `down`, a patch such as `patch 2x4`, and the cuts
/// of rows and columns, such as `rows/128 cols[64,32]`. [`Split::Grid`] explains them.
///
/// An array is a matrix of one row. Its elements are distributed by columns, here in consecutive
/// parts that are cut at multiples of 256.
///
/// ```
/// # use gemm_world::plan::{Cut, Distribution, Split};
/// let split = Split::Cols(Cut::Even(256));
/// let distribution = Distribution { split, ..Distribution::whole(1, 1000) };
/// assert_eq!(distribution.to_string(), "1x1000 cols/256");
/// let elements: Vec<_> = distribution.shards(2)?.into_iter().map(|shard| shard.cols).collect();
/// assert_eq!(elements, [0..512, 512..1000]);
/// # Ok::<(), gemm_world::plan::DistributionError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Distribution {
    /// Rows of the whole matrix.
    pub rows: usize,
    /// Columns of the whole matrix.
    pub cols: usize,
    /// Division of the matrix between ranks.
    pub split: Split,
}

/// Division of a matrix between ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// Replicated: every rank has the whole matrix.
    Whole,
    /// Each rank has a range of consecutive rows.
    Rows(Cut),
    /// Each rank has a range of consecutive columns.
    Cols(Cut),
    /// Ranks form a grid, and each rank has one block.
    Grid {
        /// Rows and columns of the grid of ranks.
        ranks: [usize; 2],
        /// Rows and columns of a patch, a part of the grid whose ranks have consecutive numbers,
        /// such as the ranks of one host. Ranks within a patch, and the patches of the grid, are
        /// numbered row by row. `[1, 1]` numbers all ranks of the grid row by row.
        patch: [usize; 2],
        /// Numbers ranks and patches column by column instead of row by row.
        down: bool,
        /// Cuts of the rows, and of the columns.
        cuts: [Cut; 2],
    },
}

/// Division of an extent into parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cut {
    /// Parts of about equal length, cut at multiples of this unit, which must be at least 1.
    Even(usize),
    /// Parts of these lengths, any of which may be 0.
    Lengths(Vec<usize>),
}

/// Reason for an invalid distribution.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DistributionError {
    /// The text is not a distribution.
    #[error(
        "`{0}` is not a distribution: write the extents and the division, such as `4096x1024 \
         whole`, `… rows`, `… cols/128`, `… rows[100,0,56]`, `… grid 2x4`, `… grid 2x4 down` or \
         `… grid 16x32 patch 2x4 rows/128 cols`"
    )]
    Text(String),
    /// The number of ranks is 0.
    #[error("a matrix cannot be distributed over 0 ranks")]
    Nobody,
    /// The unit of a cut is 0.
    #[error("an extent cannot be cut at multiples of 0: leave the unit out, or make it 1")]
    Unit,
    /// The number of lengths differs from the number of ranks.
    #[error("{what} are cut into {lengths} lengths, but {parts} ranks share them")]
    Lengths {
        /// Cut extent: `rows` or `columns`.
        what: &'static str,
        /// Number of lengths in the cut.
        lengths: usize,
        /// Number of ranks along the extent.
        parts: usize,
    },
    /// The lengths do not add up to the extent.
    #[error("the lengths of the {what} add up to {sum}, but the matrix has {extent} {what}")]
    Sum {
        /// Cut extent: `rows` or `columns`.
        what: &'static str,
        /// Sum of the lengths, or `usize::MAX` if the sum overflows.
        sum: usize,
        /// Rows or columns of the matrix.
        extent: usize,
    },
    /// The size of the grid differs from the number of ranks.
    #[error("a grid of {}x{} needs {} ranks, but there are \
        {has}", ranks[0], ranks[1], ranks[0].saturating_mul(ranks[1]))]
    Grid {
        /// Rows and columns of the grid.
        ranks: [usize; 2],
        /// Number of ranks in the world.
        has: usize,
    },
    /// Patches do not fill the grid.
    #[error("a grid of {}x{} ranks cannot be divided into patches of \
        {}x{}", ranks[0], ranks[1], patch[0], patch[1])]
    Patch {
        /// Rows and columns of the grid.
        ranks: [usize; 2],
        /// Rows and columns of a patch.
        patch: [usize; 2],
    },
}

impl Cut {
    /// Parts of about equal length, cut anywhere.
    pub const EVEN: Self = Self::Even(1);

    /// Cuts an extent, which `what` names as rows or columns.
    fn parts(
        &self,
        what: &'static str,
        extent: usize,
        parts: usize,
    ) -> Result<Vec<Range<usize>>, DistributionError> {
        match self {
            Self::Even(0) => Err(DistributionError::Unit),
            Self::Even(unit) => {
                let units = extent.div_ceil(*unit) as u128;
                // Products of extents, or of a part and its unit, may overflow a `usize`.
                let end = |part: usize| {
                    let end = units * part as u128 / parts as u128 * *unit as u128;
                    end.min(extent as u128) as usize
                };
                Ok((0..parts).map(|part| end(part)..end(part + 1)).collect())
            }
            Self::Lengths(lengths) if lengths.len() != parts => {
                Err(DistributionError::Lengths { what, lengths: lengths.len(), parts })
            }
            Self::Lengths(lengths) => {
                let sum = lengths.iter().try_fold(0_usize, |sum, length| sum.checked_add(*length));
                if sum != Some(extent) {
                    return Err(DistributionError::Sum {
                        what,
                        sum: sum.unwrap_or(usize::MAX),
                        extent,
                    });
                }
                let mut start = 0;
                let part = |length: &usize| {
                    let from = start;
                    start += length;
                    from..start
                };
                Ok(lengths.iter().map(part).collect())
            }
        }
    }
}

impl Distribution {
    /// Replicates the matrix: every rank has all of it.
    pub fn whole(rows: usize, cols: usize) -> Self {
        Self { rows, cols, split: Split::Whole }
    }

    /// Distributes consecutive rows evenly over ranks.
    pub fn rows(rows: usize, cols: usize) -> Self {
        Self { rows, cols, split: Split::Rows(Cut::EVEN) }
    }

    /// Distributes consecutive columns evenly over ranks.
    pub fn cols(rows: usize, cols: usize) -> Self {
        Self { rows, cols, split: Split::Cols(Cut::EVEN) }
    }

    /// Distributes blocks over a grid of ranks, numbered row by row.
    pub fn grid(rows: usize, cols: usize, ranks: [usize; 2]) -> Self {
        Self::patches(rows, cols, ranks, [1, 1])
    }

    /// Distributes blocks over a grid of ranks, numbered patch by patch. The ranks of a grid row or
    /// column exchange data. If the ranks of a patch are those of a host, less of this data crosses
    /// between hosts.
    ///
    /// ```
    /// use gemm_world::plan::Distribution;
    ///
    /// // Two hosts with four ranks each: the second host has the right half.
    /// let distribution = Distribution::patches(8, 8, [2, 4], [2, 2]);
    /// let shards = distribution.shards(8)?;
    /// assert!(shards[4..].iter().all(|shard| shard.cols.start >= 4));
    /// assert_eq!(distribution.to_string(), "8x8 grid 2x4 patch 2x2");
    /// # Ok::<(), gemm_world::plan::DistributionError>(())
    /// ```
    pub fn patches(rows: usize, cols: usize, ranks: [usize; 2], patch: [usize; 2]) -> Self {
        let cuts = [Cut::EVEN, Cut::EVEN];
        Self { rows, cols, split: Split::Grid { ranks, patch, down: false, cuts } }
    }

    /// Returns the distribution of the transposed matrix. Each rank has the transpose of its block.
    ///
    /// ```
    /// use gemm_world::plan::Distribution;
    ///
    /// assert_eq!(Distribution::rows(8, 4).t(), Distribution::cols(4, 8));
    /// let grid = Distribution::grid(8, 6, [2, 3]);
    /// assert_eq!(grid.t().to_string(), "6x8 grid 3x2 down");
    /// for (block, of_transpose) in grid.shards(6)?.iter().zip(grid.t().shards(6)?) {
    ///     assert_eq!(of_transpose, block.t());
    /// }
    /// # Ok::<(), gemm_world::plan::DistributionError>(())
    /// ```
    #[must_use]
    pub fn t(&self) -> Self {
        let split = match &self.split {
            Split::Whole => Split::Whole,
            Split::Rows(cut) => Split::Cols(cut.clone()),
            Split::Cols(cut) => Split::Rows(cut.clone()),
            Split::Grid {
                ranks: [down, across],
                patch: [high, wide],
                down: is_down,
                cuts: [a, b],
            } => Split::Grid {
                ranks: [*across, *down],
                patch: [*wide, *high],
                down: !is_down,
                cuts: [b.clone(), a.clone()],
            },
        };
        Self { rows: self.cols, cols: self.rows, split }
    }

    /// Returns the block that covers the whole matrix.
    pub fn all(&self) -> Block {
        Block::new(0..self.rows, 0..self.cols)
    }

    /// Returns the block of each of `ranks` ranks, by rank.
    ///
    /// # Errors
    /// [`DistributionError`] if the distribution does not fit the number of ranks.
    pub fn shards(&self, ranks: usize) -> Result<Vec<Block>, DistributionError> {
        let deal = self.deal(ranks)?;
        Ok((0..ranks).map(|rank| deal.shard(rank)).collect())
    }

    /// Returns the blocks of all ranks, in a structure that can also find the owner of a block.
    pub(super) fn deal(&self, ranks: usize) -> Result<BlockOwners, DistributionError> {
        let Self { rows, cols, split } = self;
        if ranks == 0 {
            return Err(DistributionError::Nobody);
        }
        let rows_of = |cut: &Cut, parts| cut.parts("rows", *rows, parts);
        let cols_of = |cut: &Cut, parts| cut.parts("columns", *cols, parts);
        let deal = |rows, cols, patch| BlockOwners { rows, cols, patch, down: false };
        Ok(match split {
            Split::Whole => deal(rows_of(&Cut::EVEN, 1)?, cols_of(&Cut::EVEN, 1)?, None),
            Split::Rows(cut) => deal(rows_of(cut, ranks)?, cols_of(&Cut::EVEN, 1)?, Some([1, 1])),
            Split::Cols(cut) => deal(rows_of(&Cut::EVEN, 1)?, cols_of(cut, ranks)?, Some([1, 1])),
            Split::Grid { ranks: grid @ [down, across], patch, down: is_down, cuts } => {
                if down.checked_mul(*across) != Some(ranks) {
                    return Err(DistributionError::Grid { ranks: *grid, has: ranks });
                }
                // Neither `down` nor `across` is 0, because their product, the number of ranks, is
                // not 0.
                if down.checked_rem(patch[0]) != Some(0) || across.checked_rem(patch[1]) != Some(0)
                {
                    return Err(DistributionError::Patch { ranks: *grid, patch: *patch });
                }
                let (rows, cols) = (rows_of(&cuts[0], *down)?, cols_of(&cuts[1], *across)?);
                BlockOwners { down: *is_down, ..deal(rows, cols, Some(*patch)) }
            }
        })
    }
}
