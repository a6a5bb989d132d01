//! GEMM kernels: construction and launches.

mod bind;
mod groups;
mod launch;

pub use groups::{GroupOffset, GroupOffsets};
pub use launch::with_splits;
pub(crate) use launch::{Chooses, GemmMatrices, NamedMatrix, extents, launch_chosen, shape_on};

use super::operands::{AnyOperand, ListingType, Named, Operands, OperandsFor};
use super::{Call, Callee, Choice, Kernel, Table};
#[cfg(doc)]
use super::{Sgemm, SgemmTable};
use crate::device::Device;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::operand::{Input, InputOf, OutputOf, Vector};
use crate::program::CachedProgram;
use crate::report::LaunchReport;
use crate::view::{AsMatrixMutOf, AsMatrixOf, MatrixRef};
use bind::{NamedExtent, check_exact, elements};
use gemm_dsl::ir::Operand;
use gemm_dsl::spec::{Factor, GemmTypes, SgemmSpec};
use gemm_dsl::tables::{KernelTable, SgemmProblem, SgemmShape};
use gemm_dsl::target::element::Element;
use launch::multiply;
use std::sync::Arc;

impl<E> Kernel<SgemmSpec, E> {
    /// Builds the kernel of a spec. It equals the kernel that the macro builds from the same spec.
    ///
    /// A text must be parsed: `new("…".parse()?)`. Parsing returns all faults of the text.
    ///
    /// ```
    /// use gemm_runtime::{N, Sgemm};
    ///
    /// let spec = "tile: 16x16x8, thread: 4x4, epilogue: |acc, bias[n]| relu(acc + bias)";
    /// let layer = Sgemm::<(N,)>::new(spec.parse()?)?;
    /// assert!(layer.source().contains("bias"));
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::Spec`] with all faults of the spec.
    /// * [`Error::KernelType`] if `E` does not list the spec's operands. The error names the right
    ///   kernel type.
    pub fn new(spec: SgemmSpec) -> Result<Self>
    where
        E: Operands,
    {
        let kernel = Self::checked(&spec)?;
        let (operands, matrices) = (spec.operands(), spec.types().matrices());
        ListingType::SGEMM.check_matrices::<E>(&spec.to_string(), &operands, matrices)?;
        Ok(kernel)
    }

    /// Starts a call on a device. Pass the operands with the methods of the call, then launch it on
    /// views.
    pub fn call<'a>(&'a self, device: &'a Device) -> Call<'a, SgemmSpec, E, E::Unset<'a>>
    where
        E: Operands,
    {
        Call::new(Callee::Kernel(&self.source), device, E::Unset::default())
    }

    /// Multiplies host matrices: uploads, launches and downloads. For kernels without operands.
    ///
    /// `size` is (m, n, k). All matrices are packed, C is row-major, and A and B have the layouts
    /// of the kernel's key `layout`. For a `pitched` kernel, this method pads the rows or columns
    /// on the device. An epilogue that reads C reads zeros.
    ///
    /// # Errors
    /// * [`Error::WrongExtent`] if `a` does not have m·k elements or `b` does not have k·n.
    /// * [`Error::TooLarge`] if a matrix has more elements than `usize` can count.
    /// * The errors of [`Device::upload`], [`Sgemm::launch`] and [`Device::download`].
    pub fn run(
        &self,
        device: &Device,
        a: &[E::A],
        b: &[E::B],
        size: (usize, usize, usize),
    ) -> Result<Vec<E::C>>
    where
        E: Operands,
        (): OperandsFor<E::List>,
    {
        let (m, n, k) = size;
        let [rows, cols, terms] = [("m", m), ("n", n), ("k", k)]
            .map(|(name, extent)| NamedExtent::new(name, extent as u64));
        check_exact("a", a.len(), rows, terms)?;
        check_exact("b", b.len(), terms, cols)?;
        elements("c", rows, cols)?;
        let program = self.prepare(device)?;
        let cols_of_c = program.pairs().columns_of_c(n as u64) as usize;
        if program.takes_pitches() {
            let by_column = [0, 1].map(|nth| program.by_column(Operand::Input(nth)));
            let lines = |rows, cols, by_column| if by_column { (cols, rows) } else { (rows, cols) };
            let (of_a, of_b) = (lines(m, k, by_column[0]), lines(k, n, by_column[1]));
            let a = device.upload_matrix_padded_of(a, of_a.0, of_a.1)?;
            let b = device.upload_matrix_padded_of(b, of_b.0, of_b.1)?;
            let (a, b) = (viewed(&a, by_column[0]), viewed(&b, by_column[1]));
            let mut c = device.alloc_matrix_padded_of(m, cols_of_c)?;
            self.launch(device, &a, &b, &mut c, size)?;
            return device.download_matrix(&c);
        }
        let (a, b) = (device.upload_of(a)?, device.upload_of(b)?);
        let mut c = device.alloc_of(m * cols_of_c)?;
        self.launch(device, &a, &b, &mut c, size)?;
        device.download(&c)
    }

    /// Multiplies matrices on the device. For kernels without operands; for others, use
    /// [`Sgemm::call`].
    ///
    /// `size` is (m, n, k). Pass each of A, B and C as a vector or as a matrix. A vector has at
    /// least the elements of the packed matrix, in the layout of the kernel. A matrix has exactly
    /// this shape and layout. Padded matrices need a `pitched` kernel. On a GPU the call returns
    /// before the work is complete; later work of the device is ordered after it.
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
        E: Operands,
        A: InputOf<E::A> + ?Sized,
        B: InputOf<E::B> + ?Sized,
        C: OutputOf<E::C> + ?Sized,
        (): OperandsFor<E::List>,
    {
        let what = Callee::Kernel(&self.source);
        multiply(what, device, matrices(a, b, c), size, &mut ())
    }
}

impl<E> Table<SgemmSpec, E> {
    /// Builds a table of parsed rules. It equals the table that the macro builds from the same
    /// rules.
    ///
    /// # Errors
    /// [`Error::KernelType`] if `E` does not list the operands of the rules. The error names the
    /// right kernel type.
    pub fn new(table: &KernelTable<SgemmSpec>) -> Result<Self>
    where
        E: Operands,
    {
        for row in table.rules() {
            let (spec, operands) = (&row.spec, row.spec.operands());
            let matrices = spec.types().matrices();
            ListingType::SGEMM.check_matrices::<E>(&spec.to_string(), &operands, matrices)?;
        }
        Ok(Self::checked(table.clone()))
    }

    /// Starts a call on a device. The launch of the call chooses the rule.
    pub fn call<'a>(&'a self, device: &'a Device) -> Call<'a, SgemmSpec, E, E::Unset<'a>>
    where
        E: Operands,
    {
        Call::new(Callee::Table(self.read()), device, E::Unset::default())
    }

    /// Returns the rule for a GEMM on a device, with the reason for the choice.
    ///
    /// Extents `(m, n, k)` alone describe a single GEMM of packed, row-major, 16-byte aligned
    /// matrices. For any other GEMM, pass an [`SgemmShape`]. The choice on the simulator is the
    /// same as on an H200.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if a condition uses an extent of 2^31 or more.
    pub fn choice(&self, shape: impl Into<SgemmShape>, device: &Device) -> Result<Choice> {
        self.chosen(&self.problem(shape.into(), device))
    }

    /// Compiles the kernels for these shapes before their first launch, in parallel. Each kernel
    /// that the device has not loaded is compiled once, for aligned and for unaligned arrays. A
    /// later launch of such a shape compiles nothing.
    ///
    /// On the simulator nothing is compiled: this method only generates the kernels.
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
    ///   tried.
    /// * The errors of [`choice`](Self::choice).
    pub fn warm<I>(&self, device: &Device, shapes: I) -> Result<()>
    where
        I: IntoIterator,
        I::Item: Into<SgemmShape>,
    {
        self.warm_for(device, shapes.into_iter().map(|shape| self.problem(shape.into(), device)))
    }

    /// Returns the kernel that the table chooses for a GEMM on a device.
    ///
    /// # Errors
    /// Returns the errors of [`choice`](Self::choice).
    pub fn kernel(
        &self,
        shape: impl Into<SgemmShape>,
        device: &Device,
    ) -> Result<Kernel<SgemmSpec, E>> {
        self.kernel_for(&self.problem(shape.into(), device))
    }

    /// GEMM of matrices of the table's types on a device, as the conditions describe it.
    pub(crate) fn problem(&self, shape: SgemmShape, device: &Device) -> SgemmProblem {
        problem(shape.of_types(self.types()), device)
    }

    /// Element types of the matrices.
    pub(crate) fn types(&self) -> GemmTypes {
        self.read().table.types()
    }
}

/// GEMM on a device, as the conditions of a table describe it.
pub(crate) fn problem(shape: SgemmShape, device: &Device) -> SgemmProblem {
    SgemmProblem { shape, target: device.target() }
}

impl<'a, E: Operands> Call<'a, SgemmSpec, E> {
    /// Passes all operands as a tuple, in the order of the kernel's type: `(&bias, 0.5)` for a
    /// `Sgemm<(N, f32)>`. A single operand needs no tuple: `&bias` for a `Sgemm<(N,)>`.
    pub fn operands<O: OperandsFor<E::List>>(self, operands: O) -> Call<'a, SgemmSpec, E, O> {
        Call { groups: self.groups, ..Call::new(self.what, self.device, operands) }
    }
}

impl<'a, E, O> Call<'a, SgemmSpec, E, O> {
    /// Passes the offsets of the groups of a kernel with `batch: grouped`: the first row of each
    /// group in A and C, then the row after the last group. They are read on the device, when the
    /// kernel runs.
    ///
    /// The page [`batches`](crate::guide::batches) describes groups.
    ///
    /// ```
    /// use gemm_runtime::{Device, MatrixRef, SgemmKernel, sgemm_kernel};
    ///
    /// const EXPERTS: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 4x4, batch: grouped);
    /// let device = Device::simulator();
    /// let x = device.upload_matrix(&[1.0, 2.0, 3.0], 3, 1)?;
    /// let experts = device.upload(&[10.0, 100.0])?;
    /// let experts = MatrixRef::batch(&experts, 2, 1, 1)?;
    /// // The first expert has row 0, the second one has rows 1 and 2.
    /// let offsets = device.upload_of(&[0_u32, 1, 3])?;
    /// let mut y = device.alloc_matrix(3, 1)?;
    /// EXPERTS.call(&device).groups(&offsets).launch(&x, &experts, &mut y)?;
    /// assert_eq!(device.download(&y)?, [10.0, 200.0, 300.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    pub fn groups<V>(self, offsets: &'a V) -> Self
    where
        V: Vector + ?Sized,
        V::Element: GroupOffset,
    {
        Self { groups: Some(GroupOffsets::new(offsets)), ..self }
    }
}

