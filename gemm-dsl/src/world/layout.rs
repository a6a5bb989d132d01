//! How a matrix is dealt out to ranks.

use super::Block;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use thiserror::Error;

/// How a matrix is dealt out to ranks. It is data, which prints and parses: `4096x1024 rows/128`.
///
/// ```
/// use gemm_dsl::world::Layout;
///
/// let layout: Layout = "1000x64 rows/128".parse()?;
/// let rows: Vec<_> = layout.shards(3)?.into_iter().map(|shard| shard.rows).collect();
/// assert_eq!(rows, [0..256, 256..640, 640..1000]);
/// assert_eq!(layout.to_string(), "1000x64 rows/128");
/// # Ok::<(), gemm_dsl::world::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
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
    /// Ranks stand in so many rows and columns, row after row, and each has a block.
    Grid {
        /// Rows and columns of ranks.
        ranks: [usize; 2],
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
pub enum LayoutError {
    /// A text that is no layout.
    #[error(
        "`{0}` is no layout: write the extents and how they are split, `4096x1024 whole`, `… rows`, `… cols/128`, \
         `… rows[100,0,56]` or `… grid 2x4`"
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
}

impl Cut {
    /// As evenly as may be.
    pub const EVEN: Self = Self::Even(1);

    /// The parts of an extent, which is of rows or columns.
    fn parts(&self, what: &'static str, extent: usize, parts: usize) -> Result<Vec<Range<usize>>, LayoutError> {
        match self {
            Self::Even(0) => Err(LayoutError::Unit),
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
                Err(LayoutError::Lengths { what, lengths: lengths.len(), parts })
            }
            Self::Lengths(lengths) => {
                let mut start: usize = 0;
                let part = |length: &usize| {
                    let from = start;
                    start = start.saturating_add(*length);
                    from..start
                };
                let all = lengths.iter().map(part).collect();
                match start == extent {
                    true => Ok(all),
                    false => Err(LayoutError::Sum { what, sum: start, extent }),
                }
            }
        }
    }
}

impl Layout {
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
        Self { rows, cols, split: Split::Grid { ranks, cuts: [Cut::EVEN, Cut::EVEN] } }
    }

    /// All of the matrix.
    pub fn all(&self) -> Block {
        Block::new(0..self.rows, 0..self.cols)
    }

    /// What each of so many ranks has.
    ///
    /// # Errors
    /// [`LayoutError`] where it is not for so many.
    pub fn shards(&self, ranks: usize) -> Result<Vec<Block>, LayoutError> {
        let Self { rows, cols, split } = self;
        if ranks == 0 {
            return Err(LayoutError::Nobody);
        }
        let all = self.all();
        Ok(match split {
            Split::Whole => vec![all; ranks],
            Split::Rows(cut) => {
                let parts = cut.parts("rows", *rows, ranks)?.into_iter();
                parts.map(|rows| Block { rows, ..all.clone() }).collect()
            }
            Split::Cols(cut) => {
                let parts = cut.parts("columns", *cols, ranks)?.into_iter();
                parts.map(|cols| Block { cols, ..all.clone() }).collect()
            }
            Split::Grid { ranks: [down, across], cuts } => {
                if down.checked_mul(*across) != Some(ranks) {
                    return Err(LayoutError::Grid { ranks: [*down, *across], has: ranks });
                }
                let rows = cuts[0].parts("rows", *rows, *down)?;
                let cols = cuts[1].parts("columns", *cols, *across)?;
                let of_row = |rows: &Range<usize>| {
                    let rows = rows.clone();
                    cols.iter().map(move |cols| Block::new(rows.clone(), cols.clone()))
                };
                rows.iter().flat_map(of_row).collect()
            }
        })
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{} {}", self.rows, self.cols, self.split)
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("whole"),
            Self::Rows(cut) => write!(f, "rows{cut}"),
            Self::Cols(cut) => write!(f, "cols{cut}"),
            Self::Grid { ranks: [down, across], cuts: [rows, cols] } => {
                write!(f, "grid {down}x{across}")?;
                match (rows, cols) {
                    (&Cut::EVEN, &Cut::EVEN) => Ok(()),
                    _ => write!(f, " rows{rows} cols{cols}"),
                }
            }
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Even(1) => Ok(()),
            Self::Even(unit) => write!(f, "/{unit}"),
            Self::Lengths(lengths) => {
                let lengths: Vec<String> = lengths.iter().map(usize::to_string).collect();
                write!(f, "[{}]", lengths.join(","))
            }
        }
    }
}

impl FromStr for Layout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let wrong = || LayoutError::Text(text.to_owned());
        let mut words = text.split_ascii_whitespace();
        let [rows, cols] = words.next().and_then(pair).ok_or_else(wrong)?;
        let split = match words.next().ok_or_else(wrong)? {
            "whole" => Split::Whole,
            "grid" => {
                let ranks = words.next().and_then(pair).ok_or_else(wrong)?;
                let cuts = match words.next() {
                    None => [Cut::EVEN, Cut::EVEN],
                    Some(rows) => {
                        let rows = cut(rows, "rows").ok_or_else(wrong)?;
                        let cols = words.next().and_then(|word| cut(word, "cols"));
                        [rows, cols.ok_or_else(wrong)?]
                    }
                };
                Split::Grid { ranks, cuts }
            }
            word => {
                let rows = cut(word, "rows").map(Split::Rows);
                rows.or_else(|| cut(word, "cols").map(Split::Cols)).ok_or_else(wrong)?
            }
        };
        match words.next() {
            Some(_) => Err(wrong()),
            None => Ok(Self { rows, cols, split }),
        }
    }
}

/// Two numbers with an `x` between them.
fn pair(word: &str) -> Option<[usize; 2]> {
    let (first, second) = word.split_once('x')?;
    Some([number(first)?, number(second)?])
}

/// A number as it prints: digits alone.
fn number(word: &str) -> Option<usize> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok())?
}

/// `rows`, `rows/128` or `rows[100,0,56]`.
fn cut(word: &str, name: &str) -> Option<Cut> {
    let rest = word.strip_prefix(name)?;
    if rest.is_empty() {
        return Some(Cut::EVEN);
    }
    if let Some(unit) = rest.strip_prefix('/') {
        return number(unit).map(Cut::Even);
    }
    let lengths = rest.strip_prefix('[')?.strip_suffix(']')?;
    let lengths: Option<Vec<usize>> = match lengths {
        "" => Some(Vec::new()),
        lengths => lengths.split(',').map(number).collect(),
    };
    lengths.map(Cut::Lengths)
}
