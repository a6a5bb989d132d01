//! The matrices of a product, on the device in the forms that kernels and cuBLAS take.

use crate::beside::Beside;
use crate::gpu::{self, Gpu, failed};
use cudarc::driver::CudaSlice;
use gemm_dsl::spec::{Layout, SgemmSpec};
use gemm_reference::beside::plain;
use gemm_reference::product::{Size, Truth, Verdict, transposed};
use gemm_runtime::{Buffer, ByName, Device, Error, Launched, Matrix, MatrixMut, MatrixRef, Sgemm};
use std::borrow::Cow;

/// A and B, and what their product ought to be.
pub struct Operands<'h> {
    size: Size,
    a: Source<'h>,
    b: Source<'h>,
    /// A·B in `f64`.
    pub truth: Truth,
    /// Room for the result of cuBLAS; none on the simulator.
    pub blas_c: Option<CudaSlice<f32>>,
}

/// A matrix of the host, row after row, and the packed forms of it on the device so far.
struct Source<'h> {
    elements: &'h [f32],
    rows: usize,
    cols: usize,
    by_row: Option<Array>,
    by_column: Option<Array>,
}

/// Elements on a device: as cuBLAS takes them too, where there is a GPU.
enum Array {
    Simulated(Buffer),
    Gpu(CudaSlice<f32>),
}

impl Array {
    fn new(device: &Device, elements: &[f32]) -> Result<Self, Error> {
        let Some(gpu) = Gpu::of(device) else {
            return Ok(Self::Simulated(device.upload(elements)?));
        };
        let slice = match elements {
            [] => gpu.stream.alloc_zeros(1),
            elements => gpu.stream.clone_htod(elements),
        };
        Ok(Self::Gpu(slice.map_err(failed("copying an operand to the GPU"))?))
    }

    fn view(&self, rows: usize, cols: usize) -> Result<MatrixRef<'_>, Error> {
        match self {
            Self::Simulated(buffer) => MatrixRef::new(buffer, rows, cols),
            Self::Gpu(slice) => MatrixRef::new(slice, rows, cols),
        }
    }
}

impl<'h> Source<'h> {
    fn new(elements: &'h [f32], rows: usize, cols: usize) -> Self {
        Self { elements, rows, cols, by_row: None, by_column: None }
    }

    /// The elements as they lie.
    fn lying(&self, by_column: bool) -> Cow<'h, [f32]> {
        match by_column {
            false => Cow::Borrowed(self.elements),
            true => Cow::Owned(transposed(self.elements, self.rows, self.cols)),
        }
    }

    /// The numbers of lines and of elements of one.
    fn lines(&self, by_column: bool) -> (usize, usize) {
        if by_column { (self.cols, self.rows) } else { (self.rows, self.cols) }
    }

    /// Puts a packed form on the device, if it is not there yet.
    fn bring(&mut self, device: &Device, by_column: bool) -> Result<(), Error> {
        if self.form(by_column).is_none() {
            let array = Some(Array::new(device, &self.lying(by_column))?);
            if by_column { self.by_column = array } else { self.by_row = array }
        }
        Ok(())
    }

    fn form(&self, by_column: bool) -> Option<&Array> {
        if by_column { self.by_column.as_ref() } else { self.by_row.as_ref() }
    }

    /// A form that has been brought.
    fn brought(&self, by_column: bool) -> Result<&Array, Error> {
        let none = || Error::Internal("an operand in a form that was not asked for".to_owned());
        self.form(by_column).ok_or_else(none)
    }

    /// The matrix for a kernel.
    fn placed(&self, device: &Device, by_column: bool, pitched: bool) -> Result<Placed<'_>, Error> {
        let (lines, line) = self.lines(by_column);
        if pitched {
            let matrix = device.upload_matrix(&self.lying(by_column), lines, line)?;
            return Ok(Placed::Pitched(matrix, by_column));
        }
        Ok(Placed::Packed(turned(self.brought(by_column)?.view(lines, line)?, by_column)))
    }
}

/// A matrix of which a view shows the rows, or the columns.
fn turned(lines: MatrixRef<'_>, by_column: bool) -> MatrixRef<'_> {
    if by_column { lines.t() } else { lines }
}

/// A, B and C in the form that one kernel takes.
pub struct Launchable<'o> {
    a: Placed<'o>,
    b: Placed<'o>,
    c: Matrix,
    beside: Beside,
}

/// A matrix to be read.
enum Placed<'o> {
    /// Lines one after the other.
    Packed(MatrixRef<'o>),
    /// Lines, columns or rows, padded to 16 bytes.
    Pitched(Matrix, bool),
}

impl Placed<'_> {
    fn view(&self) -> MatrixRef<'_> {
        match self {
            // As it is, in a shorter life.
            Self::Packed(view) => view.t().t(),
            Self::Pitched(lines, by_column) => turned(lines.view(), *by_column),
        }
    }
}

