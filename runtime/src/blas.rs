//! Products in the terms of BLAS: views say how matrices lie, and a table that ships chooses the kernel.

mod tables;
#[cfg(test)]
mod tests;

use crate::compile::Arch;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel::{
    Choice, Chooses, GemmMatrices, NamedMatrix, SgemmTable, extents, launch_chosen, problem,
    shape_on, with_splits,
};
use crate::program::CachedProgram;
use crate::report::LaunchReport;
use crate::splits::SplitBuffers;
use crate::view::{AsMatrix, AsMatrixMut, MatrixMut, MatrixRef};
use crate::warm_up::{make, warm_up};
use gemm_dsl::ir::Extent;
use gemm_dsl::ir::contract::Subject;
use gemm_dsl::spec::{Accuracy, Batch, EpilogueArg, Factor, SgemmSpec};
use gemm_dsl::tables::{SgemmProblem, SgemmShape};
use std::sync::{Arc, OnceLock};
use tables::{CallFeatures, Shipped, Tables};

/// C = alpha·A·B + beta·C, of matrices of `f32` that lie on a device in rows or in columns, packed or
/// not, one, a batch or a list: a table that ships for the GPU, one of [`sgemm_tables`], chooses the kernel by how they
/// lie and how large they are.
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
/// 0 neither A nor B is read. In `f32`, which is all there is without [`SgemmCall::accuracy`], results differ from those of cuBLAS in rounding: here the terms of an element are summed as
/// the row of the table says, in the order of k, or of parts of k where it says `slices`, `lanes: k`, `split_k` or `stream_k`.
/// The same product has the same bits on every run and on every device of the same table and as many multiprocessors, if
/// its matrices lie alike: which row it is depends on their extents, on whether they lie in rows or in columns and
/// whether each row or column begins on 16 bytes, so that a view at another offset, or one with something between its
/// rows, may have another row, other bits and a kernel of its own.
///
/// # First launches
///
/// The first launch of a kernel compiles it, and [`LaunchReport::compiled`] says how long that took; [`warm`] does it
/// ahead.
///
/// [`AsMatrix`]: crate::AsMatrix
pub fn sgemm<'a, A, B, C>(a: &'a A, b: &'a B, c: &'a mut C) -> SgemmCall<'a>
where
    A: AsMatrix<Element = f32> + ?Sized,
    B: AsMatrix<Element = f32> + ?Sized,
    C: AsMatrixMut<Element = f32> + ?Sized,
{
    SgemmCall {
        splits: [a.splits(Factor::A), b.splits(Factor::B)],
        a: a.as_matrix(),
        b: b.as_matrix(),
        c: c.as_matrix_mut(),
        alpha: 1.0,
        beta: 0.0,
        accuracy: Accuracy::Ieee,
    }
}

/// A product to be computed, made by [`sgemm`].
#[derive(Debug)]
#[must_use = "nothing is computed before `run`"]
pub struct SgemmCall<'a> {
    a: MatrixRef<'a>,
    b: MatrixRef<'a>,
    c: MatrixMut<'a>,
    /// Those of A and of B that have been made.
    splits: [Option<&'a SplitBuffers>; 2],
    alpha: f32,
    beta: f32,
    accuracy: Accuracy,
}

/// The table of a call, and what it asks of the rows.
struct ShippedChoice {
    table: &'static Shipped,
    asked: CallFeatures,
}

impl Chooses for ShippedChoice {
    fn operands(&self) -> &[EpilogueArg] {
        static FACTORS: OnceLock<Vec<EpilogueArg>> = OnceLock::new();
        if !self.asked.scaled {
            return &[];
        }
        FACTORS.get_or_init(|| SgemmSpec::default().scaled(true).operands())
    }

    fn line(&self, problem: &SgemmProblem) -> Result<&str> {
        self.table.line(problem, self.asked)
    }
}

impl<'a> SgemmCall<'a> {
    /// The factor of A·B, 1 without this.
    pub fn alpha(self, alpha: f32) -> Self {
        Self { alpha, ..self }
    }

