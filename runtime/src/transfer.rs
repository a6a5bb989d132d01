//! Copies between host and device, copies within a device, and fills.

mod asynchronous;
mod buffers;
#[cfg(feature = "faer")]
mod faer;
mod matrices;
#[cfg(feature = "ndarray")]
mod ndarray;

use crate::backend::host_memory::room;
use crate::backend::{Backend, Place};
use crate::blocks::{Blocks, offsets, packed_strides, strides_in_memory_order};
use crate::device::{Device, On, dispatch};
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::operand::{self, Input, InputOf, LocatedOperand, Output};
use crate::shape::{PerAxis, Shape};
#[cfg(any(feature = "faer", feature = "ndarray"))]
use crate::view::MatrixRef;
use gemm_dsl::target::element::Element;

impl Device {
    /// Copies elements to the host, after all earlier work of the device.
    ///
    /// The elements of a [`Matrix`] or a view are returned row by row, and a batch or a list matrix
    /// by matrix. Padding is left out. To include it, download [`Matrix::buffer`].
    ///
    /// # Errors
    /// * [`Error::WrongDevice`] if the array belongs to another device.
    /// * [`Error::OutOfMemory`] if the host has too little memory. The result may be larger than
    ///   the array, since a batch or a list may repeat one matrix.
    /// * [`Error::Capturing`] while the device's stream is captured into a graph.
    /// * [`Error::Driver`] if an earlier launch failed.
    pub fn download<A: Input + ?Sized>(&self, array: &A) -> Result<Vec<A::Element>> {
        dispatch!(self, on => {
            let array = operand::read(on, array, "array")?;
            match &array.place {
                Place::One { address, len } => {
                    let shape = array.shape.unwrap_or(Shape::packed(1, to_usize(*len)));
                    let mut elements = room(shape.count())?;
                    read(on, &mut elements, address, &shape)?;
                    Ok(elements)
                }
                Place::List(list) => {
                    let shape = Shape { batch: None, ..array.shape.unwrap_or(Shape::packed(0, 0)) };
                    let count = shape.count();
                    let mut elements = room(list.arrays.len().saturating_mul(count))?;
                    for (address, elements) in
                        list.arrays.iter().zip(elements.chunks_exact_mut(count.max(1)))
                    {
                        read(on, elements, address, &shape)?;
                    }
                    Ok(elements)
                }
            }
        })
    }

    /// Copies a matrix to the host row by row, without padding, as [`Device::download`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Device::download`].
    pub fn download_matrix<T: Element>(&self, matrix: &Matrix<T>) -> Result<Vec<T>> {
        self.download(matrix)
    }

    /// Copies elements into existing host memory, after all earlier work of the device, in the
    /// order of [`Device::download`].
    ///
    /// The call allocates nothing if the rows of the array are contiguous. Else it reorders the
    /// elements in host memory.
    ///
    /// ```
    /// use gemm_runtime::Device;
    ///
    /// let device = Device::simulator();
    /// let x = device.upload_matrix(&[1.0, 2.0, 3.0, 4.0], 2, 2)?;
    /// let mut column = [0.0; 2];
    /// device.read_into(&x.part(0..2, 1..2)?, &mut column)?;
    /// assert_eq!(column, [2.0, 4.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::WrongExtent`] if `elements` and the array differ in length.
    /// * [`Error::List`] for a list of matrices.
    /// * The errors of [`Device::download`].
    pub fn read_into<A: Input + ?Sized>(
        &self,
        array: &A,
        elements: &mut [A::Element],
    ) -> Result<()> {
        dispatch!(self, on => {
            let array = operand::read(on, array, "array")?;
            let array = SingleArray::new(&array, "array")?;
            check_len("elements", elements.len(), "array", &array.shape)?;
            read(on, elements, array.address, &array.shape)
        })
    }

    /// Copies elements from the host into an existing array. The slice may be changed after the
    /// call returns.
    ///
    /// The elements of a [`Matrix`] or a view are written row by row, and a batch matrix by matrix.
    /// Elements between rows keep their values. The call allocates no device memory. If the rows of
    /// the array are not contiguous, it reorders the elements in host memory.
    ///
    /// [`Buffer::write`](crate::Buffer::write) and [`Matrix::write`] are the same call on the
    /// array's own device.
    ///
    /// ```
    /// use gemm_runtime::Device;
    ///
    /// let device = Device::simulator();
    /// let mut x = device.alloc_matrix(2, 3)?;
    /// device.write(&mut x.view_mut().part(0..2, 1..3)?, &[1.0, 2.0, 3.0, 4.0])?;
    /// assert_eq!(device.download(&x)?, [0.0, 1.0, 2.0, 0.0, 3.0, 4.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::WrongExtent`] if `elements` and the array differ in length.
    /// * [`Error::WrongDevice`] if the array belongs to another device.
    /// * [`Error::List`] for a list of matrices.
    /// * [`Error::Overlap`] for a batch whose matrices share elements.
    /// * [`Error::Capturing`] while the device's stream is captured into a graph.
    /// * [`Error::Driver`] if the driver fails.
    pub fn write<O: Output + ?Sized>(&self, target: &mut O, elements: &[O::Element]) -> Result<()> {
        dispatch!(self, on => {
            let target = operand::write(on, target, "target")?;
            let target = SingleArray::new(&target, "target")?.distinct("target")?;
            check_len("elements", elements.len(), "target", &target.shape)?;
            write(on, target.address, &target.shape, elements)
        })
    }

