//! The shape of a matrix inside an array, and what its extents amount to.

use crate::error::{Error, Result};
use std::ops::Range;

/// Matrices of one shape, each a fixed distance behind the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// How many matrices.
    pub count: usize,
    /// The distance between neighbours, in elements.
    pub distance: usize,
}

/// The shape of a matrix inside its elements, or that of a batch of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Elements before the first one of the matrix.
    pub start: usize,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// The distance between neighbours in a column.
    pub row_stride: usize,
    /// The distance between neighbours in a row.
    pub col_stride: usize,
    /// How many matrices there are, of a batch.
    pub batch: Option<Batch>,
}

impl Shape {
    /// Rows one after the other.
    pub(crate) fn packed(rows: usize, cols: usize) -> Self {
        Self { start: 0, rows, cols, row_stride: cols, col_stride: 1, batch: None }
    }

    /// The number of matrices and the distance between them.
    pub(crate) fn batch(&self) -> Batch {
        self.batch.unwrap_or(Batch { count: 1, distance: 0 })
    }

    /// Whether the elements lie one after the other, row by row.
    pub(crate) fn is_packed(&self) -> bool {
        let Batch { count, distance } = self.batch();
        let matrix = self.lies_in_rows() && (self.rows <= 1 || self.row_stride == self.cols);
        self.count() == 0 || (matrix && (count <= 1 || distance == self.rows * self.cols))
    }

    /// How many elements there are.
    pub(crate) fn count(&self) -> usize {
        // Those of a matrix with elements lie in memory, each in its place.
        self.rows.saturating_mul(self.cols).saturating_mul(self.batch().count)
    }

    /// Elements from the first one of the matrix to the last.
    pub(crate) fn span(&self) -> usize {
        let Self { rows, cols, row_stride, col_stride, .. } = *self;
        let Batch { count, distance } = self.batch();
        if self.count() == 0 {
            0
        } else {
            let of_matrix = (rows - 1) * row_stride + (cols - 1) * col_stride + 1;
            (count - 1) * distance + of_matrix
        }
    }

    /// The places of the elements, matrix after matrix and row after row, from the first one on.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> {
        let Self { rows, cols, row_stride, col_stride, .. } = *self;
        let Batch { count, distance } = self.batch();
        let rows =
            (0..count).flat_map(move |n| (0..rows).map(move |row| n * distance + row * row_stride));
        rows.flat_map(move |first| (0..cols).map(move |col| first + col * col_stride))
    }

    /// Whether two matrices of this shape share an element, of which one lies so far behind the other. A
    /// shape whose own elements are apart.
    pub(crate) fn meets_itself(&self, distance: u64) -> bool {
        let along = |extent: usize, stride: usize| (stride as u64, extent as u64 - 1);
        if self.rows == 0 || self.cols == 0 {
            return false;
        }
        let mut axes = [along(self.rows, self.row_stride), along(self.cols, self.col_stride)];
        axes.iter_mut().for_each(|axis| *axis = if axis.1 == 0 { (u64::MAX, 0) } else { *axis });
        let [(small, few), (large, many)] = match axes[0].0 < axes[1].0 {
            true => axes,
            false => [axes[1], axes[0]],
        };
        // Along the large stride they are as many steps apart as fit into the distance, or one more, as the
        // small one does not reach that far.
        let steps = distance / large;
        [steps, steps + 1].into_iter().any(|steps| {
            let left = distance.abs_diff(steps.saturating_mul(large));
            steps <= many && left.is_multiple_of(small) && left / small <= few
        })
    }

    /// Whether what is next to one another in a row is so in memory.
    pub(crate) fn lies_in_rows(&self) -> bool {
        self.col_stride == 1 || self.cols <= 1
    }

    /// Whether what is next to one another in a column is so in memory, and what is in a row is not.
    pub fn lies_in_columns(&self) -> bool {
        !self.lies_in_rows() && (self.row_stride == 1 || self.rows <= 1)
    }

    /// Whether something lies between its rows, or its columns if it lies in those.
    pub fn is_padded(&self) -> bool {
        let Self { rows, cols, row_stride, .. } = match self.lies_in_columns() {
            true => self.transposed(),
            false => *self,
        };
        rows > 1 && row_stride != cols
    }

    /// Matrices of such rows in an argument of `len` elements.
    pub(crate) fn batched(
        argument: &str,
        len: usize,
        batch: Batch,
        rows: usize,
        cols: usize,
        pitch: usize,
    ) -> Result<Self> {
        let Batch { count, distance } = batch;
        // No matrix needs no elements.
        let of_one = if count == 0 { 0 } else { rows };
        let one = Self::pitched(argument, len, of_one, cols, pitch)?;
        let shape = Self { rows, batch: Some(batch), ..one };
        if shape.count() == 0 {
            return Ok(shape);
        }
        let before = (count - 1).checked_mul(distance);
        let needed = before.and_then(|before| before.checked_add(one.span()));
        let needed = needed.ok_or_else(|| too_large(count, distance))?;
        if len < needed {
            return Err(Error::WrongExtent {
                argument: argument.to_owned(),
                has: len as u64,
                need: format!(
                    "{count} matrices {distance} elements apart need (count − 1)·distance + those of one = \
                     {needed}"
                ),
            });
        }
        Ok(shape)
    }

    /// Rows in an argument of `len` elements.
    pub(crate) fn pitched(
        argument: &str,
        len: usize,
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
                argument: argument.to_owned(),
                has: len as u64,
                need: format!(
                    "{rows} rows of {cols} at a pitch of {pitch} need (rows − 1)·pitch + cols = \
                     {needed}"
                ),
            });
        }
        Ok(Self { start: 0, rows, cols, row_stride: pitch, col_stride: 1, batch: None })
    }

    /// A rectangle of it.
    pub fn part(&self, rows: Range<usize>, cols: Range<usize>) -> Result<Self> {
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
        let part = Self { rows: height, cols: width, ..*self };
        // What is empty starts nowhere; anything else lies inside the array.
        let before = match part.count() {
            0 => 0,
            _ => rows.start * self.row_stride + cols.start * self.col_stride,
        };
        Ok(Self { start: self.start + before, ..part })
    }

    pub(crate) fn transposed(&self) -> Self {
        Self {
            start: self.start,
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            batch: self.batch,
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

#[cfg(test)]
mod tests {
    use super::Shape;

    /// Against the places of both.
    #[test]
    fn a_shape_meets_itself_where_places_are_the_same() {
        let mut met = 0;
        for (rows, cols, pitch) in [
            (0, 3, 3),
            (1, 1, 1),
            (1, 5, 5),
            (5, 1, 1),
            (5, 1, 4),
            (3, 4, 4),
            (3, 4, 7),
            (4, 2, 9),
            (2, 3, 11),
        ] {
            let packed = Shape::packed(rows, cols);
            // With neighbours in a row next to one another, and two apart.
            let apart = Shape { col_stride: 2, row_stride: 2 * pitch, ..packed };
            for shape in [Shape { row_stride: pitch, ..packed }, apart] {
                for shape in [shape, shape.transposed()] {
                    for distance in 0..60 {
                        let shared =
                            shape.places().any(|at| shape.places().any(|of| of + distance == at));
                        assert_eq!(
                            shape.meets_itself(distance as u64),
                            shared,
                            "{shape:?} {distance}"
                        );
                        met += usize::from(shared);
                    }
                }
            }
        }
        assert!(met > 100, "{met}");
    }
}
