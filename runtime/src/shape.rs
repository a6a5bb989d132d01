//! The shape of a matrix inside an array, and what its extents amount to.

use crate::error::{Error, Result};
use std::ops::Range;

/// The shape of a matrix inside its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Elements before the first one of the matrix.
    pub(crate) start: usize,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// The distance between neighbours in a column.
    pub(crate) row_stride: usize,
    /// The distance between neighbours in a row.
    pub(crate) col_stride: usize,
}

impl Shape {
    /// Rows one after the other.
    pub(crate) fn packed(rows: usize, cols: usize) -> Self {
        Self { start: 0, rows, cols, row_stride: cols, col_stride: 1 }
    }

    /// Whether the elements lie one after the other, row by row.
    pub(crate) fn is_packed(&self) -> bool {
        let empty = self.rows == 0 || self.cols == 0;
        let rows = self.cols <= 1 || self.col_stride == 1;
        empty || (rows && (self.rows <= 1 || self.row_stride == self.cols))
    }

    /// How many elements there are.
    pub(crate) fn count(&self) -> usize {
        // Those of a matrix with elements lie in memory, each in its place.
        self.rows.saturating_mul(self.cols)
    }

    /// Elements from the first one of the matrix to the last.
    pub(crate) fn span(&self) -> usize {
        let Self { rows, cols, row_stride, col_stride, .. } = *self;
        if rows == 0 || cols == 0 {
            0
        } else {
            (rows - 1) * row_stride + (cols - 1) * col_stride + 1
        }
    }

    /// Rows in an argument of `len` elements.
    pub(crate) fn pitched(
        (argument, len): (&'static str, usize),
        rows: usize,
        cols: usize,
        pitch: usize,
    ) -> Result<Self> {
        if pitch < cols {
            return Err(Error::ShortPitch { pitch, cols });
        }
        let needed = extent(rows, cols, pitch)?;
        if len < needed {
            return Err(Error::WrongExtent {
                argument,
                has: len as u64,
                need: format!(
                    "{rows} rows of {cols} at a pitch of {pitch} need (rows − 1)·pitch + cols = \
                     {needed}"
                ),
            });
        }
        Ok(Self { start: 0, rows, cols, row_stride: pitch, col_stride: 1 })
    }

    pub(crate) fn part(&self, rows: Range<usize>, cols: Range<usize>) -> Result<Self> {
        let inside = |range: &Range<usize>, len, of| {
            let Range { start, end } = *range;
            if start <= end && end <= len {
                Ok(end - start)
            } else {
                Err(Error::OutOfRange { start, end, len, of })
            }
        };
        let height = inside(&rows, self.rows, "the rows of the matrix")?;
        let width = inside(&cols, self.cols, "the columns of the matrix")?;
        // What is empty starts nowhere; anything else lies inside the array.
        let before = match (height, width) {
            (0, _) | (_, 0) => 0,
            _ => rows.start * self.row_stride + cols.start * self.col_stride,
        };
        Ok(Self { start: self.start + before, rows: height, cols: width, ..*self })
    }

    pub(crate) fn transposed(&self) -> Self {
        Self {
            start: self.start,
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
        }
    }
}

pub(crate) fn product(rows: usize, pitch: usize) -> Result<usize> {
    rows.checked_mul(pitch).ok_or_else(|| too_large(rows, pitch))
}

/// The elements from the first of the first row to the last of the last row.
pub(crate) fn extent(rows: usize, cols: usize, pitch: usize) -> Result<usize> {
    if rows == 0 || cols == 0 {
        return Ok(0);
    }
    let before = (rows - 1).checked_mul(pitch);
    before.and_then(|before| before.checked_add(cols)).ok_or_else(|| too_large(rows, pitch))
}

pub(crate) fn too_large(rows: usize, pitch: usize) -> Error {
    Error::TooLarge {
        what: format!("a matrix of {} of {pitch} elements is too large", count(rows)),
        limit: usize::MAX as u64,
        remedy: "Use a smaller matrix",
    }
}

fn count(rows: usize) -> String {
    if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") }
}