    /// Copies elements from one array of the device to another, in the order of the device's other
    /// work. The host does not wait.
    ///
    /// Matrices must have the same shape, but may have any strides: one of them may be a transpose
    /// or a part. Between a matrix and a vector, the elements are copied row by row. The bits of
    /// the elements are preserved.
    ///
    /// The call allocates nothing. If the rows of both matrices are contiguous, a copy is one call
    /// of the driver, or one for each matrix of a batch. To or from a transpose, it is one call for
    /// each row or each column, whichever are fewer.
    ///
    /// ```
    /// use gemm_runtime::Device;
    ///
    /// let device = Device::simulator();
    /// let x = device.upload_matrix(&[1.0, 2.0, 3.0, 4.0], 2, 2)?;
    /// let mut transposed = device.alloc_matrix(2, 2)?;
    /// device.copy(&x.t(), &mut transposed)?;
    /// assert_eq!(device.download(&transposed)?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::WrongShape`] if two matrices differ in shape.
    /// * [`Error::WrongExtent`] if the arrays differ in length.
    /// * [`Error::WrongDevice`] if an array belongs to another device.
    /// * [`Error::List`] for a list of matrices.
    /// * [`Error::Overlap`] if `target` is a batch whose matrices share elements.
    /// * [`Error::Driver`] if the driver fails.
    pub fn copy<I, O>(&self, source: &I, target: &mut O) -> Result<()>
    where
        I: InputOf<O::Element> + ?Sized,
        O: Output + ?Sized,
    {
        dispatch!(self, on => {
            let (source, target) =
                (operand::read(on, source, "source")?, operand::write(on, target, "target")?);
            let source = SingleArray::new(&source, "source")?;
            let target = SingleArray::new(&target, "target")?.distinct("target")?;
            source.check_copy(&target)?;
            on.backend.copy(target.address, source.address, &source.blocks_to(&target))
        })
    }

    /// Sets all elements of an array to a value, in the order of the device's other work. The host
    /// does not wait, and the call allocates nothing. Elements between rows keep their values.
    ///
    /// ```
    /// use gemm_runtime::Device;
    ///
    /// let device = Device::simulator();
    /// let mut x = device.alloc(4)?;
    /// device.fill(&mut x.slice_mut(1..3)?, 7.0)?;
    /// assert_eq!(device.download(&x)?, [0.0, 7.0, 7.0, 0.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::WrongDevice`] if the array belongs to another device.
    /// * [`Error::List`] for a list of matrices.
    /// * [`Error::Driver`] if the driver fails.
    pub fn fill<O: Output + ?Sized>(&self, target: &mut O, value: O::Element) -> Result<()> {
        dispatch!(self, on => {
            let target = operand::write(on, target, "target")?;
            let SingleArray { address, shape, .. } = SingleArray::new(&target, "target")?;
            let blocks = Blocks::new(shape.extents(), shape.strides(), shape.strides());
            on.backend.fill(address, value, &blocks)
        })
    }
}

/// Number of elements in memory, which a `usize` can count.
fn to_usize(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

/// Array of a copy.
struct SingleArray<'o, B: Backend> {
    address: &'o B::Address,
    /// Shape; that of a vector is one row.
    shape: Shape,
    is_matrix: bool,
}

impl<'o, B: Backend> SingleArray<'o, B> {
    fn new(operand: &'o LocatedOperand<'_, B>, argument: &str) -> Result<Self> {
        let (address, len) = operand.array(argument)?;
        let shape = operand.shape.unwrap_or(Shape::packed(1, to_usize(len)));
        if shape.span() as u64 > len {
            return Err(Error::Internal(format!("`{argument}` reaches beyond its array")));
        }
        Ok(Self { address, shape, is_matrix: operand.shape.is_some() })
    }

