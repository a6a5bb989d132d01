//! Products in the terms of BLAS: views say how matrices lie, and the kernel follows from them.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel::{Sgemm, extents};
use crate::launched::Launched;
use crate::shape::Shape;
use crate::view::{AsMatrix, AsMatrixMut, MatrixMut, MatrixRef};
use gemm_dsl::spec::Layout;
use gemm_dsl::stages;
use std::sync::OnceLock;

/// C = alpha·A·B + beta·C, of matrices of `f32` that lie on a device in rows or in columns, packed or
/// not, one or a batch: the kernel is chosen by how they lie and how large they are.
///
/// ```
/// use gemm_runtime::{Device, MatrixMut, MatrixRef, sgemm};
///
/// let device = Device::simulator();
/// let (a, b) = (device.upload(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?, device.upload(&[1.0; 6])?);
/// let mut c = device.upload(&[10.0; 4])?;
/// // A lies in columns: its transpose does in rows.
/// let (a, b) = (MatrixRef::new(&a, 3, 2)?, MatrixRef::new(&b, 3, 2)?);
/// sgemm(&a.t(), &b, &mut MatrixMut::new(&mut c, 2, 2)?).alpha(0.5).beta(2.0).run(&device)?;
/// assert_eq!(device.download(&c)?, [24.5, 24.5, 26.0, 26.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// # From cuBLAS
///
/// cuBLAS takes matrices column by column; a [`MatrixRef`] of that is the transpose of one made of its
/// columns. With `x(p, rows, cols, ld)` for `MatrixRef::pitched(&p, cols, rows, ld)?.t()`:
///
/// | argument of `cublasSgemm` | here |
/// | --- | --- |
/// | `handle` | the [`Device`] of [`SgemmCall::run`], whose stream it runs on |
/// | `transa`, `A`, `lda`, `m`, `k` | `CUBLAS_OP_N`: `&x(a, m, k, lda)`; `CUBLAS_OP_T`: `&x(a, k, m, lda).t()` |
/// | `transb`, `B`, `ldb`, `k`, `n` | `CUBLAS_OP_N`: `&x(b, k, n, ldb)`; `CUBLAS_OP_T`: `&x(b, n, k, ldb).t()` |
/// | `C`, `ldc`, `m`, `n` | `&mut MatrixMut::pitched(&mut c, n, m, ldc)?.t()` |
/// | `alpha`, `beta` | [`SgemmCall::alpha`], [`SgemmCall::beta`]: numbers of the host |
/// | `strideA`, `strideB`, `strideC`, `batchCount` of `cublasSgemmStridedBatched` | [`MatrixRef::batch_apart`] and [`MatrixMut::batch_apart`] in place of `pitched`; a stride of 0: `pitched` |
///
/// The rules are those of BLAS: where beta is 0 C is not read, and a NaN in it is gone; where alpha or k is
/// 0 neither A nor B is read. Results differ from those of cuBLAS in rounding: here the terms of an element
/// are always summed in the order of k.
///
/// [`AsMatrix`]: crate::AsMatrix
pub fn sgemm<'a, A, B, C>(a: &'a A, b: &'a B, c: &'a mut C) -> SgemmCall<'a>
where
    A: AsMatrix<Element = f32> + ?Sized,
    B: AsMatrix<Element = f32> + ?Sized,
    C: AsMatrixMut<Element = f32> + ?Sized,
{
    SgemmCall { a: a.as_matrix(), b: b.as_matrix(), c: c.as_matrix_mut(), alpha: 1.0, beta: 0.0 }
}

/// A product to be computed, made by [`sgemm`].
#[derive(Debug)]
#[must_use = "nothing is computed before `run`"]
pub struct SgemmCall<'a> {
    a: MatrixRef<'a>,
    b: MatrixRef<'a>,
    c: MatrixMut<'a>,
    alpha: f32,
    beta: f32,
}

