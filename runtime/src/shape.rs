//! Shapes of matrices within arrays, and arithmetic of extents.

mod batch;

pub use batch::Batch;
pub(crate) use batch::{CallBatch, MAX_AXES, NamedBatch};

use crate::error::{Error, Result};
use std::ops::Range;

/// Number of axes of a shape: those of a batch, rows and columns.
pub(crate) const AXES: usize = MAX_AXES + 2;

/// Extents or strides along the axes, from the outermost axis of a batch to the columns.
pub(crate) type PerAxis = [usize; AXES];

/// Shape of a matrix, or of a batch of matrices, within an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Offset of the first element.
    pub start: usize,
    /// Number of rows of each matrix.
    pub rows: usize,
    /// Number of columns of each matrix.
    pub cols: usize,
    /// Distance between neighbours in a column, in elements.
    pub row_stride: usize,
    /// Distance between neighbours in a row, in elements.
    pub col_stride: usize,
    /// Axes of a batch.
    pub batch: Option<Batch>,
}

impl Shape {
    /// Shape of a packed row-major matrix.
    pub(crate) fn packed(rows: usize, cols: usize) -> Self {
        Self { start: 0, rows, cols, row_stride: cols, col_stride: 1, batch: None }
    }

    /// Batch; a single matrix is a batch of one.
    pub(crate) fn batch(&self) -> Batch {
        self.batch.unwrap_or(Batch::new(1, 0))
    }

    /// Returns true if the elements are consecutive, row by row.
    pub(crate) fn is_packed(&self) -> bool {
        let batch = self.batch();
        let matrix = self.is_row_major() && (self.rows <= 1 || self.row_stride == self.cols);
        let one_after_other = || batch.merged().is_some_and(|(_, of)| of == self.rows * self.cols);
        self.count() == 0 || (matrix && (batch.count() <= 1 || one_after_other()))
    }

    /// Number of elements of all matrices.
    pub(crate) fn count(&self) -> usize {
        // The product does not overflow for a matrix whose elements are all in memory. A view that
        // repeats a row may have more elements; then the product saturates.
        self.rows.saturating_mul(self.cols).saturating_mul(self.batch().count())
    }

    /// Number of elements of the array from the first element of the shape to the last.
    pub(crate) fn span(&self) -> usize {
        let Self { rows, cols, row_stride, col_stride, .. } = *self;
        if self.count() == 0 {
            0
        } else {
            let of_matrix = (rows - 1) * row_stride + (cols - 1) * col_stride + 1;
            // All matrices are in memory, so the distance to the last one does not overflow.
            self.batch().reach().unwrap_or(usize::MAX).saturating_add(of_matrix)
        }
    }

    /// Extents of the axes of a batch, then of the rows and columns.
    pub(crate) fn extents(&self) -> PerAxis {
        let [first, second, third] = self.batch().all_axes().map(|axis| axis.extent);
        [first, second, third, self.rows, self.cols]
    }

    /// Strides along the axes of a batch, then of the rows and columns.
    pub(crate) fn strides(&self) -> PerAxis {
        let [first, second, third] = self.batch().all_axes().map(|axis| axis.stride);
        [first, second, third, self.row_stride, self.col_stride]
    }

    /// Extents in messages.
    pub(crate) fn extents_in_words(&self) -> String {
        let Self { rows, cols, batch, .. } = self;
        match batch {
            None => format!("{rows} x {cols}"),
            Some(batch) => {
                format!("a batch of {} matrices of {rows} x {cols}", batch.extents_in_words())
            }
        }
    }

    /// Returns true if two matrices of a batch share an element. A batch whose axes no single
    /// stride describes must be nested: along each axis, the stride is at least the span of all
    /// axes with smaller strides.
    pub(crate) fn overlaps_itself(&self) -> bool {
        let Some((count, distance)) = self.batch().merged() else {
            return self.count() > 0 && !self.is_nested();
        };
        let of_one = Self { batch: None, ..*self }.span();
        let is_reached = |n: &usize| n.saturating_mul(distance) < of_one;
        (1..count).take_while(is_reached).any(|n| self.overlaps_shifted((n * distance) as u64))
    }

    /// Returns true if along each axis, the stride is at least the span of the axes with smaller
    /// strides.
    fn is_nested(&self) -> bool {
        let axes = self.strides().into_iter().zip(self.extents());
        let mut axes: Vec<_> = axes.filter(|(_, extent)| *extent > 1).collect();
        axes.sort_unstable();
        let mut span = 1_usize;
        axes.into_iter().all(|(stride, extent)| {
            let is_apart = stride >= span;
            span = span.saturating_add((extent - 1).saturating_mul(stride));
            is_apart
        })
    }

    /// Returns true if two matrices of this shape, `distance` elements apart, share an element. The
    /// elements of one matrix must have distinct offsets.
    pub(crate) fn overlaps_shifted(&self, distance: u64) -> bool {
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
        // The distance to a shared element is a number of large strides plus or minus small
        // strides. The small strides together are shorter than a large stride, so two numbers are
        // possible.
        let steps = distance / large;
        [steps, steps + 1].into_iter().any(|steps| {
            let left = distance.abs_diff(steps.saturating_mul(large));
            steps <= many && left.is_multiple_of(small) && left / small <= few
        })
    }

    /// Returns true if the matrix is row-major: neighbours in a row are adjacent in memory.
    pub(crate) fn is_row_major(&self) -> bool {
        self.col_stride == 1 || self.cols <= 1
    }

