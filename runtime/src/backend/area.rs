//! Rectangles of device memory, as they are copied.

use super::Backend;
use crate::error::Result;
use crate::kernel_arg::Address;
use gemm_dsl::target::element::Element;
use std::ops::Range;

/// Where a block of a matrix lies in the memory of a device: rows of consecutive elements.
pub struct Area<B: Backend> {
    /// The first element of the first row.
    pub first: B::Address,
    /// How many rows.
    pub rows: usize,
    /// Elements of a row.
    pub cols: usize,
    /// The distance between the starts of two rows, in elements.
    pub pitch: usize,
}

impl<B: Backend> Clone for Area<B> {
    fn clone(&self) -> Self {
        Self { first: self.first.clone(), ..*self }
    }
}

impl<B: Backend> Area<B> {
    /// How many elements it has.
    #[expect(clippy::len_without_is_empty, reason = "a hidden type; nobody asks for emptiness")]
    pub fn len(&self) -> usize {
        self.rows * self.cols
    }

    /// Whether nothing lies between its rows.
    pub fn is_packed(&self) -> bool {
        self.rows <= 1 || self.pitch == self.cols
    }

    /// Elements from the first one to the last.
    pub fn span(&self) -> usize {
        match self.len() {
            0 => 0,
            _ => (self.rows - 1) * self.pitch + self.cols,
        }
    }

    /// A rectangle of it; none where it is not all there.
    pub fn part(&self, rows: Range<usize>, cols: Range<usize>) -> Option<Self> {
        if rows.end > self.rows || cols.end > self.cols {
            return None;
        }
        let part = Self {
            first: self.first.clone(),
            rows: rows.len(),
            cols: cols.len(),
            pitch: self.pitch,
        };
        let start = if part.len() == 0 { 0 } else { rows.start * self.pitch + cols.start };
        let first = self.first.part(start as u64, part.span() as u64)?;
        Some(Self { first, ..part })
    }

    /// The first element of each row.
    pub fn lines(&self) -> impl Iterator<Item = Option<B::Address>> {
        let rows = if self.cols == 0 { 0 } else { self.rows };
        (0..rows).map(|row| self.first.part((row * self.pitch) as u64, self.cols as u64))
    }
}

/// A back end that copies areas.
pub trait Areas: Backend {
    /// Copies the elements of one area to another of the same extents, in the order of the device's work.
    fn copy_area(&self, from: &Area<Self>, to: &Area<Self>) -> Result<()>;

    /// Copies an area to the host, row after row, after all work so far. Its elements are of the type of the address.
    fn read_area<T: Element>(&self, from: &Area<Self>) -> Result<Vec<T>>;

    /// Copies as many elements as an area has from the host, row after row; they may then be changed.
    fn write_area<T: Element>(&self, to: &Area<Self>, elements: &[T]) -> Result<()>;
}