    /// The factor of what C was, 0 without this.
    pub fn beta(self, beta: f32) -> Self {
        Self { beta, ..self }
    }

    /// How far an element of A·B may be off, [`Accuracy::Ieee`] without this. A wider class lets tensor cores stand for
    /// `f32` where that is faster, as the table of that class says; there is one for `sm_90`, and elsewhere all rows are of
    /// `f32`. [`SgemmCall::choice`] says which line it takes, and so in what it computes.
    ///
    /// ```
    /// use gemm_runtime::{Device, MatrixRef, sgemm, spec::Accuracy};
    ///
    /// let device = Device::simulator();
    /// let (a, b) = (device.upload(&[1.0; 6])?, device.upload(&[2.0; 12])?);
    /// let (a, b) = (MatrixRef::new(&a, 2, 3)?, MatrixRef::new(&b, 3, 4)?);
    /// let mut c = device.alloc_matrix(2, 4)?;
    /// sgemm(&a, &b, &mut c).accuracy(Accuracy::Bound).run(&device)?;
    /// assert_eq!(device.download(&c)?, [6.0; 8]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    pub fn accuracy(self, accuracy: Accuracy) -> Self {
        Self { accuracy, ..self }
    }

    /// Puts the product on the device's stream. On a GPU the call returns before the work is done.
    ///
    /// # Errors
    /// [`Error::Extents`] where the views do not agree, [`Error::Unlisted`] where only some are lists, [`Error::Scattered`] for a matrix that lies neither
    /// in rows nor in columns, and those of [`SgemmKernel::launch`](crate::SgemmKernel::launch).
    pub fn run(self, device: &Device) -> Result<LaunchReport> {
        let tables = Tables::on(device, self.accuracy);
        self.run_by(tables, device)
    }

    fn run_by(self, tables: &'static Tables, device: &Device) -> Result<LaunchReport> {
        let asks = self.asks(tables)?;
        let splits = self.splits_of_factors();
        let Self { a, b, mut c, alpha, beta, .. } = self;
        let factors = (alpha, beta);
        if c.shape().lies_in_rows() {
            let (a, b) = (NamedMatrix::new("a", &a), NamedMatrix::new("b", &b));
            let c = NamedMatrix::new("c", &mut c);
            return launch(device, &asks, factors, GemmMatrices { a, b, c, splits });
        }
        // Of the transposes Cᵀ = Bᵀ·Aᵀ the result lies in rows.
        let (first, second, mut to) = (b.t(), a.t(), c.t());
        let (a, b) = (NamedMatrix::new("b", &first), NamedMatrix::new("a", &second));
        let c = NamedMatrix::new("c", &mut to);
        let turned = launch(device, &asks, factors, GemmMatrices { a, b, c, splits });
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

    /// The spec of the kernel that it takes on a device.
    ///
    /// # Errors
    /// Those of [`SgemmCall::run`] about the views.
    pub fn spec(&self, device: &Device) -> Result<SgemmSpec> {
        Ok(self.choice(device)?.line.parse()?)
    }

    /// Which row of the table that ships for a device computes it, and why. The line is that of the row with what
    /// the call needs beside: `layout` and `pitched` as the matrices lie, `scaled` where there are factors, and
    /// `batch`; and with fewer `stages` or `blocks_per_sm` where shared memory does not suffice. Where C lies in columns
    /// alone the row is that of the transposes, Cᵀ = Bᵀ·Aᵀ, whose `m` is n.
    ///
    /// ```
    /// use gemm_runtime::{Device, MatrixMut, MatrixRef, sgemm};
    ///
    /// let device = Device::simulator();
    /// let (x, mut room) = (device.alloc(64 * 64)?, device.alloc(64 * 64)?);
    /// let (a, mut c) = (MatrixRef::new(&x, 64, 64)?, MatrixMut::new(&mut room, 64, 64)?);
    /// let choice = sgemm(&a, &a.t(), &mut c).beta(1.0).choice(&device)?;
    /// assert!(choice.line.starts_with("layout: nt, tile: 32x32x16"), "{choice:?}");
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`SgemmCall::run`] about the views.
    pub fn choice(&self, device: &Device) -> Result<Choice> {
        self.choice_by(Tables::on(device, self.accuracy), device)
    }

    fn choice_by(&self, tables: &'static Tables, device: &Device) -> Result<Choice> {
        let asks = self.asks(tables)?;
        asks.table.choice(&self.problem(device)?, asks.asked)
    }

    /// Compiles what it launches, ahead: see [`warm`], which does so of many shapes at once.
    ///
    /// # Errors
    /// Those of [`SgemmCall::choice`] and of [`warm`].
    pub fn warm(&self, device: &Device) -> Result<()> {
        let (line, program) = self.program(Tables::on(device, self.accuracy), device)?;
        make(device, &[line], vec![program])
    }

    /// The line that it takes, and the program that it launches: of that line, or the one that takes splits that have been
    /// made.
    fn program(
        &self,
        tables: &'static Tables,
        device: &Device,
    ) -> Result<(&'static str, Result<Arc<CachedProgram>>)> {
        let ShippedChoice { table, asked } = self.asks(tables)?;
        let line = table.line(&self.problem(device)?, asked)?;
        let program = device.programs().get::<SgemmSpec>(line);
        let given = program.and_then(|program| with_splits(program, self.splits_of_factors()));
        Ok((line, given.map(|(program, _)| program)))
    }

    /// The splits of the first factor and of the second: where C lies in columns alone those of the transposes
    /// Cᵀ = Bᵀ·Aᵀ, which are the same splits.
    fn splits_of_factors(&self) -> [Option<&'a SplitBuffers>; 2] {
        let [of_a, of_b] = self.splits;
        if self.c.shape().lies_in_rows() { [of_a, of_b] } else { [of_b, of_a] }
    }

    /// What a row is chosen by.
    fn problem(&self, device: &Device) -> Result<SgemmProblem> {
        let (m, n, k) = self.extents()?;
        let (a, b) = (&self.a, &self.b);
        let c = MatrixRef { elements: self.c.elements.shared(), shape: self.c.shape() };
        let named = |a, b, c| {
            [NamedMatrix::new("a", a), NamedMatrix::new("b", b), NamedMatrix::new("c", c)]
        };
        let shape = match c.shape.lies_in_rows() {
            true => shape_on(device, named(a, b, &c), (m, n, k))?,
            false => {
                let (a, b, c) = (a.t(), b.t(), c.t());
                let [a, b, c] = named(&a, &b, &c);
                shape_on(device, [b, a, c], (n, m, k))?
            }
        };
        Ok(problem(shape, device))
    }

    /// The extents (m, n, k).
    fn extents(&self) -> Result<(usize, usize, usize)> {
        let (a, b) = (NamedMatrix::new("a", &self.a), NamedMatrix::new("b", &self.b));
        extents(a, b, NamedMatrix::new("c", &self.c))
    }

    /// What it asks of the tables of a device.
    fn asks(&self, tables: &'static Tables) -> Result<ShippedChoice> {
        self.extents()?;
        let shapes = [self.a.shape(), self.b.shape(), self.c.shape()];
        for (argument, shape) in ["a", "b", "c"].into_iter().zip(&shapes) {
            if !shape.lies_in_rows() && !shape.lies_in_columns() {
                let (row_stride, col_stride) = (shape.row_stride, shape.col_stride);
                return Err(Error::Scattered { argument, row_stride, col_stride });
            }
        }
        let counts = [self.a.count(), self.b.count(), self.c.count()];
        let lists = [("a", self.a.is_list()), ("b", self.b.is_list()), ("c", self.c.is_list())];
        let first = |is_list| lists.into_iter().find(|(_, of)| *of == is_list);
        let batch = match (first(true), first(false)) {
            (Some((list, _)), Some((other, _))) => return Err(Error::Unlisted { list, other }),
            (Some(_), None) => Some(Batch::Pointers),
            (None, _) => counts.iter().any(Option::is_some).then_some(Batch::Strided),
        };
        let scaled = self.alpha.to_bits() != 1f32.to_bits() || self.beta != 0.0;
        let asked = CallFeatures { scaled, batch };
        Ok(ShippedChoice { table: tables.table(asked), asked })
    }
}

