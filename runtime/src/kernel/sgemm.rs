//! Matrix products.

use super::operands::{self, AnyOperand, ByName, Named, Operands, OperandsFor, Taken};
use super::{Call, Sgemm};
use crate::address::Address;
use crate::device::{Device, dispatch};
use crate::error::{Error, Result};
use crate::launch::{Bound, launch};
use crate::launched::Launched;
use crate::matrix::Matrix;
use crate::operand::{Input, Output, Resolved, read, resolve, write};
use crate::shape::Shape;
use crate::view::{AsMatrix, AsMatrixMut, MatrixMut, MatrixRef};
use gemm_dsl::ir::{Extent, Operand};
use gemm_dsl::sim::Element;
use gemm_dsl::spec::{Along, SgemmSpec};

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
        Call { kernel: self, device, given: E::Unset::default() }
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
        if self.is_pitched(device)? {
            let program = self.prepare(device)?;
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
        A: Input + ?Sized,
        B: Input + ?Sized,
        C: Output + ?Sized,
        (): OperandsFor<E>,
    {
        multiply(self, device, (a, b, c), size, &())
    }

    fn is_pitched(&self, device: &Device) -> Result<bool> {
        let program = self.prepare(device)?;
        Ok(program.takes_strides())
    }
}

impl<'a, E> Call<'a, SgemmSpec, E> {
    /// The call with a tuple of all operands of the kernel, in its order: `(&bias, 0.5)` for a
    /// `Sgemm<(N, f32)>`.
    pub fn operands<O: OperandsFor<E>>(self, operands: O) -> Call<'a, SgemmSpec, E, O> {
        Call { kernel: self.kernel, device: self.device, given: operands }
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
    /// [`Error::Extents`] where two views do not agree; those of [`Sgemm::launch`], for operands too; of
    /// operands by name [`Error::MissingOperand`], [`Error::UnknownOperand`], [`Error::RepeatedOperand`] and
    /// [`Error::WrongOperand`].
    pub fn launch<A, B, C>(&self, a: &A, b: &B, c: &mut C) -> Result<Launched>
    where
        A: AsMatrix + ?Sized,
        B: AsMatrix + ?Sized,
        C: AsMatrixMut + ?Sized,
        O: OperandsFor<E>,
    {
        let (a, b, mut c) = (a.as_matrix(), b.as_matrix(), c.as_matrix_mut());
        let size = extents(&a, &b, &c)?;
        multiply(self.kernel, self.device, (&a, &b, &mut c), size, &self.given)
    }
}

/// The extents (m, n, k) of views that fit each other.
pub(crate) fn extents<A: Element, B: Element, C: Element>(
    a: &MatrixRef<'_, A>,
    b: &MatrixRef<'_, B>,
    c: &MatrixMut<'_, C>,
) -> Result<(usize, usize, usize)> {
    let same = |extent, first: (&'static str, usize), other: (&'static str, usize)| {
        if first.1 == other.1 {
            return Ok(first.1);
        }
        Err(Error::Extents { extent, first, other })
    };
    let m = same(Extent::M, ("a", a.rows()), ("c", c.rows()))?;
    let n = same(Extent::N, ("b", b.cols()), ("c", c.cols()))?;
    let k = same(Extent::K, ("a", a.cols()), ("b", b.rows()))?;
    for (name, count) in [("a", a.count()), ("b", b.count())] {
        if let Some(count) = count {
            same(Extent::BATCH, (name, count), ("c", c.count().unwrap_or(1)))?;
        }
    }
    Ok((m, n, k))
}

/// Launches a product; `size` is (m, n, k).
fn multiply<E, A, B, C>(
    kernel: &Sgemm<E>,
    device: &Device,
    (a, b, c): (&A, &B, &mut C),
    size: (usize, usize, usize),
    operands: &impl OperandsFor<E>,
) -> Result<Launched>
where
    A: Input + ?Sized,
    B: Input + ?Sized,
    C: Output + ?Sized,
{
    let program = kernel.prepare(device)?;
    let beside = operands.give_all(&program.program)?;
    let (m, n, k) = (size.0 as u64, size.1 as u64, size.2 as u64);
    let is_batch = program.program.extents.contains(&Extent::BATCH);
    dispatch!(device, on => {
        let (a, b, c) = (read(on, a, "a")?, read(on, b, "b")?, write(on, c, "c")?);
        let products = c.shape.map_or(1, |shape| shape.batch().count as u64);
        let products = is_batch.then_some(products);
        let lies = |operand| program.by_column(operand);
        let a = bind("a", &a, (("m", m), ("k", k)), lies(Operand::Input(0)))?;
        let b = bind("b", &b, (("k", k), ("n", n)), lies(Operand::Input(1)))?;
        let output = bind("c", &c, (("m", m), ("n", n)), lies(Operand::Output(0)))?;
        let mut inputs = vec![a.for_each_of(products), b.for_each_of(products)];
        // They record when they are dropped that they were used: not before the launch.
        let mut used = Vec::with_capacity(beside.arrays.len());
        for (operand, given) in operands::arrays(&program.program).zip(beside.arrays) {
            let array = resolve(on, given, operand.name)?;
            inputs.push(bind_beside(operand, &array, (m, n))?.for_each_of(products));
            used.push(array);
        }
        let mut problem = vec![m, n, k];
        problem.extend(products);
        problem.extend(beside.numbers.iter().map(|number| u64::from(number.to_bits())));
        launch(on, &program, &inputs, &[output.for_each_of(products)], &problem)
    })
}

