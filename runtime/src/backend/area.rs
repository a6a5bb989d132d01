//! Rectangles of device memory, for copies.

use super::Backend;
use crate::blocks::Blocks;
use crate::error::{Error, Result};
use crate::kernel_arg::Address;
use gemm_dsl::target::element::Element;
use std::ops::Range;

/// Rectangle of a row-major matrix in device memory.
pub struct Area<B: Backend> {
    /// Address of the first element.
    pub first: B::Address,
    /// Number of rows of the rectangle.
    pub rows: usize,
    /// Number of elements of a row.
    pub cols: usize,
    /// Distance between the starts of two rows, in elements.
    pub pitch: usize,
}

impl<B: Backend> Clone for Area<B> {
    fn clone(&self) -> Self {
        Self { first: self.first.clone(), ..*self }
    }
}

impl<B: Backend> Area<B> {
    /// Number of elements of the rectangle.
    #[expect(clippy::len_without_is_empty, reason = "a hidden type; callers never need `is_empty`")]
    pub fn len(&self) -> usize {
        self.rows * self.cols
    }

    /// Returns true if the rows are adjacent in memory.
    pub fn is_packed(&self) -> bool {
        self.rows <= 1 || self.pitch == self.cols
    }

    /// Elements from the first to the last, including the padding between rows.
    pub fn span(&self) -> usize {
        match self.len() {
            0 => 0,
            _ => (self.rows - 1) * self.pitch + self.cols,
        }
    }

    /// The part of this rectangle with the given rows and columns; `None` if it is not inside.
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

    /// Copy of this area to another of the same extents.
    pub(super) fn blocks_to(&self, to: &Self) -> Result<Blocks> {
        if (self.rows, self.cols) != (to.rows, to.cols) {
            return Err(Error::Internal("a copy between areas of unequal extents".to_owned()));
        }
        Ok(match self.is_packed() && to.is_packed() {
            true => Blocks::rows(1, self.len(), self.len(), self.len()),
            false => Blocks::rows(self.rows, self.cols, to.pitch, self.pitch),
        })
    }
}

/// Copies of rectangles.
pub trait Areas: Backend {
    /// Copies the elements of one area to another of the same extents, in the order of the device's
    /// other work.
    fn copy_area(&self, from: &Area<Self>, to: &Area<Self>) -> Result<()> {
        self.copy(&to.first, &from.first, &from.blocks_to(to)?)
    }

    /// Copies an area to the host, row by row, after all work so far. `T` must be the type of the
    /// address.
    fn read_area<T: Element>(&self, from: &Area<Self>) -> Result<Vec<T>> {
        let mut elements = vec![T::default(); from.len()];
        let blocks = Blocks::rows(from.rows, from.cols, from.cols, from.pitch);
        self.read(&mut elements, &from.first, &blocks)?;
        Ok(elements)
    }

    /// Copies elements from the host to an area, row by row. The slice may be changed after the
    /// call returns.
    fn write_area<T: Element>(&self, to: &Area<Self>, elements: &[T]) -> Result<()> {
        if elements.len() != to.len() {
            return Err(Error::Internal("an area and its elements differ in number".to_owned()));
        }
        self.write(&to.first, elements, &Blocks::rows(to.rows, to.cols, to.pitch, to.cols))
    }
}

impl<B: Backend> Areas for B {}
