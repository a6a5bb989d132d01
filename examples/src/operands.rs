//! The matrices of a product, on the device in the forms that kernels and cuBLAS take.

use crate::gpu::{self, Gpu, failed};
use cudarc::driver::CudaSlice;
use gemm_reference::product::{Size, Truth, Verdict};
use gemm_runtime::{Buffer, Device, Error, Launched, Matrix, SgemmKernel};

/// A and B, and what their product ought to be.
pub struct Operands<'h> {
    size: Size,
    host: (&'h [f32], &'h [f32]),
    packed: (Buffer, Buffer),
    /// A·B in `f64`.
    pub truth: Truth,
    /// The operands as cuBLAS takes them; none on the simulator.
    pub slices: Option<Slices>,
}

/// The operands as cuBLAS takes them, and room for its result.
pub struct Slices {
    /// A, packed.
    pub a: CudaSlice<f32>,
    /// B, packed.
    pub b: CudaSlice<f32>,
    /// C, packed.
    pub c: CudaSlice<f32>,
}

/// A, B and C in the form that one kernel takes.
pub enum Launchable<'o> {
    /// Rows one after the other.
    Packed {
        /// A.
        a: &'o Buffer,
        /// B.
        b: &'o Buffer,
        /// C.
        c: Buffer,
    },
    /// A, B and C, rows padded to 16 bytes.
    Pitched(Box<[Matrix; 3]>),
}

impl<'h> Operands<'h> {
    /// Uploads the matrices and multiplies them in `f64`.
    ///
    /// # Errors
    /// Those of uploads, and of the reference.
    pub fn new(device: &Device, a: &'h [f32], b: &'h [f32], size: Size) -> Result<Self, Error> {
        let packed = (device.upload(a)?, device.upload(b)?);
        let (truth, slices) = match Gpu::of(device) {
            None => (Truth::on_host(a, b, size), None),
            Some(gpu) => {
                let upload = |elements: &[f32]| {
                    let slice = if elements.is_empty() {
                        gpu.stream.alloc_zeros(1)
                    } else {
                        gpu.stream.clone_htod(elements)
                    };
                    slice.map_err(failed("copying an operand to the GPU"))
                };
                let c = gpu.stream.alloc_zeros((size.m * size.n).max(1));
                let c = c.map_err(failed("allocating a result"))?;
                let slices = Slices { a: upload(a)?, b: upload(b)?, c };
                let truth = gpu::product(gpu, (&slices.a, a), (&slices.b, b), size)?;
                (truth, Some(slices))
            }
        };
        Ok(Self { size, host: (a, b), packed, truth, slices })
    }

    /// The operands for a kernel.
    ///
    /// # Errors
    /// Those of allocations.
    pub fn launchable(&self, device: &Device, pitched: bool) -> Result<Launchable<'_>, Error> {
        let Size { m, n, k } = self.size;
        if !pitched {
            let c = device.alloc(m * n)?;
            return Ok(Launchable::Packed { a: &self.packed.0, b: &self.packed.1, c });
        }
        let a = device.upload_matrix(self.host.0, m, k)?;
        let b = device.upload_matrix(self.host.1, k, n)?;
        let c = device.alloc_matrix(m, n)?;
        Ok(Launchable::Pitched(Box::new([a, b, c])))
    }

    /// Launches a kernel on a result that was all NaN, and judges what it wrote.
    ///
    /// # Errors
    /// Those of the launch and of copies.
    pub fn check(
        &self,
        launchable: &mut Launchable<'_>,
        kernel: &SgemmKernel,
        device: &Device,
    ) -> Result<(Verdict, Launched), Error> {
        launchable.poison(device, self.size)?;
        let launched = launchable.launch(kernel, device, self.size)?;
        Ok((self.truth.judge(&launchable.result(device)?), launched))
    }
}

impl Launchable<'_> {
    /// Makes every element of the result a NaN: what is not written stays one.
    fn poison(&mut self, device: &Device, size: Size) -> Result<(), Error> {
        let nan = vec![f32::NAN; size.m * size.n];
        match self {
            Self::Packed { c, .. } => *c = device.upload(&nan)?,
            Self::Pitched(matrices) => matrices[2] = device.upload_matrix(&nan, size.m, size.n)?,
        }
        Ok(())
    }

    /// Launches a kernel on them.
    ///
    /// # Errors
    /// Those of [`SgemmKernel::launch`].
    pub fn launch(
        &mut self,
        kernel: &SgemmKernel,
        device: &Device,
        size: Size,
    ) -> Result<Launched, Error> {
        match self {
            Self::Packed { a, b, c } => kernel.launch(device, *a, *b, c, size.extents()),
            Self::Pitched(matrices) => {
                let [a, b, c] = &mut **matrices;
                kernel.launch(device, a, b, c, size.extents())
            }
        }
    }

    fn result(&self, device: &Device) -> Result<Vec<f32>, Error> {
        match self {
            Self::Packed { c, .. } => device.download(c),
            Self::Pitched(matrices) => device.download_matrix(&matrices[2]),
        }
    }
}
