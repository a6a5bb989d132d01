//! Matrix products.

mod bind;

use super::operands::{self, AnyOperand, ByName, Named, Operands, OperandsFor};
use super::table::Read;
use super::{Call, Choice, Sgemm, SgemmTable, What};
use crate::device::{Device, dispatch};
use crate::error::{Error, Result};
use crate::launch::launch;
use crate::launched::Launched;
use crate::matrix::Matrix;
use crate::operand::{Input, Output, read, resolve, write};
use crate::program::Prepared;
use crate::view::{AsMatrix, AsMatrixMut, MatrixMut, MatrixRef};
use bind::{bind, bind_beside, check_exact, elements, shape_of};
use gemm_dsl::ir::{Extent, Operand};
use gemm_dsl::kernel_table::{KernelTable, SgemmProblem, SgemmShape};
use gemm_dsl::spec::{SgemmOperand, SgemmSpec};
use std::sync::Arc;

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
        Call::new(What::Kernel(&self.line), device, E::Unset::default())
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
        let wide = |n: usize| n as u64;
        check_exact("a", a.len(), ("m", wide(m)), ("k", wide(k)))?;
        check_exact("b", b.len(), ("k", wide(k)), ("n", wide(n)))?;
        elements("c", ("m", wide(m)), ("n", wide(n)))?;
        let program = self.prepare(device)?;
        if program.takes_pitches() {
            let upload = |elements: &[f32], rows, cols, operand| {
                let by_column = program.by_column(Operand::Input(operand));
                let (lines, line) = if by_column { (cols, rows) } else { (rows, cols) };
                Ok::<_, Error>((device.upload_matrix(elements, lines, line)?, by_column))
            };
            let (a, b) = (upload(a, m, k, 0)?, upload(b, k, n, 1)?);
            let mut c = device.alloc_matrix(m, n)?;
            self.launch(device, &viewed(&a), &viewed(&b), &mut c, size)?;
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
    ) -> Result<Launched>
    where
        A: Input<Element = f32> + ?Sized,
        B: Input<Element = f32> + ?Sized,
        C: Output<Element = f32> + ?Sized,
        (): OperandsFor<E>,
    {
        let what = What::Kernel(&self.line);
        multiply::<E, _, _, _>(what, device, (("a", a), ("b", b), ("c", c)), size, &())
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
        for row in table.rows() {
            operands::check::<E>(&row.spec)?;
        }
        Ok(Self::checked(table.clone()))
    }

    /// A call on a device, which has not been given operands yet. Its launch chooses the row.
    pub fn call<'a>(&'a self, device: &'a Device) -> Call<'a, SgemmSpec, E, E::Unset<'a>>
    where
        E: Operands,
    {
        Call::new(What::Table(self.read()), device, E::Unset::default())
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

    /// The kernel that computes a product on a device.
    ///
    /// # Errors
    /// As [`choice`](Self::choice).
    pub fn kernel(&self, shape: impl Into<SgemmShape>, device: &Device) -> Result<Sgemm<E>> {
        self.kernel_for(&problem(shape.into(), device))
    }
}

fn problem(shape: SgemmShape, device: &Device) -> SgemmProblem {
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
    pub fn launch<A, B, C>(&self, a: &A, b: &B, c: &mut C) -> Result<Launched>
    where
        A: AsMatrix<Element = f32> + ?Sized,
        B: AsMatrix<Element = f32> + ?Sized,
        C: AsMatrixMut<Element = f32> + ?Sized,
        O: OperandsFor<E>,
    {
        self.launch_as(("a", &a.as_matrix()), ("b", &b.as_matrix()), ("c", &mut c.as_matrix_mut()))
    }

    /// As [`launch`](Self::launch), of matrices that the caller calls so.
    pub(crate) fn launch_as(
        &self,
        a: Called<&MatrixRef<'_>>,
        b: Called<&MatrixRef<'_>>,
        c: Called<&mut MatrixMut<'_>>,
    ) -> Result<Launched>
    where
        O: OperandsFor<E>,
    {
        let size = extents(a, b, (c.0, &*c.1))?;
        multiply(self.what, self.device, (a, b, c), size, &self.given)
    }
}

