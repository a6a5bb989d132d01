//! Matrix products.

use super::{Call, SgemmKernel};
use crate::address::Address;
use crate::device::{Device, dispatch};
use crate::error::{Error, Result};
use crate::launch::{Bound, launch};
use crate::launched::Launched;
use crate::matrix::Matrix;
use crate::operand::{self, Input, Output, Resolved};
use crate::program::Prepared;
use crate::shape::Shape;
use crate::view::{AsMatrix, AsMatrixMut, MatrixRef};
use gemm_dsl::ir::{Extent, Operand};
use gemm_dsl::spec::SgemmSpec;

impl SgemmKernel {
    /// Multiplies matrices of the host: uploads, launches, downloads. `size` is (m, n, k). A matrix that
    /// the kernel's `layout` transposes is given column by column. For a `pitched` kernel rows, or
    /// columns, are padded on the way.
    ///
    /// # Errors
    /// [`Error::WrongExtent`] where `a` has not m·k elements or `b` not k·n, and those of
    /// [`Device::upload`], [`SgemmKernel::launch`] and [`Device::download`].
    pub fn run(
        &self,
        device: &Device,
        a: &[f32],
        b: &[f32],
        size: (usize, usize, usize),
    ) -> Result<Vec<f32>> {
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

    /// Multiplies matrices on the device; `size` is (m, n, k). An operand is a vector of at least
    /// as many elements as the matrix has, one row after the other, or one column, as the kernel's
    /// `layout` says; or a matrix of just that shape which lies so. One with padding needs a `pitched` kernel. On a GPU the call returns before the
    /// work is done; later work of the device comes after it.
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
    {
        let program = self.prepare(device)?;
        let (m, n, k) = (size.0 as u64, size.1 as u64, size.2 as u64);
        dispatch!(device, on => {
            let a = operand::read(on, a, "a")?;
            let b = operand::read(on, b, "b")?;
            let c = operand::write(on, c, "c")?;
            let lies = |operand| (&*program, operand);
            let inputs = [
                bind("a", &a, (("m", m), ("k", k)), lies(Operand::Input(0)))?,
                bind("b", &b, (("k", k), ("n", n)), lies(Operand::Input(1)))?,
            ];
            let outputs = [bind("c", &c, (("m", m), ("n", n)), lies(Operand::Output(0)))?];
            launch(on, &program, &inputs, &outputs, &[m, n, k])
        })
    }

    fn is_pitched(&self, device: &Device) -> Result<bool> {
        let program = self.prepare(device)?;
        Ok(program.takes_strides())
    }
}

impl Call<'_, SgemmSpec> {
    /// Multiplies matrices on the device: C = A·B. Views say what the extents are. On a GPU the call
    /// returns before the work is done; later work of the device comes after it.
    ///
    /// # Errors
    /// [`Error::Extents`] where two views do not agree, and those of [`SgemmKernel::launch`].
    pub fn launch<A, B, C>(&self, a: &A, b: &B, c: &mut C) -> Result<Launched>
    where
        A: AsMatrix + ?Sized,
        B: AsMatrix + ?Sized,
        C: AsMatrixMut + ?Sized,
    {
        let (a, b, mut c) = (a.as_matrix(), b.as_matrix(), c.as_matrix_mut());
        let same = |extent, first: (&'static str, usize), other: (&'static str, usize)| {
            if first.1 == other.1 {
                return Ok(first.1);
            }
            Err(Error::Extents { extent, first, other })
        };
        let m = same(Extent::M, ("a", a.rows()), ("c", c.rows()))?;
        let n = same(Extent::N, ("b", b.cols()), ("c", c.cols()))?;
        let k = same(Extent::K, ("a", a.cols()), ("b", b.rows()))?;
        self.kernel.launch(self.device, &a, &b, &mut c, (m, n, k))
    }
}

/// A matrix by its lines, or their transpose.
fn viewed((lines, by_column): &(Matrix, bool)) -> MatrixRef<'_> {
    if *by_column { lines.view().t() } else { lines.view() }
}

/// An extent with its name.
type Named = (&'static str, u64);

/// The number of elements of a matrix.
fn elements(argument: &'static str, rows: Named, cols: Named) -> Result<u64> {
    let ((row_name, rows), (col_name, cols)) = (rows, cols);
    rows.checked_mul(cols).filter(|&n| usize::try_from(n).is_ok()).ok_or_else(|| Error::TooLarge {
        what: format!("`{argument}` would have {row_name}·{col_name} = {rows}·{cols} elements"),
        limit: usize::MAX as u64,
        remedy: "Check the order of the extents: (m, n, k)",
    })
}

fn check_exact(argument: &'static str, has: usize, rows: Named, cols: Named) -> Result<()> {
    let needed = elements(argument, rows, cols)?;
    if has as u64 == needed {
        return Ok(());
    }
    Err(wrong_extent(argument, has as u64, rows, cols, needed))
}

fn wrong_extent(
    argument: &'static str,
    has: u64,
    (row_name, rows): Named,
    (col_name, cols): Named,
    needed: u64,
) -> Error {
    let need = format!("{row_name}·{col_name} = {rows}·{cols} = {needed} are needed");
    Error::WrongExtent { argument, has, need }
}

/// Checks that an operand holds the matrix, of which consecutive elements lie as the program reads them.
fn bind<A: Address>(
    argument: &'static str,
    operand: &Resolved<'_, A>,
    (rows, cols): (Named, Named),
    (program, of): (&Prepared, Operand),
) -> Result<Bound<A>> {
    let needed = elements(argument, rows, cols)?;
    let address = operand.address.clone();
    let shape = match operand.shape {
        Some(shape) if (shape.rows as u64, shape.cols as u64) != (rows.1, cols.1) => {
            return Err(Error::WrongExtent {
                argument,
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
            if program.by_column(of) {
                Shape::packed(cols, rows).transposed()
            } else {
                Shape::packed(rows, cols)
            }
        }
    };
    Ok(Bound::matrix(argument, address, operand.len, shape))
}
