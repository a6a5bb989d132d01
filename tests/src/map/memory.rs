//! Arrays of random elementwise kernels in poisoned memory.

use crate::element_type::with_type;
use crate::fold::placement::poison;
use gemm_dsl::ir::Elem;
use gemm_runtime::bounds::AsMatrixMut;
use gemm_runtime::generic::MapCall;
use gemm_runtime::{
    Buffer, BufferView, BufferViewMut, Device, Element, Error, MatrixMut, MatrixRef,
};

/// Array in its memory.
#[derive(Clone, Copy)]
pub(super) struct Image {
    pub(super) start: usize,
    /// Elements from the first to the last.
    pub(super) len: usize,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) pitch: usize,
    pub(super) by_column: bool,
    pub(super) is_matrix: bool,
}

/// Elements after an array.
const BEHIND: usize = 7;

impl Image {
    fn place(&self, row: usize, col: usize) -> usize {
        let (line, at) = if self.by_column { (col, row) } else { (row, col) };
        self.start + line * self.pitch + at
    }

    fn places(self) -> impl Iterator<Item = usize> {
        (0..self.rows).flat_map(move |row| (0..self.cols).map(move |col| self.place(row, col)))
    }

    /// Memory with these elements, and poison elsewhere.
    pub(super) fn filled(self, elem: Elem, bits: Option<&[u64]>) -> Vec<u64> {
        let mut memory = vec![poison(elem); self.start + self.len + BEHIND];
        for (place, bits) in self.places().zip(bits.into_iter().flatten()) {
            memory[place] = *bits;
        }
        memory
    }

    /// Elements of a memory, row by row.
    pub(super) fn elements(self, elem: Elem, memory: &[u64]) -> Result<Vec<u64>, String> {
        let mut inside = vec![false; memory.len()];
        self.places().for_each(|place| inside[place] = true);
        match (0..memory.len()).find(|at| !inside[*at] && memory[*at] != poison(elem)) {
            Some(at) => Err(format!("element {at} of the memory, outside of a result, is written")),
            None => Ok(self.places().map(|place| memory[place]).collect()),
        }
    }
}

pub(super) fn memory(device: &Device, elem: Elem, bits: &[u64]) -> Result<Box<dyn Memory>, Error> {
    let elements = gemm_sim::Buffer::from_bits(elem, bits.iter().copied());
    Ok(with_type!(elem, T => {
        let elements: Vec<T> =
            elements.to_vec_of().unwrap_or_else(|| unreachable!("they have this type"));
        Box::new(device.upload_of(&elements)?)
    }))
}

pub(super) trait Memory {
    fn part(&self, image: Image) -> Result<Box<dyn Part + '_>, Error>;
    fn part_mut(&mut self, image: Image) -> Result<Box<dyn PartMut + '_>, Error>;
    fn bits(&self, device: &Device) -> Result<Vec<u64>, Error>;
}

pub(super) trait Part {
    fn view(&self) -> Result<Box<dyn View + '_>, Error>;
}

pub(super) trait View {
    fn give<'c>(&'c self, name: &str, call: MapCall<'c>) -> MapCall<'c>;
}

pub(super) trait PartMut {
    fn view_mut(&mut self) -> Result<Box<dyn ViewMut + '_>, Error>;
}

pub(super) trait ViewMut {
    fn target(&mut self) -> Box<dyn Target + '_>;
}

pub(super) trait Target {
    fn give<'c>(&'c mut self, name: &str, call: MapCall<'c>) -> MapCall<'c>;
}

impl<T: Element> Memory for Buffer<T> {
    fn part(&self, image: Image) -> Result<Box<dyn Part + '_>, Error> {
        Ok(Box::new((self.slice(image.start..image.start + image.len)?, image)))
    }

    fn part_mut(&mut self, image: Image) -> Result<Box<dyn PartMut + '_>, Error> {
        Ok(Box::new((self.slice_mut(image.start..image.start + image.len)?, image)))
    }

    fn bits(&self, device: &Device) -> Result<Vec<u64>, Error> {
        Ok(gemm_sim::Buffer::from_slice(&device.download(self)?).bits())
    }
}

impl<T: Element> Part for (BufferView<'_, T>, Image) {
    fn view(&self) -> Result<Box<dyn View + '_>, Error> {
        let (part, image) = self;
        let Image { rows, cols, pitch, .. } = *image;
        Ok(match (image.is_matrix, image.by_column) {
            (false, _) => Box::new(*part),
            (true, false) => Box::new(MatrixRef::pitched(part, rows, cols, pitch)?),
            (true, true) => Box::new(MatrixRef::pitched(part, cols, rows, pitch)?.t()),
        })
    }
}

impl<T: Element> View for BufferView<'_, T> {
    fn give<'c>(&'c self, name: &str, call: MapCall<'c>) -> MapCall<'c> {
        call.operand(name, self)
    }
}

impl<T: Element> View for MatrixRef<'_, T> {
    fn give<'c>(&'c self, name: &str, call: MapCall<'c>) -> MapCall<'c> {
        call.operand(name, self)
    }
}

impl<T: Element> PartMut for (BufferViewMut<'_, T>, Image) {
    fn view_mut(&mut self) -> Result<Box<dyn ViewMut + '_>, Error> {
        let (part, image) = self;
        let Image { rows, cols, pitch, by_column, is_matrix, .. } = *image;
        let (lines, line) = if by_column { (cols, rows) } else { (rows, cols) };
        Ok(match is_matrix {
            false => Box::new(part),
            true => Box::new(Lines {
                matrix: MatrixMut::pitched(part, lines, line, pitch)?,
                are_columns: by_column,
            }),
        })
    }
}

/// Target whose lines in memory are its rows or its columns.
struct Lines<'v, T: Element> {
    matrix: MatrixMut<'v, T>,
    are_columns: bool,
}

impl<T: Element> ViewMut for &mut BufferViewMut<'_, T> {
    fn target(&mut self) -> Box<dyn Target + '_> {
        Box::new(&mut **self)
    }
}

impl<T: Element> ViewMut for Lines<'_, T> {
    fn target(&mut self) -> Box<dyn Target + '_> {
        match self.are_columns {
            false => Box::new(self.matrix.as_matrix_mut()),
            true => Box::new(self.matrix.t()),
        }
    }
}

impl<T: Element> Target for &mut BufferViewMut<'_, T> {
    fn give<'c>(&'c mut self, name: &str, call: MapCall<'c>) -> MapCall<'c> {
        call.result(name, &mut **self)
    }
}

impl<T: Element> Target for MatrixMut<'_, T> {
    fn give<'c>(&'c mut self, name: &str, call: MapCall<'c>) -> MapCall<'c> {
        call.result(name, self)
    }
}
