//! Operands of a GEMM of a given shape, allocated to launch its kernels repeatedly.

use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel::call_program;
use crate::kernel::operands::{ByName, Named};
use crate::list::{MatrixList, MatrixListMut};
use crate::operand::sealed::{Input as _, Output as _};
use crate::program::CachedProgram;
use crate::report::LaunchReport;
use crate::shape::{Batch, Shape};
use crate::view::{AsMatrix as _, AsMatrixMut as _, MatrixMut, MatrixRef};
use gemm_dsl::spec::{self, Along, EpilogueArg, SgemmSpec};
use gemm_dsl::tables::SgemmShape;
use std::sync::Arc;

/// Elements of 16 bytes.
const VECTOR: usize = 4;
/// Number of random elements, which matrices repeat.
const PERIOD: usize = 1 << 16;

/// Matrices and epilogue operands of a GEMM.
pub(super) struct TrialOperands {
    device: Device,
    a: Matrices,
    b: Matrices,
    c: Matrices,
    beside: Vec<(EpilogueArg, Beside)>,
    /// Offsets of a single group with all rows, for a grouped GEMM.
    offsets: Option<Buffer<u32>>,
}

/// Operand besides A, B and C.
enum Beside {
    Number,
    Vector(Buffer),
    Matrix(Matrices),
}

/// A matrix, a batch of matrices in one buffer, or a list of matrices in several buffers.
struct Matrices {
    buffers: Vec<Buffer>,
    shape: Shape,
    is_list: bool,
}

/// Layout of the matrices of a problem in memory.
#[derive(Clone, Copy)]
struct Layout {
    /// Number of GEMMs of a batch; `None` without a batch.
    batch: Option<usize>,
    is_list: bool,
    padding: Padding,
    /// Offset of the first element of A, B and C.
    start: usize,
}

/// Padding of rows, or of columns if they are contiguous.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Padding {
    Packed,
    /// At most three elements, up to 16 bytes.
    Least,
    /// At least one element; all rows are aligned to 16 bytes.
    Aligned,
    /// At least one element; the second row is not aligned to 16 bytes.
    Unaligned,
}

impl Padding {
    /// Distance between lines of this length. A line for which there is none is too large for any
    /// memory.
    fn pitch(self, line: usize) -> usize {
        let aligned = |n: usize| n.checked_next_multiple_of(VECTOR).unwrap_or(usize::MAX);
        match self {
            Self::Packed => line,
            Self::Least => aligned(line),
            Self::Aligned => aligned(line.saturating_add(1)),
            Self::Unaligned if line % VECTOR == VECTOR - 1 => line.saturating_add(2),
            Self::Unaligned => line.saturating_add(1),
        }
    }
}

/// Checks that there are matrices of a shape and of its alignment for a spec.
///
/// # Errors
/// [`Error::WrongShape`] if there are none.
pub(super) fn check(spec: &SgemmSpec, shape: &SgemmShape) -> Result<()> {
    Layout::new(spec, shape).map(drop)
}