impl<'a, E> Call<'a, SgemmSpec, E, Named<'a>> {
    /// Passes an operand of the kernel by name: an `f32`, or a reference to an array on the device.
    pub fn operand(mut self, name: &str, given: impl AnyOperand + 'a) -> Self {
        self.given.push(name, given);
        self
    }
}

impl<E, O> Call<'_, SgemmSpec, E, O> {
    /// Multiplies matrices on the device: computes C = A·B, or the kernel's epilogue of A·B. The
    /// extents are those of the views. On a GPU the call returns before the work is complete; later
    /// work of the device is ordered after it. To launch again, copy the call before: it is `Copy`
    /// if its operands are.
    ///
    /// # Errors
    /// * [`Error::WrongExtent`] if only the transpose of A or B has the right shape.
    /// * [`Error::Extents`] if the extents of two views disagree in another way.
    /// * The errors of [`Sgemm::launch`], also for operands.
    /// * For a table, the errors of [`SgemmTable::choice`].
    /// * For operands by name, [`Error::MissingOperand`], [`Error::UnknownOperand`],
    ///   [`Error::RepeatedOperand`] and [`Error::WrongOperand`].
    /// * [`Error::WrongOperand`] for a kernel with `batch: grouped` without
    ///   [`groups`](Self::groups), and for any other kernel with them.
    pub fn launch<A, B, C>(mut self, a: &A, b: &B, c: &mut C) -> Result<LaunchReport>
    where
        E: Operands,
        A: AsMatrixOf<E::A> + ?Sized,
        B: AsMatrixOf<E::B> + ?Sized,
        C: AsMatrixMutOf<E::C> + ?Sized,
        O: OperandsFor<E::List>,
    {
        let splits = [a.splits(Factor::A), b.splits(Factor::B)];
        let (a, b, mut c) = (a.as_matrix(), b.as_matrix(), c.as_matrix_mut());
        let size = extents(
            NamedMatrix::new("a", &a),
            NamedMatrix::new("b", &b),
            NamedMatrix::new("c", &c),
            self.what.pairs(),
        )?;
        let matrices = GemmMatrices { splits, groups: self.groups, ..matrices(&a, &b, &mut c) };
        multiply(self.what, self.device, matrices, size, &mut self.given)
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
    GemmMatrices { a, b, c, splits, groups: None, is_transposed: false }
}

/// View of a row-major matrix, or of its transpose.
fn viewed<T: Element>(lines: &Matrix<T>, by_column: bool) -> MatrixRef<'_, T> {
    if by_column { lines.view().t() } else { lines.view() }
}
