//! GEMM kernels: construction and launches.

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
use crate::program::CachedProgram;
use crate::report::LaunchReport;
use crate::view::{AsMatrix, AsMatrixMut, MatrixRef};
use bind::{NamedExtent, check_exact, elements};
use gemm_dsl::ir::Operand;
use gemm_dsl::spec::{Factor, SgemmSpec};
use gemm_dsl::tables::{KernelTable, SgemmProblem, SgemmShape};
use launch::multiply;
use std::sync::Arc;

impl<E> Sgemm<E> {
    /// Kernel of a spec, equal to the macro's kernel of the same spec.
    ///
    /// # Errors
    /// * [`Error::Spec`] with all faults of the spec.
    /// * [`Error::KernelType`] if `E` does not list the spec's operands; it names the right kernel
    ///   type.
    pub fn new(spec: SgemmSpec) -> Result<Self>
    where
        E: Operands,
    {
        let kernel = Self::checked(&spec)?;
        operands::check::<E>(&spec)?;
        Ok(kernel)
    }

    /// Starts a call on a device. Operands are passed next, then views are launched.
    pub fn call<'a>(&'a self, device: &'a Device) -> Call<'a, SgemmSpec, E, E::Unset<'a>>
    where
        E: Operands,
    {
        Call::new(Callee::Kernel(&self.source), device, E::Unset::default())
    }

    /// Multiplies host matrices: uploads, launches and downloads. For kernels without operands.
    ///
    /// `size` is (m, n, k). A matrix that the kernel's `layout` transposes is column-major; all
    /// others are row-major, and all are packed. For a `pitched` kernel the rows or columns are
    /// padded on the device. An epilogue that reads C finds zeros.
    ///
    /// # Errors
    /// * [`Error::WrongExtent`] if `a` does not have m·k elements or `b` does not have k·n.
    /// * [`Error::TooLarge`] if a matrix has more elements than `usize` can count.
    /// * The errors of [`Device::upload`], [`Sgemm::launch`] and [`Device::download`].
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

    /// Multiplies matrices on the device. For kernels without operands; [`Sgemm::call`] launches
    /// the others.
    ///
    /// `size` is (m, n, k). Each matrix is a vector of at least as many elements, packed in the
    /// layout of the kernel's `layout`, or a matrix of exactly that shape and layout. Padded
    /// matrices need a `pitched` kernel. On a GPU the call returns before the work is done; later
    /// work of the device is ordered after it.
    ///
    /// # Errors
    /// * [`Error::WrongDevice`] if a matrix belongs to another device.
    /// * [`Error::WrongExtent`] if a vector is too short or a matrix has another shape.
    /// * [`Error::TooLarge`] if a matrix has more elements than `usize` can count.
    /// * [`Error::Overlap`] if `c` shares memory with `a` or `b`.
    /// * [`Error::Unmet`] if extents or arguments violate the kernel's contract, such as an extent
    ///   of 2^31 or more.
    /// * The errors of compiling and loading the kernel, in the first launch.
    /// * [`Error::Simulator`] in the simulator.
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
        let what = Callee::Kernel(&self.source);
        multiply::<E, _, _, _>(what, device, matrices(a, b, c), size, &())
    }
}

impl<E> SgemmTable<E> {
    /// Table of parsed rules, equal to the macro's table of the same rules.
    ///
    /// # Errors
    /// [`Error::KernelType`] if `E` does not list the operands of the rules; it names the right
    /// kernel type.
    pub fn new(table: &KernelTable<SgemmSpec>) -> Result<Self>
    where
        E: Operands,
    {
        for row in table.rules() {
            operands::check::<E>(&row.spec)?;
        }
        Ok(Self::checked(table.clone()))
    }

    /// Starts a call on a device. Its launch chooses the rule.
    pub fn call<'a>(&'a self, device: &'a Device) -> Call<'a, SgemmSpec, E, E::Unset<'a>>
    where
        E: Operands,
    {
        Call::new(Callee::Table(self.read()), device, E::Unset::default())
    }