    /// Checks that no two matrices of a batch share an element.
    fn distinct(self, argument: &str) -> Result<Self> {
        if self.shape.overlaps_itself() {
            let named = |nth: usize| format!("matrix {nth} of `{argument}`");
            return Err(Error::Overlap { written: named(1), other: named(0) });
        }
        Ok(self)
    }

    /// Checks that two matrices have the same shape, or that a matrix and a vector have the same
    /// number of elements.
    fn check_copy(&self, target: &Self) -> Result<()> {
        let (from, to) = (&self.shape, &target.shape);
        if !(self.is_matrix && target.is_matrix) {
            return check_len("source", from.count(), "target", to);
        }
        if from.extents() == to.extents() {
            return Ok(());
        }
        let is_transposed = from.transposed().extents() == to.extents();
        Err(Error::WrongShape {
            argument: "source".to_owned(),
            has: from.extents_in_words(),
            need: format!("`target` is {}", to.extents_in_words()),
            remedy: match is_transposed {
                true => "Pass `source.t()`",
                false => "Pass a part of the larger one",
            },
        })
    }

    /// Copy to an array with the same number of elements.
    fn blocks_to(&self, target: &Self) -> Blocks {
        // A vector takes on the extents of a matrix.
        let extents = if target.is_matrix { &target.shape } else { &self.shape }.extents();
        let strides = |array: &Self| match array.shape.extents() == extents {
            true => array.shape.strides(),
            false => packed_strides(extents),
        };
        Blocks::new(extents, strides(target), strides(self))
    }
}

fn check_len(argument: &str, has: usize, array: &str, shape: &Shape) -> Result<()> {
    let needed = shape.count();
    if has == needed {
        return Ok(());
    }
    let need = format!("`{array}` has {needed}: pass as many");
    Err(Error::WrongExtent { argument: argument.to_owned(), has: has as u64, need })
}

/// Checks that a view is a single matrix, which `host` can hold.
#[cfg(any(feature = "faer", feature = "ndarray"))]
fn check_single<T: Element>(view: &MatrixRef<'_, T>, host: &str) -> Result<()> {
    let Some(count) = view.count() else { return Ok(()) };
    Err(Error::WrongShape {
        argument: "matrix".to_owned(),
        has: format!("{count} matrices of {}×{} elements", view.rows(), view.cols()),
        need: format!("{host} is one matrix"),
        remedy: "Download the matrices one by one, or all elements with Device::download",
    })
}

/// Order of the elements in host memory during a transfer.
enum HostOrder {
    /// Row by row, as the caller has them.
    Rows(Blocks),
    /// In the order of device memory, with these strides.
    Memory(PerAxis),
}

impl HostOrder {
    /// Order for which `blocks` copies few long rows.
    fn new(shape: &Shape, blocks: impl Fn(PerAxis) -> Blocks) -> Self {
        let by_rows = blocks(packed_strides(shape.extents()));
        match by_rows.is_by_rows() {
            true => Self::Rows(by_rows),
            false => Self::Memory(strides_in_memory_order(shape.extents(), shape.strides())),
        }
    }
}

/// Pairs of an element's number, row by row, and its place in host memory of these strides.
fn reordered(shape: &Shape, strides: PerAxis) -> impl Iterator<Item = (usize, usize)> {
    offsets(shape.extents(), strides).enumerate()
}

fn write<T: Element, B: Backend>(
    on: On<'_, B>,
    to: &B::Address,
    shape: &Shape,
    elements: &[T],
) -> Result<()> {
    let blocks = |host: PerAxis| Blocks::new(shape.extents(), shape.strides(), host);
    match HostOrder::new(shape, blocks) {
        HostOrder::Rows(blocks) => on.backend.write(to, elements, &blocks),
        HostOrder::Memory(strides) => {
            let mut in_memory = room(elements.len())?;
            for (nth, place) in reordered(shape, strides) {
                in_memory[place] = elements[nth];
            }
            on.backend.write(to, &in_memory, &blocks(strides))
        }
    }
}

fn read<T: Element, B: Backend>(
    on: On<'_, B>,
    elements: &mut [T],
    from: &B::Address,
    shape: &Shape,
) -> Result<()> {
    let blocks = |host: PerAxis| Blocks::new(shape.extents(), host, shape.strides());
    match HostOrder::new(shape, blocks) {
        HostOrder::Rows(blocks) => on.backend.read(elements, from, &blocks),
        HostOrder::Memory(strides) => {
            let mut in_memory = room(elements.len())?;
            on.backend.read(&mut in_memory, from, &blocks(strides))?;
            for (nth, place) in reordered(shape, strides) {
                elements[nth] = in_memory[place];
            }
            Ok(())
        }
    }
}