impl<'h> Operands<'h> {
    /// Uploads the matrices and multiplies them in `f64`.
    ///
    /// # Errors
    /// Those of uploads, and of the reference.
    pub fn new(device: &Device, a: &'h [f32], b: &'h [f32], size: Size) -> Result<Self, Error> {
        let Size { m, n, k } = size;
        let (mut left, mut right) = (Source::new(a, m, k), Source::new(b, k, n));
        left.bring(device, false)?;
        right.bring(device, false)?;
        let (truth, blas_c) = match (Gpu::of(device), left.form(false), right.form(false)) {
            (Some(gpu), Some(Array::Gpu(left)), Some(Array::Gpu(right))) => {
                let c = gpu.stream.alloc_zeros((m * n).max(1));
                let c = c.map_err(failed("allocating a result"))?;
                (gpu::product(gpu, (left, a), (right, b), size)?, Some(c))
            }
            _ => (Truth::on_host(a, b, size), None),
        };
        Ok(Self { size, a: left, b: right, truth, blas_c })
    }

    /// Puts the operands on the device as a kernel takes them.
    ///
    /// # Errors
    /// Those of uploads.
    pub fn bring(&mut self, device: &Device, spec: &SgemmSpec) -> Result<(), Error> {
        self.a.bring(device, spec.layout.transposes_a())?;
        self.b.bring(device, spec.layout.transposes_b())
    }

    /// The operands for a kernel, which have been [brought](Self::bring) for its spec.
    ///
    /// # Errors
    /// Those of allocations.
    pub fn launchable(&self, device: &Device, spec: &SgemmSpec) -> Result<Launchable<'_>, Error> {
        let Size { m, n, .. } = self.size;
        let a = self.a.placed(device, spec.layout.transposes_a(), spec.pitched)?;
        let b = self.b.placed(device, spec.layout.transposes_b(), spec.pitched)?;
        let c = if spec.pitched {
            device.alloc_matrix(m, n)?
        } else {
            Matrix::from_buffer(device.alloc(m * n)?, m, n, n)?
        };
        Ok(Launchable { a, b, c, beside: Beside::new(device, spec, self.size)? })
    }

    /// A and B as cuBLAS takes them for a layout, which have been brought for it; none on the simulator.
    pub fn slices(&self, layout: Layout) -> Option<(&CudaSlice<f32>, &CudaSlice<f32>)> {
        let a = self.a.form(layout.transposes_a());
        match (a, self.b.form(layout.transposes_b())) {
            (Some(Array::Gpu(a)), Some(Array::Gpu(b))) => Some((a, b)),
            _ => None,
        }
    }

    /// Launches a kernel on a result that was all NaN, unless the kernel reads it, and judges what it wrote:
    /// the sums against `f64`, and what it stores for sums to the bit.
    ///
    /// # Errors
    /// Those of the launch and of copies.
    pub fn check(
        &self,
        launchable: &mut Launchable<'_>,
        kernel: &Sgemm<ByName>,
        device: &Device,
    ) -> Result<(Verdict, Launched), Error> {
        launchable.fill(device, self.size)?;
        let launched = launchable.launch(kernel, device)?;
        let c = device.download_matrix(&launchable.c)?;
        let Some(plain) = plain(launchable.beside.spec()) else {
            return Ok((self.truth.judge(&c), launched));
        };
        let mut sums = self.launchable(device, &plain)?;
        sums.fill(device, self.size)?;
        sums.launch(&Sgemm::new(plain)?, device)?;
        let sums = device.download_matrix(&sums.c)?;
        Ok((launchable.beside.judge(&sums, &c, self.truth.judge(&sums))?, launched))
    }
}

impl Launchable<'_> {
    /// Makes every element of the result a NaN, which what is not written stays, or what the kernel reads.
    fn fill(&mut self, device: &Device, Size { m, n, .. }: Size) -> Result<(), Error> {
        let pitch = self.c.pitch();
        let mut all = vec![f32::NAN; m * pitch];
        for (row, values) in self.beside.c_before().chunks(n.max(1)).enumerate() {
            all[row * pitch..][..n].copy_from_slice(values);
        }
        self.c = Matrix::from_buffer(device.upload(&all)?, m, n, pitch)?;
        Ok(())
    }

    /// Launches a kernel on them.
    ///
    /// # Errors
    /// Those of the launch.
    pub fn launch(&mut self, kernel: &Sgemm<ByName>, device: &Device) -> Result<Launched, Error> {
        let mut c: MatrixMut<'_> = self.c.view_mut();
        self.beside.launch(kernel, device, (&self.a.view(), &self.b.view()), &mut c)
    }
}