/// Launches what is chosen for matrices that the caller calls so.
fn launch(
    device: &Device,
    asks: &ShippedChoice,
    factors: (f32, f32),
    matrices: GemmMatrices<'_, MatrixRef<'_>, MatrixRef<'_>, MatrixMut<'_>>,
) -> Result<LaunchReport> {
    match asks.asked.scaled {
        true => launch_chosen::<(f32, f32)>(asks, device, matrices, &factors),
        false => launch_chosen::<()>(asks, device, matrices, &()),
    }
}

/// The tables that [`sgemm`] chooses by: of single products, and of batches and lists, whose rows say `batch: strided`.
/// There are some for `sm_80`, `sm_89`, `sm_90`, `sm_100` and `sm_120` and for GPUs like these, of which that of single products
/// for `sm_90` is measured, on an H200, and the others have the same rows by model; and some that every GPU can take, for all others
/// and, without an architecture, for the simulator. A row says nothing of `scaled`, `layout` and `pitched`, which follow
/// from a call, and `sgemm` takes as many of its `stages`, and then `slices`, as a block's shared memory holds, 99 KiB on
/// `sm_89` and `sm_120`, and of its `blocks_per_sm` as that of a multiprocessor.
///
/// Where more than [`Accuracy::Ieee`] is granted, there are rows before these by which tensor cores compute products for
/// which that is faster: measured on an H200, and for `sm_90` alone.
///
/// ```
/// use gemm_runtime::{compile::Arch, sgemm_tables, spec::Accuracy};
///
/// let [single, batch] = sgemm_tables(Some(Arch::sm(90)), Accuracy::Ieee);
/// println!("{single}\n\n{batch}");
/// ```
pub fn sgemm_tables(arch: Option<Arch>, accuracy: Accuracy) -> [&'static SgemmTable; 2] {
    let Tables { one, batch } = Tables::for_arch(arch.map(Arch::number), accuracy);
    [&one.table, &batch.table]
}