impl TrialOperands {
    /// Allocates the operands of a spec for GEMMs of a shape. The spec determines the layouts of A
    /// and B. A and B have random elements; C, and the arrays of the epilogue, have zeros; all
    /// numbers are 1.
    ///
    /// # Errors
    /// * The errors of [`check`].
    /// * [`Error::TooLarge`] if a matrix has more elements than `usize` can count.
    /// * The errors of [`Device::upload`].
    pub(super) fn new(device: &Device, spec: &SgemmSpec, shape: &SgemmShape) -> Result<Self> {
        let [m, n, k] = [shape.m, shape.n, shape.k].map(index);
        let (m, n, k) = (m?, n?, k?);
        let layout = Layout::new(spec, shape)?;
        let by_column = [spec.layout.transposes_a(), spec.layout.transposes_b()];
        let of_c = spec.pairs().columns_of_c(n as u64) as usize;
        let c = layout.matrices(device, (m, of_c), false)?;
        let mut a = layout.matrices(device, (m, k), by_column[0])?;
        let mut b = layout.matrices(device, (k, n), by_column[1])?;
        let random = random();
        for buffer in a.buffers.iter_mut().chain(&mut b.buffers) {
            for start in (0..buffer.len()).step_by(PERIOD) {
                let end = buffer.len().min(start + PERIOD);
                buffer.slice_mut(start..end)?.write(&random[..end - start])?;
            }
        }
        let count = layout.batch.unwrap_or(1);
        // A list of GEMMs takes its other matrices as a batch.
        let each = Layout { is_list: false, start: 0, ..layout };
        let one = Layout { batch: None, ..each };
        let beside = spec.operands().into_iter().map(|operand| {
            let vector = |len| device.alloc(len).map(Beside::Vector);
            let rows = |cols| one.matrices(device, (count, cols), false).map(Beside::Matrix);
            let array = match operand.along {
                _ if operand.is_row_result() => vector(count * m)?,
                along if operand.is_output() => {
                    let cols = if along == Along::Pairs { n / 2 } else { n };
                    Beside::Matrix(each.matrices(device, (m, cols), false)?)
                }
                Along::Nothing => Beside::Number,
                Along::N => vector(n)?,
                Along::M => vector(m)?,
                Along::Batch => vector(count)?,
                Along::Mn | Along::Pairs => Beside::Matrix(one.matrices(device, (m, n), false)?),
                Along::BatchN => rows(n)?,
                Along::BatchM => rows(m)?,
            };
            Ok((operand, array))
        });
        let beside = beside.collect::<Result<_>>()?;
        let offsets = spec.offsets_input().map(|_| device.upload_of(&[0, m as u32]));
        let offsets = offsets.transpose()?;
        Ok(Self { device: device.clone(), a, b, c, beside, offsets })
    }

    /// Returns views of the operands, for launches.
    ///
    /// # Errors
    /// Returns the errors of [`MatrixList::new`].
    pub(super) fn views(&mut self) -> Result<TrialViews<'_>> {
        let Self { device, a, b, c, beside, offsets } = self;
        let mut given = Vec::with_capacity(beside.len());
        for (operand, array) in beside {
            let view = match (array, operand.is_output()) {
                (Beside::Number, _) => GivenView::Number,
                (Beside::Vector(vector), true) => GivenView::Results(vector),
                (Beside::Vector(vector), false) => GivenView::Vector(vector),
                (Beside::Matrix(matrices), false) => GivenView::Read(matrices.view(device)?),
                (Beside::Matrix(matrices), true) => GivenView::Written(matrices.view_mut(device)?),
            };
            given.push((&*operand.name, view));
        }
        let (a, b, c) = (a.view(device)?, b.view(device)?, c.view_mut(device)?);
        Ok(TrialViews { device, a, b, c, given, offsets: offsets.as_ref() })
    }
}

/// Views of [`TrialOperands`].
pub(super) struct TrialViews<'o> {
    device: &'o Device,
    a: ReadView<'o>,
    b: ReadView<'o>,
    c: WrittenView<'o>,
    given: Vec<(&'o str, GivenView<'o>)>,
    offsets: Option<&'o Buffer<u32>>,
}

