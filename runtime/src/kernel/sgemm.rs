//! Matrix products.

mod bind;
mod launch;

pub use launch::with_splits;
pub(crate) use launch::{Chooses, GemmMatrices, NamedMatrix, extents, launch_chosen, shape_on};

use super::operands::{self, AnyOperand, ByName, Named, Operands, OperandsFor};
use super::{Call, Callee, Choice, Sgemm, SgemmTable};
use crate::device::Device;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::operand::{Input, Output};
use crate::report::LaunchReport;
use crate::view::{AsMatrix, AsMatrixMut, MatrixRef};
use bind::{NamedExtent, check_exact, elements};
use gemm_dsl::ir::Operand;
use gemm_dsl::spec::{Factor, SgemmSpec};
use gemm_dsl::tables::{KernelTable, SgemmProblem, SgemmShape};
use launch::multiply;

impl<E> Sgemm<E> {
    /// The kernel of a spec: the same as the macro makes of the same line.
    ///
    /// # Errors
    /// [`Error::Spec`] with all faults of the spec; [`Error::KernelType`] where `E` does not list its
    /// operands, which says what the type is.
    pub fn new(spec: SgemmSpec) -> Result<Self>
    where
        E: Operands,
    {
        let kernel = Self::checked(&spec)?;
        operands::check::<E>(&spec)?;
        Ok(kernel)
    }

    /// A call on a device, which has not been given operands yet.
    pub fn call<'a>(&'a self, device: &'a Device) -> Call<'a, SgemmSpec, E, E::Unset<'a>>
    where
        E: Operands,
    {
        Call::new(Callee::Kernel(&self.line), device, E::Unset::default())
    }

    /// A call on a device that has been given its operands, whatever their kinds are.
    #[doc(hidden)]
    pub fn call_with<'a, O: OperandsFor<E>>(
        &'a self,
        device: &'a Device,
        given: O,
    ) -> Call<'a, SgemmSpec, E, O> {
        Call::new(Callee::Kernel(&self.line), device, given)
    }

    /// Multiplies matrices of the host: uploads, launches, downloads. `size` is (m, n, k). A matrix that
    /// the kernel's `layout` transposes is given column by column. For a `pitched` kernel rows, or
    /// columns, are padded on the way. An epilogue that reads C in place finds zeros. For kernels
    /// without operands.
    ///
    /// # Errors
    /// [`Error::WrongExtent`] where `a` has not m·k elements or `b` not k·n, and those of
    /// [`Device::upload`], [`Sgemm::launch`] and [`Device::download`].
    pub fn run(
        &self,
        device: &Device,
        a: &[f32],
        b: &[f32],
        size: (usize, usize, usize),
    ) -> Result<Vec<f32>>
    where
        (): OperandsFor<E>,
    {
        let (m, n, k) = size;
        let [rows, cols, terms] = [("m", m), ("n", n), ("k", k)]
            .map(|(name, extent)| NamedExtent::new(name, extent as u64));
        check_exact("a", a.len(), rows, terms)?;
        check_exact("b", b.len(), terms, cols)?;
        elements("c", rows, cols)?;
        let program = self.prepare(device)?;
        if program.takes_pitches() {
            let by_column = [0, 1].map(|nth| program.by_column(Operand::Input(nth)));
            let upload = |elements: &[f32], rows, cols, by_column| {
                let (lines, line) = if by_column { (cols, rows) } else { (rows, cols) };
                device.upload_matrix(elements, lines, line)
            };
            let (a, b) = (upload(a, m, k, by_column[0])?, upload(b, k, n, by_column[1])?);
            let (a, b) = (viewed(&a, by_column[0]), viewed(&b, by_column[1]));
            let mut c = device.alloc_matrix(m, n)?;
            self.launch(device, &a, &b, &mut c, size)?;
            return device.download_matrix(&c);
        }
        let (a, b) = (device.upload(a)?, device.upload(b)?);
        let mut c = device.alloc(m * n)?;
        self.launch(device, &a, &b, &mut c, size)?;
        device.download(&c)
    }

    /// Multiplies matrices on the device; `size` is (m, n, k). Each is given as a vector of at least
    /// as many elements as the matrix has, one row after the other, or one column, as the kernel's
    /// `layout` says; or as a matrix of just that shape which lies so. One with padding needs a `pitched`
    /// kernel. On a GPU the call returns before the work is done; later work of the device comes after it.
    /// For kernels without operands: others are launched by [`Sgemm::call`].
    ///
    /// # Errors
    /// [`Error::WrongDevice`]; [`Error::WrongExtent`]; [`Error::TooLarge`] for a matrix of more
    /// elements than there are addresses; [`Error::Unmet`] where extents (2^31 and more among them)
    /// or arguments are not what the kernel was specified for; what compiling and loading the kernel fail with, in the first launch; and
    /// in the simulator [`Error::Simulator`].
    pub fn launch<A, B, C>(
        &self,
        device: &Device,
        a: &A,
        b: &B,
        c: &mut C,
        size: (usize, usize, usize),
    ) -> Result<LaunchReport>
    where
        A: Input<Element = f32> + ?Sized,
        B: Input<Element = f32> + ?Sized,
        C: Output<Element = f32> + ?Sized,
        (): OperandsFor<E>,
    {
        let what = Callee::Kernel(&self.line);
        multiply::<E, _, _, _>(what, device, matrices(a, b, c), size, &())
    }
}