/// Compiles, ahead and in parallel, what [`sgemm`] launches on a device for products of these shapes: `(m, n, k)`, or
/// an [`SgemmShape`] that says how the matrices lie. A `batch` of more than 1 is one of `batch: strided`. Each kernel is
/// made once, for arrays on 16 bytes and for others, without `alpha` and `beta`, unless the device has it. A launch
/// of such a product, without more [`accuracy`](SgemmCall::accuracy) granted, then compiles nothing, if its matrices lie as the shape says: where the table has other rows for
/// matrices that do not begin on 16 bytes, or are padded, those are shapes of their own. [`SgemmCall::warm`] does so of
/// a call, with its views, its factors and its lists.
///
/// In the simulator, which compiles nothing, the kernels are generated.
///
/// ```
/// use gemm_runtime::{Device, SgemmShape, spec::GemmLayout, warm};
///
/// let device = Device::simulator();
/// warm(&device, [(64, 64, 64), (1, 128, 512)])?;
/// warm(&device, [SgemmShape::from((8, 8, 8)).batch(100).layout(GemmLayout::Nt)])?;
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// # Errors
/// [`Error::Ahead`] with the first line that failed and why; all others are made. [`Error::TooLarge`] for an extent
/// of 2^31 or more.
pub fn warm<I>(device: &Device, shapes: I) -> Result<()>
where
    I: IntoIterator,
    I::Item: Into<SgemmShape>,
{
    let tables = Tables::on(device, Accuracy::Ieee);
    let lines = shapes.into_iter().map(|shape| {
        let shape: SgemmShape = shape.into();
        let batch = (shape.batch != 1).then_some(Batch::Strided);
        let asked = CallFeatures { scaled: false, batch };
        tables.table(asked).line(&problem(shape, device), asked)
    });
    warm_up::<SgemmSpec>(device, lines.collect::<Result<Vec<_>>>()?)
}