enum GivenView<'o> {
    Number,
    Vector(&'o Buffer),
    /// Vector to be written.
    Results(&'o mut Buffer),
    Read(ReadView<'o>),
    Written(WrittenView<'o>),
}

enum ReadView<'o> {
    One(MatrixRef<'o>),
    List(MatrixList<'o>, bool),
}

enum WrittenView<'o> {
    One(MatrixMut<'o>),
    List(MatrixListMut<'o>),
}

impl ReadView<'_> {
    fn view(&self) -> MatrixRef<'_> {
        match self {
            Self::One(view) => view.as_matrix(),
            Self::List(list, false) => list.as_matrix(),
            Self::List(list, true) => list.t(),
        }
    }
}

impl WrittenView<'_> {
    fn view_mut(&mut self) -> MatrixMut<'_> {
        match self {
            Self::One(view) => view.as_matrix_mut(),
            Self::List(list) => list.as_matrix_mut(),
        }
    }
}

#[cfg(test)]
impl TrialViews<'_> {
    /// Shape by which a table would choose for these matrices.
    pub(super) fn shape(&mut self) -> Result<SgemmShape> {
        use crate::kernel::{NamedMatrix, shape_on};
        let (a, b, c) = (self.a.view(), self.b.view(), self.c.view_mut());
        let c = MatrixRef { elements: c.elements.shared(), shape: c.shape };
        let size = (c.shape.rows, c.shape.cols, a.shape.cols);
        let (a, b) = (NamedMatrix::new("a", &a), NamedMatrix::new("b", &b));
        shape_on(self.device, (a, b, NamedMatrix::new("c", &c)), size, false)
    }
}