impl<E> SgemmTable<E> {
    /// The table of a text or of data: the same as the macro makes of the same rows.
    ///
    /// # Errors
    /// [`Error::KernelType`] where `E` does not list the operands of its rows, which says what the type is.
    pub fn new(table: &KernelTable<SgemmSpec>) -> Result<Self>
    where
        E: Operands,
    {
        for row in table.rules() {
            operands::check::<E>(&row.spec)?;
        }
        Ok(Self::checked(table.clone()))
    }

    /// A call on a device, which has not been given operands yet. Its launch chooses the row.
    pub fn call<'a>(&'a self, device: &'a Device) -> Call<'a, SgemmSpec, E, E::Unset<'a>>
    where
        E: Operands,
    {
        Call::new(Callee::Table(self.read()), device, E::Unset::default())
    }

    /// The row that computes a product on a device, and why. Extents `(m, n, k)` alone are a single product of
    /// matrices that lie row by row, packed, from 16 bytes on; an [`SgemmShape`] says more. The simulator stands for an
    /// H200.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for an extent of 2^31 or more that a condition asks for.
    pub fn choice(&self, shape: impl Into<SgemmShape>, device: &Device) -> Result<Choice> {
        self.chosen(&problem(shape.into(), device))
    }

    /// Compiles ahead and in parallel what products of these shapes take: each kernel once, for arrays on 16 bytes and
    /// for others, unless the device has it. A launch of such a shape then compiles nothing. In the simulator, which
    /// compiles nothing, the kernels are generated.
    ///
    /// ```
    /// use gemm_runtime::{Device, SgemmTable, sgemm_table};
    ///
    /// const GEMM: SgemmTable = sgemm_table! {
    ///     m <= 8 || n <= 8 => tile: 8x8x8, thread: 1x1;
    ///     else => tile: 16x16x8, thread: 2x2;
    /// };
    ///
    /// let device = Device::simulator();
    /// GEMM.warm(&device, [(8, 4096, 4096), (4096, 4096, 4096)])?;
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Ahead`] with the first line that failed and why, when all others are made; and as
    /// [`choice`](Self::choice).
    pub fn warm<I>(&self, device: &Device, shapes: I) -> Result<()>
    where
        I: IntoIterator,
        I::Item: Into<SgemmShape>,
    {
        self.warm_for(device, shapes.into_iter().map(|shape| problem(shape.into(), device)))
    }

    /// The kernel that computes a product on a device.
    ///
    /// # Errors
    /// As [`choice`](Self::choice).
    pub fn kernel(&self, shape: impl Into<SgemmShape>, device: &Device) -> Result<Sgemm<E>> {
        self.kernel_for(&problem(shape.into(), device))
    }
}

/// A product on a device.
pub(crate) fn problem(shape: SgemmShape, device: &Device) -> SgemmProblem {
    SgemmProblem { shape, target: device.target() }
}

impl<'a, E> Call<'a, SgemmSpec, E> {
    /// The call with a tuple of all operands of the kernel, in its order: `(&bias, 0.5)` for a
    /// `Sgemm<(N, f32)>`.
    pub fn operands<O: OperandsFor<E>>(self, operands: O) -> Call<'a, SgemmSpec, E, O> {
        Call::new(self.what, self.device, operands)
    }
}

impl<'a> Call<'a, SgemmSpec, ByName, Named<'a>> {
    /// The call with an operand of the kernel: a number, or a reference to an array on the device.
    #[must_use]
    pub fn operand(mut self, name: &str, given: impl AnyOperand + 'a) -> Self {
        self.given.push(name, given);
        self
    }
}

impl<E, O> Call<'_, SgemmSpec, E, O> {
    /// Multiplies matrices on the device: C = A·B, or what the kernel's epilogue makes of its sums. Views
    /// say what the extents are. On a GPU the call returns before the work is done; later work of the device
    /// comes after it.
    ///
    /// # Errors
    /// [`Error::Extents`] where two views do not agree; those of [`Sgemm::launch`], for operands too, and of a table
    /// those of [`SgemmTable::choice`]; of operands by name [`Error::MissingOperand`], [`Error::UnknownOperand`], [`Error::RepeatedOperand`] and
    /// [`Error::WrongOperand`].
    pub fn launch<A, B, C>(&self, a: &A, b: &B, c: &mut C) -> Result<LaunchReport>
    where
        A: AsMatrix<Element = f32> + ?Sized,
        B: AsMatrix<Element = f32> + ?Sized,
        C: AsMatrixMut<Element = f32> + ?Sized,
        O: OperandsFor<E>,
    {
        let splits = [a.splits(Factor::A), b.splits(Factor::B)];
        let (a, b, mut c) = (a.as_matrix(), b.as_matrix(), c.as_matrix_mut());
        let size = extents(
            NamedMatrix::new("a", &a),
            NamedMatrix::new("b", &b),
            NamedMatrix::new("c", &c),
        )?;
        let matrices = GemmMatrices { splits, ..matrices(&a, &b, &mut c) };
        multiply(self.what, self.device, matrices, size, &self.given)
    }
}

/// The matrices of a product, by the names of BLAS.
fn matrices<'m, A, B, C>(a: &'m A, b: &'m B, c: &'m mut C) -> GemmMatrices<'m, A, B, C>
where
    A: Input + ?Sized,
    B: Input + ?Sized,
    C: ?Sized,
{
    let splits = [a.splits(Factor::A), b.splits(Factor::B)];
    let (a, b, c) = (NamedMatrix::new("a", a), NamedMatrix::new("b", b), NamedMatrix::new("c", c));
    GemmMatrices { a, b, c, splits }
}

/// A matrix by its lines, or their transpose.
fn viewed(lines: &Matrix, by_column: bool) -> MatrixRef<'_> {
    if by_column { lines.view().t() } else { lines.view() }
}
