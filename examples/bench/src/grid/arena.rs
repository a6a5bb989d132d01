//! Matrices of all measured GEMMs, in three arrays that are allocated once.

use crate::cli::Failure;
use crate::data;
use crate::gpu::{BEHIND, Blas, Gpu, Product, Verifier, failed};
use crate::products::{Products, turned};
use crate::shapes::GemmShape;
use cudarc::driver::CudaSlice;
use gemm_dsl::spec::{Accuracy, Arith};
use gemm_oracle::product::Size;
use gemm_runtime::{
    Error, LaunchReport, MatrixMut, MatrixRef, SgemmKernel, SgemmSpec, SgemmTable, sgemm,
};

/// Arrays on a GPU for A and B, with random elements, and for C. The matrices of a GEMM are at the
/// start of the arrays.
#[derive(Debug)]
pub struct Arena<'d> {
    gpu: Gpu<'d>,
    host: [Vec<f32>; 2],
    a: CudaSlice<f32>,
    b: CudaSlice<f32>,
    c: CudaSlice<f32>,
    judge: Verifier<'d>,
    accuracy: Accuracy,
}

impl<'d> Arena<'d> {
    /// Allocates arrays that are large enough for each of the shapes.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] if the arrays do not fit into this machine's memory, and the
    /// errors of the driver.
    pub fn new(gpu: Gpu<'d>, shapes: &[GemmShape], seed: u64) -> Result<Self, Failure> {
        let [a, b, c] = elements(shapes)?;
        let uniform = |seed, len: usize| data::uniform(seed, len.max(1), -1.0, 1.0);
        let host = [uniform(seed, a), uniform(seed.wrapping_add(1), b)];
        let upload = |values: &[f32]| {
            gpu.stream.clone_htod(values).map_err(failed("copying an operand to the GPU"))
        };
        let room = gpu.stream.alloc_zeros(c + BEHIND).map_err(failed("allocating a result"))?;
        let (a, b) = (upload(&host[0])?, upload(&host[1])?);
        let (judge, accuracy) = (Verifier::new(gpu, c)?, Accuracy::Ieee);
        Ok(Self { gpu, host, a, b, c: room, judge, accuracy })
    }

    /// Sets the accuracy that [`sgemm`] may use.
    pub fn accuracy(self, accuracy: Accuracy) -> Self {
        Self { accuracy, ..self }
    }

    /// Computes the reference of a GEMM.
    ///
    /// # Errors
    /// Returns the errors of [`Verifier::expect`].
    pub fn expect(&mut self, shape: GemmShape) -> Result<(), Error> {
        self.judge.expect(&self.a, &self.host[0], &self.b, &self.host[1], shape)
    }

    /// Fills the result with NaN, launches a GEMM, and compares the result with the
    /// [reference](Self::expect).
    ///
    /// Returns the largest error, and true if it is within the bound of the arithmetic.
    ///
    /// # Errors
    /// Returns the errors of the launch and of [`Verifier::judge`].
    pub fn check(
        &mut self,
        shape: GemmShape,
        arith: Arith,
        launch: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(f64, bool), Error> {
        self.judge.poison(&mut self.c, shape)?;
        launch(self)?;
        self.judge.judge(&self.c, shape, arith)
    }

    /// Returns the kernel that [`sgemm`] selects for a GEMM.
    ///
    /// # Errors
    /// Returns the errors of the runtime.
    pub fn spec(&mut self, shape: GemmShape) -> Result<SgemmSpec, Error> {
        let (a, b, mut c) = views(&self.a, &self.b, &mut self.c, shape)?;
        sgemm(&a, &b, &mut c).accuracy(self.accuracy).spec(self.gpu.device)
    }

    /// Enqueues [`sgemm`].
    ///
    /// # Errors
    /// Returns the errors of the runtime.
    pub fn sgemm(&mut self, shape: GemmShape) -> Result<LaunchReport, Error> {
        let (a, b, mut c) = views(&self.a, &self.b, &mut self.c, shape)?;
        sgemm(&a, &b, &mut c).accuracy(self.accuracy).run(self.gpu.device)
    }

    /// Enqueues the kernel that a table selects.
    ///
    /// # Errors
    /// Returns the errors of the runtime.
    pub fn by_table(
        &mut self,
        table: &SgemmTable,
        shape: GemmShape,
    ) -> Result<LaunchReport, Error> {
        let (a, b, mut c) = views(&self.a, &self.b, &mut self.c, shape)?;
        table.call(self.gpu.device).launch(&a, &b, &mut c)
    }

    /// Enqueues a kernel.
    ///
    /// # Errors
    /// Returns the errors of the runtime.
    pub fn launch(
        &mut self,
        kernel: &SgemmKernel,
        shape: GemmShape,
    ) -> Result<LaunchReport, Error> {
        let (a, b, mut c) = views(&self.a, &self.b, &mut self.c, shape)?;
        kernel.call(self.gpu.device).launch(&a, &b, &mut c)
    }

    /// Enqueues cuBLAS on the same matrices.
    ///
    /// # Errors
    /// Returns the errors of [`Blas::product`].
    pub fn blas(&mut self, blas: &Blas, shape: GemmShape) -> Result<(), Error> {
        blas.product(&mut Product {
            a: &self.a,
            b: &self.b,
            c: &mut self.c,
            layout: shape.layout,
            factors: [1.0, 0.0],
            products: Products::single(shape.size),
        })
    }
}

/// Views of a GEMM's matrices at the start of the arrays.
fn views<'v>(
    a: &'v CudaSlice<f32>,
    b: &'v CudaSlice<f32>,
    c: &'v mut CudaSlice<f32>,
    shape: GemmShape,
) -> Result<(MatrixRef<'v>, MatrixRef<'v>, MatrixMut<'v>), Error> {
    let Size { m, n, k } = shape.size;
    let view = |array, rows, cols, by_column| {
        let (lines, line) = if by_column { (cols, rows) } else { (rows, cols) };
        Ok::<_, Error>(turned(MatrixRef::new(array, lines, line)?, by_column))
    };
    let a = view(a, m, k, shape.layout.transposes_a())?;
    let b = view(b, k, n, shape.layout.transposes_b())?;
    Ok((a, b, MatrixMut::new(c, m, n)?))
}

/// Returns the numbers of elements of the largest A, B and C.
///
/// # Errors
/// Returns [`Failure::Usage`] if the arrays do not fit into this machine's memory.
pub fn elements(shapes: &[GemmShape]) -> Result<[usize; 3], Failure> {
    let mut most = [0; 3];
    for shape in shapes {
        let elements = Products::single(shape.size).elements()?;
        for (most, elements) in most.iter_mut().zip(elements) {
            *most = elements.max(*most);
        }
    }
    Ok(most)
}