/// View of an operand during a launch.
enum LaunchView<'o> {
    Number,
    Vector(&'o Buffer),
    Results(&'o mut Buffer),
    Read(MatrixRef<'o>),
    Written(MatrixMut<'o>),
}

impl TrialViews<'_> {
    /// Launches a program of the spec, or of another spec with the same layouts and operands.
    ///
    /// # Errors
    /// Returns the errors of the launch.
    pub(super) fn launch(&mut self, program: &Arc<CachedProgram>) -> Result<LaunchReport> {
        let Self { device, a, b, c, given, offsets } = self;
        let views = given.iter_mut().map(|(name, view)| {
            let view = match view {
                GivenView::Number => LaunchView::Number,
                GivenView::Vector(vector) => LaunchView::Vector(vector),
                GivenView::Results(vector) => LaunchView::Results(vector),
                GivenView::Read(view) => LaunchView::Read(view.view()),
                GivenView::Written(view) => LaunchView::Written(view.view_mut()),
            };
            (*name, view)
        });
        let mut views: Vec<(&str, LaunchView<'_>)> = views.collect();
        let mut named = Named::default();
        for (name, view) in &mut views {
            match view {
                LaunchView::Number => named.push(name, 1.0),
                LaunchView::Vector(vector) => named.push(name, *vector),
                LaunchView::Results(vector) => named.push(name, &mut **vector),
                LaunchView::Read(view) => named.push(name, &*view),
                LaunchView::Written(view) => named.push(name, view),
            }
        }
        let call = call_program::<ByName, _>(program, device, named);
        let call = match offsets {
            Some(offsets) => call.groups(*offsets),
            None => call,
        };
        call.launch(&a.view(), &b.view(), &mut c.view_mut())
    }
}

impl Layout {
    fn new(spec: &SgemmSpec, shape: &SgemmShape) -> Result<Self> {
        let is_list = spec.batch == Some(spec::Batch::Pointers);
        let batch = match spec.batch {
            Some(_) => Some(index(shape.batch)?),
            None if shape.batch == 1 => None,
            None => return Err(no_batch(shape.batch)),
        };
        let needs_aligned = shape.is_aligned();
        let padding = match (shape.padded, needs_aligned) {
            (true, true) => Padding::Aligned,
            (true, false) => Padding::Unaligned,
            (false, _) if spec.pitched => Padding::Least,
            (false, _) => Padding::Packed,
        };
        let layout = Self { batch, is_list, padding, start: 0 };
        if padding == Padding::Packed {
            // Alignment as it follows from the extents.
            let mut packed = shape.layout(spec.layout);
            packed.aligned = None;
            // Each matrix of a list begins on a boundary of its own.
            packed.batch = if is_list { 1 } else { shape.batch };
            return match (packed.is_aligned(), needs_aligned) {
                (false, true) => Err(never_aligned(&packed)),
                (true, false) => Ok(Self { start: 1, ..layout }),
                (true, true) | (false, false) => Ok(layout),
            };
        }
        // A matrix of one row has no second row, whose alignment the padding would decide.
        Ok(Self { start: usize::from(padding == Padding::Unaligned), ..layout })
    }

    /// Allocates zeros for the matrices of all GEMMs.
    fn matrices(
        self,
        device: &Device,
        (rows, cols): (usize, usize),
        by_column: bool,
    ) -> Result<Matrices> {
        let (lines, line) = if by_column { (cols, rows) } else { (rows, cols) };
        let pitch = self.padding.pitch(line);
        let of_one = product(lines, pitch)?;
        let in_buffer = if self.is_list { 1 } else { self.batch.unwrap_or(1) };
        let len = product(of_one, in_buffer)?.saturating_add(self.start);
        let buffers = if self.is_list { self.batch.unwrap_or(1) } else { 1 };
        let batch = self.batch.filter(|_| !self.is_list);
        let batch = batch.map(|count| Batch::new(count, of_one));
        let (row_stride, col_stride) = if by_column { (1, pitch) } else { (pitch, 1) };
        let shape = Shape { start: self.start, rows, cols, row_stride, col_stride, batch };
        let buffers = (0..buffers).map(|_| device.alloc(len)).collect::<Result<_>>()?;
        Ok(Matrices { buffers, shape, is_list: self.is_list })
    }
}

impl Matrices {
    fn view(&self, device: &Device) -> Result<ReadView<'_>> {
        let by_column = self.is_list && self.shape.col_stride != 1;
        let shape = if by_column { self.shape.transposed() } else { self.shape };
        let views =
            self.buffers.iter().map(|buffer| MatrixRef { elements: buffer.input().0, shape });
        let mut views: Vec<MatrixRef<'_>> = views.collect();
        match views.pop() {
            Some(view) if !self.is_list => Ok(ReadView::One(view)),
            last => {
                views.extend(last);
                Ok(ReadView::List(MatrixList::from_views(device, views)?, by_column))
            }
        }
    }

    fn view_mut(&mut self, device: &Device) -> Result<WrittenView<'_>> {
        let shape = self.shape;
        let views = self.buffers.iter_mut();
        let views = views.map(|buffer| MatrixMut { elements: buffer.output().0, shape });
        let mut views: Vec<MatrixMut<'_>> = views.collect();
        match views.pop() {
            Some(view) if !self.is_list => Ok(WrittenView::One(view)),
            last => {
                views.extend(last);
                Ok(WrittenView::List(MatrixListMut::from_views(device, views)?))
            }
        }
    }
}

/// Random numbers between -1 and 1, the same in every call.
fn random() -> Vec<f32> {
    let mut state = 0x9e37_79b9_u32;
    let numbers = (0..PERIOD).map(|_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    });
    numbers.collect()
}

fn index(extent: u64) -> Result<usize> {
    usize::try_from(extent).map_err(|_| too_large(&extent.to_string()))
}

fn product(count: usize, each: usize) -> Result<usize> {
    let elements = count.checked_mul(each);
    elements.ok_or_else(|| too_large(&format!("{count} times {each}")))
}

fn too_large(elements: &str) -> Error {
    Error::TooLarge {
        what: format!("a matrix of the shape would have {elements} elements"),
        limit: usize::MAX as u64,
        remedy: "Use smaller extents",
    }
}

fn no_batch(count: u64) -> Error {
    Error::WrongShape {
        argument: "shape".to_owned(),
        has: format!("a batch of {count}"),
        need: "the specs of the table have no key `batch`".to_owned(),
        remedy: "Use a table whose specs have `batch: strided`",
    }
}

fn never_aligned(shape: &SgemmShape) -> Error {
    let SgemmShape { m, n, k, .. } = shape;
    Error::WrongShape {
        argument: "shape".to_owned(),
        has: format!("{m} x {n} x {k}, packed and declared as aligned"),
        need: "packed rows or columns are aligned only if their lengths are multiples of 4"
            .to_owned(),
        remedy: "Leave out `aligned`, or declare padding with `padded`",
    }
}