/// A matrix by its lines, or their transpose.
fn viewed((lines, by_column): &(Matrix, bool)) -> MatrixRef<'_> {
    if *by_column { lines.view().t() } else { lines.view() }
}

/// An extent with its name.
type NamedExtent = (&'static str, u64);

/// The number of elements of a matrix.
fn elements(argument: &str, rows: NamedExtent, cols: NamedExtent) -> Result<u64> {
    let ((row_name, rows), (col_name, cols)) = (rows, cols);
    rows.checked_mul(cols).filter(|&n| usize::try_from(n).is_ok()).ok_or_else(|| Error::TooLarge {
        what: format!("`{argument}` would have {row_name}·{col_name} = {rows}·{cols} elements"),
        limit: usize::MAX as u64,
        remedy: "Check the order of the extents: (m, n, k)",
    })
}

fn check_exact(argument: &str, has: usize, rows: NamedExtent, cols: NamedExtent) -> Result<()> {
    let needed = elements(argument, rows, cols)?;
    if has as u64 == needed {
        return Ok(());
    }
    Err(wrong_extent(argument, has as u64, rows, cols, needed))
}

fn wrong_extent(
    argument: &str,
    has: u64,
    (row_name, rows): NamedExtent,
    (col_name, cols): NamedExtent,
    needed: u64,
) -> Error {
    let need = format!("{row_name}·{col_name} = {rows}·{cols} = {needed} are needed");
    Error::WrongExtent { argument: argument.to_owned(), has, need }
}

/// Checks that an operand holds the matrix, of which consecutive elements lie as the program reads them.
fn bind<'n, A: Address>(
    argument: &'n str,
    operand: &Resolved<'_, A>,
    (rows, cols): (NamedExtent, NamedExtent),
    by_column: bool,
) -> Result<Bound<'n, A>> {
    let needed = elements(argument, rows, cols)?;
    let address = operand.address.clone();
    let shape = match operand.shape {
        Some(shape) if (shape.rows as u64, shape.cols as u64) != (rows.1, cols.1) => {
            return Err(Error::WrongExtent {
                argument: argument.to_owned(),
                has: (shape.rows as u64).saturating_mul(shape.cols as u64),
                need: format!(
                    "its shape {}x{} is not {}x{} = {}x{}",
                    shape.rows, shape.cols, rows.0, cols.0, rows.1, cols.1
                ),
            });
        }
        Some(shape) => shape,
        None if operand.len < needed => {
            return Err(wrong_extent(argument, operand.len, rows, cols, needed));
        }
        None => {
            // They are extents of the caller's, of type usize.
            let (rows, cols) = (rows.1 as usize, cols.1 as usize);
            if by_column {
                Shape::packed(cols, rows).transposed()
            } else {
                Shape::packed(rows, cols)
            }
        }
    };
    Ok(Bound::matrix(argument, address, operand.len, shape))
}

/// Checks that an operand beside A and B has the elements that the kernel reads of it.
fn bind_beside<'n, A: Address>(
    operand: Taken<'n>,
    array: &Resolved<'_, A>,
    (m, n): (u64, u64),
) -> Result<Bound<'n, A>> {
    let ((extent, needed), lines) = match operand.along {
        Along::Mn | Along::Nothing => {
            return bind(operand.name, array, (("m", m), ("n", n)), false);
        }
        Along::N => (("n", n), "column"),
        Along::M => (("m", m), "row"),
    };
    if array.len < needed {
        return Err(Error::WrongExtent {
            argument: operand.name.to_owned(),
            has: array.len,
            need: format!("{extent} = {needed} are needed, one for each {lines} of C"),
        });
    }
    Ok(Bound::vector(operand.name, array.address.clone(), array.len, needed))
}