    /// Returns true if the matrix is column-major and not also row-major.
    pub fn is_column_major(&self) -> bool {
        !self.is_row_major() && (self.row_stride == 1 || self.rows <= 1)
    }

    /// Returns true if rows, or the columns of a column-major matrix, are not adjacent in memory.
    pub fn is_padded(&self) -> bool {
        let Self { rows, cols, row_stride, .. } = match self.is_column_major() {
            true => self.transposed(),
            false => *self,
        };
        rows > 1 && row_stride != cols
    }

    /// Batch of row-major matrices with row stride `pitch`, in an array of `len` elements.
    pub(crate) fn batched(
        argument: &str,
        len: usize,
        batch: Batch,
        rows: usize,
        cols: usize,
        pitch: usize,
    ) -> Result<Self> {
        // An empty batch needs no elements.
        let of_one = if batch.count() == 0 { 0 } else { rows };
        let one = Self::pitched(argument, len, of_one, cols, pitch)?;
        let shape = Self { rows, batch: Some(batch), ..one };
        if shape.count() == 0 {
            return Ok(shape);
        }
        let needed = batch.reach().and_then(|before| before.checked_add(one.span()));
        let needed = needed.ok_or_else(|| too_large_batch(batch))?;
        if len < needed {
            let (count, strides) = (batch.extents_in_words(), batch.strides_in_words());
            let need = match batch.axes() {
                [_] => format!(
                    "{count} matrices with a stride of {strides} elements need (count − \
                     1)·stride + the elements of one = {needed}"
                ),
                _ => format!(
                    "{count} matrices with strides of {strides} elements need the sum of (extent − \
                     1)·stride over the axes + the elements of one = {needed}"
                ),
            };
            let argument = argument.to_owned();
            return Err(Error::WrongExtent { argument, has: len as u64, need });
        }
        Ok(shape)
    }

    /// Row-major matrix with row stride `pitch`, in an array of `len` elements. A matrix with less
    /// than two rows has no distance between rows, so any `pitch` is valid.
    pub(crate) fn pitched(
        argument: &str,
        len: usize,
        rows: usize,
        cols: usize,
        pitch: usize,
    ) -> Result<Self> {
        if pitch < cols && rows > 1 {
            return Err(Error::ShortPitch { pitch, cols });
        }
        let pitch = pitch.max(cols);
        let needed = extent(rows, cols, pitch)?;
        if len < needed {
            return Err(Error::WrongExtent {
                argument: argument.to_owned(),
                has: len as u64,
                need: format!(
                    "{rows} rows of {cols} with a row stride of {pitch} need (rows − \
                     1)·row_stride + cols = {needed}"
                ),
            });
        }
        Ok(Self { start: 0, rows, cols, row_stride: pitch, col_stride: 1, batch: None })
    }

    /// Rectangle of the matrix, or of each matrix of a batch.
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
        // An empty part has offset 0. Any other part is inside the array.
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

/// Number of elements from the first element of the first row to the last element of the last row.
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

fn too_large_batch(batch: Batch) -> Error {
    let (count, strides) = (batch.extents_in_words(), batch.strides_in_words());
    Error::TooLarge {
        what: format!("a batch of {count} matrices {strides} elements apart is too large"),
        limit: usize::MAX as u64,
        remedy: "Use a smaller batch",
    }
}

fn count(rows: usize) -> String {
    if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") }
}

#[cfg(test)]
mod tests {
    use super::{Batch, Shape};
    use crate::blocks::offsets;
    use std::collections::HashSet;

    /// The result agrees with a comparison of all offsets.
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
            // Contiguous rows, and rows with every second element.
            let apart = Shape { col_stride: 2, row_stride: 2 * pitch, ..packed };
            for shape in [Shape { row_stride: pitch, ..packed }, apart] {
                for shape in [shape, shape.transposed()] {
                    for distance in 0..60 {
                        let places = || offsets(shape.extents(), shape.strides());
                        let shared = places().any(|at| places().any(|of| of + distance == at));
                        assert_eq!(
                            shape.overlaps_shifted(distance as u64),
                            shared,
                            "{shape:?} {distance}"
                        );
                        met += usize::from(shared);
                        let batch = Shape { batch: Some(Batch::new(3, distance)), ..shape };
                        let mut seen = HashSet::new();
                        let mut places = offsets(batch.extents(), batch.strides());
                        let shared = !places.all(|at| seen.insert(at));
                        assert_eq!(batch.overlaps_itself(), shared, "{batch:?}");
                    }
                }
            }
        }
        assert!(met > 100, "{met}");
    }

    /// A batch with several axes that is taken to be without overlap has none.
    #[test]
    fn nested_axes_never_meet() {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut apart = 0;
        for _ in 0..4000 {
            let mut axis = || (rng.usize(1..4), rng.usize(0..30));
            let batch = Some(Batch::along([axis(), axis(), axis()]));
            let shape = Shape { row_stride: rng.usize(2..16), batch, ..Shape::packed(2, 2) };
            let mut seen = HashSet::new();
            let is_distinct = offsets(shape.extents(), shape.strides()).all(|at| seen.insert(at));
            assert!(is_distinct || shape.overlaps_itself(), "{shape:?}");
            apart += usize::from(!shape.overlaps_itself());
        }
        assert!(apart > 100, "{apart}");
        // The heads of attention lie between each other's rows.
        let heads = Some(Batch::along([(2, 60), (3, 4)]));
        let heads = Shape { row_stride: 12, batch: heads, ..Shape::packed(5, 4) };
        assert!(!heads.overlaps_itself());
    }
}
