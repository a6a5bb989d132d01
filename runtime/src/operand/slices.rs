//! `cudarc` slices to read. A `CudaView` cannot be copied, so a view of this crate borrows the
//! owner of the elements, and creates a `CudaView` where a launch needs one.

use cudarc::driver::{CudaSlice, CudaView, CudaViewMut};
use gemm_dsl::target::element::Element;
use std::ops::Range;

/// Owner of the elements of a `cudarc` slice.
#[derive(Clone, Copy)]
pub enum SliceOwner<'a, T: Element> {
    /// Whole allocation.
    Slice(&'a CudaSlice<T>),
    /// Read-only view of an allocation.
    View(&'a CudaView<'a, T>),
    /// Writable view of an allocation.
    ViewMut(&'a CudaViewMut<'a, T>),
}

/// Consecutive elements of a `cudarc` slice.
#[derive(Clone, Copy)]
pub struct SharedSlice<'a, T: Element> {
    owner: SliceOwner<'a, T>,
    /// First element within the owner.
    start: usize,
    pub(super) len: usize,
}

/// `cudarc` slices of a list of arrays.
#[derive(Clone, Copy)]
pub enum SharedSlices<'a, T: Element> {
    /// Slices that the list borrows.
    Shared(&'a [CudaView<'a, T>]),
    /// Slices that the list borrows exclusively.
    Exclusive(&'a [CudaViewMut<'a, T>]),
}

impl<'a, T: Element> SharedSlice<'a, T> {
    /// All elements of the owner.
    pub fn new(owner: SliceOwner<'a, T>) -> Self {
        let len = match owner {
            SliceOwner::Slice(slice) => slice.len(),
            SliceOwner::View(view) => view.len(),
            SliceOwner::ViewMut(view) => view.len(),
        };
        Self { owner, start: 0, len }
    }

    /// Consecutive elements of these. `None` if the range is not inside.
    pub(super) fn part(&self, range: Range<usize>) -> Option<Self> {
        let Range { start, end } = range;
        let inside = start <= end && end <= self.len;
        inside.then(|| Self { start: self.start + start, len: end - start, ..*self })
    }

    /// View for `cudarc`.
    pub fn view(&self) -> CudaView<'a, T> {
        let range = self.start..self.start + self.len;
        match self.owner {
            SliceOwner::Slice(slice) => slice.slice(range),
            SliceOwner::View(view) => view.slice(range),
            SliceOwner::ViewMut(view) => view.as_view().slice(range),
        }
    }
}

impl<'a, T: Element> SharedSlices<'a, T> {
    /// Views for `cudarc`.
    pub fn views(&self) -> Vec<CudaView<'a, T>> {
        match self {
            SharedSlices::Shared(views) => views.iter().map(|view| view.slice(..)).collect(),
            SharedSlices::Exclusive(views) => views.iter().map(CudaViewMut::as_view).collect(),
        }
    }
}
