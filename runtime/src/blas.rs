//! Products in the terms of BLAS: views say how matrices lie, and the kernel follows from them.

mod choice;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel::{Called, Sgemm, extents};
use crate::launched::Launched;
use crate::shape::Shape;
use crate::view::{AsMatrix, AsMatrixMut, MatrixMut, MatrixRef};
use choice::{Choice, Size};
use gemm_dsl::ir::Extent;
use gemm_dsl::ir::contract::Subject;
use gemm_dsl::spec::{Batch, Layout, SgemmSpec};

/// C = alpha·A·B + beta·C, of matrices of `f32` that lie on a device in rows or in columns, packed or
/// not, one, a batch or a list: the kernel is chosen by how they lie and how large they are.
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
/// | `transa`, `A`, `lda`, `m`, `k` | `CUBLAS_OP_N`: `&x(a, m, k, lda)`; `CUBLAS_OP_T`, or `CUBLAS_OP_C` of real numbers: `&x(a, k, m, lda).t()` |
/// | `transb`, `B`, `ldb`, `k`, `n` | `CUBLAS_OP_N`: `&x(b, k, n, ldb)`; `CUBLAS_OP_T`, `CUBLAS_OP_C`: `&x(b, n, k, ldb).t()` |
/// | `C`, `ldc`, `m`, `n` | `&mut MatrixMut::pitched(&mut c, n, m, ldc)?.t()` |
/// | `alpha`, `beta` | [`SgemmCall::alpha`], [`SgemmCall::beta`]: numbers of the host |
/// | `Aarray`, `Barray`, `Carray`, `batchCount` of `cublasSgemmBatched` | a [`MatrixList`](crate::MatrixList) of such views in place of each, a [`MatrixListMut`](crate::MatrixListMut) of C's |
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
    /// [`Error::Extents`] where the views do not agree, [`Error::Unlisted`] where only some are lists, [`Error::Scattered`] for a matrix that lies neither
    /// in rows nor in columns, and those of [`SgemmKernel::launch`](crate::SgemmKernel::launch).
    pub fn run(self, device: &Device) -> Result<Launched> {
        let choice = self.choice()?;
        let Self { a, b, mut c, alpha, beta } = self;
        let factors = choice.scaled.then_some((alpha, beta));
        if !c.shape().lies_in_columns() {
            return launch(device, &choice, factors, (("a", &a), ("b", &b), &mut c));
        }
        // Of the transposes Cᵀ = Bᵀ·Aᵀ the result lies in rows.
        let turned = launch(device, &choice, factors, (("b", &b.t()), ("a", &a.t()), &mut c.t()));
        turned.map_err(|error| match error {
            Error::Unmet(mut unmet) => {
                unmet.subject = match unmet.subject {
                    Subject::Extent(Extent::M) => Subject::Extent(Extent::N),
                    Subject::Extent(Extent::N) => Subject::Extent(Extent::M),
                    other => other,
                };
                Error::Unmet(unmet)
            }
            other => other,
        })
    }

    /// The spec of the kernel that it takes.
    ///
    /// # Errors
    /// Those of [`SgemmCall::run`] about the views.
    pub fn spec(&self) -> Result<SgemmSpec> {
        Ok(self.choice()?.spec())
    }

    fn choice(&self) -> Result<Choice> {
        let (m, n, _) = extents(("a", &self.a), ("b", &self.b), ("c", &self.c))?;
        let shapes = [self.a.shape(), self.b.shape(), self.c.shape()];
        for (argument, shape) in ["a", "b", "c"].into_iter().zip(&shapes) {
            if !shape.lies_in_rows() && !shape.lies_in_columns() {
                let (row_stride, col_stride) = (shape.row_stride, shape.col_stride);
                return Err(Error::Scattered { argument, row_stride, col_stride });
            }
        }
        let [a, b, c] = shapes.map(|shape| shape.lies_in_columns());
        let (a, b) = if c { (!b, !a) } else { (a, b) };
        let counts = [self.a.count(), self.b.count(), self.c.count()];
        let lists = [("a", self.a.is_list()), ("b", self.b.is_list()), ("c", self.c.is_list())];
        let first = |is_list| lists.into_iter().find(|(_, of)| *of == is_list);
        let batch = match (first(true), first(false)) {
            (Some((list, _)), Some((other, _))) => return Err(Error::Unlisted { list, other }),
            (Some(_), None) => Some(Batch::Pointers),
            (None, _) => counts.iter().any(Option::is_some).then_some(Batch::Strided),
        };
        Ok(Choice {
            layout: match (a, b) {
                (false, false) => Layout::Nn,
                (false, true) => Layout::Nt,
                (true, false) => Layout::Tn,
                (true, true) => Layout::Tt,
            },
            size: Size::of(m, n, batch.and(counts.into_iter().flatten().max())),
            pitched: shapes.iter().any(Shape::is_padded),
            batch,
            scaled: self.alpha.to_bits() != 1f32.to_bits() || self.beta != 0.0,
        })
    }
}

/// Launches the kernel of a choice on matrices that the caller calls so, and on C.
fn launch(
    device: &Device,
    choice: &Choice,
    factors: Option<(f32, f32)>,
    (a, b, c): (Called<&MatrixRef<'_>>, Called<&MatrixRef<'_>>, &mut MatrixMut<'_>),
) -> Result<Launched> {
    let line = choice.line();
    match factors {
        None => Sgemm::<()>::of_line(line).call(device).launch_as(a, b, ("c", c)),
        Some(factors) => {
            let kernel = Sgemm::<(f32, f32)>::of_line(line);
            kernel.call(device).operands(factors).launch_as(a, b, ("c", c))
        }
    }
}