/// A matrix, and what the caller calls it.
pub(crate) type Called<M> = (&'static str, M);

/// The extents (m, n, k) of views that fit each other.
pub(crate) fn extents(
    (a_name, a): Called<&MatrixRef<'_>>,
    (b_name, b): Called<&MatrixRef<'_>>,
    (c_name, c): Called<&MatrixMut<'_>>,
) -> Result<(usize, usize, usize)> {
    let same = |extent, first: Called<usize>, other: Called<usize>| {
        if first.1 == other.1 {
            return Ok(first.1);
        }
        let [first, other] = [first, other].map(|(name, extent)| (name.to_owned(), extent));
        Err(Error::Extents { extent, first, other })
    };
    for (name, of) in [(a_name, a), (b_name, b)] {
        if let (Some(count), Some(products), true, true) =
            (of.count(), c.count(), of.is_list(), c.is_list())
        {
            same(Extent::BATCH, (name, count), (c_name, products))?;
        }
    }
    // An empty list has no other extents, and where one is, all are.
    if c.is_list() && c.count() == Some(0) {
        return Ok((0, 0, 0));
    }
    let m = same(Extent::M, (a_name, a.rows()), (c_name, c.rows()))?;
    let n = same(Extent::N, (b_name, b.cols()), (c_name, c.cols()))?;
    let k = same(Extent::K, (a_name, a.cols()), (b_name, b.rows()))?;
    Ok((m, n, k))
}

/// The program of a call, or what chooses it.
enum Program<'a> {
    One(Arc<Prepared>),
    Of(&'a Read<SgemmSpec>),
}

impl<'a> Program<'a> {
    fn of(what: What<'a, SgemmSpec>, device: &Device) -> Result<Self> {
        Ok(match what {
            What::Kernel(line) => Self::One(device.programs().get::<SgemmSpec>(line)?),
            What::Table(table) => Self::Of(table),
        })
    }

    /// What the caller gives beside the matrices.
    fn operands(&self) -> &[SgemmOperand] {
        match self {
            Self::One(program) => &program.operands,
            Self::Of(table) => &table.operands,
        }
    }
}

/// Launches a product; `size` is (m, n, k).
fn multiply<E, A, B, C>(
    what: What<'_, SgemmSpec>,
    device: &Device,
    ((a_name, a), (b_name, b), (c_name, c)): (Called<&A>, Called<&B>, Called<&mut C>),
    size: (usize, usize, usize),
    operands: &impl OperandsFor<E>,
) -> Result<Launched>
where
    A: Input + ?Sized,
    B: Input + ?Sized,
    C: Output + ?Sized,
{
    let of = Program::of(what, device)?;
    let beside = operands.give_all(of.operands())?;
    let (m, n, k) = (size.0 as u64, size.1 as u64, size.2 as u64);
    dispatch!(device, on => {
        let (a, b, c) = (read(on, a, a_name)?, read(on, b, b_name)?, write(on, c, c_name)?);
        let program = match of {
            Program::One(program) => program,
            Program::Of(table) => table.prepare(device, &problem(shape_of((&a, &b, &c), size), device))?,
        };
        let is_batch = program.program.extents.contains(&Extent::BATCH);
        let products = c.shape.map_or(1, |shape| shape.batch().count);
        let products = is_batch.then_some(products);
        // Nor does what lies beside no product need a shape that fits.
        let fits = !c.is_empty_list();
        let lies = |operand| program.by_column(operand);
        let in_a = bind(a_name, &a, (("m", m), ("k", k)), lies(Operand::Input(0)), fits)?;
        let in_b = bind(b_name, &b, (("k", k), ("n", n)), lies(Operand::Input(1)), fits)?;
        let output = bind(c_name, &c, (("m", m), ("n", n)), lies(Operand::Output(0)), fits)?;
        let mut inputs = vec![in_a.for_each_of(products)?, in_b.for_each_of(products)?];
        // They record when they are dropped that they were used: not before the launch.
        let mut used = Vec::with_capacity(beside.arrays.len());
        for (operand, given) in operands::arrays(&program.operands).zip(beside.arrays) {
            used.push(resolve(on, given, &operand.name)?);
        }
        for (operand, array) in operands::arrays(&program.operands).zip(&used) {
            inputs.push(bind_beside(operand, array, (m, n), (products, fits))?);
        }
        let mut problem = vec![m, n, k];
        problem.extend(products.map(|products| products as u64));
        problem.extend(beside.numbers.iter().map(|number| u64::from(number.to_bits())));
        launch(on, &program, &inputs, &[output.for_each_of(products)?], &problem)
    })
}

/// A matrix by its lines, or their transpose.
fn viewed((lines, by_column): &(Matrix, bool)) -> MatrixRef<'_> {
    if *by_column { lines.view().t() } else { lines.view() }
}