impl SgemmCall<'_> {
    /// The factor of A·B, 1 without this.
    pub fn alpha(self, alpha: f32) -> Self {
        Self { alpha, ..self }
    }

    /// The factor of what C was, 0 without this.
    pub fn beta(self, beta: f32) -> Self {
        Self { beta, ..self }
    }

    /// Puts the product on the device's stream. On a GPU the call returns before the work is done.
    ///
    /// # Errors
    /// [`Error::Extents`] where the views do not agree, [`Error::Scattered`] for a matrix that lies neither
    /// in rows nor in columns, and those of [`SgemmKernel::launch`](crate::SgemmKernel::launch).
    pub fn run(mut self, device: &Device) -> Result<Launched> {
        let line = self.line()?;
        let (alpha, beta, is_scaled) = (self.alpha, self.beta, self.is_scaled());
        // Of the transposes Cᵀ = Bᵀ·Aᵀ the result lies in rows.
        let (a, b, mut c) = match self.is_turned() {
            true => (self.b.t(), self.a.t(), self.c.t()),
            false => (self.a.as_matrix(), self.b.as_matrix(), self.c.as_matrix_mut()),
        };
        if is_scaled {
            let kernel = Sgemm::<(f32, f32)>::of_line(line);
            return kernel.call(device).operands((alpha, beta)).launch(&a, &b, &mut c);
        }
        Sgemm::<()>::of_line(line).call(device).launch(&a, &b, &mut c)
    }

    /// The line of the kernel that it takes.
    ///
    /// # Errors
    /// Those of [`SgemmCall::run`] about the views.
    pub fn line(&self) -> Result<String> {
        let (m, n, _) = extents(&self.a, &self.b, &self.c)?;
        let shapes = [self.a.shape(), self.b.shape(), self.c.shape()];
        for (argument, shape) in ["a", "b", "c"].into_iter().zip(&shapes) {
            if !shape.lies_in_rows() && !shape.lies_in_columns() {
                let (row_stride, col_stride) = (shape.row_stride, shape.col_stride);
                return Err(Error::Scattered { argument, row_stride, col_stride });
            }
        }
        let [a, b, _] = shapes.map(|shape| shape.lies_in_columns());
        let layout = match self.is_turned() {
            true => layout(!b, !a),
            false => layout(a, b),
        };
        let counts = [self.a.count(), self.b.count(), self.c.count()];
        let batch = counts.iter().any(Option::is_some);
        let mut line = match batch {
            true => small(layout, m.max(n)),
            false => large(layout).to_owned(),
        };
        let keys = [
            (shapes.iter().any(Shape::is_padded), ", pitched"),
            (batch, ", batch: strided"),
            (self.is_scaled(), ", scaled"),
        ];
        keys.iter().filter(|(given, _)| *given).for_each(|(_, key)| line.push_str(key));
        Ok(line)
    }

    fn is_scaled(&self) -> bool {
        self.alpha.to_bits() != 1f32.to_bits() || self.beta != 0.0
    }

    /// Whether C lies in columns.
    fn is_turned(&self) -> bool {
        self.c.shape().lies_in_columns()
    }
}

fn layout(a_in_columns: bool, b_in_columns: bool) -> Layout {
    match (a_in_columns, b_in_columns) {
        (false, false) => Layout::Nn,
        (false, true) => Layout::Nt,
        (true, false) => Layout::Tn,
        (true, true) => Layout::Tt,
    }
}

/// The kernels of large matrices, by layout: stages of the ladder, and one found by `tune`.
fn large(layout: Layout) -> &'static str {
    static LINES: OnceLock<[String; 4]> = OnceLock::new();
    let lines = LINES.get_or_init(|| {
        let stages = stages::sgemm();
        let of = |name: &str| {
            let stage = stages.iter().find(|stage| stage.name == name);
            stage.map(|stage| stage.spec.to_string()).unwrap_or_default()
        };
        let tt = "layout: tt, tile: 256x128x16, thread: 8x16, fragment: split, float4, transpose, pad_b: 4, \
                  stages: 3, spread: 10, warp: 32x128, raster: 8, order: column_serpentine";
        [of("fastest"), of("layout_nt"), of("layout_tn"), tt.to_owned()]
    });
    let [nn, nt, tn, tt] = lines;
    match layout {
        Layout::Nn => nn,
        Layout::Nt => nt,
        Layout::Tn => tn,
        Layout::Tt => tt,
    }
}

/// The kernels of batches, by the larger extent of C: each block computes a product where it can.
fn small(layout: Layout, extent: usize) -> String {
    let shape = match extent {
        0..=8 => "tile: 8x8x8, thread: 1x2",
        9..=16 => "tile: 16x16x16, thread: 2x4, float4, pad_a: 4",
        17..=32 => "tile: 32x32x32, thread: 4x4, float4, pad_a: 4, order: row_serpentine",
        33..=64 => {
            "tile: 64x64x16, thread: 8x8, fragment: split, float4, pad_a: 4, stages: 3, order: row_serpentine"
        }
        65..=128 => {
            "tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, stages: 3, \
             warp: 32x64, spread: 4"
        }
        _ => return large(layout).to_owned(),
    };
    // Under `tn` nothing lies along K, and there is nothing to transpose.
    let shape =
        if layout == Layout::Tn { shape.replace(" transpose,", "") } else { shape.to_owned() };
    match layout {
        Layout::Nn => shape,
        layout => format!("layout: {layout}, {shape}"),
    }
}