    /// Returns the rule that computes a GEMM on a device, with the reason.
    ///
    /// Extents `(m, n, k)` alone are a single GEMM of packed, row-major, 16-byte aligned matrices;
    /// an [`SgemmShape`] describes others. The simulator counts as an H200.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for an extent of 2^31 or more that a condition uses.
    pub fn choice(&self, shape: impl Into<SgemmShape>, device: &Device) -> Result<Choice> {
        self.chosen(&problem(shape.into(), device))
    }

    /// Compiles the kernels for these shapes, in advance and in parallel: each once, for aligned
    /// and for unaligned arrays, unless the device holds it. A launch of such a shape then compiles
    /// nothing.
    ///
    /// The simulator compiles nothing; it generates the kernels.
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
    /// * [`Error::Ahead`] with the first spec that failed and its error, after all others have been
    ///   compiled.
    /// * The errors of [`choice`](Self::choice).
    pub fn warm<I>(&self, device: &Device, shapes: I) -> Result<()>
    where
        I: IntoIterator,
        I::Item: Into<SgemmShape>,
    {
        self.warm_for(device, shapes.into_iter().map(|shape| problem(shape.into(), device)))
    }

    /// Returns the kernel that computes a GEMM on a device.
    ///
    /// # Errors
    /// Returns the errors of [`choice`](Self::choice).
    pub fn kernel(&self, shape: impl Into<SgemmShape>, device: &Device) -> Result<Sgemm<E>> {
        self.kernel_for(&problem(shape.into(), device))
    }
}

/// GEMM on a device, in the form by which tables choose.
pub(crate) fn problem(shape: SgemmShape, device: &Device) -> SgemmProblem {
    SgemmProblem { shape, target: device.target() }
}

impl<'a, E> Call<'a, SgemmSpec, E> {
    /// Passes all operands of the kernel as a tuple, in its order: `(&bias, 0.5)` for a
    /// `Sgemm<(N, f32)>`.
    pub fn operands<O: OperandsFor<E>>(self, operands: O) -> Call<'a, SgemmSpec, E, O> {
        Call::new(self.what, self.device, operands)
    }
}

impl<'a> Call<'a, SgemmSpec, ByName, Named<'a>> {
    /// Passes an operand of the kernel by name: an `f32`, or a reference to an array on the device.
    #[must_use]
    pub fn operand(mut self, name: &str, given: impl AnyOperand + 'a) -> Self {
        self.given.push(name, given);
        self
    }
}

impl<E, O> Call<'_, SgemmSpec, E, O> {
    /// Multiplies matrices on the device: C = A·B, or the kernel's epilogue of it. The views give
    /// the extents. On a GPU the call returns before the work is done; later work of the device is
    /// ordered after it.
    ///
    /// # Errors
    /// * [`Error::Extents`] if the extents of two views disagree.
    /// * The errors of [`Sgemm::launch`], which apply to operands too.
    /// * For a table, the errors of [`SgemmTable::choice`].
    /// * For operands by name, [`Error::MissingOperand`], [`Error::UnknownOperand`],
    ///   [`Error::RepeatedOperand`] and [`Error::WrongOperand`].
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

/// Call of a program that the device holds, with all of its operands, of any kinds.
pub fn call_program<'a, E, O: OperandsFor<E>>(
    program: &'a Arc<CachedProgram>,
    device: &'a Device,
    given: O,
) -> Call<'a, SgemmSpec, E, O> {
    Call::new(Callee::Program(program), device, given)
}

/// Matrices of a GEMM, named as in BLAS, with their prepared splits.
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

/// View of a row-major matrix, or of its transpose.
fn viewed(lines: &Matrix, by_column: bool) -> MatrixRef<'_> {
    if by_column { lines.view().t() } else { lines.view() }
}
