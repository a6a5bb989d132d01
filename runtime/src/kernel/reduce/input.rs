//! Host inputs of reductions, of any element type.

use crate::buffer::Buffer;
use crate::device::Device;
use crate::dyn_array::{OwnedInput, Readable};
use crate::error::Result;
use crate::view::MatrixRef;
use gemm_dsl::ir::Elem;
use gemm_dsl::spec::{Over, newer_word};
use gemm_dsl::target::element::Element;

/// Input of a reduction on the host.
pub enum HostInput<'h> {
    Array(Box<dyn HostArray + 'h>),
    /// Type and bits of a number.
    Number(Elem, u64),
}

impl<'h> HostInput<'h> {
    pub(super) fn array<E: Element>(elements: &'h [E]) -> Self {
        Self::Array(Box::new(elements))
    }
}

/// Array on the host, of any element type.
pub trait HostArray {
    fn count(&self) -> usize;

    fn upload(&self, device: &Device) -> Result<Box<dyn Uploaded>>;
}

impl<E: Element> HostArray for &[E] {
    fn count(&self) -> usize {
        self.len()
    }

    fn upload(&self, device: &Device) -> Result<Box<dyn Uploaded>> {
        Ok(Box::new(device.upload_of(self)?))
    }
}

/// Array on a device, of any element type.
pub trait Uploaded {
    /// The whole array.
    fn whole(&self) -> Box<dyn Readable + '_>;

    /// View of the packed array, of the extents (outer, length, inner).
    fn view(&self, over: Over, size: (usize, usize, usize)) -> Result<Box<dyn Readable + '_>>;
}

impl<E: Element> Uploaded for Buffer<E> {
    fn whole(&self) -> Box<dyn Readable + '_> {
        Box::new(self)
    }

    fn view(&self, over: Over, size: (usize, usize, usize)) -> Result<Box<dyn Readable + '_>> {
        let (outer, length, inner) = size;
        let view = match over {
            Over::Columns => MatrixRef::new(self, length, inner),
            Over::Middle => MatrixRef::batch(self, outer, length, inner),
            Over::Rows | Over::All | Over::Segments => MatrixRef::new(self, outer, length),
            over => newer_word(over),
        };
        Ok(Box::new(OwnedInput(view?)))
    }
}
