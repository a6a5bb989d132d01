//! What is multiplied: one product, or a batch of products of one size.

use crate::cli::Failure;
use crate::data;
use gemm_oracle::product::Size;
use gemm_runtime::{Buffer, Device, Error, MatrixMut, MatrixRef};
use std::fmt;

/// Terms, and elements of C, beyond which not every product of a batch is checked.
const CHECKED_TERMS: usize = 1 << 33;
const CHECKED_ELEMENTS: usize = 1 << 26;

/// One product, or a batch of products of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Products {
    /// The extents of each.
    pub size: Size,
    /// How many a batch has; `None` for one product that is no batch.
    pub batch: Option<usize>,
}

impl Products {
    /// One product that is no batch.
    pub const fn single(size: Size) -> Self {
        Self { size, batch: None }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.batch.unwrap_or(1)
    }

    /// The elements of all matrices A, B and C.
    ///
    /// # Errors
    /// [`Failure::Usage`] where this machine cannot hold them.
    pub fn elements(&self) -> Result<[usize; 3], Failure> {
        let Size { m, n, k } = self.size;
        let all = |rows, cols| data::elements(&[self.count(), rows, cols]);
        Ok([all(m, k)?, all(k, n)?, all(m, n)?])
    }

    /// Floating-point operations of all.
    pub fn flops(&self) -> f64 {
        self.count() as f64 * self.size.flops()
    }

    /// The bytes of all matrices, each once.
    pub fn bytes(&self) -> f64 {
        self.count() as f64 * self.size.bytes()
    }

    /// The products whose results are compared with `f64`: all, or where that would take long some, the
    /// first and the last among them.
    pub fn checked(&self) -> Vec<usize> {
        let Size { m, n, k } = self.size;
        let by_elements = CHECKED_ELEMENTS / (m * n).max(1);
        let by_terms = CHECKED_TERMS / (m * n).saturating_mul(k).max(1);
        self.spread(by_elements.min(by_terms))
    }

    /// At most so many products, but at least two if there are two, from the first to the last.
    pub fn spread(&self, most: usize) -> Vec<usize> {
        let (count, most) = (self.count(), most.max(2));
        if count <= most {
            return (0..count).collect();
        }
        (0..most).map(|i| i * (count - 1) / (most - 1)).collect()
    }
}

/// `1024`, or `4096 times 16`.
impl fmt::Display for Products {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.batch {
            None => self.size.fmt(f),
            Some(count) => write!(f, "{count} times {}", self.size),
        }
    }
}

/// Matrices of one shape on a device, each behind the one before it.
pub struct Matrices {
    buffer: Buffer,
    batch: Option<usize>,
    rows: usize,
    cols: usize,
    pitch: usize,
}

impl Matrices {
    /// The matrix, or those of a batch, whose rows are given one after the other. Padded, they are on 16
    /// bytes.
    ///
    /// # Errors
    /// Those of uploads.
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
                let matrix = device.upload_matrix(elements, batch.unwrap_or(1) * rows, cols)?;
                let pitch = matrix.pitch();
                (matrix.into_buffer(), pitch)
            }
            false => (device.upload(elements)?, cols),
        };
        Ok(Self { buffer, batch, rows, cols, pitch })
    }

    /// Puts rows in their place and NaN between them.
    ///
    /// # Errors
    /// Those of uploads.
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

    /// The matrices to be read.
    ///
    /// # Errors
    /// Those of [`MatrixRef::batch_apart`].
    pub fn view(&self) -> Result<MatrixRef<'_>, Error> {
        let Self { rows, cols, pitch, .. } = *self;
        match self.batch {
            None => MatrixRef::pitched(&self.buffer, rows, cols, pitch),
            Some(count) => {
                MatrixRef::batch_apart(&self.buffer, (count, rows * pitch), rows, cols, pitch)
            }
        }
    }

    /// The matrices to be written.
    ///
    /// # Errors
    /// Those of [`MatrixMut::batch_apart`].
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

/// A matrix of which a view shows the rows, or the columns.
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
