//! How a matrix is dealt out to ranks.

mod deal;
mod text;

pub(super) use deal::Deal;

use super::Block;
use std::ops::Range;
use thiserror::Error;

/// How a matrix is dealt out to ranks: each element to one of them, or all elements to every one. It is data, which prints
/// and parses: `4096x1024 rows/128`.
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
/// An array is a matrix of one row: its elements are dealt out by columns, here in consecutive parts at multiples of 256.
///
/// ```
/// # use gemm_world::plan::{Cut, Distribution, Split};
/// let distribution = Distribution { split: Split::Cols(Cut::Even(256)), ..Distribution::whole(1, 1000) };
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
    /// How it is split.
    pub split: Split,
}

/// How a matrix is split.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// Not at all: every rank has all of it.
    Whole,
    /// Each rank has some consecutive rows.
    Rows(Cut),
    /// Each rank has some consecutive columns.
    Cols(Cut),
    /// Ranks stand in so many rows and columns, and each has a block.
    Grid {
        /// Rows and columns of ranks.
        ranks: [usize; 2],
        /// Rows and columns of ranks whose numbers follow one another, row after row: those of a host, in a grid over many
        /// hosts. Such patches follow one another in the same way. Where it is 1 by 1, ranks do so row after row.
        patch: [usize; 2],
        /// Whether they all follow one another column after column, in place of row after row.
        down: bool,
        /// Where its rows are cut, and its columns.
        cuts: [Cut; 2],
    },
}

/// Where an extent is cut.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cut {
    /// As evenly as may be, at multiples of a number, which is at least 1.
    Even(usize),
    /// Into these lengths, of which any may be 0.
    Lengths(Vec<usize>),
}

/// Why a layout is none, or none for so many ranks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DistributionError {
    /// A text that is no layout.
    #[error(
        "`{0}` is no layout: write the extents and how they are split, `4096x1024 whole`, `… rows`, `… cols/128`, \
         `… rows[100,0,56]`, `… grid 2x4`, `… grid 2x4 down` or `… grid 16x32 patch 2x4 rows/128 cols`"
    )]
    Text(String),
    /// A world of nobody.
    #[error("a matrix cannot be dealt out to 0 ranks")]
    Nobody,
    /// A cut at multiples of 0.
    #[error("an extent cannot be cut at multiples of 0: leave the unit out, or make it 1")]
    Unit,
    /// Other lengths than ranks.
    #[error("{what} are cut into {lengths} lengths, but there are {parts} ranks along them")]
    Lengths {
        /// `rows` or `columns`.
        what: &'static str,
        /// How many lengths there are.
        lengths: usize,
        /// How many ranks.
        parts: usize,
    },
    /// Lengths that do not come to the extent.
    #[error("the lengths of the {what} come to {sum}, but there are {extent}")]
    Sum {
        /// `rows` or `columns`.
        what: &'static str,
        /// What they come to; as large as may be where that is beyond what can be counted.
        sum: usize,
        /// The extent.
        extent: usize,
    },
    /// A grid of more or fewer ranks than there are.
    #[error("a grid of {}x{} is of {} ranks, but there are {has}", ranks[0], ranks[1], ranks[0].saturating_mul(ranks[1]))]
    Grid {
        /// Rows and columns of ranks.
        ranks: [usize; 2],
        /// How many there are.
        has: usize,
    },
    /// Patches that do not fill a grid.
    #[error("a grid of {}x{} ranks is not made of patches of {}x{}", ranks[0], ranks[1], patch[0], patch[1])]
    Patch {
        /// Rows and columns of ranks.
        ranks: [usize; 2],
        /// Those of a patch.
        patch: [usize; 2],
    },
}

impl Cut {
    /// As evenly as may be.
    pub const EVEN: Self = Self::Even(1);

    /// The parts of an extent, which is of rows or columns.
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
                // Neither the product of two extents nor that of a number and its unit is always a `usize`.
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
    /// Every rank has all of it.
    pub fn whole(rows: usize, cols: usize) -> Self {
        Self { rows, cols, split: Split::Whole }
    }

    /// Each rank has about as many consecutive rows.
    pub fn rows(rows: usize, cols: usize) -> Self {
        Self { rows, cols, split: Split::Rows(Cut::EVEN) }
    }

    /// Each rank has about as many consecutive columns.
    pub fn cols(rows: usize, cols: usize) -> Self {
        Self { rows, cols, split: Split::Cols(Cut::EVEN) }
    }

    /// Ranks stand in so many rows and columns, row after row, and each has a block.
    pub fn grid(rows: usize, cols: usize, ranks: [usize; 2]) -> Self {
        Self::patches(rows, cols, ranks, [1, 1])
    }

    /// Ranks stand in so many rows and columns, patch after patch, and each has a block. Where a patch is a host,
    /// less of what the ranks of a row or of a column need of one another comes from other hosts.
    ///
    /// ```
    /// use gemm_world::plan::Distribution;
    ///
    /// // Two hosts with four ranks each: the second one has the right half.
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

    /// How the transpose is dealt out, of which each rank has the transpose of what it has of the matrix.
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

    /// All of the matrix.
    pub fn all(&self) -> Block {
        Block::new(0..self.rows, 0..self.cols)
    }

    /// What each of so many ranks has.
    ///
    /// # Errors
    /// [`DistributionError`] where it is not for so many.
    pub fn shards(&self, ranks: usize) -> Result<Vec<Block>, DistributionError> {
        let deal = self.deal(ranks)?;
        Ok((0..ranks).map(|rank| deal.shard(rank)).collect())
    }

    /// The same, to be looked at by place.
    pub(super) fn deal(&self, ranks: usize) -> Result<Deal, DistributionError> {
        let Self { rows, cols, split } = self;
        if ranks == 0 {
            return Err(DistributionError::Nobody);
        }
        let rows_of = |cut: &Cut, parts| cut.parts("rows", *rows, parts);
        let cols_of = |cut: &Cut, parts| cut.parts("columns", *cols, parts);
        let deal = |rows, cols, patch| Deal { rows, cols, patch, down: false };
        Ok(match split {
            Split::Whole => deal(rows_of(&Cut::EVEN, 1)?, cols_of(&Cut::EVEN, 1)?, None),
            Split::Rows(cut) => deal(rows_of(cut, ranks)?, cols_of(&Cut::EVEN, 1)?, Some([1, 1])),
            Split::Cols(cut) => deal(rows_of(&Cut::EVEN, 1)?, cols_of(cut, ranks)?, Some([1, 1])),
            Split::Grid { ranks: grid @ [down, across], patch, down: is_down, cuts } => {
                if down.checked_mul(*across) != Some(ranks) {
                    return Err(DistributionError::Grid { ranks: *grid, has: ranks });
                }
                // Neither of them is 0: there are ranks.
                if down.checked_rem(patch[0]) != Some(0) || across.checked_rem(patch[1]) != Some(0)
                {
                    return Err(DistributionError::Patch { ranks: *grid, patch: *patch });
                }
                let (rows, cols) = (rows_of(&cuts[0], *down)?, cols_of(&cuts[1], *across)?);
                Deal { down: *is_down, ..deal(rows, cols, Some(*patch)) }
            }
        })
    }
}
