//! One GEMM, or a batch of GEMMs of one size.

use crate::cli::Failure;
use crate::data;
use gemm_oracle::product::Size;
use gemm_runtime::{Buffer, Device, Error, MatrixMut, MatrixRef};
use std::fmt;

/// Limits of a complete check, in multiply-adds and in elements of C. Beyond them, only some GEMMs
/// of a batch are checked.
const CHECKED_TERMS: usize = 1 << 33;
const CHECKED_ELEMENTS: usize = 1 << 26;

/// One GEMM, or a batch of GEMMs of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Products {
    pub size: Size,
    /// Number of GEMMs in the batch; `None` for one GEMM without a batch.
    pub batch: Option<usize>,
}

impl Products {
    /// Creates one GEMM without a batch.
    pub const fn single(size: Size) -> Self {
        Self { size, batch: None }
    }

    /// Returns the number of GEMMs.
    pub fn count(&self) -> usize {
        self.batch.unwrap_or(1)
    }

    /// Returns the numbers of elements of all matrices A, B and C.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] if they do not fit into this machine's memory.
    pub fn elements(&self) -> Result<[usize; 3], Failure> {
        let Size { m, n, k } = self.size;
        let all = |rows, cols| data::elements(&[self.count(), rows, cols]);
        Ok([all(m, k)?, all(k, n)?, all(m, n)?])
    }

    /// Returns the floating-point operations of all GEMMs.
    pub fn flops(&self) -> f64 {
        self.count() as f64 * self.size.flops()
    }

    /// Returns the bytes of all matrices, each counted once.
    pub fn bytes(&self) -> f64 {
        self.count() as f64 * self.size.bytes()
    }

    /// Returns the indices of the GEMMs whose results are compared with `f64`. If the check of all
    /// would take too long, a sample with the first and the last is returned.
    pub fn checked(&self) -> Vec<usize> {
        let Size { m, n, k } = self.size;
        let by_elements = CHECKED_ELEMENTS / (m * n).max(1);
        let by_terms = CHECKED_TERMS / (m * n).saturating_mul(k).max(1);
        self.spread(by_elements.min(by_terms))
    }

    /// Returns the indices of at most `most` GEMMs, including the first and the last.
    pub fn spread(&self, most: usize) -> Vec<usize> {
        let (count, most) = (self.count(), most.max(2));
        if count <= most {
            return (0..count).collect();
        }
        (0..most).map(|i| i * (count - 1) / (most - 1)).collect()
    }
}

/// Writes `1024`, or `4096 times 16`.
impl fmt::Display for Products {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.batch {
            None => self.size.fmt(f),
            Some(count) => write!(f, "{count} times {}", self.size),
        }
    }
}

/// Matrices of one shape on a device, contiguous.
pub struct Matrices {
    buffer: Buffer,
    batch: Option<usize>,
    rows: usize,
    cols: usize,
    pitch: usize,
}

impl Matrices {
    /// Uploads row-major elements of the matrix, or of all matrices of a batch. Padding aligns
    /// every row to 16 bytes.
    ///
    /// # Errors
    /// Returns the errors of uploads.
    pub fn new(
        device: &Device,
        elements: &[f32],
        batch: Option<usize>,
        rows: usize,
        cols: usize,
        padded: bool,
    ) -> Result<Self, Error> {
        let (buffer, pitch) = match padded {
            true => {
                let matrix =
                    device.upload_matrix_padded(elements, batch.unwrap_or(1) * rows, cols)?;
                let pitch = matrix.pitch();
                (matrix.into_buffer(), pitch)
            }
            false => (device.upload(elements)?, cols),
        };
        Ok(Self { buffer, batch, rows, cols, pitch })
    }

    /// Replaces the elements, and fills the padding of the rows with NaN.
    ///
    /// # Errors
    /// Returns the errors of uploads.
    pub fn fill(&mut self, device: &Device, elements: &[f32]) -> Result<(), Error> {
        let lines = self.batch.unwrap_or(1) * self.rows;
        let mut all = vec![f32::NAN; lines * self.pitch];
        if self.cols > 0 {
            let places = all.chunks_exact_mut(self.pitch);
            for (place, line) in places.zip(elements.chunks_exact(self.cols)) {
                place[..self.cols].copy_from_slice(line);
            }
        }
        self.buffer = device.upload(&all)?;
        Ok(())
    }

    /// Returns a read-only view of the matrices.
    ///
    /// # Errors
    /// Returns the errors of [`MatrixRef::batch_apart`].
    pub fn view(&self) -> Result<MatrixRef<'_>, Error> {
        let Self { rows, cols, pitch, .. } = *self;
        match self.batch {
            None => MatrixRef::pitched(&self.buffer, rows, cols, pitch),
            Some(count) => {
                MatrixRef::batch_apart(&self.buffer, (count, rows * pitch), rows, cols, pitch)
            }
        }
    }

    /// Returns a writable view of the matrices.
    ///
    /// # Errors
    /// Returns the errors of [`MatrixMut::batch_apart`].
    pub fn view_mut(&mut self) -> Result<MatrixMut<'_>, Error> {
        let Self { rows, cols, pitch, .. } = *self;
        match self.batch {
            None => MatrixMut::pitched(&mut self.buffer, rows, cols, pitch),
            Some(count) => {
                MatrixMut::batch_apart(&mut self.buffer, (count, rows * pitch), rows, cols, pitch)
            }
        }
    }
}

/// Returns the matrix whose rows are the given lines. If `by_column` is true, the lines are its
/// columns.
pub(crate) fn turned(lines: MatrixRef<'_>, by_column: bool) -> MatrixRef<'_> {
    if by_column { lines.t() } else { lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_product_are_always_checked() {
        let of = |count, n| Products { size: Size::square(n), batch: Some(count) };
        assert_eq!(of(4096, 128).checked().len(), 4096);
        for (count, n) in [(4097, 128), (65_536, 64), (3, 4096), (1 << 22, 8), (7, 1)] {
            let checked = of(count, n).checked();
            assert_eq!((checked[0], checked[checked.len() - 1]), (0, count - 1));
            assert!(checked.windows(2).all(|pair| pair[0] < pair[1]), "{count} times {n}");
            assert!(checked.len() <= 2 || checked.len() * n * n * n <= CHECKED_TERMS);
        }
        assert_eq!(Products::single(Size::square(8192)).checked(), [0]);
    }

    #[test]
    fn a_batch_counts_all_of_its_products() {
        let batch = Products { size: Size::new(2, 3, 4), batch: Some(5) };
        assert_eq!((batch.flops(), batch.bytes()), (240.0, 520.0));
        assert_eq!(batch.elements().ok(), Some([40, 60, 30]));
        assert_eq!(batch.to_string(), "5 times 2x3x4");
    }
}
